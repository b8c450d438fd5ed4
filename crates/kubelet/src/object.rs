//! Pods as the API server sends them, with the fields that are read here and no others: every change of every pod comes
//! by, and most of what it says is ownership and configuration that nobody here asks about.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::de::{Deserialize, Deserializer, IgnoredAny};

/// A pod.
#[derive(Clone, Debug, serde::Deserialize)]
pub(crate) struct Object {
    #[serde(deserialize_with = "metadata")]
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: Option<Spec>,
    pub(crate) status: Option<Status>,
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

/// Metadata without what is not read.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
}

fn metadata<'de, D: Deserializer<'de>>(source: D) -> Result<ObjectMeta, D::Error> {
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
    } = Metadata::deserialize(source)?;
    Ok(ObjectMeta {
        name,
        namespace,
        uid,
        resource_version,
        generation,
        labels,
        owner_references,
        deletion_timestamp,
        deletion_grace_period_seconds,
        ..ObjectMeta::default()
    })
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

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    pub(crate) phase: Option<String>,
    pub(crate) reason: Option<String>,
    #[serde(rename = "hostIP")]
    pub(crate) host_ip: Option<String>,
    pub(crate) start_time: Option<Time>,
    pub(crate) conditions: Option<Vec<Condition>>,
    pub(crate) container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) type_: String,
    pub(crate) status: String,
    /// As text: few are asked for, and reading them takes longer than all the rest.
    pub(crate) last_transition_time: Option<String>,
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContainerStatus {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) restart_count: i32,
    pub(crate) state: Option<k8s::ContainerState>,
    pub(crate) last_state: Option<k8s::ContainerState>,
}
