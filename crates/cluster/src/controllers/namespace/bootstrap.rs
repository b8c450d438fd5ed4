//! The initial objects of every namespace: the `default` service account and the server's certificate.

use crate::json::{Value, json};

use crate::access::Access;
use crate::controllers::{Changed, Controller, Next};
use crate::object;
use crate::status::Status;
use crate::store::Key;

const NAMESPACES: &str = "namespaces";
const SERVICE_ACCOUNTS: &str = "serviceaccounts";
const CONFIG_MAPS: &str = "configmaps";
const DEFAULT: &str = "default";
const ROOT_CA: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";

/// The exact text of the real ConfigMap, for clients that compare it.
const ABOUT_ROOT_CA: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
    endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
    distributions of Kubernetes clusters.";

/// Gives every namespace its `default` service account.
pub(crate) struct ServiceAccountController;

impl Controller for ServiceAccountController {
    fn name(&self) -> &'static str {
        "service-account-controller"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[NAMESPACES, SERVICE_ACCOUNTS]
    }

    fn concerned(&self, change: &Changed, _access: &dyn Access) -> Vec<Key> {
        match change {
            Changed {
                before: Some(gone),
                after: None,
                ..
            } => vec![Key::new("", object::namespace(gone))],
            Changed {
                resource,
                after: Some(namespace),
                ..
            } if &**resource == NAMESPACES => {
                vec![Key::new("", object::name(namespace))]
            }
            _ => Vec::new(),
        }
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        let namespace = access.get(NAMESPACES, "", &key.name);
        let is_active = namespace.is_some_and(|namespace| namespace["status"]["phase"] == "Active");
        if is_active && access.get(SERVICE_ACCOUNTS, &key.name, DEFAULT).is_none() {
            let account =
                json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DEFAULT}});
            create(SERVICE_ACCOUNTS, &key.name, account, access)?;
        }
        Ok(Next::Wait)
    }
}

/// Gives every namespace the CA certificate of the server.
pub(crate) struct RootCaPublisher {
    /// In PEM.
    pub(crate) certificate: String,
}

impl Controller for RootCaPublisher {
    fn name(&self) -> &'static str {
        "root-ca-cert-publisher"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[NAMESPACES, CONFIG_MAPS]
    }

    fn concerned(&self, change: &Changed, _access: &dyn Access) -> Vec<Key> {
        let Changed {
            resource,
            before,
            after,
        } = change;
        let Some(object) = after.as_ref().or(before.as_ref()) else {
            return Vec::new();
        };
        if &**resource == CONFIG_MAPS {
            let ours = before.is_some() && object::name(object) == ROOT_CA;
            return if ours {
                vec![Key::new("", object::namespace(object))]
            } else {
                Vec::new()
            };
        }
        let is_new = before.is_none();
        let is_live = after
            .as_ref()
            .is_some_and(|namespace| is_new || namespace["status"]["phase"] == "Active");
        if is_live {
            vec![Key::new("", object::name(object))]
        } else {
            Vec::new()
        }
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        let data = json!({"ca.crt": self.certificate});
        let Some(live) = access.get(CONFIG_MAPS, &key.name, ROOT_CA) else {
            let metadata = json!({"name": ROOT_CA, "annotations": {DESCRIPTION: ABOUT_ROOT_CA}});
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
            create(CONFIG_MAPS, &key.name, map, access)?;
            return Ok(Next::Wait);
        };
        let is_described = live["metadata"]["annotations"][DESCRIPTION]
            .as_str()
            .is_some_and(|text| !text.is_empty());
        if live["data"] != data || !is_described {
            let mut map = (*live).clone();
            let annotations = object::metadata_mut(&mut map)
                .entry("annotations")
                .or_insert_with(|| json!({}));
            if !annotations.is_object() {
                *annotations = json!({});
            }
            annotations[DESCRIPTION] = ABOUT_ROOT_CA.into();
            map["data"] = data;
            access.update(CONFIG_MAPS, &key.name, ROOT_CA, map)?;
        }
        Ok(Next::Wait)
    }
}

/// Creates an object unless it exists, or its namespace is being deleted.
fn create(resource: &str, namespace: &str, object: Value, access: &dyn Access) -> Result<(), Status> {
    match access.create(resource, namespace, object) {
        Ok(_) => Ok(()),
        Err(status) if status.reason == "AlreadyExists" || status.is_not_found() => Ok(()),
        Err(status) if status.is_about_terminating_namespace() => Ok(()),
        Err(status) => Err(status),
    }
}
