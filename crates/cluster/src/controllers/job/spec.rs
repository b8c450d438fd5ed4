//! A Job's spec, parsed once.

use std::time::Duration;

use crate::json::Value;

use super::failure_policy::FailurePolicy;
use super::success_policy::SuccessPolicy;
use crate::controllers::moment;

/// The parts of a Job's spec that affect its pods.
pub(super) struct JobSpec {
    pub(super) parallelism: i64,
    pub(super) completions: Option<i64>,
    pub(super) backoff_limit: i64,
    pub(super) active_deadline: Option<Duration>,
    pub(super) suspended: bool,
    /// The indexes of the pods; `None` if all pods are alike.
    pub(super) indexed: Option<Indexed>,
    /// A pod that is being deleted has not failed yet and gets no replacement.
    pub(super) waits_for_failure: bool,
    /// The kubelet restarts containers, so restarts count as failures.
    pub(super) restarts_in_place: bool,
    pub(super) failure_policy: Option<FailurePolicy>,
}

/// The fields of indexed Jobs.
pub(super) struct Indexed {
    pub(super) completions: i64,
    pub(super) backoff_limit: Option<i64>,
    pub(super) max_failed: Option<i64>,
    pub(super) success_policy: Option<SuccessPolicy>,
}

impl JobSpec {
    /// `None` if the completion mode is unknown to this version.
    pub(super) fn read(job: &Value) -> Option<Self> {
        let spec = &job["spec"];
        let number = |field: &str| spec[field].as_i64();
        let indexed = match spec["completionMode"].as_str() {
            None | Some("NonIndexed") => None,
            Some("Indexed") => Some(Indexed {
                completions: number("completions").unwrap_or(0),
                backoff_limit: number("backoffLimitPerIndex"),
                max_failed: number("maxFailedIndexes"),
                success_policy: SuccessPolicy::read(&spec["successPolicy"]),
            }),
            Some(_) => return None,
        };
        let failure_policy = FailurePolicy::read(&spec["podFailurePolicy"]);
        Some(Self {
            parallelism: number("parallelism").unwrap_or(1),
            completions: number("completions"),
            backoff_limit: number("backoffLimit").unwrap_or(6),
            active_deadline: number("activeDeadlineSeconds").map(moment::seconds),
            suspended: spec["suspend"] == true,
            indexed,
            waits_for_failure: failure_policy.is_some() || spec["podReplacementPolicy"] == "Failed",
            restarts_in_place: spec["template"]["spec"]["restartPolicy"] == "OnFailure",
            failure_policy,
        })
    }

    /// The failure limit of one index, if each has its own.
    pub(super) fn backoff_limit_per_index(&self) -> Option<i64> {
        self.indexed.as_ref()?.backoff_limit
    }
}

/// Whether another controller manages the Job.
pub(super) fn is_managed_elsewhere(job: &Value) -> bool {
    job["spec"]["managedBy"]
        .as_str()
        .is_some_and(|manager| manager != "kubernetes.io/job-controller")
}
