//! Budgets and evictions.

use super::eviction::{marked, may_evict, needs_no_budget, try_again};
use super::stale::StaleDisruptionController;
use super::*;
use crate::controllers::fake::Lab;
use crate::controllers::owner;
use rstest::rstest;

fn lab() -> Lab {
    Lab::new(vec![
        Box::new(DisruptionController),
        Box::new(StaleDisruptionController),
    ])
}

fn budget(spec: Value) -> Value {
    let mut budget = json!({"metadata": {"name": "b", "namespace": "n"}, "spec": {"selector": {"matchLabels": {"app": "db"}}}});
    budget["spec"]
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    budget
}

/// A StatefulSet with this many replicas, pods and ready pods.
fn set(lab: &mut Lab, replicas: i64, pods: usize, ready: usize) {
    let set = lab.fake.put(
        "statefulsets.apps",
        json!({
            "metadata": {"name": "db", "namespace": "n", "uid": "set"}, "spec": {"replicas": replicas},
        }),
    );
    let owner = owner::controller_reference(&set, "apps/v1", "StatefulSet");
    for number in 0..pods {
        let name = format!("db-{number}");
        let metadata =
            json!({"name": name, "namespace": "n", "labels": {"app": "db"}, "ownerReferences": [owner]});
        lab.fake
            .put(PODS, json!({"metadata": metadata, "spec": {"nodeName": "node"}}));
        lab.fake.run_pod("n", &name, number < ready);
    }
    lab.settle();
}

impl Lab {
    fn budget(&self) -> Arc<Value> {
        self.fake.get(BUDGETS, "n", "b").unwrap()
    }

    fn db(&self, number: usize) -> Arc<Value> {
        self.fake.get(PODS, "n", &format!("db-{number}")).unwrap()
    }

    /// Evicts a pod like the server, with a budget.
    fn evict(&mut self, number: usize) {
        let status = may_evict(&self.budget(), &self.db(number), self.fake.now())
            .unwrap()
            .unwrap();
        self.fake
            .update_status(BUDGETS, "n", "b", with_status(&self.budget(), status))
            .unwrap();
        self.settle();
    }
}

#[rstest]
#[case::least(json!({"minAvailable": 2}), 3, [3, 2, 3, 1])]
#[case::least_percent(json!({"minAvailable": "50%"}), 3, [4, 2, 3, 1])]
#[case::most_lost(json!({"maxUnavailable": 1}), 3, [4, 3, 3, 0])]
#[case::most_lost_percent(json!({"maxUnavailable": "30%"}), 3, [4, 2, 3, 1])]
#[case::more_than_there_are(json!({"maxUnavailable": 9}), 1, [4, 0, 1, 1])]
#[case::too_few(json!({"minAvailable": 3}), 1, [3, 3, 1, 0])]
#[case::nothing(json!({}), 3, [0, 0, 3, 0])]
fn the_numbers_follow_the_workload(#[case] spec: Value, #[case] ready: usize, #[case] numbers: [i64; 4]) {
    let mut lab = lab();
    set(&mut lab, 4, 3, ready);
    lab.fake.put(BUDGETS, budget(spec));
    lab.settle();
    let status = lab.budget()["status"].clone();
    let fields = [
        "expectedPods",
        "desiredHealthy",
        "currentHealthy",
        "disruptionsAllowed",
    ];
    assert_eq!(fields.map(|field| status[field].as_i64().unwrap()), numbers);
    let (value, reason) = if numbers[3] > 0 {
        ("True", "SufficientPods")
    } else {
        ("False", "InsufficientPods")
    };
    assert_eq!(
        status["conditions"],
        json!([{
            "type": "DisruptionAllowed", "status": value, "reason": reason, "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }])
    );
    assert_eq!(status["observedGeneration"], 1);
}

#[test]
fn an_eviction_is_paid_until_the_pod_is_gone() {
    let mut lab = lab();
    set(&mut lab, 3, 3, 3);
    lab.fake.put(BUDGETS, budget(json!({"maxUnavailable": 1})));
    lab.settle();
    lab.evict(0);
    assert_eq!(
        lab.budget()["status"]["disruptedPods"],
        json!({"db-0": "2026-01-01T00:00:00Z"})
    );
    assert_eq!(lab.budget()["status"]["currentHealthy"], 2);
    assert_eq!(lab.budget()["status"]["disruptionsAllowed"], 0);

    lab.fake.delete(PODS, "n", "db-0", json!({})).unwrap();
    lab.settle();
    assert_eq!(lab.budget()["status"]["disruptedPods"], Value::Null);
    let refusal = may_evict(&lab.budget(), &lab.db(1), lab.fake.now())
        .unwrap_err()
        .to_value();
    assert_eq!(refusal["code"], 429);
    assert_eq!(
        refusal["message"],
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    let message = "The disruption budget b needs 2 healthy pods and has 2 currently";
    assert_eq!(
        refusal["details"],
        json!({"causes": [{"reason": "DisruptionBudget", "message": message}]})
    );
}

#[test]
fn an_eviction_that_never_came_is_forgotten_after_two_minutes() {
    let mut lab = lab();
    set(&mut lab, 3, 3, 3);
    lab.fake.put(BUDGETS, budget(json!({"maxUnavailable": 1})));
    lab.settle();
    lab.evict(0);
    let status = marked(&lab.db(0), lab.fake.now());
    lab.fake
        .update_status(PODS, "n", "db-0", with_status(&lab.db(0), status))
        .unwrap();
    lab.seconds(119);
    assert_eq!(lab.budget()["status"]["disruptionsAllowed"], 0);
    assert_eq!(
        pod::condition(&lab.db(0), "DisruptionTarget").unwrap()["reason"],
        "EvictionByEvictionAPI"
    );

    lab.seconds(1);
    assert_eq!(lab.budget()["status"]["disruptionsAllowed"], 1);
    assert_eq!(
        pod::condition(&lab.db(0), "DisruptionTarget").unwrap()["status"],
        "False"
    );
    let told = "Warning NotDeleted Pod was expected by PDB n/n to be deleted but it wasn't".to_owned();
    assert!(lab.fake.events().contains(&told));
}

#[test]
fn pods_without_a_workload_count_only_where_a_number_is_asked_for() {
    let mut lab = lab();
    lab.fake.put(BUDGETS, budget(json!({"maxUnavailable": "50%"})));
    lab.settle();
    lab.fake.put(
        PODS,
        json!({"metadata": {"name": "p", "namespace": "n", "labels": {"app": "db"}}}),
    );
    lab.settle();
    assert_eq!(lab.budget()["status"]["expectedPods"], 0);
    let event = "Warning UnmanagedPods Pods selected by this PodDisruptionBudget (selector: &LabelSelector{MatchLabels:\
                 map[string]string{app: db,},MatchExpressions:[]LabelSelectorRequirement{},}) were found to be unmanaged.";
    assert!(lab.fake.events().iter().any(|one| one.starts_with(event)));
    assert_eq!(lab.fake.events()[0], "Normal NoPods No matching pods found");
}

#[test]
fn a_workload_that_cannot_be_scaled_allows_nothing_and_says_why() {
    let mut lab = lab();
    let owner =
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": true}]);
    let metadata = json!({"name": "p", "namespace": "n", "labels": {"app": "db"}, "ownerReferences": owner});
    lab.fake.put(PODS, json!({"metadata": metadata}));
    lab.fake.run_pod("n", "p", true);
    lab.fake.put(BUDGETS, budget(json!({"maxUnavailable": 1})));
    lab.settle();
    let condition = lab.budget()["status"]["conditions"][0].clone();
    let why = "jobs.batch does not implement the scale subresource";
    assert_eq!(
        (&condition["reason"], &condition["message"]),
        (&json!("SyncFailed"), &json!(why))
    );

    lab.fake.change(BUDGETS, "n", "b", |budget| {
        budget["status"]["observedGeneration"] = 1.into()
    });
    let pod = lab.fake.get(PODS, "n", "p").unwrap();
    let refusal = may_evict(&lab.budget(), &pod, lab.fake.now())
        .unwrap_err()
        .to_value();
    assert_eq!(
        refusal["details"]["causes"][0]["message"],
        format!(
            "The disruption budget b does not allow evicting pods currently because it failed sync: {why}"
        )
    );
}

#[test]
fn a_custom_workload_is_counted_where_its_definition_says() {
    let mut lab = lab();
    let scale = json!({"scale": {"specReplicasPath": ".spec.size.nodes"}});
    lab.fake.put(
        "customresourcedefinitions.apiextensions.k8s.io",
        json!({
            "metadata": {"name": "rollouts.example.com"}, "spec": {"versions": [{"name": "v1", "subresources": scale}]},
        }),
    );
    let rollout = json!({"metadata": {"name": "r", "namespace": "n"}, "spec": {"size": {"nodes": 7}}});
    let rollout = lab.fake.put("rollouts.example.com", rollout);
    let owner = owner::controller_reference(&rollout, "example.com/v1", "Rollout");
    let metadata =
        json!({"name": "p", "namespace": "n", "labels": {"app": "db"}, "ownerReferences": [owner]});
    lab.fake.put(PODS, json!({"metadata": metadata}));
    lab.fake.put(BUDGETS, budget(json!({"maxUnavailable": 1})));
    lab.settle();
    assert_eq!(lab.budget()["status"]["expectedPods"], 7);
}

fn paid(status: Value) -> Value {
    let mut budget = budget(json!({}));
    budget["metadata"]["generation"] = 2.into();
    budget["status"] = json!({"observedGeneration": 2});
    budget["status"]
        .as_object_mut()
        .unwrap()
        .extend(status.as_object().unwrap().clone());
    budget
}

fn running(ready: bool) -> Value {
    let condition = json!({"type": "Ready", "status": if ready { "True" } else { "False" }});
    json!({"metadata": {"name": "p", "namespace": "n"}, "status": {"phase": "Running", "conditions": [condition]}})
}

#[rstest]
#[case::ready(json!({"disruptionsAllowed": 0, "currentHealthy": 3, "desiredHealthy": 2}), true, false)]
#[case::healthy_enough(json!({"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2}), false, true)]
#[case::not_healthy_enough(json!({"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 2}), false, false)]
#[case::nothing_desired(json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0}), false, false)]
fn a_pod_that_is_not_ready_goes_free_when_the_rest_is_healthy(
    #[case] status: Value,
    #[case] ready: bool,
    #[case] free: bool,
) {
    assert_eq!(
        may_evict(&paid(status), &running(ready), Timestamp::UNIX_EPOCH) == Ok(None),
        free
    );
}

#[test]
fn a_policy_can_let_every_pod_go_that_is_not_ready() {
    let mut budget = paid(json!({"disruptionsAllowed": 0, "desiredHealthy": 5}));
    budget["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
    assert_eq!(
        may_evict(&budget, &running(false), Timestamp::UNIX_EPOCH),
        Ok(None)
    );
}

#[rstest]
#[case("Pending", true)]
#[case("Succeeded", true)]
#[case("Failed", true)]
#[case("Running", false)]
fn only_pods_that_serve_need_a_budget(#[case] phase: &str, #[case] free: bool) {
    assert_eq!(needs_no_budget(&json!({"status": {"phase": phase}})), free);
}

#[test]
fn a_budget_that_was_not_looked_at_yet_asks_for_patience() {
    let budget = paid(json!({"observedGeneration": 1, "disruptionsAllowed": 1}));
    let refusal = may_evict(&budget, &running(true), Timestamp::UNIX_EPOCH).unwrap_err();
    assert_eq!(refusal, try_again(&budget));
    let message = "The disruption budget b is still being processed by the server.";
    let cause = json!({"reason": "DisruptionBudget", "message": message});
    assert_eq!(
        refusal.to_value()["details"],
        json!({"causes": [cause], "retryAfterSeconds": 10})
    );
}

#[test]
fn a_negative_number_of_disruptions_is_forbidden() {
    let budget = paid(json!({"disruptionsAllowed": -1}));
    let refusal = may_evict(&budget, &running(true), Timestamp::UNIX_EPOCH).unwrap_err();
    assert_eq!(refusal.code(), 403);
    assert_eq!(
        refusal.to_string(),
        "poddisruptionbudget.policy \"b\" is forbidden: pdb disruptions allowed is negative"
    );
}
