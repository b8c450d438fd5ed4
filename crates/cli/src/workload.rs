//! The StatefulSet of a rollout, and changes of its template that are bound to the template that was read.

use futures::future::join;
use json_patch::Patch as JsonPatch;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use kube::api::{ApiResource, DynamicObject, Patch};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use stateward_client::{ObjectName, Objects};
use stateward_core::stable_copy::{self, Owner};

use crate::dry_run::DryRun;
use crate::error::Error;
use crate::input::name::Name;
use crate::rollout::{Rollout, parse};
use crate::session::Session;
use crate::unknown_outcome::{may_have_been_made, unknown_outcome};

/// A rollout and its StatefulSet, with all fields of the server.
pub(crate) struct Workload {
    pub(crate) rollout: Rollout,
    /// From the operator's own copy: Kubernetes may have deleted the revision.
    pub(crate) stable_template: Option<Value>,
    pub(crate) set: DynamicObject,
}

impl Workload {
    /// `spec.template`
    pub(crate) fn template(&self) -> Value {
        self.set
            .data
            .pointer("/spec/template")
            .cloned()
            .unwrap_or_default()
    }

    /// `statefulset.apps/db`
    pub(crate) fn set_name(&self) -> String {
        format!("statefulset.apps/{}", self.rollout.workload)
    }
}

impl Session<'_> {
    /// A rollout and its workload.
    pub(crate) async fn workload(&self, name: &Name) -> Result<Workload, Error> {
        // Most rollouts have the name of their StatefulSet, so both are read at once.
        let (object, guess) = join(self.whole_rollout(name), self.whole_set(name.as_str())).await;
        let object = object?;
        let rollout = parse(object.clone())?;
        if let Err(invalid) = ObjectName::new(&rollout.workload) {
            return Err(Error::Refused(format!(
                "{} cannot be read: its workload {invalid}",
                rollout.title()
            )));
        }
        if rollout.workload_kind != "StatefulSet" {
            return Err(Error::Refused(format!(
                "{} rolls {} {}; this verb is for StatefulSets",
                rollout.title(),
                rollout.workload_kind.to_lowercase(),
                rollout.workload
            )));
        }
        let set = async {
            if rollout.workload == name.as_str() {
                guess
            } else {
                self.whole_set(&rollout.workload).await
            }
        };
        let (set, stable_template) = join(set, self.stable_template(&object)).await;
        let Some(set) = set? else {
            return Err(Error::Refused(format!(
                "statefulset {}, which {} is for, is not there in namespace {}",
                rollout.workload,
                rollout.title(),
                self.namespace
            )));
        };
        Ok(Workload {
            rollout,
            stable_template: stable_template?,
            set,
        })
    }

    /// The stable template of a rollout, from the operator's copy, if that is intact.
    pub async fn stable_template(&self, rollout: &DynamicObject) -> Result<Option<Value>, Error> {
        let name = rollout.data.pointer("/status/stableTemplateCopy");
        let (Some(name), Some(types)) = (name.and_then(Value::as_str), &rollout.types) else {
            return Ok(None);
        };
        let owner = Owner {
            api_version: types.api_version.clone(),
            kind: types.kind.clone(),
            name: rollout.name_any(),
            uid: rollout.uid().unwrap_or_default(),
        };
        // Anyone who may write the status can write any text here.
        let Ok(name) = ObjectName::new(name) else {
            return Ok(None);
        };
        let copies: Api<ControllerRevision> = Api::namespaced(self.client.clone(), &self.namespace);
        let copy = Objects::from(copies).get(&name).await;
        let copy = copy.map_err(Error::api(format!("read controllerrevision {name}")))?;
        Ok(copy.and_then(|copy| stable_copy::template(&json!(copy), &owner)))
    }

    fn whole_sets(&self) -> Objects<DynamicObject> {
        let resource = ApiResource::erase::<StatefulSet>(&());
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource).into()
    }

    async fn whole_set(&self, name: &str) -> Result<Option<DynamicObject>, Error> {
        let read = self.whole_sets().get(&ObjectName::new(name)?).await;
        read.map_err(Error::api(format!("read statefulset {name}")))
    }

    /// Sets another template, if the current one is still the one that was read.
    pub(crate) async fn give_template(
        &self,
        seen: &Workload,
        template: &Value,
        dry_run: DryRun,
    ) -> Result<(), Error> {
        if dry_run == DryRun::Client {
            return Ok(());
        }
        let name = seen.set.name_any();
        let patch: Patch<DynamicObject> = Patch::Json(patch(seen, template)?);
        let sent = self
            .whole_sets()
            .patch(&ObjectName::new(&name)?, &dry_run.params(), &patch)
            .await;
        let refused = match sent {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        // The server does not report which test failed, so read the object again.
        let is_test = matches!(&refused, kube::Error::Api(status) if matches!(status.code, 409 | 422));
        if is_test && let Ok(now) = self.whole_set(&name).await {
            let moved_on = match now {
                None => Some("is gone"),
                Some(now) if now.uid() != seen.set.uid() => Some("was deleted and created again"),
                Some(now) if now.data.pointer("/spec/template") != Some(&seen.template()) => {
                    Some("has got another template meanwhile; look again")
                }
                Some(_) => None,
            };
            if let Some(what) = moved_on {
                return Err(Error::Refused(format!(
                    "statefulset {name} {what}; nothing was changed"
                )));
            }
        }
        let unknown = may_have_been_made(&refused);
        let error = Error::api(format!("change the template of statefulset {name}"))(refused);
        if unknown {
            let what = format!("the template of statefulset {name} was changed");
            return Err(unknown_outcome(
                &error.cause(),
                &what,
                &seen.rollout,
                dry_run,
                self.program,
            ));
        }
        Err(error)
    }
}

/// Bound to the StatefulSet and to the template that was read. The resourceVersion would change with every pod.
fn patch(seen: &Workload, template: &Value) -> Result<JsonPatch, Error> {
    let operations = json!([
        {"op": "test", "path": "/metadata/uid", "value": seen.set.uid()},
        {"op": "test", "path": "/spec/template", "value": seen.template()},
        {"op": "replace", "path": "/spec/template", "value": template},
    ]);
    serde_json::from_value(operations).map_err(|error| Error::Format {
        format: "json",
        why: error.to_string(),
    })
}

/// Whether two templates are equal; null fields count as absent.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    without_nulls(one) == without_nulls(other)
}

/// A template without null fields, which older servers kept.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
