//! CustomResourceDefinitions: accepted, established, served; on deletion emptied and no longer served.
//!
//! Part of the API server on a real cluster, so it uses the server directly.

use std::sync::Arc;

use crate::json::{Value, json};

use super::{Changed, Controller, Next};
use crate::access::Access;
use crate::custom::{CustomType, crd_status};
use crate::object;
use crate::server::Server;
use crate::status::Status;
use crate::store::Key;

const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Serves the types of the CRDs.
pub(crate) struct Definitions(pub(crate) Arc<Server>);

impl Controller for Definitions {
    fn name(&self) -> &'static str {
        "apiextensions-apiserver"
    }

    fn watches(&self) -> &'static [&'static str] {
        &["*"]
    }

    fn concerned(&self, change: &Changed, _access: &dyn Access) -> Vec<Key> {
        if &*change.resource == DEFINITIONS {
            let definition = change.after.as_ref().or(change.before.as_ref());
            return definition
                .map(|definition| Key::new("", object::name(definition)))
                .into_iter()
                .collect();
        }
        // The last instance of a CRD that is being deleted.
        match (&change.after, change.resource.contains('.')) {
            (None, true) => vec![Key::new("", &change.resource)],
            _ => Vec::new(),
        }
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        let Some(definition) = access.get(DEFINITIONS, "", &key.name) else {
            self.0.registry.remove(&key.name);
            return Ok(Next::Wait);
        };
        if object::is_terminating(&definition) {
            return self.empty(&definition, access);
        }
        if !self.0.registry.serves(&definition) {
            // It passed validation: an invalid one was never stored.
            let Some(custom) = CustomType::of_stored_crd(&definition) else {
                return Ok(Next::Wait);
            };
            self.0.registry.add(custom);
        }
        let all = access.list(DEFINITIONS, "");
        let others: Vec<_> = all
            .iter()
            .map(|other| &**other)
            .filter(|other| object::name(other) != key.name)
            .collect();
        let status = crd_status(&definition, &others, access.now());
        if definition["status"] != status {
            access.replace_status(DEFINITIONS, &definition, status)?;
        }
        Ok(Next::Wait)
    }
}

impl Definitions {
    /// Deletes the instances, then removes the CRD's finalizer.
    fn empty(&self, definition: &Value, access: &dyn Access) -> Result<Next, Status> {
        let name = object::name(definition);
        let instances = access.list(name, "");
        for instance in instances
            .iter()
            .filter(|instance| !object::is_terminating(instance))
        {
            match access.delete(
                name,
                object::namespace(instance),
                object::name(instance),
                json!({}),
            ) {
                Err(status) if !status.is_not_found() => return Err(status),
                _ => {}
            }
        }
        if !access.list(name, "").is_empty() {
            return Ok(Next::Wait);
        }
        self.0.registry.remove(name);
        let mut new = definition.clone();
        let left: Vec<_> = object::finalizers(definition)
            .filter(|one| *one != CLEANUP)
            .map(Value::from)
            .collect();
        object::metadata_mut(&mut new).insert("finalizers".into(), left.into());
        match access.update(DEFINITIONS, "", name, new) {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(Next::Wait),
        }
    }
}
