//! The rollback under all circumstances (rule 5).

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use stateward_kubelet::{Behaviour, Match};

use super::{paused_at, stands_at};
use crate::harness::{Cluster, Doing, Outcome};
use crate::scenarios;

scenarios![
    pods_return_one_at_a_time,
    pods_of_a_parallel_set_return_one_at_a_time,
    a_broken_pod_below_the_others_does_not_hold_up_the_return,
    pods_return_under_a_minimum_of_ready_time,
    pods_that_count_from_five_return,
    a_disruption_budget_is_waited_for,
    a_request_that_is_refused_again_and_again_is_told,
    a_rollout_that_is_paused_by_hand_can_be_aborted,
    an_abort_while_a_pod_is_being_replaced_returns_it,
    an_operator_killed_again_and_again_brings_every_pod_back,
    a_stable_revision_that_is_lost_comes_back_from_our_copy,
    a_pod_deleted_during_a_return_comes_back_stable,
    a_timed_pause_can_be_aborted,
    a_pod_that_breaks_after_the_last_step_can_be_returned,
    a_template_put_back_replaces_the_broken_pod,
];

async fn pods_return_one_at_a_time(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 60).await?;
    let since = cluster.pod_changes();
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await?;
    db.expect_one_down_at_most(since)
}

async fn pods_of_a_parallel_set_return_one_at_a_time(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).parallel().start().await?;
    let steps = json!([{"setWeight": 80}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    let since = cluster.pod_changes();
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await?;
    db.expect_one_down_at_most(since)
}

/// k/k#67250: with OrderedReady Kubernetes recreates no pod above a broken one.
async fn a_broken_pod_below_the_others_does_not_hold_up_the_return(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let broken = Match::image("example.com/db:v2").ordinal(3);
    cluster.pods().program(broken, Behaviour::crash_loop());
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 60}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_message("pod db-3 is broken").await?;
    let since = cluster.pod_changes();
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await?;
    db.expect_one_down_at_most(since)
}

async fn pods_return_under_a_minimum_of_ready_time(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster
        .statefulset("db")
        .replicas(3)
        .min_ready_seconds(3)
        .start()
        .await?;
    let steps = json!([{"setWeight": 67}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.abort().await?;
    let status = rollout.expect_message("every pod is back").await?;
    if status.available_replicas != Some(3) {
        return Err(cluster.unmet("three pods available", format!("{status:?}")));
    }
    db.expect_rest(["v1"; 3]).await?;
    expect_made_after_the_one_above_was_available(cluster, 3).await
}

/// Expects that `db-1` was created only once `db-2` had been Ready for this many seconds.
async fn expect_made_after_the_one_above_was_available(cluster: &Cluster, seconds: i64) -> Outcome {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), cluster.namespace());
    let first = pods.get("db-2").await.doing("get pod db-2")?;
    let second = pods.get("db-1").await.doing("get pod db-1")?;
    let conditions = first.status.and_then(|status| status.conditions);
    let ready = conditions
        .unwrap_or_default()
        .into_iter()
        .find(|condition| condition.type_ == "Ready");
    let ready = ready.and_then(|ready| Some(ready.last_transition_time?.0));
    let available = ready.map(|ready| ready + SignedDuration::from_secs(seconds));
    let made = second.metadata.creation_timestamp.map(|made| made.0);
    cluster.expect(
        &format!("db-1 was made at {made:?}, not before db-2 was available at {available:?}"),
        available.is_some() && made >= available,
    )
}

/// k/k#128529: the partition counts from the first ordinal.
async fn pods_that_count_from_five_return(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster
        .statefulset("db")
        .replicas(5)
        .ordinals_start(5)
        .start()
        .await?;
    let steps = json!([{"setWeight": 40}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let before = db.pods().await?;
    cluster.stop_operator();
    db.set_image("v2").await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await?;
    cluster.start_operator();
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v1", "v2", "v2"]).await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await?;
    rollout.retry().await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 5]).await
}

fn budgets(cluster: &Cluster) -> Api<PodDisruptionBudget> {
    Api::namespaced(cluster.client(), cluster.namespace())
}

/// A PodDisruptionBudget for the pods of `db`.
async fn protect(cluster: &Cluster, name: &str, away: i32) -> Outcome {
    let budget = json!({
        "metadata": {"name": name},
        "spec": {"maxUnavailable": away, "selector": {"matchLabels": {"app": "db"}}},
    });
    let budget = serde_json::from_value(budget)
        .map_err(kube::Error::SerdeError)
        .doing("read a budget")?;
    let created = budgets(cluster).create(&PostParams::default(), &budget).await;
    created.doing("create a disruption budget").map(drop)
}

async fn unprotect(cluster: &Cluster, name: &str) -> Outcome {
    let deleted = budgets(cluster).delete(name, &DeleteParams::default()).await;
    deleted.doing("delete a disruption budget").map(drop)
}

/// With two matching budgets Kubernetes rejects an eviction with status 500.
async fn a_request_that_is_refused_again_and_again_is_told(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 67).await?;
    protect(cluster, "one", 1).await?;
    protect(cluster, "two", 1).await?;
    let before = db.pods().await?;
    rollout.abort().await?;
    rollout
        .expect_message("more than one PodDisruptionBudget")
        .await?;
    rollout
        .expect_event("RequestRefused", "cannot remove pod db-2")
        .await?;
    db.expect_same_pods(&before).await?;
    unprotect(cluster, "two").await?;
    rollout
        .expect_message("every pod is back on the stable version; change the template")
        .await?;
    db.expect_rest(["v1"; 3]).await
}

async fn a_disruption_budget_is_waited_for(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 67).await?;
    protect(cluster, "db", 0).await?;
    let before = db.pods().await?;
    rollout.abort().await?;
    rollout
        .expect_message("pod db-2 may not go now: The disruption budget db needs")
        .await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await?;
    unprotect(cluster, "db").await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 3]).await
}

/// Rule 14.
async fn a_rollout_that_is_paused_by_hand_can_be_aborted(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 67).await?;
    rollout.patch("pause", json!({"paused": true})).await?;
    rollout.expect_message("paused by spec.paused").await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 3]).await
}

async fn an_abort_while_a_pod_is_being_replaced_returns_it(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let slow = Behaviour::ready_after(Duration::from_secs(60)).stops_after(Duration::from_millis(300));
    cluster.pods().program(Match::image("example.com/db:v2"), slow);
    let stops = Behaviour::slow_termination(Duration::from_millis(500));
    cluster.pods().program(Match::image("example.com/db:v1"), stops);
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 67}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    cluster
        .eventually("the last pod is on its way out", |view| {
            match view.pods.get("db-2").map(|pod| pod.terminating) {
                Some(true) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
    let since = cluster.pod_changes();
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 3]).await?;
    db.expect_one_down_at_most(since)
}

/// Gap 3 of the state of the art: an interrupted abort left the aborted pods in place forever.
async fn an_operator_killed_again_and_again_brings_every_pod_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 80).await?;
    let since = cluster.pod_changes();
    rollout.abort().await?;
    for returned in 1..=4 {
        cluster
            .eventually(format!("{returned} pods were made again"), |view| {
                let made = view.births.iter().filter(|pod| pod.image == "v1").count();
                if made >= 5 + returned {
                    Ok(())
                } else {
                    Err(format!("{made}"))
                }
            })
            .await?;
        cluster.start_operator();
    }
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await?;
    db.expect_one_down_at_most(since)
}

/// Invariant 10. Once the current revision is gone, Kubernetes takes the new one for it and would give it to every pod.
async fn a_stable_revision_that_is_lost_comes_back_from_our_copy(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    let status = rollout.get().await?.status.unwrap_or_default();
    let stable = status.stable_revision.unwrap_or_default();
    let revisions: Api<ControllerRevision> = Api::namespaced(cluster.client(), cluster.namespace());
    revisions
        .delete(&stable, &DeleteParams::default())
        .await
        .doing("delete the stable revision")?;
    // Trigger a sync: the controller does not notice otherwise.
    db.patch("nudge the controller", json!({"revisionHistoryLimit": 7}))
        .await?;
    rollout.expect_event("RolloutAborted", "no longer knows").await?;
    db.expect_images(["v1"; 3]).await?;
    rollout.expect_message("go on with another version").await?;
    stands_at(&db, 3).await?;
    db.expect_rest(["v1"; 3]).await
}

async fn a_pod_deleted_during_a_return_comes_back_stable(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 60).await?;
    rollout.abort().await?;
    db.delete_pod(2).await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await
}

async fn a_timed_pause_can_be_aborted(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(4).start().await?;
    let steps = json!([{"setWeight": 25}, {"pause": {"duration": "5m"}}, {"setWeight": 50}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.abort().await?;
    let status = rollout.expect_message("every pod is back").await?;
    if !status.aborted || status.aborted_at.is_none() || status.aborted_revision.is_none() {
        return Err(cluster.unmet("the abort on record", format!("{status:?}")));
    }
    db.expect_rest(["v1"; 4]).await
}

/// The rollout is not complete before every pod is Ready, and until then it can roll back.
async fn a_pod_that_breaks_after_the_last_step_can_be_returned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let last = Match::image("example.com/db:v2").ordinal(0);
    cluster.pods().program(last, Behaviour::crash_loop());
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    rollout.promote().await?;
    let status = rollout.expect_message("pod db-0 is broken").await?;
    if status.phase != "Failed" || status.stable_revision == status.updated_revision {
        return Err(cluster.unmet("failed, and not stable", format!("{status:?}")));
    }
    db.expect_rest(["v2"; 3]).await?;
    let since = cluster.pod_changes();
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 3]).await?;
    db.expect_one_down_at_most(since)
}

/// k/k#67250: Kubernetes alone leaves the pod as it is.
async fn a_template_put_back_replaces_the_broken_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let v2 = Match::image("example.com/db:v2");
    cluster.pods().program(v2, Behaviour::crash_loop());
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 67}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_message("pod db-2 is broken").await?;
    db.set_image("v1").await?;
    rollout
        .expect_event("TemplateReverted", "returning every pod")
        .await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v1"; 3]).await
}
