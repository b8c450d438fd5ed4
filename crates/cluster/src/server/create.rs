//! Creates an object.

use crate::json::{Value, json};

use super::modify::never_owned;
use super::{
    Caller, Server, Target, WriteOptions, Written, decode, manager, unconvertible, unknown_fields, unreadable,
};
use crate::builtin::{self, Endpoint};
use crate::custom::{self, CustomType};
use crate::events;
use crate::object::{self, Object};
use crate::patch::Managers;
use crate::patch::managed::{self, Write};
use crate::resource::{Model, Resource};
use crate::status::{About, FieldError, Status};
use crate::store::{Key, Shelf, Transaction};
use crate::types;

/// How many generated names are tried if one is taken.
const NAME_TRIES: usize = 8;

/// The owners of a new object's fields.
enum Ownership<'w> {
    /// The writer owns them.
    Of(&'w Write<'w>),
    /// An apply has already set them.
    Settled(Managers),
}

impl Server {
    /// Creates `body` in the target's collection.
    pub(crate) fn create(
        &self,
        target: &Target,
        body: &Value,
        options: &WriteOptions,
        caller: &Caller,
    ) -> Result<Written, Status> {
        self.store
            .write(|tx| self.create_in(tx, target, body, options, caller))
    }

    pub(super) fn create_in(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        body: &Value,
        options: &WriteOptions,
        caller: &Caller,
    ) -> Result<Written, Status> {
        let api_version = target.resource.api_version();
        let write = Write {
            manager: manager(options, caller),
            subresource: &target.subresource,
            api_version: &api_version,
            kind: &target.resource.kind,
            reset: never_owned(&target.resource, Endpoint::of(&target.subresource)),
            now: &self.now_text(),
        };
        self.make(tx, target, body, options, Ownership::Of(&write))
    }

    /// Creates the result of a server-side apply; its fields have their owners already.
    pub(super) fn create_applied_in(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        (applied, managers): (Value, Managers),
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        self.make(tx, target, &applied, options, Ownership::Settled(managers))
    }

    fn make(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        body: &Value,
        options: &WriteOptions,
        ownership: Ownership<'_>,
    ) -> Result<Written, Status> {
        let resource = &*target.resource;
        check_kind(resource, body)?;
        let (new, unknown) = decode(resource, body).map_err(|why| match ownership {
            Ownership::Settled(_) => {
                unconvertible(resource, object::namespace(body), object::name(body), &why)
            }
            Ownership::Of(_) => unreadable(resource, why),
        })?;
        let warnings = unknown_fields(&unknown, options).map_err(|why| unreadable(resource, why))?;
        let mut made = self
            .make_decoded(tx, target, new, options, ownership)
            .map_err(|refused| refused.warning(&warnings))?;
        made.warnings = warnings;
        made.warnings.extend(not_run(resource));
        Ok(made)
    }

    /// Like `make`, with a decoded body.
    fn make_decoded(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        mut new: Value,
        options: &WriteOptions,
        ownership: Ownership<'_>,
    ) -> Result<Written, Status> {
        let resource = &*target.resource;
        check_namespace(target, &mut new)?;
        self.check_namespace_accepts(tx, target, object::name_or_prefix(&new))?;
        let given_version = object::metadata_mut(&mut new).remove("resourceVersion");
        let has_version = given_version.is_some_and(|version| version != "");

        let uid = self.new_uid();
        let generated = self.stamp_new(&mut new, &uid);
        match &resource.model {
            Model::Builtin { .. } => builtin::default(&resource.id, &mut new),
            Model::Custom(custom) => {
                if custom.version.has_status
                    && let Value::Object(fields) = &mut new
                {
                    fields.remove("status");
                }
                custom::default(custom, &mut new);
            }
        }
        let managers = match ownership {
            Ownership::Of(write) => managed::update(None, &mut new, write, resource.shape()),
            Ownership::Settled(managers) => managers,
        };
        if events::is_redressed(&resource.id) {
            new = events::as_core(&new);
        }
        let errors = match &resource.model {
            Model::Builtin { .. } => {
                if target.subresource.is_empty() {
                    builtin::prepare_create(&resource.id, &mut new, &self.context(&uid));
                    self.assign_addresses(tx, target, &mut new)?;
                } else {
                    builtin::prepare_create_by_status(&mut new);
                }
                let mut errors = builtin::validate_create(&resource.id, &new);
                errors.extend(definition_errors(target, &new, None));
                errors
            }
            Model::Custom(custom) => {
                object::metadata_mut(&mut new).insert("generation".into(), 1.into());
                check_type(target, &new)?;
                custom::validate_after(builtin::validate_create(&resource.id, &new), custom, &new, None)
            }
        };
        let name = object::name(&new).to_owned();
        if !errors.is_empty() {
            return Err(Status::invalid(target.about_named(&name), &errors));
        }

        // The storage reports this, and a dry run does not get that far.
        if has_version && !options.dry_run {
            return Err(Status::internal_plain(
                "resourceVersion should not be set on objects to be created",
            ));
        }

        let mut key = Key::new(&target.namespace, &name);
        for _ in 0..NAME_TRIES {
            if tx.get(target.shelf(), &key).is_none() {
                break;
            }
            if generated.is_none() {
                let mut status = Status::already_exists(target.about_named(&name));
                if tx
                    .get(target.shelf(), &key)
                    .is_some_and(|there| object::is_terminating(there))
                {
                    status.message.insert_str(0, "object is being deleted: ");
                }
                return Err(status);
            }
            let prefix = generated.as_deref().unwrap_or_default();
            key.name = self.generate_name(prefix);
            object::metadata_mut(&mut new).insert("name".into(), key.name.as_str().into());
        }
        if tx.get(target.shelf(), &key).is_some() {
            return Err(Status::already_exists(target.about_named(&key.name)));
        }

        let object = if options.dry_run {
            Object::new(new, managers)
        } else {
            tx.put(target.shelf(), key, new, managers)
        };
        Ok(Written {
            object,
            created: true,
            warnings: Vec::new(),
        })
    }

    /// Sets the system fields of a new object; returns the prefix if its name is generated.
    fn stamp_new(&self, new: &mut Value, uid: &str) -> Option<String> {
        let metadata = object::metadata_mut(new);
        for given in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
            "generation",
        ] {
            metadata.remove(given);
        }
        metadata.insert("uid".into(), uid.into());
        metadata.insert("creationTimestamp".into(), self.now_text().into());
        let prefix = metadata
            .get("generateName")
            .and_then(Value::as_str)
            .filter(|prefix| !prefix.is_empty());
        let unnamed = metadata
            .get("name")
            .and_then(Value::as_str)
            .is_none_or(str::is_empty);
        let prefix = prefix.filter(|_| unnamed).map(str::to_owned)?;
        let name = self.generate_name(&prefix);
        metadata.insert("name".into(), name.into());
        Some(prefix)
    }

    /// Gives a Service its missing address and node ports.
    pub(super) fn assign_addresses(
        &self,
        tx: &Transaction<'_>,
        target: &Target,
        service: &mut Value,
    ) -> Result<(), Status> {
        if &*target.resource.id != "services" {
            return Ok(());
        }
        let others = tx.list(&target.resource.shelf, None);
        if builtin::wants_address(service) {
            let taken: Vec<_> = others
                .iter()
                .filter_map(|other| other["spec"]["clusterIP"].as_str())
                .collect();
            // 10.0.0.1 is the API server's own.
            let free = (2..255)
                .map(|host| format!("10.0.0.{host}"))
                .find(|ip| !taken.contains(&ip.as_str()))
                .unwrap_or_default();
            // An address is allocated to a name.
            if object::name(service).is_empty() {
                let why = format!(
                    "failed to allocate IP: IPAddress.networking.k8s.io {free:?} is invalid: spec.parentRef.name: Required value"
                );
                let error = FieldError::invalid("spec.clusterIPs", &json!([""]), why);
                return Err(Status::invalid(target.about_named(""), &[error]));
            }
            builtin::give_address(service, &free);
        }
        let ports = others
            .iter()
            .flat_map(|other| other["spec"]["ports"].as_array().into_iter().flatten());
        let taken: Vec<_> = ports.filter_map(|port| port["nodePort"].as_u64()).collect();
        let mut free = (30_000_u16..=32_767).filter(|port| !taken.contains(&u64::from(*port)));
        builtin::give_node_ports(service, || free.next().unwrap_or(0));
        Ok(())
    }

    /// The namespace of an object must exist and must not be terminating.
    fn check_namespace_accepts(
        &self,
        tx: &Transaction<'_>,
        target: &Target,
        name: &str,
    ) -> Result<(), Status> {
        if target.namespace.is_empty() {
            return Ok(());
        }
        let namespace = tx.get(&Shelf::new("", "namespaces"), &Key::new("", &target.namespace));
        let about = About {
            group: "",
            plural: "namespaces",
            kind: "Namespace",
            name: &target.namespace,
        };
        match namespace {
            None => Err(Status::not_found(about)),
            Some(namespace) if object::is_terminating(namespace) => {
                let (given, name) = (&target.namespace, target.about_named(name));
                let why = format!(
                    "unable to create new content in namespace {given} because it is being terminated"
                );
                let mut status = Status::forbidden(name, &why);
                if let Some(details) = &mut status.details {
                    let message = format!("namespace {given} is being terminated");
                    details["causes"] = json!([{"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}]);
                }
                Err(status)
            }
            Some(_) => Ok(()),
        }
    }
}

/// The body must have the kind of the path; built-in ones may omit it.
pub(super) fn check_kind(resource: &Resource, body: &Value) -> Result<(), Status> {
    let (api_version, kind) = (
        body["apiVersion"].as_str().unwrap_or_default(),
        body["kind"].as_str().unwrap_or_default(),
    );
    if !body.is_object() {
        let message = "couldn't get version/kind; json parse error: json: cannot unmarshal into Go value of type struct \
                       { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
        return Err(Status::bad_request(message));
    }
    let expected = resource.api_version();
    if kind.is_empty() && api_version.is_empty() && matches!(resource.model, Model::Builtin { .. }) {
        return Ok(());
    }
    if !kind.is_empty() && !resource.is_custom() {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if !api_version.is_empty()
            && types::builtin(&stateward_schema::type_name(group, version, kind)).is_none()
        {
            return Err(Status::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {}: no kind {kind:?} is registered for version \
                 {api_version:?} in scheme \"pkg/runtime/scheme.go:111\"",
                resource.kind
            )));
        }
    }
    if !kind.is_empty() && kind != resource.kind && !resource.is_custom() {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let message = format!(
            "{kind} in version {version:?} cannot be handled as a {}: the kinds do not match",
            resource.kind
        );
        return Err(Status::bad_request(message));
    }
    if (!api_version.is_empty() || resource.is_custom()) && api_version != expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    Ok(())
}

/// The kind and version of a custom object are checked before anything else.
pub(super) fn check_type(target: &Target, object: &Value) -> Result<(), Status> {
    let resource = &*target.resource;
    let mut errors = Vec::new();
    for (field, known) in [("kind", &resource.kind), ("apiVersion", &resource.api_version())] {
        if object[field].as_str() != Some(known) {
            errors.push(FieldError::invalid(
                field,
                &object[field],
                format!("must be {known}"),
            ));
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    let about = About {
        kind: object["kind"].as_str().unwrap_or_default(),
        ..target.about_named(object::name(object))
    };
    Err(Status::invalid(about, &errors))
}

/// A warning for kinds that are stored but have no controller here.
fn not_run(resource: &Resource) -> Option<String> {
    let waits = matches!(
        &*resource.id,
        "daemonsets.apps"
            | "deployments.apps"
            | "replicasets.apps"
            | "cronjobs.batch"
            | "horizontalpodautoscalers.autoscaling"
    );
    waits.then(|| {
        format!(
            "this embedded cluster stores a {} but does not run it: no controller acts on it",
            resource.kind
        )
    })
}

/// The object's namespace must be that of the path.
pub(super) fn check_namespace(target: &Target, object: &mut Value) -> Result<(), Status> {
    let given = object::namespace(object);
    // On a cluster-scoped object a namespace is dropped.
    if !given.is_empty() && !target.namespace.is_empty() && given != target.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let metadata = object::metadata_mut(object);
    if target.namespace.is_empty() {
        metadata.remove("namespace");
    } else if metadata
        .get("namespace")
        .is_none_or(|given| *given != target.namespace)
    {
        metadata.insert("namespace".into(), target.namespace.as_str().into());
    }
    Ok(())
}

/// The errors in the schemas of a CRD.
pub(super) fn definition_errors(target: &Target, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    if &*target.resource.id != "customresourcedefinitions.apiextensions.k8s.io"
        || target.subresource == "status"
    {
        return Vec::new();
    }
    CustomType::errors(new, old)
}
