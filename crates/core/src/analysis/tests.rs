//! AnalysisRuns, measurement by measurement.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use stateward_api::analysis::{AnalysisRunSpec, AnalysisRunStatus, Measurement, Phase};

use super::run::{Agenda, agenda, assess, expires, is_measured, note, was_due};

const NOON: &str = "2026-01-01T12:00:00Z";

fn at(seconds: i64) -> Timestamp {
    let noon: Timestamp = NOON.parse().unwrap();
    noon + SignedDuration::from_secs(seconds)
}

fn metric(name: &str, patch: Value) -> Value {
    let mut metric = json!({"name": name, "provider": {"prometheus": {"query": "up"}}});
    json_patch::merge(&mut metric, &patch);
    metric
}

fn spec(metrics: Vec<Value>, patch: Value) -> AnalysisRunSpec {
    let mut spec = json!({ "metrics": metrics });
    json_patch::merge(&mut spec, &patch);
    let mut spec = serde_json::from_value(spec).unwrap();
    super::names::resolve(&mut spec, "spec").unwrap();
    spec
}

fn one(patch: Value) -> AnalysisRunSpec {
    spec(vec![metric("errors", patch)], json!({}))
}

fn measured(phase: Phase, second: i64) -> Measurement {
    Measurement {
        phase,
        started_at: Some(at(second)),
        finished_at: phase.is_over().then(|| at(second)),
        ..Measurement::default()
    }
}

/// Simulates a run to its end, or until `phases` are used up: each metric is measured when it is due and gets the next phase.
fn play(spec: &AnalysisRunSpec, phases: &[Phase]) -> (AnalysisRunStatus, Vec<i64>) {
    let mut status = AnalysisRunStatus::default();
    let mut now = at(0);
    let mut times = Vec::new();
    let mut phases = phases.iter();
    assess(spec, &mut status, now);
    for _ in 0..1000 {
        let Agenda { measure, wake, .. } = agenda(spec, &status, now);
        if measure.is_empty() {
            match wake {
                Some(later) => now = later,
                None => break,
            }
            continue;
        }
        let Some(phase) = phases.next() else { break };
        times.push(now.duration_since(at(0)).as_secs());
        for index in measure {
            let measurement = Measurement {
                started_at: Some(now),
                finished_at: Some(now),
                ..measured(*phase, 0)
            };
            note(spec, &mut status, index, measurement);
        }
        assess(spec, &mut status, now);
    }
    (status, times)
}

use Phase::{Error as E, Failed as F, Inconclusive as I, Successful as S};

#[rstest]
#[case::one_is_enough(json!({}), &[S], Phase::Successful)]
#[case::one_failure_is_too_many(json!({}), &[F], Phase::Failed)]
#[case::inconclusive_at_once(json!({}), &[I], Phase::Inconclusive)]
#[case::an_error_is_tried_again(json!({}), &[E, E, S], Phase::Successful)]
#[case::five_errors_are_not(json!({}), &[E, E, E, E, E], Phase::Error)]
#[case::errors_that_stop_start_from_none(json!({"interval": "1m", "count": 2}), &[E, E, E, E, S, E, E, E, E, S], Phase::Successful)]
#[case::failures_within_their_limit(json!({"interval": "1m", "count": 4, "failureLimit": 2}), &[F, S, F, S], Phase::Successful)]
#[case::failures_beyond_it_end_it(json!({"interval": "1m", "count": 9, "failureLimit": 2}), &[F, S, F, F, S], Phase::Failed)]
#[case::inconclusive_within_its_limit(json!({"interval": "1m", "count": 2, "inconclusiveLimit": 1}), &[I, S], Phase::Successful)]
#[case::enough_in_a_row(json!({"interval": "1m", "consecutiveSuccessLimit": 2, "failureLimit": -1}), &[S, F, S, S, F], Phase::Successful)]
#[case::never_enough_in_a_row(json!({"interval": "1m", "count": 3, "consecutiveSuccessLimit": 2, "failureLimit": -1}), &[S, F, S], Phase::Failed)]
#[case::never_enough_but_allowed_to_fail(json!({"interval": "1m", "count": 3, "consecutiveSuccessLimit": 2, "failureLimit": 2}), &[S, F, S], Phase::Inconclusive)]
#[case::without_an_end(json!({"interval": "1m"}), &[S, S, S], Phase::Running)]
fn measurements_add_up_as_argo_counts_them(
    #[case] patch: Value,
    #[case] phases: &[Phase],
    #[case] expected: Phase,
) {
    let (status, _) = play(&one(patch), phases);
    assert_eq!(status.phase, expected, "{}", status.message);
    assert_eq!(status.completed_at.is_some(), expected.is_over());
}

#[rstest]
#[case::on_the_beat(json!({"interval": "1m", "count": 4}), &[S, S, S, S], &[0, 60, 120, 180])]
#[case::after_a_delay(json!({"interval": "1m", "count": 2, "initialDelay": "30s"}), &[S, S], &[30, 90])]
#[case::an_error_again_after_ten_seconds(json!({"interval": "1m", "count": 3}), &[S, E, S, S], &[0, 60, 70, 120])]
#[case::and_not_at_once_after_a_long_one(json!({"interval": "20s", "count": 3}), &[E, E, S, S, S], &[0, 10, 20, 40, 60])]
fn metrics_are_measured_on_the_beat(
    #[case] patch: Value,
    #[case] phases: &[Phase],
    #[case] expected: &[i64],
) {
    assert_eq!(play(&one(patch), phases).1, expected);
}

/// The author of a run can write its status.
#[rstest]
fn counters_stay_at_their_maximum(
    #[values(Phase::Successful, Phase::Failed, Phase::Inconclusive, Phase::Error)] phase: Phase,
) {
    let spec = one(json!({"interval": "1s"}));
    let counters = json!({
        "name": "errors", "phase": "Running", "count": i32::MAX, "successful": i32::MAX, "failed": i32::MAX, "error": i32::MAX,
        "inconclusive": i32::MAX, "consecutiveError": i32::MAX, "consecutiveSuccess": i32::MAX,
    });
    let status = json!({"phase": "Running", "metricResults": [counters]});
    let mut status: AnalysisRunStatus = serde_json::from_value(status).unwrap();
    note(&spec, &mut status, 0, measured(phase, 0));
    let result = &status.metric_results[0];
    assert_eq!(
        (
            result.count,
            result.successful,
            result.failed,
            result.inconclusive,
            result.error
        ),
        (i32::MAX, i32::MAX, i32::MAX, i32::MAX, i32::MAX)
    );
    assess(&spec, &mut status, at(1));
    assert!(status.phase.is_over());
}

#[test]
fn a_measurement_that_was_late_does_not_shift_the_next() {
    let spec = one(json!({"interval": "10s"}));
    let mut status = AnalysisRunStatus::default();
    assess(&spec, &mut status, at(0));
    for late in [3, 40, 90] {
        let mut last = measured(S, 20);
        last.started_at = Some(at(20) + SignedDuration::from_millis(late));
        note(&spec, &mut status, 0, last);
        assert_eq!(agenda(&spec, &status, at(21)).wake, Some(at(30)));
    }
}

#[test]
fn of_two_that_ask_at_once_one_comes_too_late() {
    let spec = one(json!({"interval": "10s"}));
    let mut status = AnalysisRunStatus::default();
    assess(&spec, &mut status, at(0));
    for second in [0, 10, 20] {
        let (first, other) = (measured(S, second), measured(F, second));
        assert!(was_due(&spec, &status, 0, &first));
        note(&spec, &mut status, 0, first);
        assert!(!was_due(&spec, &status, 0, &other));
    }
}

#[test]
fn a_metric_that_fails_ends_the_others() {
    let metrics = vec![
        metric("errors", json!({"interval": "1m", "count": 5})),
        metric("latency", json!({"interval": "1m", "count": 5})),
    ];
    let spec = spec(metrics, json!({}));
    let mut status = AnalysisRunStatus::default();
    note(&spec, &mut status, 0, measured(F, 0));
    note(&spec, &mut status, 1, measured(S, 0));
    assess(&spec, &mut status, at(0));
    assert_eq!(status.phase, Phase::Failed);
    assert_eq!(status.message, "metric errors: 1 failed, 0 allowed");
    assert_eq!(agenda(&spec, &status, at(600)), Agenda::default());
}

#[test]
fn a_metric_without_a_say_fails_in_silence() {
    let metrics = vec![metric("errors", json!({})), metric("latency", json!({}))];
    let spec = spec(metrics, json!({"dryRun": [{"metricName": "err.*"}]}));
    let mut status = AnalysisRunStatus::default();
    note(&spec, &mut status, 0, measured(F, 0));
    note(&spec, &mut status, 1, measured(S, 0));
    assess(&spec, &mut status, at(0));
    assert_eq!(status.phase, Phase::Successful);
    let (judged, dry) = (status.run_summary.unwrap(), status.dry_run_summary.unwrap());
    assert_eq!((judged.count, judged.successful), (1, 1));
    assert_eq!((dry.count, dry.failed), (1, 1));
}

#[test]
fn a_dry_run_that_failed_ends_no_other_metric() {
    let count = json!({"count": 2, "interval": "10s"});
    let metrics = vec![metric("errors", json!({})), metric("latency", count)];
    let spec = spec(metrics, json!({"dryRun": [{"metricName": "errors"}]}));
    let mut status = AnalysisRunStatus::default();
    note(&spec, &mut status, 0, measured(Phase::Failed, 0));
    note(&spec, &mut status, 1, measured(Phase::Successful, 0));
    assess(&spec, &mut status, at(0));
    assert_eq!(status.phase, Phase::Running);
    assert_eq!(agenda(&spec, &status, at(10)).measure, [1]);
}

#[test]
fn only_the_last_measurements_are_kept() {
    let many = json!({"interval": "1m", "count": 30});
    let (status, _) = play(&one(many.clone()), &[S; 30]);
    assert_eq!(status.metric_results[0].measurements.len(), 10);
    assert_eq!(status.metric_results[0].count, 30);
    let more = json!({"measurementRetention": [{"metricName": "*", "limit": 12}]});
    let (status, _) = play(&spec(vec![metric("errors", many)], more), &[S; 30]);
    assert_eq!(status.metric_results[0].measurements.len(), 12);
}

/// Rule 13: a metric that was not measured was not successful.
#[rstest]
#[case::nothing_measured(&[], I, "metric errors: ended before it was measured", "ended before it was measured")]
#[case::only_errors(&[E, E], I, "metric errors: ended before it was measured", "ended before it was measured")]
#[case::all_well(&[S, S], S, "ended early", "")]
#[case::within_the_limit(&[E, F, E], S, "ended early", "")]
fn a_run_that_is_ended_is_what_it_was_so_far(
    #[case] phases: &[Phase],
    #[case] expected: Phase,
    #[case] message: &str,
    #[case] of_metric: &str,
) {
    let mut spec = one(json!({"interval": "1m", "failureLimit": 1}));
    let (mut status, _) = play(&spec, phases);
    spec.terminate = true;
    assert_eq!(agenda(&spec, &status, at(600)).measure, Vec::<usize>::new());
    assess(&spec, &mut status, at(600));
    assert_eq!((status.phase, status.message.as_str()), (expected, message));
    assert_eq!(status.metric_results[0].message, of_metric);
}

#[test]
fn a_run_is_measured_when_every_metric_with_a_say_is() {
    let metrics = vec![
        metric("a", json!({})),
        metric("b", json!({})),
        metric("dry", json!({})),
    ];
    let spec = spec(metrics, json!({"dryRun": [{"metricName": "dry"}]}));
    let mut status = AnalysisRunStatus::default();
    assert!(!is_measured(&status));
    assess(&spec, &mut status, at(0));
    for (index, phase, expected) in [(2, S, false), (0, S, false), (1, E, false), (1, S, true)] {
        note(&spec, &mut status, index, measured(phase, 0));
        assert_eq!(is_measured(&status), expected, "{index}");
    }
}

#[test]
fn however_much_is_to_be_kept_a_status_has_room() {
    let metrics = (0..100).map(|index| metric(&index.to_string(), json!({"interval": "1s"})));
    let retention = json!({"measurementRetention": [{"metricName": "*", "limit": 1_000_000}]});
    let spec = spec(metrics.collect(), retention);
    let mut status = AnalysisRunStatus::default();
    for second in 0..300 {
        for index in 0..100 {
            let mut long = measured(S, second);
            long.message = "ä".repeat(60_000);
            long.value = "x".repeat(60_000);
            long.metadata = [("query".to_owned(), "y".repeat(60_000))].into();
            note(&spec, &mut status, index, long);
        }
    }
    let size = serde_json::to_string(&status).unwrap().len();
    assert!(size < 512 * 1024, "{size}");
    for result in &status.metric_results {
        assert_eq!(result.count, 300);
        let last = result.measurements.last().unwrap();
        assert_eq!(last.started_at, Some(at(299)), "the last one stays");
    }
}

#[test]
fn a_hundred_are_kept_at_most() {
    let many = json!({"interval": "1s", "count": 300});
    let more = json!({"measurementRetention": [{"metricName": "*", "limit": 1_000_000}]});
    let (status, _) = play(&spec(vec![metric("errors", many)], more), &[S; 300]);
    assert_eq!(status.metric_results[0].measurements.len(), 100);
}

#[test]
fn what_a_measurement_waits_for_is_told_by_its_run() {
    let spec = one(json!({}));
    let mut status = AnalysisRunStatus::default();
    let waiting = Measurement {
        message: "no pod yet".into(),
        ..measured(Phase::Running, 0)
    };
    note(&spec, &mut status, 0, waiting);
    assess(&spec, &mut status, at(0));
    assert_eq!(status.message, "metric errors: no pod yet");
    note(&spec, &mut status, 0, measured(S, 9));
    assess(&spec, &mut status, at(9));
    assert_eq!((status.phase, status.message.as_str()), (S, ""));
}

#[test]
fn a_measurement_under_way_is_waited_for_and_counted_once() {
    let mut spec = one(json!({}));
    let mut status = AnalysisRunStatus::default();
    note(&spec, &mut status, 0, measured(Phase::Running, 0));
    assess(&spec, &mut status, at(0));
    assert_eq!(status.phase, Phase::Running);
    assert_eq!(agenda(&spec, &status, at(900)).resume, [0]);
    spec.terminate = true;
    assess(&spec, &mut status, at(900));
    assert_eq!(status.phase, Phase::Running, "its end is still to be seen");
    note(&spec, &mut status, 0, measured(F, 900));
    assess(&spec, &mut status, at(900));
    let result = &status.metric_results[0];
    assert_eq!(
        (result.measurements.len(), result.count, result.failed),
        (1, 1, 1)
    );
    assert_eq!(status.phase, Phase::Failed);
}

#[rstest]
#[case(json!({"secondsAfterCompletion": 60}), S, Some(60))]
#[case(json!({"secondsAfterCompletion": 60, "secondsAfterSuccess": 5}), S, Some(5))]
#[case(json!({"secondsAfterSuccess": 5}), F, None)]
#[case(json!({"secondsAfterFailure": 7}), F, Some(7))]
fn a_run_goes_when_its_time_is_over(#[case] ttl: Value, #[case] phase: Phase, #[case] expected: Option<i64>) {
    let spec = spec(vec![metric("errors", json!({}))], json!({ "ttlStrategy": ttl }));
    let (status, _) = play(&spec, &[phase]);
    assert_eq!(expires(&spec, &status), expected.map(at));
}

fn any_phase() -> impl Strategy<Value = Phase> {
    prop_oneof![Just(S), Just(F), Just(I), Just(E)]
}

proptest! {
    /// Rule 13: only successful measurements, and failures within their limits, make a run successful.
    #[test]
    fn a_successful_run_has_its_successes(
        count in 1i32..6, failures in 0i32..3, inconclusive in 0i32..3, errors in 0i32..3,
        phases in proptest::collection::vec(any_phase(), 0..40),
    ) {
        let spec = one(json!({
            "interval": "1m", "count": count, "failureLimit": failures, "inconclusiveLimit": inconclusive,
            "consecutiveErrorLimit": errors,
        }));
        let (status, times) = play(&spec, &phases);
        let used = &phases[..times.len()];
        let seen = |phase: Phase| used.iter().filter(|used| **used == phase).count() as i32;
        let result = &status.metric_results[0];
        prop_assert_eq!(result.successful, seen(S));
        prop_assert_eq!(result.failed, seen(F));
        prop_assert_eq!(result.error, seen(E));
        prop_assert_eq!(result.count, seen(S) + seen(F) + seen(I));
        if status.phase == Phase::Successful {
            prop_assert_eq!(result.count, count);
            prop_assert!(seen(F) <= failures && seen(I) <= inconclusive);
        }
        prop_assert!(status.phase != Phase::Failed || seen(F) == failures + 1);
        prop_assert!(status.phase.is_over() || times.len() == phases.len());
    }

    /// A completed run does not change.
    #[test]
    fn a_run_that_is_over_takes_no_more(phases in proptest::collection::vec(any_phase(), 1..20), more in any_phase()) {
        let spec = one(json!({"interval": "1m", "count": 3}));
        let (mut status, _) = play(&spec, &phases);
        if status.phase.is_over() {
            let before = status.clone();
            note(&spec, &mut status, 0, measured(more, 9000));
            assess(&spec, &mut status, at(9000));
            prop_assert_eq!(status, before);
        }
    }

    /// Rule 13 for all settings of a run: the number of metrics, dry runs, consecutive successes, kept measurements, and the time
    /// of its termination.
    #[test]
    fn a_run_is_as_bad_as_its_worst_metric_with_a_say(
        rules in proptest::collection::vec(any_rules(), 1..5),
        kept in 0i32..4,
        ended in proptest::option::of(0usize..30),
        phases in proptest::collection::vec(any_phase(), 0..120),
    ) {
        let named = |(index, rules): (usize, &Rules)| metric(&index.to_string(), rules.patch());
        let metrics: Vec<_> = rules.iter().enumerate().map(named).collect();
        let dry = rules.iter().enumerate().filter(|(_, rules)| rules.dry);
        let dry: Vec<_> = dry.map(|(index, _)| json!({"metricName": format!("^{index}$")})).collect();
        let retention = json!([{"metricName": "*", "limit": kept}]);
        let mut spec = spec(metrics, json!({"dryRun": dry, "measurementRetention": retention}));
        let mut status = AnalysisRunStatus::default();
        let (mut now, mut phases) = (at(0), phases.iter());
        let mut seen: Vec<Vec<Phase>> = vec![Vec::new(); rules.len()];
        assess(&spec, &mut status, now);
        for turn in 0..200 {
            spec.terminate |= ended == Some(turn);
            assess(&spec, &mut status, now);
            let Agenda { measure, wake, .. } = agenda(&spec, &status, now);
            prop_assert!(measure.is_empty() || !(spec.terminate || status.phase.is_over()));
            if measure.is_empty() {
                match wake {
                    Some(later) => now = later,
                    None => break,
                }
                continue;
            }
            for (index, phase) in measure.into_iter().zip(&mut phases) {
                let measurement = Measurement { started_at: Some(now), finished_at: Some(now), ..measured(*phase, 0) };
                note(&spec, &mut status, index, measurement);
                seen[index].push(*phase);
            }
            assess(&spec, &mut status, now);
            if phases.len() == 0 {
                break;
            }
        }
        let judged = || status.metric_results.iter().zip(&rules).zip(&seen).filter(|((result, _), _)| !result.dry_run);
        for ((result, rules), seen) in status.metric_results.iter().zip(&rules).zip(&seen) {
            let times = |phase: Phase| seen.iter().filter(|seen| **seen == phase).count() as i32;
            prop_assert_eq!(result.dry_run, rules.dry);
            prop_assert_eq!((result.successful, result.failed, result.inconclusive, result.error), (times(S), times(F), times(I), times(E)));
            prop_assert_eq!(result.count, times(S) + times(F) + times(I));
            let room = if kept > 0 { kept as usize } else { 10 };
            prop_assert_eq!(result.measurements.len(), seen.len().min(room));
        }
        prop_assert_eq!(status.phase.is_over(), status.completed_at.is_some());
        if status.phase.is_over() {
            let worst = judged().map(|((result, _), _)| result.phase).max();
            prop_assert_eq!(status.phase, worst.unwrap_or(S));
        }
        if status.phase == S {
            for ((result, rules), seen) in judged() {
                let failed = seen.iter().filter(|seen| **seen == F).count() as i32;
                prop_assert!(result.count > 0, "nothing was measured");
                prop_assert!(rules.failures < 0 || failed <= rules.failures);
                let enough = rules.in_a_row > 0 && result.consecutive_success >= rules.in_a_row;
                let all = rules.in_a_row == 0 && result.count == rules.count;
                prop_assert!(enough || all || spec.terminate);
            }
        }
    }
}

/// The settings of a metric.
#[derive(Clone, Debug)]
struct Rules {
    count: i32,
    failures: i32,
    inconclusive: i32,
    errors: i32,
    in_a_row: i32,
    delay: u8,
    dry: bool,
}

impl Rules {
    fn patch(&self) -> Value {
        json!({
            "interval": "1m", "initialDelay": format!("{}s", self.delay), "count": self.count,
            "failureLimit": self.failures, "inconclusiveLimit": self.inconclusive,
            "consecutiveErrorLimit": self.errors, "consecutiveSuccessLimit": self.in_a_row,
        })
    }
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let numbers = (1i32..6, -1i32..3, 0i32..3, 0i32..3, 0i32..4);
    (numbers, 0u8..100, any::<bool>()).prop_map(|(numbers, delay, dry)| {
        let (count, failures, inconclusive, errors, in_a_row) = numbers;
        Rules {
            count,
            failures: if in_a_row == 0 { failures.max(0) } else { failures },
            inconclusive,
            errors,
            in_a_row,
            delay,
            dry,
        }
    })
}
