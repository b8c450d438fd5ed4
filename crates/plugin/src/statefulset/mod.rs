//! StatefulSets: the share is the `partition` of their rolling update.
//!
//! - [`view`]: sets and pods with only the fields that decisions read.
//! - [`cache`]: all of them, indexed, kept current by watches.
//! - [`read`]: a set and its pods as a workload.
//! - this file: the requests.

mod cache;
mod read;
mod trouble;
mod unready;
mod view;

use async_trait::async_trait;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::{NamespaceResourceScope, PartialObjectMeta};
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};
use stateward_client::{ObjectName, Objects};
use stateward_core::plan::Share;
use stateward_core::world::{Action, LeftAs};

pub use self::cache::{Caches, Changed};
use self::view::Left;
use crate::{Done, Observation, PluginError, ResourcePlugin, Snapshot, Target, Version, words};

/// The field manager of everything the plugin writes to a set.
pub const FIELD_MANAGER: &str = "stateward";

/// The annotation that names the object that manages a set. Only this object's operator moves the partition.
pub const MANAGED_BY: &str = "stateward.dev/managed-by";

/// The annotation of a set released in the middle of a rollout: the partition at that moment, and the one that users had set.
pub const LEFT: &str = "stateward.dev/left";

/// The annotation in which sts-plus-operator names the PhasedRollout that manages a set. It counts only if no object here has
/// claimed the set, and is removed when the named object releases it.
pub const PEER_MANAGED_BY: &str = "sts.plus/phasedRollout";

/// The built-in plugin for StatefulSets.
pub struct StatefulSets {
    client: Client,
    caches: Caches,
}

impl StatefulSets {
    /// A plugin that writes through `client` and reads from `caches`.
    pub fn new(client: Client, caches: Caches) -> Self {
        Self { client, caches }
    }

    fn objects<K>(&self, target: &Target) -> Result<Objects<K>, PluginError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Ok(Objects::namespaced(&self.client, &name(&target.namespace)?))
    }

    /// Applies `spec` and the claim to a set at the observed version, and records the new version.
    async fn apply(&self, target: &Target, at: &Version, spec: Value) -> Result<Done, PluginError> {
        let patch = json!({
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {
                "name": target.name,
                "resourceVersion": at.0,
                "annotations": {MANAGED_BY: target.manager.claim()},
            },
            "spec": &spec,
        });
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let sets = self.objects::<StatefulSet>(target)?;
        let written = sets
            .patch(&name(&target.name)?, &params, &Patch::Apply(patch))
            .await;
        let written = written.map_err(|error| refusal(error, target, "cannot set the partition"))?;
        self.caches
            .wrote_set(&target.namespace, &target.name, written.resource_version());
        // If admission changed the partition, the same write would be repeated endlessly.
        let partition = |spec: &Value| spec.pointer("/updateStrategy/rollingUpdate/partition").cloned();
        if let Some(asked) = partition(&spec)
            && let Some(set) = partition(&json!(written.spec)).filter(|set| *set != asked)
        {
            return Err(PluginError::Failed {
                what: format!("cannot set the partition of {} to {asked}", set_name(target)),
                cause: format!("an admission webhook or policy has made it {set}"),
            });
        }
        Ok(Done::Changed)
    }

    /// Asks the API server, because a set may have been created while the watch was interrupted: refusing a command or releasing an
    /// object because of that would be wrong.
    async fn exists(&self, target: &Target) -> Result<bool, PluginError> {
        // The engine reports an invalid name.
        let Ok(name) = ObjectName::new(&target.name) else {
            return Ok(false);
        };
        let sets = self.objects::<PartialObjectMeta<StatefulSet>>(target)?;
        let found = sets.find(&name).await;
        match found {
            Ok(set) => Ok(set.is_some()),
            Err(error) => Err(refusal(error, target, "cannot look for the set")),
        }
    }

    fn replicas(&self, target: &Target) -> Result<u32, PluginError> {
        let set = self.caches.set(&target.namespace, &target.name);
        let set = set.ok_or_else(|| PluginError::Gone(set_name(target)))?;
        Ok(set.replicas())
    }

    /// The partition that releases a share.
    fn partition(&self, target: &Target, share: Share) -> Result<u32, PluginError> {
        let replicas = self.replicas(target)?;
        Ok(replicas - share.of(replicas))
    }
}

fn name(text: &str) -> Result<ObjectName, PluginError> {
    ObjectName::new(text).map_err(|error| PluginError::Failed {
        what: "cannot send a request".into(),
        cause: error.to_string(),
    })
}

fn set_name(target: &Target) -> String {
    format!("StatefulSet {}", target.name)
}

fn refusal(error: kube::Error, target: &Target, what: &str) -> PluginError {
    match &error {
        kube::Error::Api(status) if status.code == 409 => PluginError::Conflict(set_name(target)),
        kube::Error::Api(status) if status.code == 404 => PluginError::Gone(set_name(target)),
        _ => PluginError::Failed {
            what: format!("{what} of {}", set_name(target)),
            cause: words(&error),
        },
    }
}

/// The message of a refused eviction: its cause names the budget and its numbers.
fn budget(status: &kube::core::Status) -> String {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes: Vec<_> = causes.map(|cause| cause.message.as_str()).collect();
    if causes.is_empty() {
        status.message.clone()
    } else {
        causes.join("; ")
    }
}

#[async_trait]
impl ResourcePlugin for StatefulSets {
    async fn init(&self) -> Result<(), PluginError> {
        Ok(())
    }

    async fn observe(&self, target: &Target) -> Result<Option<Observation>, PluginError> {
        if self.caches.set(&target.namespace, &target.name).is_none() && self.exists(target).await? {
            return Err(PluginError::Conflict(set_name(target)));
        }
        Ok(self.caches.observe(target))
    }

    async fn held_elsewhere(&self, target: &Target) -> Result<Option<String>, PluginError> {
        Ok(self.caches.held_elsewhere(target))
    }

    async fn set_weight(&self, target: &Target, at: &Version, share: Share) -> Result<Done, PluginError> {
        let partition = self.partition(target, share)?;
        if let Some(set) = self.caches.set(&target.namespace, &target.name) {
            tracing::info!("{share}: partition {} -> {partition}", set.partition());
        }
        let spec =
            json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}});
        self.apply(target, at, spec).await
    }

    async fn verify_weight(&self, target: &Target, share: Share) -> Result<bool, PluginError> {
        let Some(observation) = self.caches.observe(target) else {
            return Ok(false);
        };
        let Ok(workload) = observation.workload else {
            return Ok(false);
        };
        let due = share.of(workload.replicas);
        Ok(workload.observed && workload.released >= i64::from(due) && workload.told.updated >= due)
    }

    async fn replace_pod(
        &self,
        target: &Target,
        pod: &str,
        uid: &str,
        serving: bool,
    ) -> Result<Done, PluginError> {
        let pods = self.objects::<Pod>(target)?;
        let pod_name = name(pod)?;
        let outcome = if serving {
            // Built by hand: `Api::evict` writes `delete_options`, which the API server ignores.
            let eviction = json!({
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": pod, "namespace": target.namespace},
                "deleteOptions": {"preconditions": {"uid": uid}},
            });
            let evicted = pods.create_subresource("eviction", &pod_name, &eviction);
            evicted.await.map(|_| true)
        } else {
            // Deleting it is harmless only while it is not Ready: if it has become Ready, decide again.
            let Some(version) = self.caches.version_not_ready(&target.namespace, pod, uid) else {
                return Ok(Done::Unchanged);
            };
            let preconditions = Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: Some(version),
            };
            pods.delete_if(&pod_name, preconditions).await
        };
        match outcome {
            Ok(false) => Ok(Done::Unchanged),
            Ok(true) => {
                self.caches.removed_pod(&target.namespace, pod, uid);
                Ok(Done::Changed)
            }
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(Done::Unchanged),
            Err(kube::Error::Api(status)) if status.code == 429 => Ok(Done::NotNow(format!(
                "pod {pod} may not go now: {}",
                budget(&status)
            ))),
            Err(error) => Err(PluginError::Failed {
                what: format!("cannot remove pod {pod}"),
                cause: words(&error),
            }),
        }
    }

    async fn snapshot(
        &self,
        target: &Target,
        revision: Option<&str>,
    ) -> Result<Option<Snapshot>, PluginError> {
        let failed = |error: kube::Error| refusal(error, target, "cannot read the template");
        let Some(revision) = revision else {
            // Read untyped: fields that our types lack would be lost in a rollback.
            let whole = ApiResource::erase::<StatefulSet>(&());
            let sets =
                Objects::<DynamicObject>::namespaced_with(&self.client, &name(&target.namespace)?, &whole);
            let set = sets.get(&name(&target.name)?).await.map_err(failed)?;
            return Ok(set.and_then(|set| set.data.pointer("/spec/template").cloned().map(Snapshot)));
        };
        let revisions = self.objects::<ControllerRevision>(target)?;
        let revision = revisions.get(&name(revision)?).await.map_err(failed)?;
        // The name may come from a status, so only the set's own revisions are accepted.
        let set = self.caches.set(&target.namespace, &target.name);
        let uid = set.and_then(|set| set.metadata.uid.clone());
        let own = |revision: &ControllerRevision| {
            let mut owners = revision.owner_references().iter();
            owners.any(|owner| owner.controller == Some(true) && Some(&owner.uid) == uid.as_ref())
        };
        let template = revision.filter(own).and_then(|revision| {
            let mut template = revision.data?.0.pointer("/spec/template")?.clone();
            // The revision is a patch; without its directive it is the template.
            template.as_object_mut()?.remove("$patch");
            Some(template)
        });
        Ok(template.map(Snapshot))
    }

    async fn restore(
        &self,
        target: &Target,
        at: &Version,
        template: &Snapshot,
        share: Share,
    ) -> Result<Done, PluginError> {
        let partition = self.partition(target, share)?;
        // A JSON patch replaces the whole template: an apply would keep fields that others own.
        let patch: json_patch::Patch = serde_json::from_value(json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": at.0},
            {"op": "replace", "path": "/spec/template", "value": template.0},
            {"op": "add", "path": "/spec/updateStrategy/rollingUpdate/partition", "value": partition},
        ]))
        .map_err(|error| PluginError::Failed {
            what: format!("cannot put the template of {} back", set_name(target)),
            cause: error.to_string(),
        })?;
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.into()),
            ..PatchParams::default()
        };
        let written = self
            .objects::<StatefulSet>(target)?
            .patch(&name(&target.name)?, &params, &Patch::<()>::Json(patch))
            .await;
        let written = written.map_err(|error| match &error {
            // A failed test in a JSON patch is a conflict.
            kube::Error::Api(status) if status.code == 422 && status.message.contains("test") => {
                PluginError::Conflict(set_name(target))
            }
            _ => refusal(error, target, "cannot put the template back"),
        })?;
        self.caches
            .wrote_set(&target.namespace, &target.name, written.resource_version());
        Ok(Done::Changed)
    }

    async fn foreign_writer(&self, target: &Target, action: &Action) -> String {
        let seen = self.caches.set(&target.namespace, &target.name);
        if !matches!(action, Action::Restore(_)) && seen.is_some_and(|set| set.claim().is_none()) {
            let Target { namespace, name, .. } = target;
            return format!(
                "another client keeps removing the annotation {MANAGED_BY} of StatefulSet {name} in namespace {namespace}, and it is set \
                 again each time; have that client apply or patch the StatefulSet instead of replacing it"
            );
        }
        let (field, path): (_, &[&str]) = match action {
            Action::Restore(_) => ("spec.template", &["f:spec", "f:template"]),
            _ => (
                "spec.updateStrategy.rollingUpdate.partition",
                &["f:spec", "f:updateStrategy", "f:rollingUpdate", "f:partition"],
            ),
        };
        let managers = async {
            let sets = self.objects::<StatefulSet>(target).ok()?;
            let managers = sets.managers_of(&name(&target.name).ok()?, path).await.ok()?;
            let others: Vec<_> = managers
                .into_iter()
                .filter(|name| name != FIELD_MANAGER)
                .collect();
            (!others.is_empty()).then(|| others.join(", "))
        };
        let Target { namespace, name, .. } = target;
        match managers.await {
            Some(managers) => format!(
                "{managers} (field manager) keeps changing {field} of StatefulSet {name} in namespace {namespace}, and it is set \
                 again each time; leave that field out of the manifest that {managers} applies"
            ),
            None => format!(
                "another client keeps changing {field} of StatefulSet {name} in namespace {namespace}, and it is set again each \
                 time; leave that field out of what it applies, and see who it is with: kubectl get statefulset {name} -n \
                 {namespace} -o yaml --show-managed-fields"
            ),
        }
    }

    async fn release_claim(
        &self,
        target: &Target,
        at: &Version,
        leave: &LeftAs,
    ) -> Result<Done, PluginError> {
        let set = self.caches.set(&target.namespace, &target.name);
        let partition = |setting: &String| setting.parse::<i32>().ok();
        let left = match (leave, &set) {
            (LeftAs::Frozen(before), Some(set)) => partition(before).map(|before| Left {
                partition: set.partition(),
                before,
            }),
            _ => None,
        };
        let mut patch = json!({
            "metadata": {
                "resourceVersion": at.0,
                "annotations": {MANAGED_BY: Value::Null, LEFT: left.map(|left| json!(left).to_string())},
            },
        });
        let peer_claim = set.as_ref().and_then(|set| set.peer_claim.as_deref());
        if peer_claim.is_some_and(|name| target.manager.is_phased(name)) {
            patch["metadata"]["annotations"][PEER_MANAGED_BY] = Value::Null;
        }
        if let LeftAs::BeforeAdoption(setting) = leave
            && let Some(partition) = partition(setting)
        {
            patch["spec"] = json!({"updateStrategy": {"rollingUpdate": {"partition": partition}}});
        }
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.into()),
            ..PatchParams::default()
        };
        let written = self
            .objects::<StatefulSet>(target)?
            .patch(&name(&target.name)?, &params, &Patch::Merge(patch))
            .await;
        let written = written.map_err(|error| refusal(error, target, "cannot release"))?;
        self.caches
            .wrote_set(&target.namespace, &target.name, written.resource_version());
        Ok(Done::Changed)
    }
}
