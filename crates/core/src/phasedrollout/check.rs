//! When Prometheus is queried, what an answer means, and how checks are counted.

use jiff::Timestamp;
use stateward_api::analysis;
use stateward_api::phasedrollout::{
    Check, LastCheck, PhasedRollout, PhasedRolloutStatus, RollingPodStatus, SuccessOn,
};

use super::{checks, is_stale, phase, question, rolling, seconds};
use crate::analysis::{Data, Reply};
use crate::engine::{LONGEST_RUN_MESSAGE, shortened};
use crate::event::{EventReason, Notice};

/// Starts the checks of a gate.
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

/// The gate to check, and when its next check is due; `None` while there is none.
pub fn due(object: &PhasedRollout, now: Timestamp) -> Option<(String, Timestamp)> {
    let status = object.status.as_ref()?;
    let attempt = rolling(status)?;
    let record = checks(status, object.metadata.name.as_deref()?, &attempt)?;
    let check = &object.spec.check;
    let idle = attempt.paused_by_user || object.spec.paused || object.spec.skips_checks();
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

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// When it was made.
    pub at: Timestamp,
    /// A digest of the query.
    pub question: String,
    /// Whether it was successful.
    pub verdict: Verdict,
    /// The reason, in one word.
    pub reason: String,
    /// The answer.
    pub answer: String,
    /// The reason, in a sentence.
    pub message: String,
}

/// Whether a check was successful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Successful.
    Successful,
    /// Failed.
    Failed,
    /// Unknown.
    Error,
}

/// Judges an answer.
///
/// With `NoData`, any data is a failure, whatever its value. An unreliable answer is never a success: an answer with a Prometheus
/// warning may be incomplete, and NaN says nothing.
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
        (SuccessOn::NoData, numbers) if numbers.iter().any(|number| number.is_nan()) => (
            Verdict::Failed,
            "NaN",
            format!("{answer} with NaN returned, where none is a success"),
        ),
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

/// The result of a check that could not be made.
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

/// Records a check. `None` if the gate does not wait for it.
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
        record.consecutive_successful_checks = before.saturating_add(1);
        record.consecutive_failed_checks = 0;
    } else {
        record.consecutive_successful_checks = 0;
        record.consecutive_failed_checks = record.consecutive_failed_checks.saturating_add(1);
        record.total_failed_checks = record.total_failed_checks.saturating_add(1);
    }
    record.last_check_time = Some(checked.at);
    record.tries_left = tries_left(check, record);
    record.last_check = Some(LastCheck {
        verdict: format!("{:?}", checked.verdict),
        reason: checked.reason.clone(),
        answer: checked.answer.clone(),
        message: shortened(&checked.message, LONGEST_RUN_MESSAGE).into_owned(),
    });
    record.status = word(object, &record.clone(), checked.at).into();
    Some(status)
}

pub(super) fn tries_left(check: &Check, record: &RollingPodStatus) -> Option<i32> {
    let tries = check.max_tries?;
    Some(tries.saturating_sub(record.consecutive_failed_checks).max(0))
}

/// The state of a gate's checks, in one word.
pub(super) fn word(object: &PhasedRollout, record: &RollingPodStatus, now: Timestamp) -> &'static str {
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

/// The event for a recorded check: at the beginning of a series of failures, and at its end.
pub fn news(before: &PhasedRolloutStatus, after: &PhasedRolloutStatus) -> Option<Notice> {
    let (before, after) = (
        before.rolling_pod_status.as_ref()?,
        after.rolling_pod_status.as_ref()?,
    );
    let last = after.last_check.as_ref()?;
    let reason = match (before.consecutive_failed_checks, after.consecutive_failed_checks) {
        (0, 1..) if last.verdict == "Error" => EventReason::PrometheusError,
        (0, 1..) => EventReason::CheckFailed,
        (1.., 0) if before.gate == after.gate => EventReason::CheckRecovered,
        _ => return None,
    };
    Some(Notice {
        reason,
        message: last.message.clone(),
    })
}
