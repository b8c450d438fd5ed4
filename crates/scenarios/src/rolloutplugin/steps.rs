//! A rollout through its steps to completion.

use serde_json::json;
use stateward_kubelet::{Behaviour, Match};

use super::{paused_at, stands_at};
use crate::harness::{Cluster, Outcome, partition};
use crate::scenarios;

scenarios![
    a_rollout_pauses_where_it_says_and_ends_when_promoted,
    every_weight_sets_its_partition_and_waits_for_its_pods,
    a_first_deployment_runs_no_steps,
    a_timed_pause_ends_by_itself,
    without_steps_every_pod_follows,
    a_pause_as_the_first_step_releases_nothing,
    a_lower_weight_takes_pods_back,
    one_percent_of_three_pods_is_one_pod,
    thirds_of_three_pods_come_to_their_end_by_themselves,
    a_pause_is_told_as_a_condition_and_taken_back,
    a_pod_that_is_unwell_in_a_pause_is_told,
    a_parallel_set_that_may_lose_two_pods_at_once_keeps_to_its_steps,
];

/// S000-05, S000-06, S000-07
async fn a_rollout_pauses_where_it_says_and_ends_when_promoted(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}, {"setWeight": 60}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;

    db.set_image("v2").await?;
    let status = rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    if !status.controller_pause || status.pause_conditions.is_empty() {
        return Err(cluster.unmet("a pause condition", format!("{status:?}")));
    }
    rollout.promote().await?;
    rollout.expect_step(3, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2", "v2", "v2"]).await?;
    rollout.promote().await?;
    let status = rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 5]).await?;
    if status.current_revision != status.updated_revision || status.stable_revision != status.updated_revision
    {
        return Err(cluster.unmet("one revision", format!("{status:?}")));
    }
    stands_at(&db, 5).await
}

/// S000-01, S000-03
async fn every_weight_sets_its_partition_and_waits_for_its_pods(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(10).parallel().start().await?;
    let steps = json!([
        {"setWeight": 0}, {"pause": {}}, {"setWeight": 20}, {"pause": {}}, {"setWeight": 40}, {"pause": {}},
        {"setWeight": 60}, {"pause": {}}, {"setWeight": 80}, {"pause": {}}, {"setWeight": 100}, {"pause": {}},
    ]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    for (step, expected) in [(1, 10), (3, 8), (5, 6), (7, 4), (9, 2), (11, 0)] {
        rollout.expect_step(step, "Paused").await?;
        let set = db.get().await?;
        let pods = db.pods().await?;
        let new = pods.iter().filter(|pod| pod.image == "v2" && pod.ready).count();
        if partition(&set) != Some(expected) || new != 10 - expected as usize {
            let seen = format!("partition {:?}, {new} new pods Ready", partition(&set));
            return Err(cluster.unmet(format!("partition {expected} at step {step}"), seen));
        }
        rollout.promote().await?;
    }
    rollout.expect_phase("Successful").await.map(drop)
}

async fn a_first_deployment_runs_no_steps(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let rollout = cluster
        .rollout("db")
        .steps(json!([{"setWeight": 50}, {"pause": {}}]))
        .create()
        .await?;
    rollout
        .expect_message("waiting for StatefulSet db to exist")
        .await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let status = rollout.expect_phase("Successful").await?;
    let one = status.current_revision == status.updated_revision;
    let (began, steps) = (status.current_step_started_at, status.current_step_index);
    if began.is_some() || steps != Some(2) || status.stable_revision.is_none() || !one {
        return Err(cluster.unmet("no step taken, and one revision", format!("{status:?}")));
    }
    db.expect_rest(["v1", "v1"]).await
}

async fn a_timed_pause_ends_by_itself(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {"duration": "2s"}}, {"setWeight": 100}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_images(["v2", "v2"]).await?;
    rollout.expect_phase("Successful").await.map(drop)
}

async fn without_steps_every_pod_follows(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let rollout = cluster.rollout("db").start().await?;
    db.set_image("v2").await?;
    db.expect_images(["v2", "v2"]).await?;
    let status = rollout.expect_phase("Successful").await?;
    if status.current_revision != status.updated_revision {
        return Err(cluster.unmet("one revision", format!("{status:?}")));
    }
    db.expect_rest(["v2", "v2"]).await
}

async fn a_pause_as_the_first_step_releases_nothing(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).parallel().start().await?;
    let rollout = cluster
        .rollout("db")
        .steps(json!([{"pause": {}}, {"setWeight": 50}]))
        .start()
        .await?;
    let before = db.pods().await?;
    db.set_image("v2").await?;
    rollout.expect_step(0, "Paused").await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await
}

/// Allowed, as in Argo Rollouts: the share is that of the step, even if it is less than before.
async fn a_lower_weight_takes_pods_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 60}, {"pause": {}}, {"setWeight": 20}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    let since = cluster.pod_changes();
    rollout.promote().await?;
    rollout.expect_step(3, "Paused").await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    db.expect_one_down_at_most(since)
}

async fn one_percent_of_three_pods_is_one_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 1}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}

async fn thirds_of_three_pods_come_to_their_end_by_themselves(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let pause = json!({"pause": {"duration": "1s"}});
    let steps = json!([{"setWeight": 33}, pause, {"setWeight": 66}, pause, {"setWeight": 100}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    let status = rollout.expect_step(0, "Progressing").await?;
    if status.current_revision == status.updated_revision {
        return Err(cluster.unmet("two revisions", format!("{status:?}")));
    }
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 3]).await
}

/// `kubectl wait --for=condition=Paused` reads it.
async fn a_pause_is_told_as_a_condition_and_taken_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (_db, rollout) = paused_at(cluster, 2, 50).await?;
    rollout
        .expect_condition("Paused", "True", "RolloutPluginPaused")
        .await?;
    rollout.promote().await?;
    rollout
        .expect_condition("Completed", "True", "RolloutPluginCompleted")
        .await?;
    rollout
        .expect_condition("Paused", "False", "RolloutPluginCompleted")
        .await
        .map(drop)
}

/// Kubernetes stores `maxUnavailable` only if its gate is on. The share is the same with and without it.
async fn a_parallel_set_that_may_lose_two_pods_at_once_keeps_to_its_steps(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let two = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}});
    let db = cluster
        .statefulset("db")
        .replicas(5)
        .parallel()
        .spec(two)
        .start()
        .await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}, {"setWeight": 80}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    rollout.promote().await?;
    rollout.expect_step(3, "Paused").await?;
    db.expect_rest(["v1", "v2", "v2", "v2", "v2"]).await?;
    let since = cluster.pod_changes();
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await?;
    db.expect_one_down_at_most(since)
}

/// A user is about to decide whether to continue, and should see it.
async fn a_pod_that_is_unwell_in_a_pause_is_told(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (_db, rollout) = paused_at(cluster, 3, 34).await?;
    let lowest = Match::image("example.com/db:v1").ordinal(0);
    cluster.pods().program(lowest.clone(), Behaviour::never_ready());
    rollout
        .eventually("db-0 is told", |status| {
            let told = status
                .message
                .contains("paused: waiting for pod db-0 to be Ready");
            if told && status.ready_replicas == Some(2) {
                Ok(())
            } else {
                Err(format!("{:?} Ready", status.ready_replicas))
            }
        })
        .await?;
    cluster.pods().program(lowest, Behaviour::default());
    rollout
        .eventually("all is well again", |status| {
            if status.ready_replicas == Some(3) && !status.message.contains("waiting") {
                Ok(())
            } else {
                Err(format!("{:?} Ready", status.ready_replicas))
            }
        })
        .await
        .map(drop)
}
