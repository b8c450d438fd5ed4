//! Scaling while a rollout is paused, in progress or complete (rule 9).

use std::ops::RangeInclusive;

use serde_json::json;

use super::{paused_at, stands_at};
use crate::harness::{Cluster, Outcome, PodRow, Set, container};
use crate::scenarios;

scenarios![
    scaling_up_in_a_pause_moves_no_pod_back,
    scaling_up_in_a_pause_exposes_no_more_than_its_share,
    the_step_after_scaling_up_counts_the_pods_that_are_new,
    a_new_pod_that_is_lost_after_scaling_up_comes_back_stable,
    scaling_down_in_a_pause_keeps_the_share,
    scaling_up_while_the_operator_is_down_keeps_the_share_in_the_end,
    scaling_in_the_middle_of_a_step_moves_the_goal,
    scaling_to_zero_and_back_never_promotes,
    scaling_to_zero_after_an_abort_never_promotes,
    scaling_to_zero_at_rest_is_nothing_special,
    pods_added_after_an_abort_end_on_the_stable_version,
    pods_added_at_rest_are_guarded_too,
    an_autoscaler_may_change_its_mind_again_and_again,
    a_change_that_also_scales_keeps_to_its_step,
];

/// Rolling back a database whose on-disk format has changed is dangerous.
async fn scaling_up_in_a_pause_moves_no_pod_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 20).await?;
    let before = db.pods().await?;
    db.scale(8).await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2", "v1", "v1", "v1"])
        .await?;
    expect_still_there(cluster, &db, &before).await?;
    stands_at(&db, 8).await?;
    let words =
        "scaled from 5 to 8 pods; no pod that was there is moved back, and added pods are created on db-";
    rollout.expect_event("Scaled", words).await?;
    rollout
        .expect_event("Scaled", "1 of 8 pods may run the new version")
        .await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 8]).await
}

/// 40 % of ten are four, but which version the first added pods run is a race; no more than four are updated in any case.
async fn scaling_up_in_a_pause_exposes_no_more_than_its_share(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 40).await?;
    let before = db.pods().await?;
    db.scale(10).await?;
    rollout.expect_event("Scaled", "from 5 to 10").await?;
    let new = expect_new_pods(&db, 10, 2..=4).await?;
    if new < 4 {
        let words = format!("{new} of 10 pods may run the new version until the next setWeight step");
        rollout.expect_message(&words).await?;
    }
    db.expect_no_move().await?;
    expect_still_there(cluster, &db, &before).await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 10]).await
}

/// Waits until `all` pods are Ready, and an expected number of them run the new version. Returns that number.
async fn expect_new_pods(db: &Set<'_>, all: usize, expected: RangeInclusive<usize>) -> Outcome<usize> {
    db.eventually(
        format!("{all} pods are Ready, {expected:?} of them v2"),
        |_, pods| {
            let there = pods.iter().filter(|pod| pod.ready && !pod.terminating).count();
            let new = pods.iter().filter(|pod| pod.image == "v2").count();
            if there == all && pods.len() == all && expected.contains(&new) {
                Ok(new)
            } else {
                Err(format!("{there} of {} Ready, {new} v2", pods.len()))
            }
        },
    )
    .await
}

/// 25 % of eight are two: the one already updated, and one more.
async fn the_step_after_scaling_up_counts_the_pods_that_are_new(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}, {"setWeight": 25}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    let before = db.pods().await?;
    db.scale(8).await?;
    rollout.expect_event("Scaled", "from 5 to 8").await?;
    rollout.promote().await?;
    rollout.expect_step(3, "Paused").await?;
    let now = db.pods().await?;
    let new: Vec<_> = now.iter().filter(|pod| pod.image == "v2").collect();
    // Kubernetes may create db-5 before the guard is raised; otherwise the second one is db-7.
    let expected = new.len() == 2 && new.iter().any(|pod| pod.name == "db-4");
    cluster.expect(&format!("db-4 and one more pod are new, not {new:?}"), expected)?;
    expect_still_there(cluster, &db, &before).await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 8]).await
}

/// Kubernetes creates it below the guard, so on the stable version. A later step makes up for it, the pause does not.
async fn a_new_pod_that_is_lost_after_scaling_up_comes_back_stable(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 20).await?;
    db.scale(8).await?;
    rollout.expect_event("Scaled", "from 5 to 8").await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2", "v1", "v1", "v1"])
        .await?;
    db.delete_pod(4).await?;
    db.expect_rest(["v1"; 8]).await?;
    rollout.expect_step(1, "Paused").await?;
    stands_at(&db, 8).await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 8]).await
}

/// Whether all of these pods still exist.
async fn expect_still_there(cluster: &Cluster, db: &Set<'_>, before: &[PodRow]) -> Outcome {
    let now = db.pods().await?;
    let gone: Vec<_> = before
        .iter()
        .filter(|pod| now.iter().all(|now| now.uid != pod.uid))
        .collect();
    cluster.expect(&format!("no pod was moved, not {gone:?}"), gone.is_empty())
}

async fn scaling_down_in_a_pause_keeps_the_share(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 10, 20).await?;
    db.scale(5).await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await
}

/// Kubernetes creates the added pods on the new version, as the partition says; the operator rolls them back once it runs again.
async fn scaling_up_while_the_operator_is_down_keeps_the_share_in_the_end(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 20).await?;
    cluster.stop_operator();
    db.scale(8).await?;
    db.expect_ready().await?;
    cluster.start_operator();
    db.expect_rest(["v1", "v1", "v1", "v1", "v2", "v1", "v1", "v1"])
        .await?;
    rollout.expect_step(1, "Paused").await.map(drop)
}

async fn scaling_in_the_middle_of_a_step_moves_the_goal(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(4).start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(0, "Progressing").await?;
    db.scale(6).await?;
    rollout.expect_step(1, "Paused").await?;
    // Which ones depends on how far the first step had come.
    expect_new_pods(&db, 6, 3..=3).await.map(drop)
}

/// Kubernetes itself treats a set without pods as updated.
async fn scaling_to_zero_and_back_never_promotes(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    let stable = rollout
        .get()
        .await?
        .status
        .and_then(|status| status.stable_revision);
    db.scale(0).await?;
    db.expect_images([]).await?;
    rollout
        .expect_event("ScaledToZero", "stays the stable version")
        .await?;
    // Before that is recorded, it would be a version that was released externally.
    template_is_back(&db).await?;
    rollout.expect_message("scaled to zero: pods will run").await?;
    // A GitOps tool applies it again immediately. The version that was behind gates stays behind them.
    let before = db.get().await?.metadata.generation;
    db.set_image("v2").await?;
    db.eventually("it was taken out again", |set, _| {
        if set.metadata.generation >= before.map(|before| before + 2) {
            Ok(())
        } else {
            Err(format!("generation {:?}", set.metadata.generation))
        }
    })
    .await?;
    template_is_back(&db).await?;
    rollout.expect_message("scaled to zero: pods will run").await?;
    db.scale(3).await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_message("apply it again to roll it out").await?;
    let status = rollout.expect_phase("Successful").await?;
    if status.stable_revision != stable {
        return Err(cluster.unmet(format!("{stable:?} is stable"), format!("{status:?}")));
    }
    // The new version may be tried again, from the first step.
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}

async fn scaling_to_zero_after_an_abort_never_promotes(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.scale(0).await?;
    db.expect_images([]).await?;
    template_is_back(&db).await?;
    db.scale(2).await?;
    db.expect_rest(["v1"; 2]).await
}

async fn template_is_back(db: &Set<'_>) -> Outcome {
    db.eventually("the stable template is back", |set, _| {
        let containers = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
        let image = containers.and_then(|spec| spec.containers[0].image.clone());
        match image.as_deref() {
            Some("example.com/db:v1") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

async fn scaling_to_zero_at_rest_is_nothing_special(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.scale(0).await?;
    db.expect_images([]).await?;
    rollout.expect_phase("Successful").await?;
    // Without pods there is nothing to protect.
    db.set_image("v2").await?;
    let update = db
        .expect_observed()
        .await?
        .status
        .and_then(|status| status.update_revision);
    // Before that is recorded, it would be a version that was released externally.
    rollout
        .eventually("v2 is stable", |status| match &status.stable_revision {
            stable if *stable == update => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await?;
    db.scale(2).await?;
    db.expect_rest(["v2"; 2]).await?;
    stands_at(&db, 2).await?;
    db.set_image("v3").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v2", "v3"]).await
}

async fn pods_added_after_an_abort_end_on_the_stable_version(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.scale(6).await?;
    db.expect_rest(["v1"; 6]).await?;
    let status = rollout.expect_message("every pod is back").await?;
    if !status.aborted || status.phase != "Failed" {
        return Err(cluster.unmet("still aborted", format!("{status:?}")));
    }
    db.scale(2).await?;
    db.expect_rest(["v1"; 2]).await
}

async fn pods_added_at_rest_are_guarded_too(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    for replicas in [5, 3] {
        db.scale(replicas).await?;
        db.expect_ready().await?;
        stands_at(&db, replicas).await?;
    }
    rollout.expect_phase("Successful").await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}

async fn an_autoscaler_may_change_its_mind_again_and_again(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 40).await?;
    for replicas in [6, 4, 8, 3, 7, 5] {
        db.scale(replicas).await?;
        db.expect_observed().await?;
    }
    // Which pods were removed by scaling down is a race; the recreated ones are stable.
    expect_new_pods(&db, 5, 0..=2).await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    for replicas in [6, 4] {
        db.scale(replicas).await?;
        db.expect_observed().await?;
    }
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 4]).await
}

/// The guard is for three pods: Kubernetes creates the added ones on the new version, and the operator rolls them back.
async fn a_change_that_also_scales_keeps_to_its_step(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let containers = json!([container("example.com/db:v2")]);
    let change = json!({"replicas": 5, "template": {"spec": {"containers": containers}}});
    db.patch("scale to 5 and set image v2", change).await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 5]).await
}
