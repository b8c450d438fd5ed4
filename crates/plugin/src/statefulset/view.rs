//! Sets and pods with only the fields that decisions read. Ten thousand of them fit where a few hundred complete sets would.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use stateward_client::JSON_OBJECT;
use stateward_client::json::{self, Limit};
use stateward_core::plan::Fingerprint;
use stateward_core::revision;
use stateward_core::workload::{Trouble, Unready};

/// Implements the API of another type for one with fewer fields.
macro_rules! stands_for {
    ($view:ty, $whole:ty) => {
        impl Resource for $view {
            type DynamicType = ();
            type Scope = <$whole as Resource>::Scope;

            fn kind(_: &()) -> Cow<'_, str> {
                <$whole as Resource>::kind(&())
            }

            fn group(_: &()) -> Cow<'_, str> {
                <$whole as Resource>::group(&())
            }

            fn version(_: &()) -> Cow<'_, str> {
                <$whole as Resource>::version(&())
            }

            fn plural(_: &()) -> Cow<'_, str> {
                <$whole as Resource>::plural(&())
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

stands_for!(SetView, StatefulSet);
stands_for!(PodView, Pod);

/// The metadata that is read. The rest, above all `managedFields`, is skipped while parsing.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    deletion_timestamp: Option<Time>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    owner_references: Vec<OwnerReference>,
}

impl Meta {
    /// The object's identity only.
    fn slim(self) -> ObjectMeta {
        ObjectMeta {
            name: self.name,
            namespace: self.namespace,
            uid: self.uid,
            resource_version: self.resource_version,
            generation: self.generation,
            deletion_timestamp: self.deletion_timestamp,
            ..ObjectMeta::default()
        }
    }
}

/// A StatefulSet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "WholeSet")]
pub(crate) struct SetView {
    pub(crate) metadata: ObjectMeta,
    /// The object that claims it.
    claim: Option<String>,
    /// The name of the PhasedRollout in the annotation of sts-plus-operator.
    pub(crate) peer_claim: Option<String>,
    /// Its state when it was released in the middle of a rollout.
    pub(crate) left: Option<Left>,
    pub(crate) spec: SetSpec,
    pub(crate) status: SetStatus,
}

/// The value of the annotation [`super::LEFT`].
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Left {
    /// The partition at that moment.
    pub(crate) partition: i32,
    /// The partition that users had set before.
    pub(crate) before: i32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WholeSet {
    metadata: Meta,
    spec: SetSpec,
    status: SetStatus,
}

impl From<WholeSet> for SetView {
    fn from(whole: WholeSet) -> Self {
        let WholeSet {
            mut metadata,
            spec,
            status,
        } = whole;
        Self {
            claim: metadata.annotations.remove(super::MANAGED_BY),
            peer_claim: metadata.annotations.remove(super::PEER_MANAGED_BY),
            left: metadata
                .annotations
                .remove(super::LEFT)
                .and_then(|left| serde_json::from_str(&left).ok()),
            metadata: metadata.slim(),
            spec,
            status,
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SetSpec {
    pub(crate) replicas: Option<i32>,
    pub(crate) ordinals: Ordinals,
    pub(crate) pod_management_policy: Option<String>,
    pub(crate) min_ready_seconds: Option<i32>,
    pub(crate) update_strategy: UpdateStrategy,
    /// `None` for a template with too many values.
    #[serde(deserialize_with = "fingerprint")]
    pub(crate) template: Option<Fingerprint>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ordinals {
    pub(crate) start: i32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct UpdateStrategy {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) rolling_update: Option<RollingUpdate>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RollingUpdate {
    pub(crate) partition: i32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SetStatus {
    pub(crate) observed_generation: i64,
    pub(crate) replicas: i32,
    pub(crate) ready_replicas: i32,
    pub(crate) current_replicas: i32,
    pub(crate) updated_replicas: i32,
    pub(crate) available_replicas: i32,
    pub(crate) current_revision: String,
    pub(crate) update_revision: String,
}

/// How many values and keys a template may have, so that the revision, the pods and the copy created from it have fewer than
/// [`stateward_client::MAX_VALUES`].
pub(crate) const MAX_TEMPLATE_VALUES: usize = 50_000;

const TEMPLATE: Limit = Limit {
    values: MAX_TEMPLATE_VALUES,
    object: JSON_OBJECT,
};

/// Keeps a template's digest and drops the template.
fn fingerprint<'de, D: Deserializer<'de>>(template: D) -> Result<Option<Fingerprint>, D::Error> {
    let text = Box::<RawValue>::deserialize(template)?;
    let template = json::read::<Value>(text.get().as_bytes(), TEMPLATE);
    // Too many values, or too deep: the API server stores nothing that is not JSON.
    Ok(template
        .ok()
        .map(|template| Fingerprint::of(&revision::data(&template))))
}

impl SetView {
    /// Requested replicas.
    pub(crate) fn replicas(&self) -> u32 {
        count(self.spec.replicas.unwrap_or(1))
    }

    /// Pods from this ordinal on are released.
    pub(crate) fn partition(&self) -> i32 {
        let rolling = self.spec.update_strategy.rolling_update.as_ref();
        rolling.map_or(0, |rolling| rolling.partition)
    }

    /// Whether no pod is released.
    pub(crate) fn is_guarded(&self) -> bool {
        i64::from(self.partition()) >= i64::from(self.replicas())
    }

    /// The claim in its annotation: `RolloutPlugin/my-rollout/0f3c…`
    pub(crate) fn claim(&self) -> Option<&str> {
        self.claim.as_deref()
    }

    /// The name of the object that claims it.
    pub(crate) fn holder(&self) -> Option<String> {
        self.claim()?.split('/').nth(1).map(str::to_owned)
    }
}

/// A count from the API. It is never negative, except in one Kubernetes bug.
pub(crate) fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// A pod of a StatefulSet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "WholePod")]
pub(crate) struct PodView {
    metadata: ObjectMeta,
    owner: Option<Owner>,
    revision: Option<String>,
    status: Condition,
}

/// What is kept of a pod, besides its name.
#[derive(Clone, Debug)]
pub(crate) struct PodRow {
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) terminating: bool,
    pub(crate) revision: Option<String>,
    pub(crate) status: Condition,
}

impl PodRow {
    /// The row after an update of the one with the same name.
    pub(crate) fn after(self, before: &Self) -> Self {
        if self.uid != before.uid {
            return self;
        }
        Self {
            status: self.status.steadied(&before.status),
            ..self
        }
    }
}

/// A pod and the set that owns it.
pub(crate) struct Owned {
    /// Namespace and name.
    pub(crate) key: (String, String),
    pub(crate) owner: Owner,
    pub(crate) row: PodRow,
}

impl PodView {
    /// `None` for a pod that no set controls.
    pub(crate) fn owned(self) -> Option<Owned> {
        let Self {
            metadata,
            owner,
            revision,
            status,
        } = self;
        Some(Owned {
            key: (
                metadata.namespace.unwrap_or_default(),
                metadata.name.unwrap_or_default(),
            ),
            owner: owner?,
            row: PodRow {
                uid: metadata.uid.unwrap_or_default(),
                version: metadata.resource_version.unwrap_or_default(),
                terminating: metadata.deletion_timestamp.is_some(),
                revision,
                status,
            },
        })
    }
}

/// The set that owns a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: String,
    pub(crate) name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WholePod {
    metadata: Meta,
    #[serde(deserialize_with = "condensed")]
    status: Condition,
}

impl From<WholePod> for PodView {
    fn from(whole: WholePod) -> Self {
        let WholePod { mut metadata, status } = whole;
        let mut owners = std::mem::take(&mut metadata.owner_references).into_iter();
        let owner = owners.find(|owner| {
            let group = owner.api_version.split_once('/').map(|(group, _)| group);
            owner.controller == Some(true) && owner.kind == "StatefulSet" && group == Some("apps")
        });
        Self {
            owner: owner.map(|owner| Owner {
                uid: owner.uid,
                name: owner.name,
            }),
            revision: metadata.labels.remove("controller-revision-hash"),
            metadata: metadata.slim(),
            status,
        }
    }
}

/// A summary of a pod's status.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Condition {
    pub(crate) ready_since: Option<Timestamp>,
    pub(crate) unready_since: Option<Timestamp>,
    pub(crate) restarts: u32,
    pub(crate) restarted_at: Option<Timestamp>,
    pub(crate) trouble: Option<Trouble>,
    pub(crate) unready: Option<Unready>,
    pub(crate) last_exit: Option<i32>,
}

impl Condition {
    /// Keeps values from `before` that flap while nothing changes, so that no status is written for them.
    pub(crate) fn steadied(self, before: &Self) -> Self {
        Self {
            trouble: super::trouble::steadied(self.trouble, before.trouble.as_ref(), self.unready.as_ref()),
            unready: super::unready::steadied(self.unready, before.unready.as_ref()),
            ..self
        }
    }
}

/// The part of a pod's status that is parsed.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodStatus {
    pub(super) phase: String,
    pub(super) reason: String,
    pub(super) message: String,
    conditions: Vec<PodCondition>,
    pub(super) container_statuses: Vec<ContainerStatus>,
    pub(super) init_container_statuses: Vec<ContainerStatus>,
}

impl PodStatus {
    pub(super) fn condition(&self, kind: &str) -> Option<&PodCondition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodCondition {
    #[serde(rename = "type")]
    kind: String,
    pub(super) status: String,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    last_transition_time: Option<Timestamp>,
}

fn condensed<'de, D: Deserializer<'de>>(status: D) -> Result<Condition, D::Error> {
    let text = Box::<RawValue>::deserialize(status)?;
    // The API server accepts times that jiff does not: such a pod counts as not Ready, and the watch continues.
    let status: PodStatus = serde_json::from_str(text.get()).unwrap_or_default();
    let ready = status.condition("Ready");
    // A pod without a node lacks this condition, but has others.
    let begun = || {
        let times = status.conditions.iter();
        times.filter_map(|condition| condition.last_transition_time).min()
    };
    let (ready, unready) = match ready {
        Some(ready) if ready.status == "True" => (ready.last_transition_time, None),
        Some(unready) => (None, unready.last_transition_time),
        None => (None, begun()),
    };
    let containers = || {
        status
            .init_container_statuses
            .iter()
            .chain(&status.container_statuses)
    };
    // The backoff lies between the end of a container and its next start, and a container that has just started is not healthy yet.
    let restarted = containers().filter_map(|container| {
        let ended = container.last_state.as_ref()?.terminated.as_ref()?;
        let runs = container.state.as_ref().and_then(|state| state.running.as_ref());
        let started = runs.and_then(|runs| runs.started_at.as_ref());
        let times = [ended.finished_at.as_ref(), started];
        times.into_iter().flatten().map(|time| time.0).max()
    });
    let ready_since = ready.filter(|_| status.phase == "Running");
    let ended = containers()
        .filter(|container| !container.ready)
        .find_map(super::trouble::last_end);
    Ok(Condition {
        ready_since,
        unready_since: unready,
        restarts: containers().fold(0, |sum: u32, container| {
            sum.saturating_add(count(container.restart_count))
        }),
        restarted_at: restarted.max(),
        trouble: containers().find_map(super::trouble::of),
        unready: match ready_since {
            Some(_) => None,
            None => super::unready::of(&status),
        },
        last_exit: ended.map(|ended| ended.exit_code),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    /// The API server accepts a year beyond 9999.
    #[test]
    fn a_pod_with_a_time_that_cannot_be_read_is_a_pod_that_is_not_ready() {
        let condition =
            |kind: &str, time: &str| json!({"type": kind, "status": "True", "lastTransitionTime": time});
        let ready = condition("Ready", "2026-01-01T00:00:00Z");
        let pod = |conditions: Value| {
            let status = json!({"phase": "Running", "conditions": conditions});
            let pod = json!({"metadata": {"name": "db-0"}, "status": status});
            serde_json::from_str::<PodView>(&pod.to_string()).unwrap()
        };
        assert!(pod(json!([ready])).status.ready_since.is_some());
        let odd = condition("example.com/gate", "10000-01-01T23:58:59Z");
        assert_eq!(pod(json!([ready, odd])).status, Condition::default());
    }

    /// The backoff lies between the end of a container and its next start.
    #[rstest]
    #[case::in_back_off(json!({"waiting": {"reason": "CrashLoopBackOff"}}), "2026-01-01T00:00:00Z")]
    #[case::started_again(json!({"running": {"startedAt": "2026-01-01T00:05:00Z"}}), "2026-01-01T00:05:00Z")]
    fn a_container_has_restarted_when_it_has_started_again(
        #[case] state: Value,
        #[case] expected: Timestamp,
    ) {
        let ended = json!({"exitCode": 1, "finishedAt": "2026-01-01T00:00:00Z"});
        let status = json!({
            "phase": "Running",
            "containerStatuses": [
                {"name": "main", "restartCount": 6, "state": state, "lastState": {"terminated": ended}},
                {"name": "beside", "restartCount": 0, "state": {"running": {"startedAt": "2026-01-02T00:00:00Z"}}},
            ],
        });
        assert_eq!(condensed(status).unwrap().restarted_at, Some(expected));
    }
}
