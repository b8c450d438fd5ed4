//! Jobs whose pods have an index each.

use super::super::tracked_pod::COMPLETION_INDEX;
use super::*;

const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";

fn indexed(spec: Value) -> Lab {
    let mut whole = json!({"completionMode": "Indexed"});
    whole
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    started(whole)
}

impl Lab {
    /// The active pods by index.
    fn indexes(&self) -> Vec<String> {
        let pods = self
            .running()
            .into_iter()
            .map(|name| self.fake.get(PODS, "n", &name).unwrap());
        let mut indexes: Vec<_> = pods.map(|pod| annotation(&pod, COMPLETION_INDEX)).collect();
        indexes.sort_unstable();
        indexes
    }

    fn end_index(&mut self, index: &str, exit_code: i64) {
        let pods = self
            .running()
            .into_iter()
            .map(|name| self.fake.get(PODS, "n", &name).unwrap());
        let pod = pods
            .into_iter()
            .find(|pod| annotation(pod, COMPLETION_INDEX) == index)
            .unwrap();
        self.end(object::name(&pod), exit_code);
    }
}

fn annotation(pod: &Value, name: &str) -> String {
    pod["metadata"]["annotations"][name]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn the_lowest_index_that_is_missing_comes_next() {
    let mut lab = indexed(json!({"parallelism": 2, "completions": 3}));
    assert_eq!(lab.indexes(), ["0", "1"]);
    lab.end_index("1", 0);
    assert_eq!(lab.indexes(), ["0", "2"]);
    assert_eq!(lab.status()["completedIndexes"], "1");
    lab.end_index("0", 0);
    lab.end_index("2", 0);
    assert_eq!(
        (&lab.status()["completedIndexes"], &lab.status()["succeeded"]),
        (&json!("0-2"), &json!(3))
    );
    assert_eq!(lab.conditions().last().unwrap(), "Complete CompletionsReached");
}

#[test]
fn an_indexed_pod_is_counted_by_its_index_and_never_noted() {
    let mut lab = indexed(json!({"parallelism": 2, "completions": 2}));
    lab.end_index("0", 0);
    assert_eq!(
        history(&lab).last().unwrap(),
        &json!({
            "active": 1, "completedIndexes": "0", "ready": 0, "succeeded": 1, "terminating": 0,
            "uncountedTerminatedPods": {},
        })
    );
}

#[test]
fn a_failed_index_is_tried_again_after_the_backoff() {
    let mut lab = indexed(json!({"parallelism": 2, "completions": 2}));
    lab.end_index("0", 1);
    assert_eq!(lab.indexes(), ["1"]);
    lab.seconds(10);
    assert_eq!(lab.indexes(), ["0", "1"]);
}

#[test]
fn an_index_has_its_own_limit_and_the_job_fails_when_all_are_done() {
    let mut lab = indexed(json!({
        "parallelism": 2, "completions": 2, "backoffLimitPerIndex": 1, "backoffLimit": 2_147_483_647,
    }));
    lab.end_index("0", 1);
    let failed = lab
        .fake
        .list(PODS, "n")
        .into_iter()
        .find(|pod| pod::phase(pod) == "Failed")
        .unwrap();
    assert!(
        object::has_finalizers(&failed),
        "it stays until its replacement knows of it"
    );
    assert_eq!(lab.status()["failedIndexes"], "");

    lab.seconds(10);
    assert_eq!(lab.indexes(), ["0", "1"]);
    assert!(!object::has_finalizers(
        &lab.fake.get(PODS, "n", object::name(&failed)).unwrap()
    ));
    let replacement = lab
        .fake
        .list(PODS, "n")
        .into_iter()
        .find(|pod| annotation(pod, FAILURES) == "1");
    assert!(replacement.is_some());

    lab.end_index("0", 1);
    assert_eq!(
        (&lab.status()["failedIndexes"], lab.conditions().len()),
        (&json!("0"), 0)
    );
    lab.end_index("1", 0);
    assert_eq!(
        lab.conditions(),
        ["FailureTarget FailedIndexes", "Failed FailedIndexes"]
    );
    assert_eq!(
        lab.fake.events().last().unwrap(),
        "Warning FailedIndexes Job has failed indexes"
    );
}

#[test]
fn too_many_failed_indexes_end_the_job() {
    let mut lab = indexed(json!({
        "parallelism": 3, "completions": 3, "backoffLimitPerIndex": 0, "maxFailedIndexes": 1,
        "backoffLimit": 2_147_483_647,
    }));
    lab.end_index("0", 1);
    assert_eq!(lab.conditions(), [] as [&str; 0]);
    lab.end_index("1", 1);
    assert_eq!(
        lab.conditions(),
        [
            "FailureTarget MaxFailedIndexesExceeded",
            "Failed MaxFailedIndexesExceeded"
        ]
    );
    assert_eq!(lab.running(), [] as [&str; 0]);
    assert_eq!(lab.status()["failed"], 3, "what still ran has failed");
}

#[test]
fn a_success_policy_ends_the_job_early_and_the_rest_does_not_count() {
    let mut lab = indexed(json!({
        "parallelism": 3, "completions": 3, "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
    }));
    lab.end_index("0", 0);
    assert_eq!(
        lab.conditions(),
        ["SuccessCriteriaMet SuccessPolicy", "Complete SuccessPolicy"]
    );
    assert_eq!(
        lab.status()["conditions"][1]["message"],
        "Matched rules at index 0"
    );
    assert_eq!(
        (&lab.status()["succeeded"], &lab.status()["failed"]),
        (&json!(1), &Value::Null)
    );
}

#[rstest]
#[case("FailJob", "FailureTarget PodFailurePolicy", 1)]
#[case("FailIndex", "", 1)]
#[case("Ignore", "", 0)]
#[case("Count", "", 1)]
fn a_failure_policy_says_what_an_exit_code_means(
    #[case] action: &str,
    #[case] condition: &str,
    #[case] failed: i64,
) {
    let mut lab = indexed(json!({
        "parallelism": 1, "completions": 2, "backoffLimitPerIndex": 5, "backoffLimit": 2_147_483_647,
        "podFailurePolicy": {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [42]}}]},
    }));
    lab.end_index("0", 42);
    lab.seconds(10);
    assert_eq!(lab.conditions().first().map_or("", String::as_str), condition);
    assert_eq!(lab.status()["failed"].as_i64().unwrap_or(0), failed);
    let expected: &[&str] = match action {
        "FailJob" => &[],
        "FailIndex" => &["1"],
        _ => &["0"],
    };
    assert_eq!(lab.indexes(), expected);
}

#[test]
fn of_two_pods_with_the_same_index_the_one_with_more_to_lose_stays() {
    let mut lab = indexed(json!({"parallelism": 2, "completions": 2}));
    let [first, second] = lab.running().try_into().unwrap();
    lab.fake.run_pod("n", &second, true);
    lab.fake.change(PODS, "n", &second, |pod| {
        pod["metadata"]["annotations"][COMPLETION_INDEX] = "0".into()
    });
    lab.settle();
    assert!(!lab.running().contains(&first));
    assert!(lab.running().contains(&second));
    assert_eq!(lab.indexes(), ["0", "1"]);
}

/// The statuses below were observed on a real v1.36.3.
#[test]
fn the_failures_of_an_index_are_counted_once_its_replacement_runs() {
    let mut lab = indexed(json!({
        "parallelism": 2, "completions": 2, "backoffLimitPerIndex": 1, "backoffLimit": 2_147_483_647,
    }));
    lab.end_index("0", 1);
    lab.seconds(10);
    lab.end_index("0", 1);
    lab.end_index("1", 0);
    let state = |fields: Value| {
        with(
            json!({"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}),
            fields,
        )
    };
    let noted = json!({"failed": 1});
    let last = json!({"completedIndexes": "1", "failed": 2, "failedIndexes": "0", "succeeded": 1});
    assert_eq!(
        history(&lab),
        [
            state(json!({"active": 2, "failedIndexes": ""})),
            state(json!({"active": 1, "failedIndexes": ""})),
            state(json!({"active": 2, "failedIndexes": ""})),
            state(json!({"active": 2, "failedIndexes": "", "uncountedTerminatedPods": noted})),
            state(json!({"active": 2, "failed": 1, "failedIndexes": ""})),
            state(json!({"active": 1, "failed": 1, "failedIndexes": "0", "uncountedTerminatedPods": noted})),
            state(json!({"active": 1, "failed": 2, "failedIndexes": "0"})),
            state(with(last.clone(), json!({"conditions": ["FailureTarget=True"]}))),
            state(with(
                last,
                json!({"conditions": ["FailureTarget=True", "Failed=True"]})
            )),
        ]
    );
}

#[test]
fn pods_that_a_success_policy_stops_are_waited_for_and_not_counted() {
    let mut lab = indexed(json!({
        "parallelism": 3, "completions": 3, "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
    }));
    lab.end_index("0", 0);
    let state = |fields: Value| {
        let whole =
            json!({"completedIndexes": "0", "ready": 0, "succeeded": 1, "uncountedTerminatedPods": {}});
        with(whole, fields)
    };
    assert_eq!(
        history(&lab)[1..],
        [
            state(json!({"conditions": ["SuccessCriteriaMet=True"], "terminating": 2})),
            state(json!({"conditions": ["SuccessCriteriaMet=True"], "terminating": 0})),
            state(json!({"conditions": ["SuccessCriteriaMet=True", "Complete=True"], "terminating": 0})),
        ]
    );
}

fn with(mut whole: Value, fields: Value) -> Value {
    whole
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    whole
}
