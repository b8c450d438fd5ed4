//! The scale subresource: the replicas and the selector.

use crate::json::{Value, json};

use super::create::check_namespace;
use super::modify::{check_name, check_uid, unpatchable};
use super::{Caller, Change, Server, Target, WriteOptions, Written};
use crate::builtin;
use crate::object;
use crate::patch;
use crate::resource::{Model, Resource};
use crate::status::{About, Status};
use crate::store::Transaction;

const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// The Scale of an object.
pub(super) fn scale_of(resource: &Resource, owner: &Value) -> Value {
    let (replicas, status_replicas, selector) = match &resource.model {
        Model::Builtin { .. } => (
            owner["spec"]["replicas"].as_i64().unwrap_or(0),
            owner["status"]["replicas"].as_i64().unwrap_or(0),
            crate::selector::from_label_selector(&owner["spec"]["selector"]),
        ),
        Model::Custom(custom) => {
            // A custom type has a scale only if its CRD declares one.
            let scale = custom.version.scale.as_ref();
            return scale
                .and_then(|scale| scale.to_scale(owner).ok())
                .unwrap_or(Value::Null);
        }
    };
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = owner["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {}, "status": {"replicas": status_replicas},
    });
    if replicas != 0 {
        scale["spec"]["replicas"] = replicas.into();
    }
    if !selector.is_empty() {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

/// Whether a custom object has no desired replicas.
pub(super) fn says_no_replicas(resource: &Resource, owner: &Value) -> bool {
    let at = |model| replicas_path(model).into_iter().fold(owner, |at, name| &at[name]);
    matches!(resource.model, Model::Custom(_)) && at(&resource.model).is_null()
}

/// The replicas of a Scale whose object has none.
const NO_REPLICAS: i64 = i32::MIN as i64;

/// The path of the replicas in an object.
pub(super) fn replicas_path(model: &Model) -> Vec<&str> {
    match model {
        Model::Builtin { .. } => vec!["spec", "replicas"],
        Model::Custom(custom) => {
            let path = custom
                .version
                .scale
                .as_ref()
                .map_or("", |scale| scale.spec_replicas.as_str());
            path.split('.').filter(|step| !step.is_empty()).collect()
        }
    }
}

impl Server {
    /// Changes the replicas through the Scale, like `kubectl scale` and autoscalers.
    pub(super) fn modify_scale_in(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        change: Change<'_>,
        options: &WriteOptions,
        caller: &Caller,
    ) -> Result<Written, Status> {
        if let Change::Replace(body) = change {
            check_name(target, body)?;
        }
        let Some(owner) = tx.get(target.shelf(), &target.key()).cloned() else {
            return Err(Status::not_found(target.about()));
        };
        let about = About {
            group: "autoscaling",
            plural: "scales",
            kind: "Scale",
            name: &target.name,
        };
        let mut old = scale_of(&target.resource, &owner);
        if says_no_replicas(&target.resource, &owner) {
            old["spec"]["replicas"] = NO_REPLICAS.into();
        }
        let wished = match change {
            Change::Replace(body) => body.clone(),
            Change::Status { base, .. } => Value::clone(base),
            Change::Json(patch) => patch::json(&old, patch)?,
            Change::Merge(patch) | Change::Strategic(patch) | Change::Apply(patch) => {
                patch::merge(&old, patch)?
            }
        };
        let mut new = match crate::types::decode(SCALE, &wished) {
            Some(Ok(decoded)) => decoded.value,
            Some(Err(mismatch)) if matches!(change, Change::Json(_) | Change::Merge(_)) => {
                return Err(unpatchable(wished.to_string(), mismatch.to_string()));
            }
            Some(Err(mismatch)) => {
                let message = format!("Scale in version \"v1\" cannot be handled as a Scale: {mismatch}");
                return Err(Status::bad_request(message));
            }
            None => return Err(Status::internal(format!("no type {SCALE}"))),
        };
        check_namespace(target, &mut new)?;
        let replicas = new["spec"]["replicas"].as_i64().unwrap_or(0);
        if replicas == NO_REPLICAS {
            let path = replicas_path(&target.resource.model).join(".");
            return Err(Status::bad_request(format!(
                "the spec replicas field \".{path}\" cannot be empty"
            )));
        }
        if matches!(change, Change::Replace(_)) {
            check_uid(target, &owner, &new, options.dry_run)?;
        }
        // The replicas of a custom object are validated by its schema.
        let errors = match target.resource.model {
            Model::Builtin { .. } => builtin::validate_scale(&new),
            Model::Custom(_) => Vec::new(),
        };
        if !errors.is_empty() {
            return Err(Status::invalid(about, &errors));
        }
        let given = object::resource_version(&new);
        if !given.is_empty() && given != object::resource_version(&owner) {
            return Err(Status::modified(target.about()));
        }

        let mut scaled = Value::clone(&owner);
        match &target.resource.model {
            Model::Builtin { .. } => scaled["spec"]["replicas"] = replicas.into(),
            Model::Custom(custom) => {
                if let Some(Err(error)) = custom
                    .version
                    .scale
                    .as_ref()
                    .map(|scale| scale.set_replicas(&mut scaled, replicas))
                {
                    return Err(Status::internal(error.to_string()));
                }
            }
        }
        let mut written = self.modify_in(tx, target, Change::Replace(&scaled), options, caller)?;
        written.object = scale_of(&target.resource, &written.object).into();
        Ok(written)
    }
}
