//! The fields of a pod that decisions need. The whole object is not kept: there may be many thousands.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as k8s;
use kube::ResourceExt;

use crate::api::{Key, version};
use crate::hash::hash;
use crate::object::{self, ConditionKind, Moment, Object, Truth};

/// A pod as last seen.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) version: u64,
    pub(crate) generation: Option<i64>,
    pub(crate) owner: Owner,
    pub(crate) ordinal: Option<u32>,
    pub(crate) revision: Option<String>,
    pub(crate) inits: Vec<Container>,
    pub(crate) containers: Vec<Container>,
    pub(crate) restart: RestartPolicy,
    pub(crate) place: Place,
    /// The grace period, once deletion has begun.
    pub(crate) deleting: Option<u64>,
    pub(crate) seen: Seen,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Set(String),
    Job(String),
    Other,
}

impl Owner {
    pub(crate) fn set(&self) -> Option<&str> {
        match self {
            Self::Set(name) => Some(name),
            Self::Job(_) | Self::Other => None,
        }
    }

    pub(crate) fn job(&self) -> Option<&str> {
        match self {
            Self::Job(name) => Some(name),
            Self::Set(_) | Self::Other => None,
        }
    }
}

#[derive(Clone, Debug, Hash)]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) image: String,
    /// An init container that keeps running (restartPolicy Always).
    pub(crate) sidecar: bool,
    /// Has a startup or readiness probe.
    pub(crate) probed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestartPolicy {
    Always,
    OnFailure,
    Never,
}

impl RestartPolicy {
    pub(crate) fn restarts(self, code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }
}

/// The pod's node, or its scheduling constraints.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    On(String),
    Wanted(Box<Wanted>),
}

impl Place {
    pub(crate) fn node(&self) -> Option<&str> {
        match self {
            Self::On(node) => Some(node),
            Self::Wanted(_) => None,
        }
    }
}

/// The constraints that the scheduler respects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) scheduler: String,
    pub(crate) gated: bool,
    pub(crate) claims: Vec<String>,
    pub(crate) selector: BTreeMap<String, String>,
    pub(crate) affinity: Option<k8s::NodeSelector>,
}

/// The part of the status that other clients may write too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) phase: String,
    pub(crate) ready: Option<bool>,
    pub(crate) scheduled: Option<(bool, Timestamp)>,
    /// A hash of all its fields that are read.
    pub(crate) hash: u64,
}

impl Pod {
    pub(crate) fn of(pod: &Object) -> Self {
        let key = Key::of(pod);
        let spec = pod.spec.as_deref();
        let owner = owner(pod);
        let ordinal = match &owner {
            Owner::Set(set) => key
                .name
                .strip_prefix(set.as_str())
                .and_then(|rest| rest.strip_prefix('-')),
            Owner::Job(_) | Owner::Other => None,
        };
        Self {
            uid: pod.uid().unwrap_or_default(),
            version: version(pod),
            generation: pod.metadata.generation,
            ordinal: ordinal.and_then(|ordinal| ordinal.parse().ok()),
            revision: pod.revision.clone(),
            inits: spec
                .and_then(|spec| spec.init_containers.as_deref())
                .map(containers)
                .unwrap_or_default(),
            containers: spec
                .and_then(|spec| spec.containers.as_deref())
                .map(containers)
                .unwrap_or_default(),
            restart: match spec.and_then(|spec| spec.restart_policy.as_deref()) {
                Some("Never") => RestartPolicy::Never,
                Some("OnFailure") => RestartPolicy::OnFailure,
                _ => RestartPolicy::Always,
            },
            place: spec.map_or_else(|| Place::Wanted(Box::default()), |spec| place(&key.name, spec)),
            deleting: pod.metadata.deletion_timestamp.as_ref().map(|_| {
                let grace = pod.metadata.deletion_grace_period_seconds;
                grace
                    .and_then(|grace| u64::try_from(grace).ok())
                    .unwrap_or_default()
            }),
            seen: pod.status.as_deref().map(Seen::of).unwrap_or_default(),
            owner,
            key,
        }
    }
}

impl Pod {
    /// The container that becomes Ready last: the first with a probe, or the first.
    pub(crate) fn last_to_be_ready(&self) -> usize {
        let probed = self.containers.iter().position(|container| container.probed);
        probed.unwrap_or_default()
    }
}

impl Seen {
    fn of(status: &object::Status) -> Self {
        Self {
            phase: status.phase.clone().unwrap_or_default(),
            ready: find(status, ConditionKind::Ready).map(|ready| ready.status == Truth::True),
            scheduled: condition(status, ConditionKind::PodScheduled),
            hash: hash(status),
        }
    }
}

/// Whether a condition is true, and since when.
pub(crate) fn condition(status: &object::Status, kind: ConditionKind) -> Option<(bool, Timestamp)> {
    let condition = find(status, kind)?;
    let since = condition.last_transition_time.as_ref().and_then(Moment::read);
    let since = since.unwrap_or(Timestamp::UNIX_EPOCH);
    Some((condition.status == Truth::True, since))
}

fn find(status: &object::Status, kind: ConditionKind) -> Option<&object::Condition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.kind == kind)
}

fn owner(pod: &Object) -> Owner {
    let owner = pod.owners.iter().find(|owner| owner.controller == Some(true));
    match owner.map(|owner| (owner.kind.as_str(), owner.name.clone())) {
        Some(("StatefulSet", name)) => Owner::Set(name),
        Some(("Job", name)) => Owner::Job(name),
        _ => Owner::Other,
    }
}

fn containers(containers: &[object::Container]) -> Vec<Container> {
    let container = |container: &object::Container| Container {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        sidecar: container.restart_policy.as_deref() == Some("Always"),
        probed: container.readiness_probe.is_some() || container.startup_probe.is_some(),
    };
    containers.iter().map(container).collect()
}

fn place(pod: &str, spec: &object::Spec) -> Place {
    if let Some(node) = spec.node_name.as_ref().filter(|node| !node.is_empty()) {
        return Place::On(node.clone());
    }
    let claim = |volume: &object::Volume| {
        let named = volume
            .persistent_volume_claim
            .as_ref()
            .map(|claim| claim.claim_name.clone());
        named.or_else(|| {
            volume
                .ephemeral
                .as_ref()
                .map(|_| format!("{pod}-{}", volume.name))
        })
    };
    let affinity = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref());
    Place::Wanted(Box::new(Wanted {
        scheduler: spec
            .scheduler_name
            .clone()
            .unwrap_or_else(|| "default-scheduler".into()),
        gated: spec
            .scheduling_gates
            .as_ref()
            .is_some_and(|gates| !gates.is_empty()),
        claims: spec.volumes.iter().flatten().filter_map(claim).collect(),
        selector: spec.node_selector.clone().unwrap_or_default(),
        affinity: affinity.and_then(|affinity| {
            affinity
                .required_during_scheduling_ignored_during_execution
                .clone()
        }),
    }))
}

#[cfg(test)]
pub(crate) mod fixtures {
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn parse(pod: Value) -> Object {
        serde_json::from_value(pod).unwrap()
    }

    pub(crate) fn set_pod_json(set: &str, ordinal: u32) -> Value {
        json!({
            "metadata": {
                "namespace": "ns",
                "name": format!("{set}-{ordinal}"),
                "uid": "u1",
                "resourceVersion": "7",
                "generation": 1,
                "labels": { "controller-revision-hash": format!("{set}-1") },
                "ownerReferences": [
                    { "apiVersion": "apps/v1", "kind": "StatefulSet", "name": set, "uid": "s1", "controller": true },
                ],
            },
            "spec": {
                "nodeName": "node-a",
                "restartPolicy": "Always",
                "containers": [
                    { "name": "db", "image": "db:v1", "readinessProbe": { "tcpSocket": { "port": 5432 } } },
                    { "name": "proxy", "image": "proxy:v1" },
                ],
            },
        })
    }

    pub(crate) fn set_pod(set: &str, ordinal: u32) -> Pod {
        Pod::of(&parse(set_pod_json(set, ordinal)))
    }

    pub(crate) fn job_pod(job: &str) -> Pod {
        Pod::of(&parse(json!({
            "metadata": {
                "namespace": "ns",
                "name": format!("{job}-x7k2p"),
                "uid": "u2",
                "ownerReferences": [
                    { "apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": "j1", "controller": true },
                ],
            },
            "spec": {
                "nodeName": "node-a",
                "restartPolicy": "Never",
                "containers": [{ "name": "run", "image": "run:v1" }],
            },
        })))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fixtures::{parse, set_pod_json};
    use super::*;

    #[test]
    fn a_pod_is_read_for_what_decisions_need() {
        let mut object = set_pod_json("db-x", 12);
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z");
        object["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        object["status"] = json!({
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" }],
        });
        let pod = Pod::of(&parse(object));

        assert_eq!(
            pod.key,
            Key {
                namespace: "ns".into(),
                name: "db-x-12".into()
            }
        );
        assert_eq!((pod.owner.set(), pod.ordinal), (Some("db-x"), Some(12)));
        assert_eq!((pod.version, pod.deleting), (7, Some(30)));
        let Seen {
            phase,
            ready,
            scheduled,
            ..
        } = pod.seen;
        assert_eq!((phase.as_str(), ready, scheduled), ("Running", Some(true), None));
    }

    #[test]
    fn a_pod_without_a_node_tells_what_it_wants() {
        let mut object = set_pod_json("db", 0);
        object["spec"]["nodeName"] = json!("");
        object["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": "node-b" });
        object["spec"]["volumes"] = json!([
            { "name": "data", "persistentVolumeClaim": { "claimName": "data-db-0" } },
            { "name": "scratch", "ephemeral": {} },
            { "name": "tmp", "emptyDir": {} },
        ]);

        let Place::Wanted(wanted) = Pod::of(&parse(object)).place else {
            panic!("has a node")
        };
        assert_eq!(wanted.claims, ["data-db-0", "db-0-scratch"]);
        assert_eq!(wanted.selector["kubernetes.io/hostname"], "node-b");
        assert_eq!(wanted.scheduler, "default-scheduler");
    }
}
