//! The results of checks.

use super::*;
use crate::analysis::{Data, Reply};
use rstest::rstest;
use serde_json::{Value, json};
use stateward_api::phasedrollout::SuccessOn;

const NOON: &str = "2026-01-01T12:00:00Z";

fn at(seconds: i64) -> Timestamp {
    let noon: Timestamp = NOON.parse().unwrap();
    noon + SignedDuration::from_secs(seconds)
}

/// An object at the gate before its first pod, whose checks began at noon.
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
    let gate = step_run_name("db", &rolling(&status).unwrap());
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

/// One pod was updated when the set was scaled up to five, and pod 3 is missing at the moment.
#[rstest]
#[case::the_first_added(2, &[2], 0, "the gate before pod db-4")]
#[case::above_one_that_was_kept(4, &[2], 0, "the gate before pod db-3")]
#[case::below_it(6, &[], 0, "the gate before pod db-1")]
#[case::after_the_last(10, &[], 0, "the gate after the last pod")]
#[case::ordinals_begin_later(4, &[2], 10, "the gate before pod db-13")]
fn a_gate_is_named_for_the_next_old_pod(
    #[case] step: i32,
    #[case] kept: &[i32],
    #[case] start: u32,
    #[case] expected: &str,
) {
    let mut object = object(json!({}));
    let status = object.status.as_mut().unwrap();
    status.rollout.current_step_index = Some(step);
    status.rollout.step_replicas = Some(5);
    status.rollout.kept_pods = kept.to_vec();
    let gate = step_run_name("db", &rolling(&object.status.clone().unwrap()).unwrap());
    object.status = Some(begin(&object, &gate, at(0)));
    let mut workload = crate::engine::fixture::settled().workload.unwrap();
    workload.pods.retain(|pod| pod.index != 3);
    for pod in &mut workload.pods {
        pod.name = format!("db-{}", pod.index + start);
    }
    assert_eq!(runs(&object, &Ok(workload), at(1))[0].title, expected);
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

/// Lowering the threshold, or restarting the operator, does not pass a gate on expired checks.
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

/// A typo in the spec of a held rollout is not a verdict.
#[test]
fn what_cannot_be_carried_out_has_no_gate() {
    let mut object = object(json!({"maxTries": 1}));
    assert!(check(&mut object, Verdict::Failed, 30));
    object.spec.check.query.secret_ref = Some("Prom_Secret".into());
    let missing = Err(NoWorkload::Missing(String::new()));
    assert_eq!(runs(&object, &missing, at(31)), []);
}
