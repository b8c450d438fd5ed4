//! The PhasedRollout front end: one pod after the other, with a gate of checks before each and after the last.
//!
//! The checks of a gate live in the object's own status, and are a run of analysis to the engine: it says when one begins, and
//! asks what it came to. Whether it is passed follows from what is on record and from the spec as it is now.

use jiff::{SignedDuration, Timestamp};
use stateward_api::analysis;
use stateward_api::phasedrollout::{
    Check, FailurePolicy, LastCheck, PhasedRollout, PhasedRolloutStatus, RollingPodStatus, SuccessOn,
};
use stateward_api::rollout::{Condition, RolloutStatus};

use crate::analysis::{Data, Reply};
use crate::engine::name_of_step;
use crate::memory::{Activity, Attempt};
use crate::plan::{Fingerprint, History, OnBrokenPod, OnFailure, Plan, Step, pod_by_pod};
use crate::record;
use crate::workload::Workload;
use crate::world::{Decision, NoWorkload, Notice, Phase, Reason, Run, World};

/// How long a rollout may go without progress, unless it says otherwise.
const DEADLINE: SignedDuration = SignedDuration::from_secs(600);

/// What the spec asks for, or everything that is wrong with it.
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

/// The checks of the gate that an attempt stands at, if they have begun.
fn checks<'s>(
    status: &'s PhasedRolloutStatus,
    object: &str,
    attempt: &Attempt,
) -> Option<&'s RollingPodStatus> {
    let record = status.rolling_pod_status.as_ref()?;
    (record.gate == name_of_step(object, attempt)).then_some(record)
}

fn rolling(status: &PhasedRolloutStatus) -> Option<Attempt> {
    match record::memory(&status.rollout).activity {
        Activity::Rolling(attempt) => Some(attempt),
        Activity::Idle | Activity::Returning(_) => None,
    }
}

/// The gate that the object stands at, as the engine sees it.
pub fn runs(object: &PhasedRollout, workload: &Result<Workload, NoWorkload>, now: Timestamp) -> Vec<Run> {
    // What cannot be carried out asks nothing, and so nothing has failed.
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
        title: title(&attempt, workload),
        uid: record.gate.clone(),
        phase,
        message: progress(&object.spec.check, record),
        began: record.analisys_start_time,
        measured: true,
        ending: false,
        ended: record.last_check_time.filter(|_| phase.is_over()),
    }]
}

/// What is asked. Answers to another question count for nothing.
fn question(object: &PhasedRollout) -> String {
    let query = serde_json::to_string(&object.spec.check.query).unwrap_or_default();
    let question = format!("{query} {:?}", object.success_on());
    Fingerprint::of(&question).as_str().to_owned()
}

/// After so many periods without a check the ones before count for nothing.
const STALE_PERIODS: i32 = 3;

/// Whether the last check was made a while before `now`.
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
fn title(attempt: &Attempt, workload: &Result<Workload, NoWorkload>) -> String {
    let released = attempt.step.0 / 2;
    let next = workload.as_ref().ok().and_then(|workload| {
        let index = workload.replicas.checked_sub(released + 1)?;
        let name = workload.at(index).map(|pod| pod.name.clone());
        Some(name.unwrap_or_else(|| index.to_string()))
    });
    next.map_or_else(
        || "the gate after the last pod".into(),
        |next| format!("the gate before pod {next}"),
    )
}

/// How far the checks are, in words.
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

/// Begins the checks of a gate.
pub fn begin(object: &PhasedRollout, gate: &str, now: Timestamp) -> PhasedRolloutStatus {
    let status = object.status.clone().unwrap_or_default();
    let partition = status
        .rolling_pod_status
        .as_ref()
        .map_or(0, |record| record.partition);
    PhasedRolloutStatus {
        rolling_pod_status: Some(RollingPodStatus {
            status: "WaitForInitialDelay".into(),
            partition,
            gate: gate.to_owned(),
            question: question(object),
            analisys_start_time: Some(now),
            tries_left: object.spec.check.max_tries,
            ..RollingPodStatus::default()
        }),
        ..status
    }
}

/// The gate that is to be checked and when that is due next; `None` while nothing is.
pub fn due(object: &PhasedRollout, now: Timestamp) -> Option<(String, Timestamp)> {
    let status = object.status.as_ref()?;
    let attempt = rolling(status)?;
    let record = checks(status, object.metadata.name.as_deref()?, &attempt)?;
    let check = &object.spec.check;
    let idle = attempt.held || object.spec.paused || object.spec.skips_checks();
    if idle || !object.problems().is_empty() || phase(object, record, now).is_over() {
        return None;
    }
    let first = record
        .analisys_start_time?
        .saturating_add(seconds(check.initial_delay_seconds))
        .ok()?;
    let next = record
        .last_check_time
        .and_then(|last| last.saturating_add(seconds(check.period_seconds)).ok());
    Some((record.gate.clone(), next.map_or(first, |next| next.max(first))))
}

fn seconds(seconds: i32) -> SignedDuration {
    SignedDuration::from_secs(seconds.into())
}

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// When it was asked.
    pub at: Timestamp,
    /// What was asked, by a digest.
    pub question: String,
    /// Whether that was a success.
    pub verdict: Verdict,
    /// Why, in one word.
    pub reason: String,
    /// What was answered.
    pub answer: String,
    /// Why, in a sentence.
    pub message: String,
}

/// Whether a check was a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was.
    Successful,
    /// It was not.
    Failed,
    /// Nothing can be said.
    Error,
}

/// What an answer means.
///
/// With `NoData` any data is a failure, whatever its value. What cannot be relied on is never a success: an answer that
/// Prometheus itself warns about may lack what it should have, and a number that is none says nothing.
pub fn judge(object: &PhasedRollout, reply: &Reply, at: Timestamp) -> Checked {
    let numbers = match &reply.data {
        Data::Nothing => &[],
        Data::Number(number) => std::slice::from_ref(number),
        Data::Numbers(numbers) => numbers.as_slice(),
        Data::Document(_) | Data::Text(_) => &[f64::NAN],
    };
    let answer = match (&reply.data, numbers.len(), reply.series) {
        (Data::Number(_), ..) => "a scalar".to_owned(),
        (Data::Document(_) | Data::Text(_), ..) => "a text".to_owned(),
        (_, 0, _) => "no data".to_owned(),
        (_, samples, Some(series)) if series != samples => format!("{series} series with {samples} samples"),
        (_, samples, _) => format!("{samples} series"),
    };
    let (verdict, reason, message) = match (object.success_on(), numbers) {
        (SuccessOn::NoData, []) => (Verdict::Successful, "NoData", "no data was returned".to_owned()),
        (SuccessOn::NoData, _) => (
            Verdict::Failed,
            "DataReturned",
            format!("{answer} returned, where none is a success"),
        ),
        (SuccessOn::Data, []) => (
            Verdict::Failed,
            "NoData",
            "no data was returned, where some is a success".to_owned(),
        ),
        (SuccessOn::Data, numbers) if numbers.iter().any(|number| number.is_nan()) => {
            (Verdict::Error, "NaN", "the answer is NaN".to_owned())
        }
        (SuccessOn::Data, _) => (Verdict::Successful, "DataReturned", format!("{answer} returned")),
    };
    let (verdict, reason, message) = match reply.notes.get("warnings") {
        Some(warnings) if verdict == Verdict::Successful => (
            Verdict::Error,
            "Warnings",
            format!("the answer may not be whole: {warnings}"),
        ),
        _ => (verdict, reason, message),
    };
    Checked {
        at,
        question: question(object),
        verdict,
        reason: reason.into(),
        answer,
        message,
    }
}

/// A check that could not be made.
pub fn unanswered(object: &PhasedRollout, reason: &str, message: String, at: Timestamp) -> Checked {
    Checked {
        at,
        question: question(object),
        verdict: Verdict::Error,
        reason: reason.into(),
        answer: String::new(),
        message,
    }
}

/// Writes a check down. `None` if it is not one that the gate waits for.
pub fn note(object: &PhasedRollout, gate: &str, checked: &Checked) -> Option<PhasedRolloutStatus> {
    let (open, due) = due(object, checked.at)?;
    if open != gate || checked.at < due || checked.question != question(object) {
        return None;
    }
    let check = &object.spec.check;
    let mut status = object.status.clone()?;
    let record = status.rolling_pod_status.as_mut()?;
    let stale = is_stale(check, record, checked.at);
    if record.question != checked.question {
        record.question.clone_from(&checked.question);
        record.consecutive_successful_checks = 0;
        record.consecutive_failed_checks = 0;
    }
    if checked.verdict == Verdict::Successful {
        let before = if stale {
            0
        } else {
            record.consecutive_successful_checks
        };
        record.consecutive_successful_checks = before + 1;
        record.consecutive_failed_checks = 0;
    } else {
        record.consecutive_successful_checks = 0;
        record.consecutive_failed_checks += 1;
        record.total_failed_checks += 1;
    }
    record.last_check_time = Some(checked.at);
    record.tries_left = tries_left(check, record);
    record.last_check = Some(LastCheck {
        verdict: format!("{:?}", checked.verdict),
        reason: checked.reason.clone(),
        answer: checked.answer.clone(),
        message: checked.message.clone(),
    });
    record.status = word(object, &record.clone(), checked.at).into();
    Some(status)
}

fn tries_left(check: &Check, record: &RollingPodStatus) -> Option<i32> {
    let tries = check.max_tries?;
    Some((tries - record.consecutive_failed_checks).max(0))
}

/// Where the checks of a gate stand, in one word.
fn word(object: &PhasedRollout, record: &RollingPodStatus, now: Timestamp) -> &'static str {
    let check = &object.spec.check;
    let first = record
        .analisys_start_time
        .and_then(|start| start.saturating_add(seconds(check.initial_delay_seconds)).ok());
    if phase(object, record, now) == analysis::Phase::Failed {
        "ChecksFailed"
    } else if record
        .last_check
        .as_ref()
        .is_some_and(|last| last.verdict == "Error")
    {
        "PrometheusError"
    } else if first.is_some_and(|first| now < first) {
        "WaitForInitialDelay"
    } else {
        "WaitForChecks"
    }
}

/// What to tell of a check that was written down: that a row of failures begins, and that it ends.
pub fn news(before: &PhasedRolloutStatus, after: &PhasedRolloutStatus) -> Option<Notice> {
    let (before, after) = (
        before.rolling_pod_status.as_ref()?,
        after.rolling_pod_status.as_ref()?,
    );
    let last = after.last_check.as_ref()?;
    let (warning, reason) = match (before.consecutive_failed_checks, after.consecutive_failed_checks) {
        (0, 1..) if last.verdict == "Error" => (true, "PrometheusError"),
        (0, 1..) => (true, "CheckFailed"),
        (1.., 0) if before.gate == after.gate => (false, "CheckRecovered"),
        _ => return None,
    };
    Some(Notice {
        warning,
        reason,
        message: last.message.clone(),
    })
}

/// The status that writes a decision down. `None` when there is nothing worth a write.
pub fn next_status(
    object: &PhasedRollout,
    world: &World,
    decision: &Decision,
) -> Option<PhasedRolloutStatus> {
    let old = object.status.clone().unwrap_or_default();
    let generation = object.metadata.generation;
    let report = decision.report.as_ref()?;
    let mut shared = record::compose(&old.rollout, generation, world, decision)?;
    shared.phase = phase_word(report.phase, report.reason, &decision.memory.activity).into();
    for condition in &mut shared.conditions {
        condition.reason = condition.reason.replace("RolloutPlugin", "Rollout");
    }
    let updated = updated(&shared.phase);
    let before = old.rollout.conditions.iter();
    let before = before
        .filter(|before| before.kind == "Updated" && before.status == updated)
        .map(|before| before.last_transition_time)
        .next();
    shared.conditions.push(Condition {
        kind: "Updated".into(),
        status: updated.into(),
        reason: shared.phase.clone(),
        message: report.message.clone(),
        last_transition_time: before.unwrap_or(world.now),
        observed_generation: generation,
    });
    let mut new = PhasedRolloutStatus {
        rollout: shared,
        success_on: Some(object.success_on()),
        ..old.clone()
    };
    tell_times(&mut new, world, decision);
    new.rolling_pod_status = rolling_pod(object, &old, world, decision);
    let differs = if record::rides_along(world, decision) {
        outline(&new) != outline(&old)
    } else {
        new != old
    };
    differs.then_some(new)
}

/// What is worth a write of its own while pods are rolled.
fn outline(status: &PhasedRolloutStatus) -> PhasedRolloutStatus {
    let mut outline = status.clone();
    outline.rollout = record::outline(&status.rollout);
    if let Some(record) = &mut outline.rolling_pod_status {
        record.status.clear();
        record.partition = 0;
    }
    outline
}

/// The peer's words where it has them.
fn phase_word(phase: Phase, reason: Reason, activity: &Activity) -> &'static str {
    match (reason, phase) {
        (Reason::WorkloadMissing, _) => "ErrorSTSNotFound",
        (Reason::WorkloadUnfit | Reason::WorkloadClaimed, _) => "ErrorCannotManage",
        (Reason::Suspended, _) => "Suspended",
        (_, Phase::Successful) => "Updated",
        (_, Phase::Paused) => "Paused",
        (_, Phase::Failed) => "Failed",
        (_, Phase::Progressing) if matches!(activity, Activity::Rolling(_)) => "Rolling",
        (_, Phase::Progressing) => "Progressing",
    }
}

/// The phase of a status in the words of other rollouts.
pub fn plain_phase(status: &RolloutStatus) -> &str {
    let done = |condition: &Condition| condition.kind == "Completed" && condition.status == "True";
    match status.phase.as_str() {
        "Suspended" if !status.conditions.iter().any(done) => "Progressing",
        "Updated" | "Suspended" => "Successful",
        "Rolling" | "ErrorSTSNotFound" => "Progressing",
        "ErrorCannotManage" => "Failed",
        other => other,
    }
}

fn updated(phase: &str) -> &'static str {
    match phase {
        "Updated" => "True",
        "Rolling" | "Paused" | "Failed" => "False",
        _ => "Unknown",
    }
}

fn tell_times(new: &mut PhasedRolloutStatus, world: &World, decision: &Decision) {
    let target = |activity: &Activity| match activity {
        Activity::Rolling(attempt) => Some(attempt.target.to_string()),
        Activity::Idle | Activity::Returning(_) => None,
    };
    let (before, after) = (target(&world.memory.activity), target(&decision.memory.activity));
    match (&before, &after) {
        (_, Some(_)) if before != after => {
            new.rollout_start_time = Some(world.now);
            new.rollout_end_time = None;
            new.update_revision = after;
        }
        // Not when pods turn round: that is no end.
        (Some(target), None) => {
            let stable = decision.memory.stable.as_ref();
            if stable.is_some_and(|stable| stable.revision.as_str() == target) {
                new.rollout_end_time = Some(world.now);
            }
        }
        _ => {}
    }
}

/// The pod that is rolled, and the checks before the next.
fn rolling_pod(
    object: &PhasedRollout,
    old: &PhasedRolloutStatus,
    world: &World,
    decision: &Decision,
) -> Option<RollingPodStatus> {
    let (Activity::Rolling(attempt), Ok(plan), Ok(workload)) =
        (&decision.memory.activity, &world.plan, &world.workload)
    else {
        return None;
    };
    let check = &object.spec.check;
    let known = checks(old, &world.object, attempt).cloned();
    let mut record = known.clone().unwrap_or_default();
    record.partition = i32::try_from(i64::from(workload.replicas) - workload.released).unwrap_or(i32::MAX);
    record.status = match (plan.step(attempt.step), known) {
        (Some(Step::Analysis(_)), Some(known)) => word(object, &known, world.now),
        (Some(Step::Analysis(_)), None) => "WaitForAllPodsToBeAvailable",
        (Some(Step::Share(share)), _) => {
            let first = workload.first_released(share.of(workload.replicas));
            let there = workload.at(first).is_some_and(|pod| pod.runs(&attempt.target));
            if there {
                "WaitForAllPodsToBeAvailable"
            } else {
                "WaitForPodToBeUpdated"
            }
        }
        (Some(Step::Pause(_)) | None, _) => "WaitForPodToBeUpdated",
    }
    .into();
    if !record.gate.is_empty() {
        record.tries_left = tries_left(check, &record);
    }
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    const NOON: &str = "2026-01-01T12:00:00Z";

    fn at(seconds: i64) -> Timestamp {
        let noon: Timestamp = NOON.parse().unwrap();
        noon + SignedDuration::from_secs(seconds)
    }

    /// One at the gate before its first pod, whose checks began at noon.
    fn object(check: Value) -> PhasedRollout {
        let mut object: Value = json!({
            "apiVersion": "sts.plus/v1alpha1", "kind": "PhasedRollout", "metadata": {"name": "db"},
            "spec": {"targetRef": "db", "check": {
                "initialDelaySeconds": 30, "periodSeconds": 10, "successThreshold": 3, "query": {"expr": "up", "url": "prom"},
            }},
            "status": {
                "updatedRevision": "db-b", "currentStepIndex": 0, "currentStepHash": "h", "stepReplicas": 3,
                "currentStepStartedAt": NOON,
            },
        });
        json_patch::merge(&mut object["spec"]["check"], &check);
        let mut object: PhasedRollout = serde_json::from_value(object).unwrap();
        let status = object.status.clone().unwrap();
        let gate = name_of_step("db", &rolling(&status).unwrap());
        object.status = Some(begin(&object, &gate, at(0)));
        object
    }

    fn check(object: &mut PhasedRollout, verdict: Verdict, seconds: i64) -> bool {
        let gate = object
            .status
            .as_ref()
            .unwrap()
            .rolling_pod_status
            .as_ref()
            .unwrap()
            .gate
            .clone();
        let checked = Checked {
            at: at(seconds),
            question: question(object),
            verdict,
            reason: "NoData".into(),
            answer: "no data".into(),
            message: "no data was returned".into(),
        };
        let noted = note(object, &gate, &checked);
        let taken = noted.is_some();
        object.status = noted.or_else(|| object.status.clone());
        taken
    }

    fn counts(object: &PhasedRollout) -> (i32, i32, i32) {
        let record = object
            .status
            .as_ref()
            .unwrap()
            .rolling_pod_status
            .as_ref()
            .unwrap();
        (
            record.consecutive_successful_checks,
            record.consecutive_failed_checks,
            record.total_failed_checks,
        )
    }

    fn verdict(object: &PhasedRollout) -> analysis::Phase {
        let missing = Err(NoWorkload::Missing(String::new()));
        let last = object
            .status
            .as_ref()
            .unwrap()
            .rolling_pod_status
            .as_ref()
            .unwrap()
            .last_check_time;
        runs(object, &missing, last.unwrap())[0].phase
    }

    #[test]
    fn a_check_is_due_after_the_delay_and_then_once_a_period() {
        let mut object = object(json!({}));
        let when = |object: &PhasedRollout| due(object, at(40)).map(|(_, when)| when);
        assert_eq!(when(&object), Some(at(30)));
        assert!(
            !check(&mut object, Verdict::Successful, 29),
            "before its time it counts for nothing"
        );
        assert!(check(&mut object, Verdict::Successful, 31));
        assert_eq!(when(&object), Some(at(41)));
        assert!(!check(&mut object, Verdict::Successful, 31), "nor does it twice");
        object.spec.paused = true;
        assert_eq!(when(&object), None);
    }

    #[test]
    fn successes_count_in_a_row() {
        use Verdict::{Error, Failed, Successful};
        let mut object = object(json!({}));
        let steps = [
            (Successful, (1, 0, 0)),
            (Failed, (0, 1, 1)),
            (Successful, (1, 0, 1)),
            (Error, (0, 1, 2)),
            (Failed, (0, 2, 3)),
            (Successful, (1, 0, 3)),
            (Successful, (2, 0, 3)),
        ];
        for (index, (came, expected)) in steps.into_iter().enumerate() {
            assert!(check(&mut object, came, 30 + 10 * index as i64));
            assert_eq!(counts(&object), expected, "after {index}");
            assert_eq!(verdict(&object), analysis::Phase::Running);
        }
        assert!(check(&mut object, Successful, 100));
        assert_eq!(verdict(&object), analysis::Phase::Successful);
        assert_eq!(due(&object, at(100)), None, "nobody asks any more");
    }

    #[test]
    fn a_row_that_was_interrupted_for_long_begins_anew() {
        let mut object = object(json!({}));
        assert!(check(&mut object, Verdict::Successful, 30));
        assert!(check(&mut object, Verdict::Successful, 120));
        assert_eq!(counts(&object).0, 2, "three periods and a minute");
        assert!(check(&mut object, Verdict::Successful, 211));
        assert_eq!(counts(&object).0, 1);
    }

    #[test]
    fn tries_are_counted_down_and_more_of_them_take_the_failure_back() {
        let mut object = object(json!({"maxTries": 2}));
        assert!(check(&mut object, Verdict::Error, 30));
        assert!(check(&mut object, Verdict::Failed, 40));
        assert_eq!(verdict(&object), analysis::Phase::Failed);
        let record = object.status.clone().unwrap().rolling_pod_status.unwrap();
        assert_eq!(
            (record.status.as_str(), record.tries_left),
            ("ChecksFailed", Some(0))
        );
        object.spec.check.max_tries = Some(3);
        assert_eq!(verdict(&object), analysis::Phase::Running);
        assert_eq!(due(&object, at(41)).map(|(_, when)| when), Some(at(50)));
    }

    #[test]
    fn a_check_of_another_gate_counts_for_nothing() {
        let object = object(json!({}));
        let checked = Checked {
            at: at(40),
            question: question(&object),
            verdict: Verdict::Successful,
            reason: String::new(),
            answer: String::new(),
            message: String::new(),
        };
        assert_eq!(note(&object, "db-b-0-another", &checked), None);
    }

    fn reply(data: Data) -> Reply {
        Reply {
            data,
            newest: None,
            series: None,
            notes: std::collections::BTreeMap::new(),
        }
    }

    /// S002-06
    #[rstest]
    #[case(SuccessOn::NoData, Data::Nothing, Verdict::Successful, "no data")]
    #[case(SuccessOn::NoData, Data::Numbers(vec![]), Verdict::Successful, "no data")]
    #[case(SuccessOn::NoData, Data::Numbers(vec![0.0]), Verdict::Failed, "1 series")]
    #[case(SuccessOn::NoData, Data::Numbers(vec![f64::NAN, 1.0]), Verdict::Failed, "2 series")]
    #[case(SuccessOn::NoData, Data::Number(0.0), Verdict::Failed, "a scalar")]
    #[case(SuccessOn::NoData, Data::Text("a".into()), Verdict::Failed, "a text")]
    #[case(SuccessOn::Data, Data::Numbers(vec![0.0, 1.0]), Verdict::Successful, "2 series")]
    #[case(SuccessOn::Data, Data::Number(1.0), Verdict::Successful, "a scalar")]
    #[case(SuccessOn::Data, Data::Nothing, Verdict::Failed, "no data")]
    #[case(SuccessOn::Data, Data::Numbers(vec![1.0, f64::NAN]), Verdict::Error, "2 series")]
    #[case(SuccessOn::Data, Data::Text("a".into()), Verdict::Error, "a text")]
    fn data_or_none_is_what_counts(
        #[case] success_on: SuccessOn,
        #[case] data: Data,
        #[case] expected: Verdict,
        #[case] answer: &str,
    ) {
        let checked = judge(&object(json!({"successOn": success_on})), &reply(data), at(0));
        assert_eq!((checked.verdict, checked.answer.as_str()), (expected, answer));
    }

    #[rstest]
    #[case(2, "2 series with 5 samples returned, where none is a success")]
    #[case(5, "5 series returned, where none is a success")]
    fn series_are_told_and_samples_where_there_are_more(#[case] series: usize, #[case] message: &str) {
        let matrix = Reply {
            series: Some(series),
            ..reply(Data::Numbers(vec![1.0; 5]))
        };
        assert_eq!(judge(&object(json!({})), &matrix, at(0)).message, message);
    }

    #[rstest]
    #[case(SuccessOn::NoData, Data::Nothing, Verdict::Error)]
    #[case(SuccessOn::Data, Data::Numbers(vec![1.0]), Verdict::Error)]
    #[case(SuccessOn::NoData, Data::Numbers(vec![1.0]), Verdict::Failed)]
    fn what_cannot_be_relied_on_is_no_success(
        #[case] success_on: SuccessOn,
        #[case] data: Data,
        #[case] expected: Verdict,
    ) {
        let mut warned = reply(data);
        warned
            .notes
            .insert("warnings".into(), "\"a store is down\"".into());
        let object = object(json!({"successOn": success_on}));
        assert_eq!(judge(&object, &warned, at(0)).verdict, expected);
    }

    /// Whoever lowers the threshold, or was away, does not pass a gate on what was so a while ago.
    #[test]
    fn checks_of_a_while_ago_pass_no_gate() {
        let mut object = object(json!({}));
        assert!(check(&mut object, Verdict::Successful, 30));
        object.spec.check.success_threshold = 1;
        let missing = Err(NoWorkload::Missing(String::new()));
        let phase_at = |second: i64| runs(&object, &missing, at(second))[0].phase;
        assert_eq!(phase_at(31), analysis::Phase::Successful);
        assert_eq!(phase_at(121), analysis::Phase::Running);
        assert_eq!(
            due(&object, at(121)).map(|(_, when)| when),
            Some(at(40)),
            "it is asked again"
        );
    }

    #[rstest]
    #[case::another_meaning(|object: &mut PhasedRollout| object.spec.check.success_on = Some(SuccessOn::Data))]
    #[case::another_query(|object: &mut PhasedRollout| object.spec.check.query.expr = "down".into())]
    fn answers_to_another_question_count_for_nothing(#[case] change: fn(&mut PhasedRollout)) {
        let mut object = object(json!({"maxTries": 1}));
        assert!(check(&mut object, Verdict::Successful, 30));
        assert!(check(&mut object, Verdict::Successful, 40));
        change(&mut object);
        assert!(check(&mut object, Verdict::Successful, 50));
        assert_eq!(counts(&object), (1, 0, 0));
        assert!(check(&mut object, Verdict::Failed, 60));
        assert_eq!(verdict(&object), analysis::Phase::Failed);
        object.spec.check.query.timeout_seconds = Some(30);
        assert_eq!(
            verdict(&object),
            analysis::Phase::Running,
            "a query that is put right is tried"
        );
    }

    /// A slip in the spec of one that is held is no verdict.
    #[test]
    fn what_cannot_be_carried_out_has_no_gate() {
        let mut object = object(json!({"maxTries": 1}));
        assert!(check(&mut object, Verdict::Failed, 30));
        object.spec.check.query.secret_ref = Some("Prom_Secret".into());
        let missing = Err(NoWorkload::Missing(String::new()));
        assert_eq!(runs(&object, &missing, at(31)), []);
    }
}
