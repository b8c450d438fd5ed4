//! Decides whether a Job is finished, and why.
//!
//! Several reasons can apply at once; the order here is the real controller's. An earlier sync's decision stands, and failures come before
//! successes.

use std::time::Duration;

use crate::json::Value;
use jiff::Timestamp;

use super::count::Count;
use super::failure_policy::Meaning;
use super::spec::JobSpec;
use super::status::{Condition, ConditionKind, JobStatus};
use super::tracked_pod::{has_failed, meaning};
use crate::controllers::{moment, pod};

/// The decision before pods are created or deleted.
pub(super) struct Verdict {
    pub(super) end: Option<Condition>,
    /// When the Job's deadline must be checked again.
    pub(super) deadline_in: Option<Duration>,
}

pub(super) fn verdict(spec: &JobSpec, status: &JobStatus, count: &Count, now: Timestamp) -> Verdict {
    let mut deadline_in = None;
    let end = status
        .holds(ConditionKind::SuccessCriteriaMet)
        .or_else(|| status.holds(ConditionKind::FailureTarget).map(Condition::finally))
        .or_else(|| failed_by_policy(spec, count))
        .or_else(|| {
            if count.failed > spec.backoff_limit || has_restarted_too_often(spec, count) {
                return Some(failure(
                    "BackoffLimitExceeded",
                    "Job has reached the specified backoff limit",
                ));
            }
            let deadline = moment::later(status.start_time?, spec.active_deadline?);
            if spec.suspended {
                return None;
            }
            if deadline <= now {
                return Some(failure(
                    "DeadlineExceeded",
                    "Job was active longer than specified deadline",
                ));
            }
            deadline_in = Some(moment::until(deadline, now));
            None
        })
        .or_else(|| ended_by_indexes(spec, count));
    Verdict { end, deadline_in }
}

/// Whether the Job has all the successes it needs, and no pod is active.
pub(super) fn is_complete(spec: &JobSpec, count: &Count, active: i64) -> bool {
    // Without `completions` the first success is enough, and running pods may finish.
    active == 0
        && spec
            .completions
            .map_or(count.succeeded > 0, |wanted| count.succeeded >= wanted)
}

pub(super) fn success() -> Condition {
    let message = "Reached expected number of succeeded pods";
    Condition::new(ConditionKind::SuccessCriteriaMet, "CompletionsReached", message)
}

fn failure(reason: &str, message: &str) -> Condition {
    Condition::new(ConditionKind::FailureTarget, reason, message)
}

fn failed_by_policy(spec: &JobSpec, count: &Count) -> Option<Condition> {
    let failed = count.pods.iter().filter(|pod| has_failed(pod, spec));
    failed
        .map(|pod| meaning(pod, spec))
        .find_map(|meaning| match meaning {
            Meaning::FailsJob(message) => Some(failure("PodFailurePolicy", &message)),
            _ => None,
        })
}

/// Containers that restart in place do not produce failed pods; their restarts count instead.
fn has_restarted_too_often(spec: &JobSpec, count: &Count) -> bool {
    if !spec.restarts_in_place {
        return false;
    }
    let running = count
        .pods
        .iter()
        .filter(|pod| matches!(pod::phase(pod), "Running" | "Pending"));
    let restarts: i64 = running.map(|pod| restarts(pod)).fold(0, i64::saturating_add);
    restarts >= spec.backoff_limit.max(1)
}

fn restarts(pod: &Value) -> i64 {
    let fields = ["initContainerStatuses", "containerStatuses"];
    let statuses = fields
        .iter()
        .filter_map(|field| pod["status"][field].as_array())
        .flatten();
    statuses
        .filter_map(|status| status["restartCount"].as_i64())
        .fold(0, i64::saturating_add)
}

fn ended_by_indexes(spec: &JobSpec, count: &Count) -> Option<Condition> {
    let (indexed, indexes) = (spec.indexed.as_ref()?, count.indexes.as_ref()?);
    if let Some(failed) = &indexes.failed {
        if indexed.max_failed.is_some_and(|limit| failed.total() > limit) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(failure("MaxFailedIndexesExceeded", message));
        }
        if failed.total() > 0
            && failed.total().saturating_add(indexes.succeeded.total()) >= indexed.completions
        {
            return Some(failure("FailedIndexes", "Job has failed indexes"));
        }
    }
    let message = indexed
        .success_policy
        .as_ref()?
        .met(&indexes.succeeded, indexed.completions)?;
    Some(Condition::new(
        ConditionKind::SuccessCriteriaMet,
        "SuccessPolicy",
        message,
    ))
}
