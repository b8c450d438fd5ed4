//! Runs as they go on, measurement by measurement.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use stateward_api::analysis::{AnalysisRunSpec, AnalysisRunStatus, Measurement, Phase};

use super::run::{Agenda, agenda, assess, expires, note, was_due};

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
    serde_json::from_value(spec).unwrap()
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

/// Plays a run to its end, or until `phases` are used up: each metric is measured when it is due and gives the next phase.
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

#[rstest]
#[case::nothing_measured(&[], "ended early", "ended before it was measured")]
#[case::all_well(&[S, S], "ended early", "")]
fn a_run_that_is_ended_was_successful_so_far(
    #[case] phases: &[Phase],
    #[case] message: &str,
    #[case] of_metric: &str,
) {
    let mut spec = one(json!({"interval": "1m", "failureLimit": 1}));
    let (mut status, _) = play(&spec, phases);
    spec.terminate = true;
    assert_eq!(agenda(&spec, &status, at(600)).measure, Vec::<usize>::new());
    assess(&spec, &mut status, at(600));
    assert_eq!(
        (status.phase, status.message.as_str()),
        (Phase::Successful, message)
    );
    assert_eq!(status.metric_results[0].message, of_metric);
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
    /// Rule 13: nothing but successful measurements, and failures within their limits, makes a run successful.
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

    /// What is over stays as it is.
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
}
