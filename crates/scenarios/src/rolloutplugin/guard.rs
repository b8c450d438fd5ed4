//! The guard: no pod moves before a step releases it, whichever component is down.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;
use stateward_kubelet::{Behaviour, Match};

use super::paused_at;
use crate::harness::{Cluster, Outcome};
use crate::scenarios;

scenarios![
    a_change_made_while_the_operator_is_down_moves_no_pod,
    a_change_after_a_rollout_meets_the_guard_again,
    a_set_that_is_said_to_be_taken_on_is_guarded,
    what_others_rolled_while_the_operator_was_away_stays,
    a_set_in_the_middle_of_a_change_is_taken_on_at_the_first_step,
    a_half_rolled_set_keeps_its_new_pods,
    a_set_that_rolls_by_itself_is_stopped_where_it_is,
    a_restart_of_the_operator_in_a_pause_changes_nothing,
    a_restart_of_the_operator_between_pods_changes_nothing,
    a_timed_pause_neither_restarts_nor_ends_early,
];

/// Invariant 16: pods stay as they are without the operator.
async fn a_change_made_while_the_operator_is_down_moves_no_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).parallel().start().await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    cluster.stop_operator();
    let before = db.pods().await?;
    db.set_image("v2").await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await?;
    cluster.start_operator();
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    let new = db.births().iter().filter(|pod| pod.image == "v2").count();
    if new != 1 {
        return Err(cluster.unmet("one new pod in all", format!("{new}")));
    }
    Ok(())
}

/// A pipeline that waits for completion may change the template immediately afterwards.
async fn a_change_after_a_rollout_meets_the_guard_again(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    cluster.stop_operator();
    db.set_image("v3").await?;
    db.expect_rest(["v2"; 3]).await?;
    cluster.start_operator();
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v2", "v2", "v3"]).await
}

/// S000-08: the seed's own script changes the image first and creates the RolloutPlugin then.
async fn a_set_that_is_said_to_be_taken_on_is_guarded(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster.rollout("db").create().await?;
    rollout.expect_phase("Successful").await?;
    cluster.stop_operator();
    db.set_image("v2").await?;
    db.expect_rest(["v1"; 3]).await
}

async fn a_set_in_the_middle_of_a_change_is_taken_on_at_the_first_step(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).partition(5).start().await?;
    db.set_image("v2").await?;
    db.expect_rest(["v1"; 5]).await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}, {"setWeight": 40}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).create().await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    rollout.promote().await?;
    rollout.expect_step(3, "Paused").await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await
}

async fn a_half_rolled_set_keeps_its_new_pods(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).partition(3).start().await?;
    db.set_image("v2").await?;
    db.expect_rest(["v1", "v1", "v1", "v2", "v2"]).await?;
    let before = db.pods().await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}, {"setWeight": 80}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).create().await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await?;
    rollout.promote().await?;
    rollout.expect_step(3, "Paused").await?;
    db.expect_rest(["v1", "v2", "v2", "v2", "v2"]).await
}

/// A set with partition 0 whose image has just changed: updated pods stay updated, the rest wait for their step.
async fn a_set_that_rolls_by_itself_is_stopped_where_it_is(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let slow = Behaviour::ready_after(Duration::from_secs(2));
    cluster.pods().program(Match::image("example.com/db:v2"), slow);
    db.set_image("v2").await?;
    db.eventually("the first new pod", |_, pods| match pods.get(4) {
        Some(pod) if pod.image == "v2" => Ok(()),
        _ => Err(String::new()),
    })
    .await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).create().await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await
}

async fn a_restart_of_the_operator_in_a_pause_changes_nothing(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 40).await?;
    let before = (rollout.get().await?, db.pods().await?);
    cluster.start_operator();
    db.expect_no_move().await?;
    db.expect_same_pods(&before.1).await?;
    let after = rollout.get().await?;
    if before.0.status != after.status {
        let seen = format!("{:?} and then {:?}", before.0.status, after.status);
        return Err(cluster.unmet("the same status", seen));
    }
    // Commands sent while no operator runs take effect afterwards.
    cluster.stop_operator();
    rollout.promote().await?;
    cluster.start_operator();
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 5]).await
}

async fn a_restart_of_the_operator_between_pods_changes_nothing(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let slow = Behaviour::ready_after(Duration::from_millis(500));
    cluster.pods().program(Match::image("example.com/db:v2"), slow);
    let steps = json!([{"setWeight": 60}, {"pause": {}}, {"setWeight": 80}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    for born in 1..=3 {
        cluster
            .eventually(format!("{born} new pods were made"), |view| {
                let new = view.births.iter().filter(|pod| pod.image == "v2").count();
                if new >= born {
                    Ok(())
                } else {
                    Err(format!("{new}"))
                }
            })
            .await?;
        cluster.start_operator();
    }
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2", "v2", "v2"]).await?;
    let new = db.births().iter().filter(|pod| pod.image == "v2").count();
    if new != 3 {
        return Err(cluster.unmet("three new pods in all", format!("{new}")));
    }
    // The last stretch, after all steps.
    rollout.promote().await?;
    rollout.expect_phase("Progressing").await?;
    cluster.start_operator();
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 5]).await
}

/// Invariant 7.
async fn a_timed_pause_neither_restarts_nor_ends_early(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {"duration": "3s"}}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    let began = rollout.expect_step(1, "Paused").await?.current_step_started_at;
    cluster.start_operator();
    let status = rollout.expect_step(1, "Paused").await?;
    if status.current_step_started_at != began {
        let seen = format!("{:?}", status.current_step_started_at);
        return Err(cluster.unmet(format!("a pause since {began:?}"), seen));
    }
    let ended = rollout.expect_step(2, "Paused").await?.current_step_started_at;
    let lasted = ended.zip(began).map(|(ended, began)| ended.duration_since(began));
    match lasted {
        Some(lasted) if lasted >= SignedDuration::from_secs(3) => Ok(()),
        other => Err(cluster.unmet("a pause of 3 s", format!("{other:?}"))),
    }
}

/// A user who removes the partition and rolls by hand has decided: the operator reports and accepts the result.
async fn what_others_rolled_while_the_operator_was_away_stays(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 34}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    cluster.stop_operator();
    db.set_partition(0).await?;
    db.set_image("v2").await?;
    db.eventually("Kubernetes is done", |set, _| {
        let told = set.status.clone().unwrap_or_default();
        if told.updated_replicas == Some(3) && told.current_revision == told.update_revision {
            Ok(())
        } else {
            Err(String::new())
        }
    })
    .await?;
    cluster.start_operator();
    rollout
        .expect_event("ExternalRolloutDetected", "stable version now")
        .await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 3]).await
}
