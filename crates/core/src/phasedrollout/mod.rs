//! The PhasedRollout API: one pod after another, with a gate of checks before each and after the last.
//!
//! The checks of a gate are stored in the object's own status. To the engine they are an AnalysisRun: it starts one and reads its
//! phase. Whether the gate passes follows from the recorded checks and the current spec.
//!
//! - this file: the plan, and the gate as the engine sees it.
//! - [`check`]: when Prometheus is queried, what an answer means, and how checks are counted.
//! - [`status`]: the status.

mod check;
mod status;
#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use stateward_api::analysis;
use stateward_api::phasedrollout::{
    Check, FailurePolicy, PhasedRollout, PhasedRolloutStatus, RollingPodStatus,
};

pub use self::check::{Checked, Verdict, begin, due, judge, news, note, unanswered};
pub use self::status::{next_status, plain_phase, status};
use crate::engine::step_run_name;
use crate::memory::{Activity, Attempt};
use crate::plan::{Fingerprint, History, OnBrokenPod, OnFailure, Plan, pod_by_pod};
use crate::record;
use crate::workload::Workload;
use crate::world::{NoWorkload, Run};

/// The default time that a rollout may go without progress.
const DEADLINE: SignedDuration = SignedDuration::from_secs(600);

/// The plan, or everything that is wrong with the spec.
pub fn plan(object: &PhasedRollout, workload: &Result<Workload, NoWorkload>) -> Result<Plan, Vec<String>> {
    let problems = object.problems();
    if !problems.is_empty() {
        return Err(problems.iter().map(ToString::to_string).collect());
    }
    let spec = &object.spec;
    let on_failure = match spec.failure_policy.unwrap_or_default() {
        FailurePolicy::Hold => OnFailure::Hold,
        FailurePolicy::Rollback => OnFailure::Abort,
    };
    let deadline = spec.progress_deadline_seconds;
    Ok(Plan {
        steps: pod_by_pod(workload.as_ref().map_or(0, |workload| workload.replicas)),
        by_pod: true,
        background: None,
        deadline: deadline.map_or(DEADLINE, |seconds| SignedDuration::from_secs(seconds.into())),
        on_failure,
        on_broken_pod: OnBrokenPod::Fail(on_failure),
        on_failed_check: on_failure,
        history: History::default(),
    })
}

/// The checks of an attempt's current gate, if they have begun.
fn checks<'s>(
    status: &'s PhasedRolloutStatus,
    object: &str,
    attempt: &Attempt,
) -> Option<&'s RollingPodStatus> {
    let record = status.rolling_pod_status.as_ref()?;
    (record.gate == step_run_name(object, attempt)).then_some(record)
}

fn rolling(status: &PhasedRolloutStatus) -> Option<Attempt> {
    match record::memory(&status.rollout).activity {
        Activity::Rolling(attempt) => Some(attempt),
        Activity::Idle | Activity::RollingBack(_) => None,
    }
}

/// The object's current gate, as an AnalysisRun of the engine.
pub fn runs(object: &PhasedRollout, workload: &Result<Workload, NoWorkload>, now: Timestamp) -> Vec<Run> {
    // With an invalid spec nothing is checked, so nothing has failed.
    if !object.problems().is_empty() {
        return Vec::new();
    }
    let status = object.status.clone().unwrap_or_default();
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let Some(attempt) = rolling(&status) else {
        return Vec::new();
    };
    let Some(record) = checks(&status, name, &attempt) else {
        return Vec::new();
    };
    let phase = phase(object, record, now);
    vec![Run {
        name: record.gate.clone(),
        title: title(object, &attempt, workload),
        uid: record.gate.clone(),
        phase,
        message: progress(&object.spec.check, record),
        began: record.analisys_start_time,
        measured: true,
        ending: false,
        ended: record.last_check_time.filter(|_| phase.is_over()),
    }]
}

/// A digest of the query. Answers to another query do not count.
fn question(object: &PhasedRollout) -> String {
    let query = serde_json::to_string(&object.spec.check.query).unwrap_or_default();
    let question = format!("{query} {:?}", object.success_on());
    Fingerprint::of(&question).as_str().to_owned()
}

/// After this many periods without a check, the earlier checks expire.
const STALE_PERIODS: i32 = 3;

/// Whether the last check has expired at `now`.
fn is_stale(check: &Check, record: &RollingPodStatus, now: Timestamp) -> bool {
    let longest = seconds(check.period_seconds) * STALE_PERIODS + SignedDuration::from_mins(1);
    record
        .last_check_time
        .is_some_and(|last| now.duration_since(last) > longest)
}

fn phase(object: &PhasedRollout, record: &RollingPodStatus, now: Timestamp) -> analysis::Phase {
    let check = &object.spec.check;
    let enough = record.consecutive_successful_checks >= check.success_threshold.max(1);
    let failed = |tries: i32| record.consecutive_failed_checks >= tries;
    if record.question != question(object) {
        analysis::Phase::Running
    } else if enough && !is_stale(check, record, now) {
        analysis::Phase::Successful
    } else if check.max_tries.is_some_and(failed) {
        analysis::Phase::Failed
    } else {
        analysis::Phase::Running
    }
}

/// `the gate before pod db-4`
fn title(object: &PhasedRollout, attempt: &Attempt, workload: &Result<Workload, NoWorkload>) -> String {
    let next = workload.as_ref().ok().and_then(|workload| {
        let index = attempt.pod_number(attempt.step.0 / 2 + 1, workload.replicas)?;
        let name = workload.at(index).map(|pod| pod.name.clone());
        Some(name.unwrap_or_else(|| name_of_missing(object, workload, index)))
    });
    next.map_or_else(
        || "the gate after the last pod".into(),
        |next| format!("the gate before pod {next}"),
    )
}

/// The name of a pod that is missing at the moment. Its ordinal is derived from the existing pods.
fn name_of_missing(object: &PhasedRollout, workload: &Workload, index: u32) -> String {
    let start = workload.pods.first().and_then(|pod| {
        let (_, ordinal) = pod.name.rsplit_once('-')?;
        ordinal.parse::<u32>().ok()?.checked_sub(pod.index)
    });
    let ordinal = start.unwrap_or(0).saturating_add(index);
    format!("{}-{ordinal}", object.spec.target_ref)
}

/// The progress of the checks, in words.
fn progress(check: &Check, record: &RollingPodStatus) -> String {
    let succeeded = format!(
        "{} of {} checks in a row succeeded",
        record.consecutive_successful_checks, check.success_threshold
    );
    let failed = record.consecutive_failed_checks;
    let Some(last) = record.last_check.as_ref().filter(|_| failed > 0) else {
        return succeeded;
    };
    let of = check
        .max_tries
        .filter(|tries| *tries >= failed)
        .map_or_else(String::new, |tries| format!(" of {tries}"));
    format!(
        "{failed}{of} in a row did not succeed, the last: {}",
        last.message
    )
}

fn seconds(seconds: i32) -> SignedDuration {
    SignedDuration::from_secs(seconds.into())
}
