//! Pods as the API server sends them, with only the fields that are read here: every change of every pod arrives, and most of a pod is
//! ownership and configuration that the kubelet does not need.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::de::IgnoredAny;

/// A pod. Small, because a watch passes it on many times.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(from = "Sent")]
pub(crate) struct Object {
    /// Without labels and owners, of which little is read.
    pub(crate) metadata: Box<ObjectMeta>,
    /// The revision label that its set gave it.
    pub(crate) revision: Option<String>,
    pub(crate) owners: Vec<Owner>,
    pub(crate) spec: Option<Box<Spec>>,
    pub(crate) status: Option<Box<Status>>,
}

/// The wire format.
#[derive(serde::Deserialize)]
struct Sent {
    metadata: Metadata,
    spec: Option<Box<Spec>>,
    status: Option<Box<Status>>,
}

impl kube::Resource for Object {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        k8s::Pod::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        k8s::Pod::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        k8s::Pod::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        k8s::Pod::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Metadata without the unused fields.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    labels: Option<Labels>,
    owner_references: Option<Vec<Owner>>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
}

#[derive(serde::Deserialize)]
struct Labels {
    #[serde(rename = "controller-revision-hash")]
    revision: Option<String>,
}

#[derive(Clone, Debug, serde::Deserialize)]
pub(crate) struct Owner {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) controller: Option<bool>,
}

impl From<Sent> for Object {
    fn from(sent: Sent) -> Self {
        let Metadata {
            name,
            namespace,
            uid,
            resource_version,
            generation,
            labels,
            owner_references,
            deletion_timestamp,
            deletion_grace_period_seconds,
        } = sent.metadata;
        Self {
            metadata: Box::new(ObjectMeta {
                name,
                namespace,
                uid,
                resource_version,
                generation,
                deletion_timestamp,
                deletion_grace_period_seconds,
                ..ObjectMeta::default()
            }),
            revision: labels.and_then(|labels| labels.revision),
            owners: owner_references.unwrap_or_default(),
            spec: sent.spec,
            status: sent.status,
        }
    }
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    pub(crate) node_name: Option<String>,
    pub(crate) containers: Option<Vec<Container>>,
    pub(crate) init_containers: Option<Vec<Container>>,
    pub(crate) restart_policy: Option<String>,
    pub(crate) scheduler_name: Option<String>,
    pub(crate) scheduling_gates: Option<Vec<IgnoredAny>>,
    pub(crate) volumes: Option<Vec<Volume>>,
    pub(crate) node_selector: Option<BTreeMap<String, String>>,
    pub(crate) affinity: Option<k8s::Affinity>,
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) image: Option<String>,
    pub(crate) restart_policy: Option<String>,
    pub(crate) readiness_probe: Option<IgnoredAny>,
    pub(crate) startup_probe: Option<IgnoredAny>,
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Volume {
    pub(crate) name: String,
    pub(crate) persistent_volume_claim: Option<Claim>,
    pub(crate) ephemeral: Option<IgnoredAny>,
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Claim {
    pub(crate) claim_name: String,
}

#[derive(Clone, Debug, Hash, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    pub(crate) phase: Option<String>,
    pub(crate) reason: Option<String>,
    #[serde(rename = "hostIP")]
    pub(crate) host_ip: Option<String>,
    /// Only compared for changes.
    #[serde(rename = "podIP")]
    pub(crate) pod_ip: Option<String>,
    pub(crate) start_time: Option<Moment>,
    pub(crate) conditions: Option<Vec<Condition>>,
    pub(crate) container_statuses: Option<Vec<ContainerStatus>>,
}

/// A time as text: few are needed, and parsing them takes longer than all the rest.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Moment {
    letters: [u8; LONGEST_TIME],
    length: usize,
}

/// Longer than any time that the API writes; a longer text is not a time.
const LONGEST_TIME: usize = 40;

impl Moment {
    /// `None` if it is not a time.
    pub(crate) fn read(&self) -> Option<Timestamp> {
        let text = std::str::from_utf8(self.letters.get(..self.length)?).ok()?;
        text.parse().ok()
    }
}

impl<'de> serde::Deserialize<'de> for Moment {
    fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Letters;

        impl serde::de::Visitor<'_> for Letters {
            type Value = Moment;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a time")
            }

            fn visit_str<E>(self, text: &str) -> Result<Moment, E> {
                let mut letters = [0; LONGEST_TIME];
                let length = match letters.get_mut(..text.len()) {
                    Some(place) => {
                        place.copy_from_slice(text.as_bytes());
                        text.len()
                    }
                    None => 0,
                };
                Ok(Moment { letters, length })
            }
        }

        source.deserialize_str(Letters)
    }
}

#[derive(Clone, Debug, Hash, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) kind: ConditionKind,
    pub(crate) status: Truth,
    pub(crate) last_transition_time: Option<Moment>,
}

/// The conditions that every pod has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
pub(crate) enum ConditionKind {
    PodScheduled,
    Initialized,
    PodReadyToStartContainers,
    ContainersReady,
    Ready,
    #[serde(other)]
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
pub(crate) enum Truth {
    True,
    /// False or Unknown.
    #[serde(other)]
    Other,
}

#[derive(Clone, Debug, Hash, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContainerStatus {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) restart_count: i32,
    pub(crate) state: Option<State>,
    pub(crate) last_state: Option<State>,
}

#[derive(Clone, Debug, Hash, serde::Deserialize)]
pub(crate) struct State {
    pub(crate) waiting: Option<Waiting>,
    pub(crate) running: Option<Running>,
    pub(crate) terminated: Option<Terminated>,
}

#[derive(Clone, Debug, Hash, serde::Deserialize)]
pub(crate) struct Waiting {
    pub(crate) reason: Option<String>,
}

#[derive(Clone, Debug, Hash, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Running {
    pub(crate) started_at: Option<Moment>,
}

#[derive(Clone, Debug, Hash, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Terminated {
    #[serde(default)]
    pub(crate) exit_code: i32,
    pub(crate) reason: Option<String>,
    pub(crate) started_at: Option<Moment>,
    pub(crate) finished_at: Option<Moment>,
}
