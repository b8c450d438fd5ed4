//! Aborts: the rollback to the stable version.

use serde_json::json;
use stateward_kubelet::{Behaviour, Match};

use super::paused_at;
use crate::harness::{Cluster, Outcome, partition};
use crate::scenarios;

scenarios![
    abort_returns_every_pod_to_the_stable_version,
    abort_after_full_weight_restores_the_stable_template,
    an_aborted_revision_that_was_taken_out_may_come_back,
    abort_with_nothing_in_progress_touches_no_pod,
    a_crash_looping_canary_is_caught_and_returned,
    an_aborted_revision_starts_again_only_when_told,
    a_template_put_back_returns_at_once,
    an_abort_among_many_small_steps_returns_every_pod,
];

async fn abort_returns_every_pod_to_the_stable_version(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 60}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.abort().await?;
    rollout
        .expect_event("RolloutAborted", "aborted by a user")
        .await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await?;
    let status = rollout.expect_phase("Failed").await?;
    if !status.aborted || status.aborted_revision != status.updated_revision {
        return Err(cluster.unmet("the revision on record as aborted", format!("{status:?}")));
    }
    Ok(())
}

async fn abort_after_full_weight_restores_the_stable_template(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 100}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_images(["v2"; 3]).await?;
    rollout.abort().await?;
    rollout.expect_message("go on with another version").await?;
    db.expect_rest(["v1"; 3]).await?;
    let status = rollout.expect_phase("Failed").await?;
    if !status.aborted || status.aborted_revision == status.updated_revision {
        return Err(cluster.unmet("the revision on record as aborted", format!("{status:?}")));
    }
    // A client that does not know of the abort restores it, such as a GitOps tool.
    db.set_image("v2").await?;
    rollout.expect_message("was rejected").await?;
    db.expect_no_move().await?;
    db.set_image("v3").await?;
    rollout.expect_step(1, "Paused").await.map(drop)
}

/// Rule 6
async fn an_aborted_revision_that_was_taken_out_may_come_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.set_image("v1").await?;
    rollout.expect_phase("Successful").await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}

async fn abort_with_nothing_in_progress_touches_no_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster
        .rollout("db")
        .steps(json!([{"setWeight": 50}]))
        .start()
        .await?;
    let before = db.pods().await?;
    rollout.abort().await?;
    rollout
        .eventually("the command is gone", |status| {
            if status.abort { Err(String::new()) } else { Ok(()) }
        })
        .await?;
    rollout.expect_phase("Successful").await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await
}

async fn a_crash_looping_canary_is_caught_and_returned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    cluster
        .pods()
        .program(Match::image("example.com/db:v2"), Behaviour::crash_loop());
    let steps = json!([{"setWeight": 40}, {"setWeight": 100}]);
    let rollout = cluster
        .rollout("db")
        .steps(steps)
        .spec(json!({"progressDeadlineAbort": true}))
        .start()
        .await?;
    db.set_image("v2").await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await?;
    let tried = db.births().iter().filter(|pod| pod.image == "v2").count();
    if tried != 1 {
        return Err(cluster.unmet("one pod exposed", format!("{tried}")));
    }
    rollout.expect_message("CrashLoopBackOff").await.map(drop)
}

async fn an_aborted_revision_starts_again_only_when_told(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.set_image("v2").await?;
    db.expect_rest(["v1", "v1"]).await?;
    rollout.retry().await?;
    let status = rollout.expect_step(1, "Paused").await?;
    if status.restart_count != Some(1) || status.aborted {
        return Err(cluster.unmet("one restart, not aborted", format!("{status:?}")));
    }
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2", "v2"]).await
}

async fn a_template_put_back_returns_at_once(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 40}, {"pause": {}}, {"setWeight": 80}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.set_image("v1").await?;
    db.expect_images(["v1"; 5]).await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v1"; 5]).await
}

async fn an_abort_among_many_small_steps_returns_every_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let pause = json!({"pause": {"duration": "2s"}});
    let steps: Vec<_> = [10, 20, 30, 40, 50, 60, 80, 100]
        .into_iter()
        .flat_map(|weight| [json!({"setWeight": weight}), pause.clone()])
        .collect();
    let rollout = cluster.rollout("db").steps(json!(steps)).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(7, "Paused").await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await?;
    match partition(&db.get().await?) {
        Some(5) => Ok(()),
        other => Err(cluster.unmet("the guard is up again", format!("partition {other:?}"))),
    }
}
