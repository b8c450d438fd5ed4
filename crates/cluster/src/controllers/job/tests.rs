//! Jobs from the first pod to the last condition, on the fake server.

mod indexed;

use super::orphan::OrphanController;
use super::*;
use crate::controllers::fake::Lab;
use crate::controllers::pod;
use crate::json::json;
use rstest::rstest;

fn lab() -> Lab {
    Lab::new(vec![Box::<JobController>::default(), Box::new(OrphanController)])
}

/// A Job as the server stores it, with these fields in its spec.
fn job(name: &str, spec: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": "n"},
        "spec": {
            "parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
            "podReplacementPolicy": "TerminatingOrFailed",
            "selector": {"matchLabels": {"job": name}},
            "template": {
                "metadata": {"labels": {"job": name}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]},
            },
        },
    });
    for (field, value) in spec.as_object().unwrap() {
        job["spec"][field] = value.clone();
    }
    job
}

fn started(spec: Value) -> Lab {
    let mut lab = lab();
    lab.fake.put(JOBS, job("work", spec));
    lab.settle();
    lab
}

impl Lab {
    fn status(&self) -> Value {
        self.fake.get(JOBS, "n", "work").unwrap()["status"].clone()
    }

    /// The pods that are running or pending.
    fn running(&self) -> Vec<String> {
        let pods = self
            .fake
            .list(PODS, "n")
            .into_iter()
            .filter(|pod| pod::is_active(pod));
        pods.map(|pod| object::name(&pod).to_owned()).collect()
    }

    fn end(&mut self, pod: &str, exit_code: i64) {
        self.fake.end_pod("n", pod, exit_code);
        self.settle();
    }

    fn set(&mut self, field: &str, value: Value) {
        let mut job = (*self.fake.get(JOBS, "n", "work").unwrap()).clone();
        job["spec"][field] = value;
        self.fake.update(JOBS, "n", "work", job).unwrap();
        self.settle();
    }

    /// The true conditions: `Complete CompletionsReached`.
    fn conditions(&self) -> Vec<String> {
        let status = self.status();
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let holding = conditions.filter(|one| one["status"] == "True");
        holding
            .map(|one| format!("{} {}", text(&one["type"]), text(&one["reason"])))
            .collect()
    }
}

/// A status with its conditions by type only, as in the recorded watch of the real server.
fn brief(mut status: Value) -> Value {
    if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        for condition in conditions {
            *condition = format!("{}={}", condition["type"], condition["status"])
                .replace('"', "")
                .into();
        }
    }
    for uids in status["uncountedTerminatedPods"]
        .as_object_mut()
        .into_iter()
        .flatten()
        .map(|(_, uids)| uids)
    {
        *uids = uids.as_array().map_or(0, Vec::len).into();
    }
    if let Some(status) = status.as_object_mut() {
        status.retain(|field, _| !field.ends_with("Time"));
    }
    status
}

fn history(lab: &Lab) -> Vec<Value> {
    let states = lab.fake.history(JOBS, "work").into_iter().skip(1);
    states.map(|job| brief(job["status"].clone())).collect()
}

#[test]
fn a_job_completes_in_two_steps_and_counts_its_pod_in_between() {
    let mut lab = started(json!({}));
    let [pod] = lab.running().try_into().unwrap();
    lab.end(&pod, 0);
    assert_eq!(
        history(&lab),
        [
            json!({"active": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}),
            json!({
                "conditions": ["SuccessCriteriaMet=True"], "ready": 0, "terminating": 0,
                "uncountedTerminatedPods": {"succeeded": 1},
            }),
            json!({
                "conditions": ["SuccessCriteriaMet=True", "Complete=True"], "ready": 0, "succeeded": 1, "terminating": 0,
                "uncountedTerminatedPods": {},
            }),
        ]
    );
    let now = "2026-01-01T00:00:00Z";
    assert_eq!(lab.status()["completionTime"], now);
    assert_eq!(
        lab.status()["conditions"][1],
        json!({
            "type": "Complete", "status": "True", "reason": "CompletionsReached",
            "message": "Reached expected number of succeeded pods", "lastProbeTime": now, "lastTransitionTime": now,
        })
    );
    let created = format!("Normal SuccessfulCreate Created pod: {pod}");
    assert_eq!(
        lab.fake.events(),
        [created.as_str(), "Normal Completed Job completed"]
    );
    assert!(
        !object::has_finalizers(&lab.fake.get(PODS, "n", &pod).unwrap()),
        "a counted pod is let go"
    );
}

#[test]
fn a_deadline_deletes_the_pods_first_and_fails_when_they_are_gone() {
    let mut lab = started(json!({"activeDeadlineSeconds": 6}));
    lab.seconds(5);
    assert_eq!(lab.conditions(), [] as [&str; 0]);
    lab.seconds(1);
    let interim = |status: Value| {
        let mut whole = json!({"conditions": ["FailureTarget=True"], "ready": 0});
        whole
            .as_object_mut()
            .unwrap()
            .extend(status.as_object().unwrap().clone());
        whole
    };
    assert_eq!(
        history(&lab)[1..],
        [
            interim(json!({"terminating": 1, "uncountedTerminatedPods": {"failed": 1}})),
            interim(json!({"terminating": 1, "failed": 1, "uncountedTerminatedPods": {}})),
            interim(json!({"terminating": 0, "failed": 1, "uncountedTerminatedPods": {}})),
            json!({
                "conditions": ["FailureTarget=True", "Failed=True"], "ready": 0, "failed": 1, "terminating": 0,
                "uncountedTerminatedPods": {},
            }),
        ]
    );
    let last = "Warning DeadlineExceeded Job was active longer than specified deadline";
    assert_eq!(lab.fake.events().last().unwrap(), last);
    assert_eq!(lab.status()["completionTime"], Value::Null);
}

#[test]
fn a_failed_job_waits_for_pods_that_stop_gracefully() {
    let mut lab = started(json!({"activeDeadlineSeconds": 6}));
    let [pod] = lab.running().try_into().unwrap();
    lab.fake
        .change(PODS, "n", &pod, |pod| pod["spec"]["nodeName"] = "node".into());
    lab.fake.run_pod("n", &pod, true);
    lab.settle();
    assert_eq!(lab.status()["ready"], 1);
    lab.seconds(6);
    assert_eq!(lab.conditions(), ["FailureTarget DeadlineExceeded"]);
    assert_eq!(
        (&lab.status()["terminating"], &lab.status()["ready"]),
        (&json!(1), &json!(0))
    );

    lab.fake.remove(PODS, "n", &pod);
    lab.settle();
    assert_eq!(
        lab.conditions(),
        ["FailureTarget DeadlineExceeded", "Failed DeadlineExceeded"]
    );
}

#[test]
fn every_failure_doubles_the_wait_until_the_limit_is_passed() {
    let mut lab = started(json!({"backoffLimit": 2}));
    for (failures, wait) in [(1, 10), (2, 20)] {
        let [pod] = lab.running().try_into().unwrap();
        lab.end(&pod, 1);
        assert_eq!(lab.status()["failed"], failures);
        lab.seconds(wait - 1);
        assert_eq!(lab.running(), [] as [&str; 0]);
        lab.seconds(1);
        assert_eq!(lab.running().len(), 1);
    }
    let [pod] = lab.running().try_into().unwrap();
    lab.end(&pod, 1);
    assert_eq!(
        lab.conditions(),
        [
            "FailureTarget BackoffLimitExceeded",
            "Failed BackoffLimitExceeded"
        ]
    );
    let last = "Warning BackoffLimitExceeded Job has reached the specified backoff limit";
    assert_eq!(lab.fake.events().last().unwrap(), last);
}

#[rstest]
#[case(2, 1, false)]
#[case(2, 2, true)]
#[case(0, 0, false)]
#[case(0, 1, true)]
fn restarts_in_place_count_as_failures(#[case] limit: i64, #[case] restarts: i64, #[case] fails: bool) {
    let template = json!({"metadata": {"labels": {"job": "work"}}, "spec": {"restartPolicy": "OnFailure"}});
    let mut lab = started(json!({"backoffLimit": limit, "template": template}));
    let [pod] = lab.running().try_into().unwrap();
    lab.fake.change(PODS, "n", &pod, |pod| {
        pod["status"] = json!({"phase": "Running", "containerStatuses": [{"restartCount": restarts}]});
    });
    lab.settle();
    assert_eq!(!lab.conditions().is_empty(), fails);
}

#[test]
fn a_job_keeps_as_many_pods_as_it_may_and_still_needs() {
    let mut lab = started(json!({"parallelism": 3, "completions": 4}));
    assert_eq!(lab.running().len(), 3);
    for left in [3, 2, 1, 0] {
        let pod = lab.running().pop().unwrap();
        lab.end(&pod, 0);
        assert_eq!(lab.running().len(), left);
    }
    assert_eq!(lab.status()["succeeded"], 4);
    assert_eq!(
        lab.conditions(),
        [
            "SuccessCriteriaMet CompletionsReached",
            "Complete CompletionsReached"
        ]
    );
}

#[test]
fn without_a_number_of_completions_the_first_success_is_enough() {
    let mut lab = started(json!({"parallelism": 2, "completions": null}));
    let [first, second] = lab.running().try_into().unwrap();
    lab.end(&first, 0);
    assert_eq!(
        lab.running(),
        [second.as_str()],
        "what runs may finish, nothing new starts"
    );
    assert_eq!(lab.conditions(), [] as [&str; 0]);
    lab.end(&second, 1);
    assert_eq!(lab.conditions().last().unwrap(), "Complete CompletionsReached");
    assert_eq!(lab.status()["failed"], 1);
}

#[test]
fn lower_parallelism_deletes_the_pods_that_have_least_to_lose_uncounted() {
    let mut lab = started(json!({"parallelism": 3, "completions": 3}));
    let [first, second, third] = lab.running().try_into().unwrap();
    lab.fake.run_pod("n", &second, true);
    lab.set("parallelism", json!(1));
    assert_eq!(lab.running(), [second.as_str()]);
    assert_eq!(
        lab.status()["failed"],
        Value::Null,
        "deleting a pod that is too many is no failure"
    );
    for gone in [first, third] {
        assert!(
            lab.fake
                .events()
                .contains(&format!("Normal SuccessfulDelete Deleted pod: {gone}"))
        );
    }
}

#[test]
fn a_suspended_job_has_no_pods_and_starts_its_time_again() {
    let mut lab = started(json!({"suspend": true}));
    assert_eq!(
        history(&lab),
        [json!({
            "conditions": ["Suspended=True"], "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
        })]
    );
    assert_eq!(lab.status()["startTime"], Value::Null);

    lab.seconds(60);
    lab.set("suspend", json!(false));
    assert_eq!(lab.status()["startTime"], "2026-01-01T00:01:00Z");
    assert_eq!(lab.status()["conditions"][0]["reason"], "JobResumed");
    assert_eq!(lab.running().len(), 1);

    lab.set("suspend", json!(true));
    assert_eq!(lab.running(), [] as [&str; 0]);
    assert_eq!(lab.status()["startTime"], Value::Null);
    assert_eq!(lab.status()["failed"], Value::Null);
    let told: Vec<_> = lab
        .fake
        .events()
        .into_iter()
        .filter(|event| event.contains("Job "))
        .collect();
    assert_eq!(
        told,
        [
            "Normal Suspended Job suspended",
            "Normal Resumed Job resumed",
            "Normal Suspended Job suspended"
        ]
    );
}

#[rstest]
#[case("TerminatingOrFailed", 1)]
#[case("Failed", 0)]
fn a_pod_that_is_being_deleted_is_replaced_at_once_or_when_it_is_gone(
    #[case] policy: &str,
    #[case] replacements: usize,
) {
    let mut lab = started(json!({"podReplacementPolicy": policy}));
    let [pod] = lab.running().try_into().unwrap();
    lab.fake
        .change(PODS, "n", &pod, |pod| pod["spec"]["nodeName"] = "node".into());
    lab.fake.delete(PODS, "n", &pod, json!({})).unwrap();
    lab.seconds(11);
    assert_eq!(lab.running().len(), replacements);
    assert_eq!(lab.status()["terminating"], 1);

    lab.end(&pod, 137);
    lab.seconds(30);
    assert_eq!((lab.running().len(), &lab.status()["failed"]), (1, &json!(1)));
}

#[test]
fn refused_pods_are_told_and_tried_again_without_flooding_the_server() {
    let mut lab = lab();
    let refusal = Status::bad_request("no room");
    lab.fake.refuse("create", PODS, "work-", refusal);
    lab.fake
        .put(JOBS, job("work", json!({"parallelism": 5, "completions": 5})));
    lab.settle();
    assert_eq!(
        lab.fake.events(),
        ["Warning FailedCreate Error creating: no room"; 2],
        "one try per sync, and two syncs"
    );
    assert_eq!(lab.status()["active"], Value::Null);
    lab.fake.relent();
    lab.seconds(1);
    assert_eq!(lab.status()["active"], 5);
}

#[test]
fn the_pods_of_a_job_that_is_gone_or_done_lose_their_finalizer() {
    let mut lab = started(json!({}));
    let [pod] = lab.running().try_into().unwrap();
    lab.fake.remove(JOBS, "n", "work");
    lab.settle();
    assert!(!object::has_finalizers(&lab.fake.get(PODS, "n", &pod).unwrap()));
}

#[test]
fn an_orphan_that_matches_is_taken_in_and_one_that_no_longer_does_is_let_go() {
    let mut lab = started(json!({"parallelism": 2, "completions": 2}));
    let [first, second] = lab.running().try_into().unwrap();
    lab.fake
        .change(PODS, "n", &first, |pod| pod["metadata"]["labels"] = json!({}));
    lab.settle();
    let released = lab.fake.get(PODS, "n", &first).unwrap();
    assert_eq!(
        (
            &released["metadata"]["ownerReferences"],
            object::has_finalizers(&released)
        ),
        (&Value::Null, false)
    );
    assert_eq!(lab.status()["active"], 2, "it was replaced");

    lab.end(&second, 0);
    lab.fake.change(PODS, "n", &first, |pod| {
        pod["metadata"]["labels"] = json!({"job": "work"})
    });
    lab.settle();
    let adopted = lab.fake.get(PODS, "n", &first);
    assert_eq!(lab.running().len(), 1, "one of the two is too many");
    assert!(adopted.is_none_or(|pod| owner::controller_of(&pod).is_some()));
}

#[test]
fn a_job_of_another_controller_is_left_alone() {
    let lab = started(json!({"managedBy": "example.com/queue"}));
    assert_eq!((lab.running().len(), lab.status()), (0, Value::Null));
}

#[rstest]
#[case(json!(null))]
#[case(json!({"spec": 3, "status": []}))]
#[case(json!({"spec": {"completionMode": "Indexed", "template": 1, "selector": {}}, "status": {"conditions": 1}}))]
#[case(json!({"spec": {"podFailurePolicy": 4, "successPolicy": "x", "completions": -4}, "status": {"startTime": 3}}))]
fn no_object_makes_it_panic(#[case] fields: Value) {
    let mut lab = lab();
    let mut odd = json!({"metadata": {"name": "work", "namespace": "n"}});
    odd.as_object_mut()
        .unwrap()
        .extend(fields.as_object().cloned().unwrap_or_default());
    lab.fake.put(
        PODS,
        json!({"metadata": {"name": "p", "namespace": "n", "ownerReferences": [7]}, "status": "x"}),
    );
    lab.fake.put(JOBS, odd);
    lab.seconds(3);
}
