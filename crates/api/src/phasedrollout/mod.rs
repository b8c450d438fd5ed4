//! `PhasedRollout`: one pod after the other, and before each of them Prometheus is asked whether it is safe.
//!
//! The fields are those of sts-plus-operator, of its first version and of its later ones, so that objects written for it apply
//! as they are.

mod crd;
mod validate;

use k8s_openapi::jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::crd::definition;
use crate::rollout::RolloutStatus;

/// PhasedRollout rolls a StatefulSet pod by pod, with checks before each pod and after the last.
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
    /// The name of the StatefulSet to roll, in the same namespace.
    #[schemars(length(min = 1, max = 253))]
    pub target_ref: String,
    /// Leave the StatefulSet to Kubernetes: its own rolling update goes on without any check until this is false again, also
    /// while `paused` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_check: Option<bool>,
    /// Another name of skipCheck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_rolling_update: Option<bool>,
    /// What is asked before each pod and after the last.
    pub check: Check,
    /// Stops the rollout where it is: no further pod is released until it is false again, unless `skipCheck` leaves them to Kubernetes.
    /// Abort works all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// What becomes of a rollout whose checks fail, whose new pod is broken, or that does not get on: `Hold` it where it is, or
    /// `Rollback` and return every pod to the version before. `Hold` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// Seconds without progress after which a rollout counts as failed. Checks do not count. 600 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub progress_deadline_seconds: Option<i32>,
}

impl PhasedRolloutSpec {
    /// Whether the StatefulSet is left to Kubernetes, under either of its names.
    pub fn skips_checks(&self) -> bool {
        self.skip_check == Some(true) || self.standard_rolling_update == Some(true)
    }
}

/// Keeps an object until sts-plus-operator has let go of its StatefulSet: whoever bears it was managed by that one.
pub const PEER_FINALIZER: &str = "sts.plus/finalizer";

impl PhasedRollout {
    /// Whether sts-plus-operator has managed it. Its finalizer says so until somebody replaces the object without it.
    pub fn is_taken_over(&self) -> bool {
        let mut finalizers = self.metadata.finalizers.iter().flatten();
        let remembered = self.status.as_ref().is_some_and(|status| status.taken_over);
        remembered || finalizers.any(|finalizer| finalizer == PEER_FINALIZER)
    }

    /// Which answer is a success.
    pub fn success_on(&self) -> SuccessOn {
        let otherwise = if self.is_taken_over() {
            SuccessOn::Data
        } else {
            SuccessOn::NoData
        };
        self.spec.check.success_on.unwrap_or(otherwise)
    }
}

/// What becomes of a rollout that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum FailurePolicy {
    /// It stays where it is and says so.
    #[default]
    Hold,
    /// Every pod returns to the version before.
    Rollback,
}

/// What is asked before each pod and after the last.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// Seconds from the moment when all pods are available to the first check, for Prometheus to gather fresh data.
    #[serde(default = "default_seconds")]
    #[schemars(range(min = 0))]
    pub initial_delay_seconds: i32,
    /// Seconds from one check to the next.
    #[serde(default = "default_seconds")]
    #[schemars(range(min = 1))]
    pub period_seconds: i32,
    /// After so many checks in a row that did not succeed the rollout fails. Without it, it waits for as long as they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tries: Option<i32>,
    /// So many checks in a row have to succeed.
    #[serde(default = "default_threshold")]
    #[schemars(range(min = 1))]
    pub success_threshold: i32,
    /// Which answer lets the rollout go on: `NoData`, as with alerts, or `Data`. `NoData` unless given; `Data` for an object that
    /// sts-plus-operator has managed, because that is how it took answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_on: Option<SuccessOn>,
    /// What is asked, and whom.
    pub query: Query,
}

fn default_seconds() -> i32 {
    60
}

fn default_threshold() -> i32 {
    3
}

/// Which answer is a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum SuccessOn {
    /// None: the query describes what must not be, as that of an alert does.
    NoData,
    /// Some: the query describes what must be.
    Data,
}

/// A query to a Prometheus.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Query {
    /// In PromQL.
    #[schemars(length(min = 1))]
    pub expr: String,
    /// Where the Prometheus is, without `/api/v1/query`; `http` where no scheme is given.
    #[schemars(length(min = 1))]
    pub url: String,
    /// A Secret of this namespace with the key `token`, or with `username` and `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_ref: Option<String>,
    /// Do not check its certificate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure_skip_verify: bool,
    /// The certificate authority to trust, in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
    /// Seconds to wait for the answer; 5 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 300))]
    pub timeout_seconds: Option<i32>,
}

/// Where a phased rollout stands. Everything the operator remembers is here.
///
/// `phase` is `Updated`, `Rolling`, `Paused`, `Failed`, `Suspended`, `ErrorSTSNotFound`, `ErrorCannotManage` or `Progressing`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PhasedRolloutStatus {
    /// What every rollout tells.
    #[serde(flatten)]
    pub rollout: RolloutStatus,
    /// Which answer is a success: `NoData` or `Data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_on: Option<SuccessOn>,
    /// sts-plus-operator has managed it: without `spec.check.successOn` answers mean what they meant there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub taken_over: bool,
    /// The revision that is rolled out, or was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_revision: Option<String>,
    /// When that began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_start_time: Option<Timestamp>,
    /// When every pod was there. Absent while it is on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_end_time: Option<Timestamp>,
    /// The pod that is rolled, and the checks before the next. Absent while nothing is rolled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_pod_status: Option<RollingPodStatus>,
}

/// The pod that is rolled, and the checks before the next.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingPodStatus {
    /// `WaitForPodToBeUpdated`, `WaitForAllPodsToBeAvailable`, `WaitForInitialDelay`, `WaitForChecks`, `PrometheusError` or
    /// `ChecksFailed`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The partition that is in force.
    pub partition: i32,
    /// The gate that the checks are for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gate: String,
    /// Tells what is asked: answers to another question count for nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// When the initial delay began. Spelled as it always was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analisys_start_time: Option<Timestamp>,
    /// When the last check was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_check_time: Option<Timestamp>,
    /// Checks in a row that succeeded.
    pub consecutive_successful_checks: i32,
    /// Checks in a row that did not.
    pub consecutive_failed_checks: i32,
    /// All that did not.
    pub total_failed_checks: i32,
    /// How many more in a row may not succeed before the rollout fails. Absent without maxTries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries_left: Option<i32>,
    /// What the last check came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_check: Option<LastCheck>,
}

/// What a check came to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LastCheck {
    /// `Successful`, `Failed` or `Error`.
    pub verdict: String,
    /// In one word: `NoData`, `DataReturned`, `ConnectionRefused`, `Timeout`, …
    pub reason: String,
    /// What was answered: `no data`, `3 series`, `2 series with 60 samples`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// In a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}
