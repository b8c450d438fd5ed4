//! One AnalysisRun: when each metric is measured, how its measurements are counted, and the phase of the run.
//!
//! Everything follows from the run's own spec and status, so a run continues after a crash where its status left off. The spec is
//! the output of [`filled`](super::template::filled): its args are resolved and its patterns are names. Measurements are counted as
//! in Argo Rollouts; unlike there, the schedule does not drift with every measurement.

use jiff::{SignedDuration, Timestamp};
use stateward_api::analysis::{
    AnalysisRunSpec, AnalysisRunStatus, Measurement, Metric, MetricResult, Phase, Summary,
};

/// The delay before a retry after an error, whatever the interval.
const AFTER_AN_ERROR: SignedDuration = SignedDuration::from_secs(10);

/// How many measurements are kept by default.
const KEPT: usize = 10;

/// How many measurements are kept at most.
const MOST_KEPT: usize = 100;

/// How many bytes the measurements of a run may take: a status that keeps growing could not be written any more.
const MOST_BYTES: usize = 256 * 1024;

/// The most characters of a measurement's message, and of a metadata value.
const LONGEST_MESSAGE: usize = 1024;
const LONGEST_NOTE: usize = 300;

/// The most characters of the problems of a run.
const LONGEST_REASON: usize = 4096;

/// What is due in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agenda {
    /// Metrics to measure now, by their index in the spec.
    pub measure: Vec<usize>,
    /// Metrics whose last measurement is in progress and has to be checked.
    pub resume: Vec<usize>,
    /// When the next metric is due.
    pub wake: Option<Timestamp>,
}

/// What is due now. Nothing if the run is over or ending.
pub fn agenda(spec: &AnalysisRunSpec, status: &AnalysisRunStatus, now: Timestamp) -> Agenda {
    let mut agenda = Agenda::default();
    if status.phase.is_over() {
        return agenda;
    }
    let ending = is_ending(spec, status);
    for (index, metric) in spec.metrics.iter().enumerate() {
        let result = result(status, &metric.name);
        if result.is_some_and(|result| result.phase.is_over()) {
            continue;
        }
        if result.and_then(last).is_some_and(|last| !last.phase.is_over()) {
            agenda.resume.push(index);
            continue;
        }
        if ending {
            continue;
        }
        match due(metric, result, status.started_at.unwrap_or(now)) {
            Some(at) if at <= now => agenda.measure.push(index),
            Some(at) => agenda.wake = Some(agenda.wake.map_or(at, |earlier| earlier.min(at))),
            None => {}
        }
    }
    agenda
}

/// When a metric is due next.
fn due(metric: &Metric, result: Option<&MetricResult>, started: Timestamp) -> Option<Timestamp> {
    let first = started.saturating_add(metric.initial_delay()).ok()?;
    let Some((result, last)) = result.and_then(|result| Some((result, last(result)?))) else {
        return Some(first);
    };
    if metric
        .effective_count()
        .is_some_and(|count| result.count >= count)
    {
        return None;
    }
    if last.phase == Phase::Error {
        let ended = last.finished_at.or(last.started_at).unwrap_or(started);
        return ended.saturating_add(AFTER_AN_ERROR).ok();
    }
    on_the_beat(
        first,
        metric.interval().unwrap_or(AFTER_AN_ERROR),
        last.started_at.unwrap_or(started),
    )
}

/// Whether a measurement was due when it started. If two operators measure, the second result is dropped.
pub fn was_due(
    spec: &AnalysisRunSpec,
    status: &AnalysisRunStatus,
    index: usize,
    measurement: &Measurement,
) -> bool {
    let Some((metric, begun)) = spec.metrics.get(index).zip(measurement.started_at) else {
        return false;
    };
    let started = status.started_at.unwrap_or(begun);
    let result = result(status, &metric.name);
    let under_way = result.and_then(last).is_some_and(|last| !last.phase.is_over());
    !under_way && due(metric, result, started).is_some_and(|at| at <= begun)
}

/// The first of the times `first + n * interval` that is closer to one interval after `last` than to `last` itself, so that a late
/// or repeated measurement does not shift all that follow.
fn on_the_beat(first: Timestamp, interval: SignedDuration, last: Timestamp) -> Option<Timestamp> {
    let interval = interval.as_nanos().max(1);
    let since = last.duration_since(first).as_nanos();
    let beats = (since + interval / 2).div_euclid(interval) + 1;
    let after = i64::try_from(beats.max(0) * interval).ok()?;
    first.saturating_add(SignedDuration::from_nanos(after)).ok()
}

/// Records a measurement. It replaces the measurement in progress.
pub fn note(
    spec: &AnalysisRunSpec,
    status: &mut AnalysisRunStatus,
    index: usize,
    mut measurement: Measurement,
) {
    let Some(metric) = spec.metrics.get(index) else {
        return;
    };
    let kept = kept(spec, &metric.name);
    let result = result_mut(spec, status, metric);
    if result.phase.is_over() {
        return;
    }
    match measurement.phase {
        Phase::Pending | Phase::Running => {}
        Phase::Successful => {
            add_one(&mut result.successful);
            add_one(&mut result.consecutive_success);
        }
        Phase::Failed => add_one(&mut result.failed),
        Phase::Inconclusive => add_one(&mut result.inconclusive),
        Phase::Error => {
            add_one(&mut result.error);
            add_one(&mut result.consecutive_error);
        }
    }
    match measurement.phase {
        Phase::Pending | Phase::Running => {}
        Phase::Error => result.consecutive_success = 0,
        phase => {
            add_one(&mut result.count);
            result.consecutive_error = 0;
            if phase != Phase::Successful {
                result.consecutive_success = 0;
            }
        }
    }
    if result
        .measurements
        .last()
        .is_some_and(|last| !last.phase.is_over())
    {
        result.measurements.pop();
    }
    cut(&mut measurement.message, LONGEST_MESSAGE);
    cut(&mut measurement.value, LONGEST_NOTE);
    measurement
        .metadata
        .values_mut()
        .for_each(|note| cut(note, LONGEST_NOTE));
    result.measurements.push(measurement);
    let surplus = result.measurements.len().saturating_sub(kept);
    result.measurements.drain(..surplus);
    make_room(status);
}

/// The author of a run can write its counters, up to the largest number.
fn add_one(counter: &mut i32) {
    *counter = counter.saturating_add(1);
}

fn cut(text: &mut String, longest: usize) {
    if let Some((end, _)) = text.char_indices().nth(longest) {
        text.truncate(end);
        text.push('…');
    }
}

/// Drops the oldest measurements of the metrics that have the most, until the rest fits. The last one of each metric stays.
fn make_room(status: &mut AnalysisRunStatus) {
    let size = |measurement: &Measurement| {
        const TIMES_AND_NAMES: usize = 200;
        let notes = measurement.metadata.iter();
        let notes: usize = notes.map(|(name, note)| name.len() + note.len()).sum();
        TIMES_AND_NAMES + measurement.message.len() + measurement.value.len() + notes
    };
    let all = status
        .metric_results
        .iter()
        .flat_map(|result| &result.measurements);
    let mut taken: usize = all.map(size).sum();
    while taken > MOST_BYTES {
        let results = status.metric_results.iter_mut();
        let several = results.filter(|result| result.measurements.len() > 1);
        let Some(most) = several.max_by_key(|result| result.measurements.len()) else {
            return;
        };
        taken -= size(&most.measurements.remove(0));
    }
}

/// Removes a measurement in progress that will have no result.
pub fn withdraw(status: &mut AnalysisRunStatus, metric: &str) {
    let results = status.metric_results.iter_mut();
    for result in results.filter(|result| result.name == metric) {
        if last(result).is_some_and(|last| !last.phase.is_over()) {
            result.measurements.pop();
        }
    }
}

/// Computes the phase of every metric and of the run.
pub fn assess(spec: &AnalysisRunSpec, status: &mut AnalysisRunStatus, now: Timestamp) {
    if status.phase.is_over() {
        return;
    }
    status.started_at.get_or_insert(now);
    // The phase of one metric may end the others.
    for _ in 0..2 {
        let ending = match is_ending(spec, status) {
            true if spec.terminate => Some(End::Told),
            true => Some(End::Lost),
            false => None,
        };
        for metric in &spec.metrics {
            let result = result_mut(spec, status, metric);
            if !result.phase.is_over() {
                (result.phase, result.message) = standing(metric, result, ending);
            }
        }
    }
    sum_up(spec, status);
    let results = || status.metric_results.iter();
    let open = results().any(|result| !result.phase.is_over());
    let under_way = results().any(|result| last(result).is_some_and(|last| !last.phase.is_over()));
    // Of several that are equally bad, the first.
    let worst = results()
        .rev()
        .filter(|result| !result.dry_run)
        .max_by_key(|result| result.phase);
    if open || under_way {
        let waits = results().find_map(|result| {
            let last = last(result).filter(|last| !last.phase.is_over() && !last.message.is_empty())?;
            Some(format!("metric {}: {}", result.name, last.message))
        });
        (status.phase, status.message) = (Phase::Running, waits.unwrap_or_default());
        return;
    }
    let phase = worst.map_or(Phase::Successful, |worst| worst.phase);
    status.message = match worst.filter(|worst| worst.phase != Phase::Successful) {
        Some(worst) => format!("metric {}: {}", worst.name, worst.message),
        None if spec.terminate => "ended early".into(),
        None => String::new(),
    };
    status.phase = phase;
    status.completed_at = Some(now);
}

/// Ends a run that cannot be measured with an error.
pub fn refuse(status: &mut AnalysisRunStatus, why: String, now: Timestamp) {
    status.started_at.get_or_insert(now);
    status.phase = Phase::Error;
    status.message = why;
    cut(&mut status.message, LONGEST_REASON);
    status.completed_at = Some(now);
}

/// Ends a run whose status cannot be stored, with a minimal status.
pub fn give_up(status: &AnalysisRunStatus, why: String, now: Timestamp) -> AnalysisRunStatus {
    let mut least = AnalysisRunStatus {
        started_at: status.started_at,
        ..AnalysisRunStatus::default()
    };
    refuse(&mut least, why, now);
    least
}

/// Whether every metric that counts has at least one measurement that is not an error.
pub fn is_measured(status: &AnalysisRunStatus) -> bool {
    let mut judged = status.metric_results.iter().filter(|result| !result.dry_run);
    !status.metric_results.is_empty() && judged.all(|result| result.count > 0)
}

/// Why a run is ending.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It was terminated.
    Told,
    /// Another metric was not successful.
    Lost,
}

/// Whether the run is ending: it was terminated, or a metric that counts was not successful.
pub fn is_ending(spec: &AnalysisRunSpec, status: &AnalysisRunStatus) -> bool {
    let lost = |result: &MetricResult| {
        !result.dry_run && matches!(result.phase, Phase::Failed | Phase::Error | Phase::Inconclusive)
    };
    spec.terminate || status.metric_results.iter().any(lost)
}

/// When a completed run is deleted, if it has a TTL.
pub fn expires(spec: &AnalysisRunSpec, status: &AnalysisRunStatus) -> Option<Timestamp> {
    let ttl = spec.ttl_strategy.filter(|_| status.phase.is_over())?;
    let own = if status.phase == Phase::Successful {
        ttl.seconds_after_success
    } else {
        ttl.seconds_after_failure
    };
    let seconds = own.or(ttl.seconds_after_completion)?;
    let ended = status.completed_at?;
    ended
        .saturating_add(SignedDuration::from_secs(seconds.max(0).into()))
        .ok()
}

/// The last measurement of a metric, possibly in progress.
pub fn last(result: &MetricResult) -> Option<&Measurement> {
    result.measurements.last()
}

/// The result of a metric so far.
pub fn result<'s>(status: &'s AnalysisRunStatus, metric: &str) -> Option<&'s MetricResult> {
    status.metric_results.iter().find(|result| result.name == metric)
}

fn result_mut<'s>(
    spec: &AnalysisRunSpec,
    status: &'s mut AnalysisRunStatus,
    metric: &Metric,
) -> &'s mut MetricResult {
    let known = status
        .metric_results
        .iter()
        .position(|result| result.name == metric.name);
    let index = known.unwrap_or_else(|| {
        status.metric_results.push(MetricResult {
            name: metric.name.clone(),
            dry_run: spec.dry_run.iter().any(|dry| dry.metric_name == metric.name),
            ..MetricResult::default()
        });
        status.metric_results.len() - 1
    });
    &mut status.metric_results[index]
}

/// The phase of a metric that is not over yet, and why.
fn standing(metric: &Metric, result: &MetricResult, ending: Option<End>) -> (Phase, String) {
    const UNMEASURED: &str = "ended before it was measured";
    let Some(last) = last(result) else {
        return match ending {
            Some(End::Told) => (Phase::Inconclusive, UNMEASURED.into()),
            Some(End::Lost) => (Phase::Successful, UNMEASURED.into()),
            None => (Phase::Pending, String::new()),
        };
    };
    if !last.phase.is_over() {
        return (Phase::Running, last.message.clone());
    }
    let because = |what: String| match last.message.as_str() {
        "" => what,
        message => format!("{what}; the last: {message}"),
    };
    let allowed =
        |count: i32, word: &str, allowed: i32| because(format!("{count} {word}, {allowed} allowed"));
    let MetricResult {
        failed,
        inconclusive,
        consecutive_error,
        ..
    } = *result;
    if let Some(limit) = metric.failures_allowed().filter(|limit| failed > *limit) {
        return (Phase::Failed, allowed(failed, "failed", limit));
    }
    if inconclusive > metric.inconclusive_allowed() {
        let limit = metric.inconclusive_allowed();
        return (Phase::Inconclusive, allowed(inconclusive, "inconclusive", limit));
    }
    if consecutive_error > metric.errors_allowed() {
        let limit = metric.errors_allowed();
        let words = if consecutive_error == 1 {
            "error"
        } else {
            "errors in a row"
        };
        return (Phase::Error, allowed(consecutive_error, words, limit));
    }
    let wanted = metric.successes_wanted();
    if wanted.is_some_and(|wanted| result.consecutive_success >= wanted) {
        return (Phase::Successful, String::new());
    }
    if metric
        .effective_count()
        .is_some_and(|count| result.count >= count)
    {
        let Some(wanted) = wanted else {
            return (Phase::Successful, String::new());
        };
        let phase = match metric.failures_allowed() {
            Some(_) => Phase::Inconclusive,
            None => Phase::Failed,
        };
        let why = format!(
            "{} measurements without {wanted} successful in a row",
            result.count
        );
        return (phase, why);
    }
    match ending {
        // Errors say nothing about the metric.
        Some(End::Told) if result.count == 0 => (Phase::Inconclusive, because(UNMEASURED.into())),
        Some(_) => (Phase::Successful, String::new()),
        None => (Phase::Running, last.message.clone()),
    }
}

fn sum_up(spec: &AnalysisRunSpec, status: &mut AnalysisRunStatus) {
    let (mut judged, mut dry) = (Summary::default(), Summary::default());
    for result in &status.metric_results {
        let summary = if result.dry_run { &mut dry } else { &mut judged };
        summary.count += 1;
        match result.phase {
            Phase::Successful => summary.successful += 1,
            Phase::Failed => summary.failed += 1,
            Phase::Inconclusive => summary.inconclusive += 1,
            Phase::Error => summary.error += 1,
            Phase::Pending | Phase::Running => {}
        }
    }
    status.run_summary = Some(judged);
    status.dry_run_summary = (!spec.dry_run.is_empty()).then_some(dry);
}

fn kept(spec: &AnalysisRunSpec, metric: &str) -> usize {
    let asked = spec
        .measurement_retention
        .iter()
        .find(|retention| retention.metric_name == metric);
    asked
        .and_then(|retention| usize::try_from(retention.limit).ok())
        .filter(|limit| *limit > 0)
        .unwrap_or(KEPT)
        .min(MOST_KEPT)
}
