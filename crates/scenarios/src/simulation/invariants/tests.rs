//! Tests that every invariant can fail: a history that keeps them all, with one change each that violates just one.

use rstest::rstest;
use serde_json::{Value, json};
use stateward_cluster::{Commit, Entry};
use stateward_core::memory::Activity;

use super::Replay;

/// A history of commits, beginning with five Ready pods on `a` held by a rollout at rest.
struct Story {
    replay: Replay,
    revision: u64,
    set: Value,
    rollout: Value,
}

const US: bool = true;
const OTHERS: bool = false;

impl Story {
    fn begin() -> Self {
        let mut story = Self {
            replay: Replay::default(),
            revision: 0,
            set: json!({
                "metadata": {
                    "name": "db", "uid": "set", "generation": 1,
                    "annotations": {"stateward.dev/managed-by": "RolloutPlugin/db/rollout"},
                },
                "spec": {
                    "replicas": 5,
                    "template": {"image": "a"},
                    "updateStrategy": {"rollingUpdate": {"partition": 5}},
                },
                "status": {"observedGeneration": 1, "currentRevision": "a"},
            }),
            rollout: json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutPlugin",
                "metadata": {"name": "db", "uid": "rollout", "generation": 1},
                "spec": {
                    "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
                    "plugin": {"name": "statefulset"},
                    "strategy": {"canary": {"steps": [
                        {"setWeight": 20}, {"pause": {"duration": "10s"}}, {"pause": {}}, {"setWeight": 60},
                    ]}},
                },
                "status": {
                    "phase": "Successful", "observedGeneration": 1, "workloadUid": "set", "workloadSetting": "0",
                    "stableRevision": "a", "stableTemplateHash": "a", "updatedRevision": "a",
                },
            }),
        };
        story.status(US, json!({}));
        story.set(OTHERS, json!({}));
        (0..5).for_each(|index| story.pod(index, "a"));
        story
    }

    fn commit(&mut self, resource: &str, name: &str, object: Value, by_us: bool, deleted: bool) {
        self.revision += 1;
        let commit = Commit {
            revision: self.revision,
            resource: resource.into(),
            namespace: "ns".into(),
            name: name.into(),
            object: object.into(),
            deleted,
        };
        self.replay.apply(&commit, by_us);
    }

    /// Merges into the set. A spec that changes gets a new generation.
    fn set(&mut self, by_us: bool, patch: Value) {
        let spec = self.set["spec"].clone();
        json_patch::merge(&mut self.set, &patch);
        if self.set["spec"] != spec {
            self.set["metadata"]["generation"] =
                (self.set["metadata"]["generation"].as_i64().unwrap() + 1).into();
        }
        self.commit("statefulsets.apps", "db", self.set.clone(), by_us, false);
    }

    /// The controller observes the spec.
    fn observe(&mut self) {
        let generation = self.set["metadata"]["generation"].clone();
        self.set(OTHERS, json!({"status": {"observedGeneration": generation}}));
    }

    fn partition(&mut self, by_us: bool, partition: i64) {
        let strategy = json!({"rollingUpdate": {"partition": partition}});
        self.set(by_us, json!({"spec": {"updateStrategy": strategy}}));
    }

    /// The operator sets the partition and the controller observes it.
    fn release(&mut self, partition: i64) {
        self.partition(US, partition);
        self.observe();
    }

    fn status(&mut self, by_us: bool, patch: Value) {
        json_patch::merge(&mut self.rollout["status"], &patch);
        self.commit(
            "rolloutplugins.argoproj.io",
            "db",
            self.rollout.clone(),
            by_us,
            false,
        );
    }

    /// A Ready pod on this revision.
    fn pod(&mut self, index: i64, revision: &str) {
        self.pod_since(index, revision, Some(0));
    }

    /// The same, Ready since then or not at all.
    fn pod_since(&mut self, index: i64, revision: &str, since: Option<i64>) {
        let ready = since.map(at).map_or(
            json!([]),
            |since| json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]),
        );
        let name = format!("db-{index}");
        let pod = json!({
            "metadata": {
                "name": name, "uid": format!("{index}-{revision}"), "ownerReferences": [{"name": "db"}],
                "labels": {"controller-revision-hash": revision},
            },
            "status": {"conditions": ready},
        });
        self.commit("pods", &name, pod, OTHERS, false);
    }

    fn removed(&mut self, index: i64, revision: &str) {
        let name = format!("db-{index}");
        let pod = json!({
            "metadata": {
                "name": name, "uid": format!("{index}-{revision}"), "ownerReferences": [{"name": "db"}],
                "labels": {"controller-revision-hash": revision}, "deletionTimestamp": at(40),
            },
        });
        self.commit("pods", &name, pod, US, false);
    }

    /// A new template, with the first step recorded.
    fn start(&mut self) {
        self.set(OTHERS, json!({"spec": {"template": {"image": "b"}}}));
        self.observe();
        self.step(0, 0);
    }

    /// A recorded step, entered at that second.
    fn step(&mut self, step: i64, entered: i64) {
        let pausing = step == 1 || step == 2;
        let conditions = json!([{"reason": "CanaryPauseStep", "startTime": at(entered)}]);
        self.status(
            US,
            json!({
                "phase": "Progressing", "updatedRevision": "b", "currentStepIndex": step, "currentStepHash": "steps",
                "currentStepStartedAt": at(entered), "controllerPause": pausing,
                "pauseConditions": if pausing { conditions } else { Value::Null },
            }),
        );
    }

    /// All steps up to an analysis, which is the second step here.
    fn analyse(&mut self) {
        self.rollout["spec"]["strategy"]["canary"]["steps"][1] = json!({"analysis": {}});
        self.start();
        self.release(4);
        self.pod(4, "b");
        self.step(1, 20);
        self.status(US, json!({"controllerPause": null, "pauseConditions": null}));
    }

    /// The run of the recorded step.
    fn run(&mut self, phase: &str) {
        let status = serde_json::from_value(self.rollout["status"].clone()).unwrap();
        let Activity::Rolling(attempt) = stateward_core::record::memory(&status).activity else {
            panic!("nothing is rolled");
        };
        let name = stateward_core::step_run_name("db", &attempt);
        let run = json!({"metadata": {"name": name}, "status": {"phase": phase}});
        self.commit("analysisruns.argoproj.io", &name, run, US, false);
    }

    /// All steps up to the pause.
    fn pause(&mut self) {
        self.start();
        self.release(4);
        self.pod(4, "b");
        self.step(1, 20);
    }

    fn idle(&mut self, stable: &str) {
        self.status(
            US,
            json!({
                "phase": "Successful", "stableRevision": stable, "stableTemplateHash": stable, "currentStepIndex": null,
                "currentStepHash": null, "currentStepStartedAt": null, "controllerPause": null,
                "pauseConditions": null, "returning": null, "returningFrom": null, "returningSince": null,
            }),
        );
    }

    fn abort(&mut self) {
        self.status(
            US,
            json!({
                "phase": "Failed", "returning": "Aborted", "returningFrom": "b", "returningSince": at(30),
                "abortedRevision": "b", "abortedAt": at(30), "currentStepStartedAt": null,
            }),
        );
    }

    /// A complete rollback.
    fn go_back(&mut self) {
        self.abort();
        self.release(5);
        self.removed(4, "b");
        self.pod(4, "a");
    }

    fn tell(&mut self, message: &str) {
        let event =
            json!({"involvedObject": {"uid": "rollout"}, "reason": "RolloutStarted", "message": message});
        self.commit("events", "event", event, US, false);
    }

    fn ask(&mut self, verb: &str, resource: &str, body: Value, revision: Option<u64>) {
        self.replay.check_request(&Entry {
            user: String::new(),
            agent: String::new(),
            verb: verb.into(),
            resource: resource.into(),
            group: String::new(),
            namespace: "ns".into(),
            name: "it".into(),
            code: 200,
            revision,
            body,
        });
    }
}

/// A timestamp, in seconds.
fn at(second: i64) -> String {
    jiff::Timestamp::from_second(1_800_000_000 + second)
        .unwrap()
        .to_string()
}

#[rstest]
#[case::rest(|_: &mut Story| ())]
#[case::to_the_end(|story: &mut Story| {
    story.pause();
    story.step(2, 30);
    story.status(OTHERS, json!({"pauseConditions": null}));
    story.step(3, 40);
    story.release(2);
    (2..4).for_each(|index| story.pod(index, "b"));
    story.step(4, 50);
    story.release(0);
    (0..2).for_each(|index| story.pod(index, "b"));
    story.set(OTHERS, json!({"status": {"currentRevision": "b"}}));
    story.idle("b");
    story.release(5);
})]
#[case::analysed(|story: &mut Story| {
    story.analyse();
    story.run("Running");
    story.run("Successful");
    story.step(2, 30);
})]
#[case::inconclusive_and_promoted(|story: &mut Story| {
    story.analyse();
    story.run("Inconclusive");
    let pause = json!([{"reason": "InconclusiveAnalysisRun", "startTime": at(25)}]);
    story.status(US, json!({"controllerPause": true, "pauseConditions": pause}));
    story.status(OTHERS, json!({"pauseConditions": null}));
    story.step(2, 30);
})]
#[case::skipped(|story: &mut Story| {
    story.pause();
    story.status(OTHERS, json!({"skipCurrentStep": true}));
    story.step(2, 25);
})]
#[case::promoted(|story: &mut Story| {
    story.pause();
    story.status(OTHERS, json!({"promoteFull": true}));
    story.step(4, 25);
    story.release(0);
    (0..4).for_each(|index| story.pod(index, "b"));
    story.set(OTHERS, json!({"status": {"currentRevision": "b"}}));
    story.idle("b");
})]
#[case::and_back(|story: &mut Story| {
    story.pause();
    story.go_back();
    story.idle("a");
})]
#[case::somebody_else_moves_the_share(|story: &mut Story| {
    story.pause();
    story.partition(OTHERS, 0);
    story.observe();
    story.pod(3, "b");
    story.release(4);
    story.removed(3, "b");
    story.pod(3, "a");
})]
#[case::told_again_after_a_write(|story: &mut Story| {
    story.tell("rolling out b");
    story.pause();
    story.tell("rolling out b");
})]
#[case::what_we_ask_for(|story: &mut Story| {
    story.ask("delete", "pods", json!({"preconditions": {"uid": "1"}}), Some(1));
    story.ask("create", "pods/eviction", json!({"deleteOptions": {"preconditions": {"uid": "1"}}}), Some(2));
    story.ask("patch", "statefulsets", json!({}), Some(3));
})]
fn a_good_story_breaks_nothing(#[case] tell: fn(&mut Story)) {
    let mut story = Story::begin();
    tell(&mut story);
    assert_eq!(story.replay.broken, Vec::<String>::new());
}

#[rstest]
#[case::a_pod_outside_the_share("1", |story: &mut Story| {
    story.pause();
    story.pod(3, "b");
})]
#[case::more_than_the_step("2", |story: &mut Story| {
    story.start();
    story.release(3);
})]
#[case::a_step_left_out("2", |story: &mut Story| {
    story.pause();
    story.step(3, 40);
})]
#[case::a_gate_before_its_pods("2", |story: &mut Story| {
    story.start();
    story.release(4);
    story.step(1, 20);
})]
#[case::a_gate_before_ready("2", |story: &mut Story| {
    story.start();
    story.release(4);
    story.pod_since(4, "b", None);
    story.step(1, 20);
})]
#[case::a_gate_before_ready_for_long_enough("2", |story: &mut Story| {
    story.set(OTHERS, json!({"spec": {"minReadySeconds": 10}}));
    story.start();
    story.release(4);
    story.pod_since(4, "b", Some(15));
    story.step(1, 20);
})]
#[case::turned_down_what_was_not_rolled("5", |story: &mut Story| {
    story.status(US, json!({"abortedRevision": "b", "abortedAt": at(30)}));
})]
#[case::released_while_paused("6", |story: &mut Story| {
    story.start();
    story.status(US, json!({"manualPause": true}));
    story.release(4);
})]
#[case::a_pause_too_short("7", |story: &mut Story| {
    story.pause();
    story.step(2, 29);
})]
#[case::a_pause_without_end("7", |story: &mut Story| {
    story.pause();
    story.step(2, 30);
    story.step(3, 1000);
})]
#[case::made_after_it_was_turned_down("9", |story: &mut Story| {
    story.pause();
    story.go_back();
    story.pod(4, "b");
})]
#[case::back_before_every_pod_is("10", |story: &mut Story| {
    story.pause();
    story.abort();
    story.release(5);
    story.status(US, json!({"phase": "Failed", "returning": null, "currentStepHash": null}));
})]
#[case::back_to_another_version("10", |story: &mut Story| {
    story.pause();
    story.go_back();
    story.status(US, json!({"returning": null, "stableTemplateHash": "z", "currentStepHash": null}));
})]
#[case::stable_before_every_pod_is("11", |story: &mut Story| {
    story.pause();
    story.status(OTHERS, json!({"promoteFull": true}));
    story.step(4, 25);
    story.release(0);
    story.status(US, json!({"stableRevision": "b", "stableTemplateHash": "b", "currentStepStartedAt": null}));
})]
#[case::promoted_by_scaling_to_zero("12", |story: &mut Story| {
    story.pause();
    story.set(OTHERS, json!({"spec": {"replicas": 0}, "status": {"currentRevision": "b"}}));
    story.idle("b");
})]
#[case::a_third_version_in_the_middle("14", |story: &mut Story| {
    story.pause();
    story.status(US, json!({"updatedRevision": "c"}));
})]
#[case::a_third_version_on_another_baseline("14", |story: &mut Story| {
    story.pause();
    story.status(US, json!({
        "updatedRevision": "c", "currentStepIndex": 0, "stableRevision": "z", "stableTemplateHash": "z",
    }));
})]
#[case::released_at_rest("16", |story: &mut Story| story.release(4))]
#[case::made_at_rest("16", |story: &mut Story| story.pod(4, "b"))]
#[case::a_field_of_somebody_else("17", |story: &mut Story| {
    story.pause();
    story.set(US, json!({"spec": {"replicas": 6, "updateStrategy": {"rollingUpdate": {"partition": 5}}}}));
})]
#[case::the_template_outside_a_return("17", |story: &mut Story| {
    story.set(US, json!({"spec": {"template": {"image": "z"}}}));
})]
#[case::a_claim_deleted("18", |story: &mut Story| story.ask("delete", "persistentvolumeclaims", json!({}), Some(1)))]
#[case::removed_while_another_is_away("19", |story: &mut Story| {
    story.pause();
    story.abort();
    story.release(5);
    story.pod_since(0, "a", None);
    story.removed(4, "b");
})]
#[case::removed_while_another_is_not_available("19", |story: &mut Story| {
    story.set(OTHERS, json!({"spec": {"minReadySeconds": 10}}));
    story.pause();
    story.abort();
    story.release(5);
    story.pod_since(0, "a", Some(31));
    story.removed(4, "b");
})]
#[case::a_stable_pod_removed("19", |story: &mut Story| story.removed(4, "a"))]
#[case::whichever_pod_it_is("19", |story: &mut Story| story.ask("delete", "pods", json!({}), Some(1)))]
#[case::evicted_whichever_it_is("19", |story: &mut Story| story.ask("create", "pods/eviction", json!({}), Some(1)))]
#[case::taken_from_one_that_lives("25", |story: &mut Story| {
    story.rollout["metadata"] = json!({"name": "second", "uid": "second", "generation": 1});
    let second = story.rollout.clone();
    story.commit("rolloutplugins.argoproj.io", "second", second, OTHERS, false);
    let claim = json!({"stateward.dev/managed-by": "RolloutPlugin/second/second"});
    story.set(US, json!({"metadata": {"annotations": claim}}));
})]
#[case::written_before_it_was_observed("26", |story: &mut Story| {
    story.start();
    story.set(OTHERS, json!({"spec": {"template": {"image": "c"}}}));
    story.partition(US, 4);
})]
#[case::the_memory_of_another_set("27", |story: &mut Story| {
    story.set(OTHERS, json!({"metadata": {"uid": "another"}}));
    story.start();
    story.release(4);
})]
#[case::a_write_that_changes_nothing("29", |story: &mut Story| story.ask("patch", "statefulsets", json!({}), None))]
#[case::well_before_it_is("30", |story: &mut Story| {
    story.pause();
    story.status(US, json!({"phase": "Successful"}));
})]
#[case::a_condition_before_it_is("30", |story: &mut Story| {
    story.pause();
    let healthy = json!([{
        "type": "Healthy", "status": "True", "reason": "", "message": "", "lastTransitionTime": at(0),
        "observedGeneration": 1,
    }]);
    story.status(US, json!({"conditions": healthy}));
})]
#[case::a_generation_that_was_not_acted_on("31", |story: &mut Story| {
    story.rollout["metadata"]["generation"] = 2.into();
    story.status(US, json!({"message": "all is well"}));
})]
#[case::a_job_of_somebody_else_deleted("18", |story: &mut Story| story.ask("delete", "jobs", json!({}), Some(1)))]
#[case::on_without_a_run("46", |story: &mut Story| {
    story.analyse();
    story.step(2, 30);
})]
#[case::on_before_the_run_is_over("46", |story: &mut Story| {
    story.analyse();
    story.run("Running");
    story.step(2, 30);
})]
#[case::another_verdict("47", |story: &mut Story| {
    story.analyse();
    story.run("Failed");
    story.run("Successful");
})]
#[case::told_twice("36", |story: &mut Story| {
    story.tell("rolling out b");
    story.tell("rolling out b");
})]
fn one_untruth_breaks_one_invariant(#[case] number: &str, #[case] tell: fn(&mut Story)) {
    let mut story = Story::begin();
    tell(&mut story);
    let numbers: Vec<_> = story
        .replay
        .broken
        .iter()
        .map(|what| what.split(':').next().unwrap())
        .collect();
    assert_eq!(numbers, [number], "{:?}", story.replay.broken);
}

/// A PhasedRollout that leaves a gate with this many successful checks recorded for `gate`.
fn leaves_gate(step: i32, promoted: bool, gate: Option<&str>, successes: i32) -> Vec<String> {
    let mut story = Story::begin();
    let mut object = json!({
        "apiVersion": "sts.plus/v1alpha1", "kind": "PhasedRollout",
        "metadata": {"name": "db", "uid": "phased", "generation": 1},
        "spec": {
            "targetRef": "db",
            "check": {"successThreshold": 3, "query": {"expr": "errors", "url": "prometheus"}},
        },
        "status": {
            "phase": "Rolling", "observedGeneration": 1, "workloadUid": "set", "stableRevision": "a",
            "stableTemplateHash": "a", "updatedRevision": "b", "stepReplicas": 5, "currentStepIndex": step,
            "currentStepHash": stateward_core::plan::Fingerprint::of("pod by pod").as_str(),
            "currentStepStartedAt": at(10),
        },
    });
    let status = serde_json::from_value(object["status"].clone()).unwrap();
    let Activity::Rolling(attempt) = stateward_core::record::memory(&status).activity else {
        panic!("it rolls");
    };
    let own = stateward_core::step_run_name("db", &attempt);
    object["status"]["rollingPodStatus"] =
        json!({"partition": 5, "gate": gate.unwrap_or(&own), "consecutiveSuccessfulChecks": successes});
    let resource = "phasedrollouts.sts.plus";
    story.commit(resource, "db", object.clone(), US, false);
    object["status"]["promote"] = promoted.into();
    story.commit(resource, "db", object.clone(), OTHERS, false);
    object["status"]["promote"] = false.into();
    object["status"]["currentStepIndex"] = (step + 1).into();
    object["status"]["currentStepStartedAt"] = json!(at(20));
    story.commit(resource, "db", object, US, false);
    story.replay.broken
}

#[rstest]
#[case::all_of_them(None, 3, true)]
#[case::the_last_written_down_with_it(None, 2, true)]
#[case::too_few(None, 1, false)]
#[case::those_of_another_gate(Some("db-b-0-another"), 3, false)]
fn a_gate_is_left_with_its_own_checks(
    #[case] gate: Option<&str>,
    #[case] successes: i32,
    #[case] kept: bool,
) {
    let broken = leaves_gate(0, false, gate, successes);
    let numbers: Vec<_> = broken.iter().map(|what| &what[..3]).collect();
    assert_eq!(numbers, if kept { vec![] } else { vec!["48:"] }, "{broken:?}");
}

#[rstest]
#[case::before_the_first_pod(0, vec![])]
#[case::before_the_second_and_the_first_is_old(2, vec!["2:"])]
fn whoever_skips_checks_skips_nothing_else(#[case] step: i32, #[case] expected: Vec<&str>) {
    let broken = leaves_gate(step, true, None, 0);
    let numbers: Vec<_> = broken.iter().map(|what| &what[..2]).collect();
    assert_eq!(numbers, expected, "{broken:?}");
}
