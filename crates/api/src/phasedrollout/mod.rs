//! `PhasedRollout`: updates one pod after the other, and queries Prometheus before each pod.
//!
//! The fields are those of all versions of sts-plus-operator, so that objects written for it apply unchanged.

mod crd;
mod validate;

use k8s_openapi::jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::crd::definition;
use crate::rollout::RolloutStatus;

/// PhasedRollout rolls out a StatefulSet pod by pod, with checks before each pod and after the last.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "sts.plus",
    version = "v1alpha1",
    kind = "PhasedRollout",
    plural = "phasedrollouts",
    shortname = "phased",
    namespaced,
    status = "PhasedRolloutStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct PhasedRolloutSpec {
    /// The name of the StatefulSet to roll out, in the same namespace.
    #[schemars(length(min = 1, max = 253))]
    pub target_ref: String,
    /// Leave the StatefulSet to Kubernetes: its own rolling update continues without any check until this is false again, even while
    /// `paused` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_check: Option<bool>,
    /// Alias of skipCheck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_rolling_update: Option<bool>,
    /// The check to run before each pod and after the last.
    pub check: Check,
    /// Stops the rollout at the current point: no further pods are released until it is false again, unless `skipCheck` leaves them to
    /// Kubernetes. Abort still works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// What to do when checks fail, a new pod is broken, or the rollout makes no progress: `Hold` the rollout, or `Rollback` every pod to
    /// the previous version. Default: `Hold`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// Seconds without progress after which a rollout counts as failed. Time spent on checks does not count. Default: 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub progress_deadline_seconds: Option<i32>,
}

impl PhasedRolloutSpec {
    /// Whether the StatefulSet is left to Kubernetes, from the field or its alias.
    pub fn skips_checks(&self) -> bool {
        self.skip_check == Some(true) || self.standard_rolling_update == Some(true)
    }
}

/// The finalizer of sts-plus-operator, which keeps an object until that operator has released its StatefulSet.
pub const PEER_FINALIZER: &str = "sts.plus/finalizer";

impl PhasedRollout {
    /// Whether sts-plus-operator has managed the object: its finalizer shows that, and the status if the finalizer was removed.
    pub fn is_taken_over(&self) -> bool {
        let mut finalizers = self.metadata.finalizers.iter().flatten();
        let remembered = self.status.as_ref().is_some_and(|status| status.taken_over);
        remembered || finalizers.any(|finalizer| finalizer == PEER_FINALIZER)
    }

    /// Which query result counts as success.
    pub fn success_on(&self) -> SuccessOn {
        let otherwise = if self.is_taken_over() {
            SuccessOn::Data
        } else {
            SuccessOn::NoData
        };
        self.spec.check.success_on.unwrap_or(otherwise)
    }
}

/// What to do with a failed rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum FailurePolicy {
    /// Hold the rollout and report the failure.
    #[default]
    Hold,
    /// Roll every pod back to the previous version.
    Rollback,
}

/// The check to run before each pod and after the last.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// Seconds between all pods becoming available and the first check, for Prometheus to collect fresh data.
    #[serde(default = "default_seconds")]
    #[schemars(range(min = 0))]
    pub initial_delay_seconds: i32,
    /// Seconds between two checks.
    #[serde(default = "default_seconds")]
    #[schemars(range(min = 1))]
    pub period_seconds: i32,
    /// How many consecutive checks may fail before the rollout fails. Without it, the rollout waits until checks succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tries: Option<i32>,
    /// How many consecutive checks must succeed.
    #[serde(default = "default_threshold")]
    #[schemars(range(min = 1))]
    pub success_threshold: i32,
    /// Which query result lets the rollout continue: `NoData`, as with alerts, or `Data`. Default: `NoData`; `Data` for an object that
    /// sts-plus-operator has managed, because that operator read results this way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_on: Option<SuccessOn>,
    /// The query to run.
    pub query: Query,
}

fn default_seconds() -> i32 {
    60
}

fn default_threshold() -> i32 {
    3
}

/// Which query result counts as success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum SuccessOn {
    /// An empty result: the query describes what must not happen, like that of an alert.
    NoData,
    /// A non-empty result: the query describes what must be the case.
    Data,
}

/// A query to Prometheus.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Query {
    /// The expression, in PromQL.
    #[schemars(length(min = 1))]
    pub expr: String,
    /// The URL of Prometheus, without `/api/v1/query`. Default scheme: `http`.
    #[schemars(length(min = 1))]
    pub url: String,
    /// A Secret in the same namespace with the key `token`, or with `username` and `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_ref: Option<String>,
    /// Do not verify the server's certificate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure_skip_verify: bool,
    /// The certificate authority to trust, in PEM format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
    /// Seconds to wait for the answer. Default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 300))]
    pub timeout_seconds: Option<i32>,
}

/// The status of a phased rollout, including everything the operator remembers.
///
/// `phase` is `Updated`, `Rolling`, `Paused`, `Failed`, `Suspended`, `ErrorSTSNotFound`, `ErrorCannotManage` or `Progressing`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PhasedRolloutStatus {
    /// The status fields that all rollout kinds share.
    #[serde(flatten)]
    pub rollout: RolloutStatus,
    /// Which query result counts as success: `NoData` or `Data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_on: Option<SuccessOn>,
    /// sts-plus-operator has managed the object: without `spec.check.successOn`, results are read as that operator read them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub taken_over: bool,
    /// The revision that is being rolled out, or was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_revision: Option<String>,
    /// When that rollout started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_start_time: Option<Timestamp>,
    /// When every pod was updated. Absent during the rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_end_time: Option<Timestamp>,
    /// The pod that is being rolled, and the checks before the next one. Absent if no rollout is in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_pod_status: Option<RollingPodStatus>,
}

/// The pod that is being rolled, and the checks before the next one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingPodStatus {
    /// `WaitForPodToBeUpdated`, `WaitForAllPodsToBeAvailable`, `WaitForInitialDelay`, `WaitForChecks`, `PrometheusError` or
    /// `ChecksFailed`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The current partition.
    pub partition: i32,
    /// The gate that the checks belong to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gate: String,
    /// Identifies the query: results of another query do not count.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// When the initial delay started. Misspelled, as in sts-plus-operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analisys_start_time: Option<Timestamp>,
    /// When the last check ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_check_time: Option<Timestamp>,
    /// Consecutive successful checks.
    pub consecutive_successful_checks: i32,
    /// Consecutive failed checks.
    pub consecutive_failed_checks: i32,
    /// All failed checks.
    pub total_failed_checks: i32,
    /// How many more consecutive checks may fail before the rollout fails. Absent without maxTries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries_left: Option<i32>,
    /// The result of the last check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_check: Option<LastCheck>,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LastCheck {
    /// `Successful`, `Failed` or `Error`.
    pub verdict: String,
    /// A one-word reason: `NoData`, `DataReturned`, `ConnectionRefused`, `Timeout`, …
    pub reason: String,
    /// A summary of the answer: `no data`, `3 series`, `2 series with 60 samples`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// A human-readable explanation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}
