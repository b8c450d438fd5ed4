//! Manual pause, failure, and release of the set.

use serde_json::json;

use super::{all_is_well, expect_out, expect_partition, guarded, one_pod_new};
use crate::harness::{Cluster, Outcome};
use crate::scenarios;

scenarios![
    a_pause_by_hand_stops_the_checks,
    an_abort_returns_every_pod,
    deleted_at_rest_the_set_is_as_it_was,
    deleted_in_the_middle_every_pod_stays,
    put_back_by_hand_and_guarded_again_the_set_is_as_it_was,
    a_partition_of_users_is_what_it_was_when_it_is_let_go,
];

async fn a_pause_by_hand_stops_the_checks(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    rollout.patch("pause", json!({"paused": true})).await?;
    rollout.expect_phase("Paused").await?;
    all_is_well(cluster);
    db.expect_no_move().await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    rollout.patch("resume", json!({"paused": false})).await?;
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn an_abort_returns_every_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    rollout.abort().await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_phase("Failed").await?;
    all_is_well(cluster);
    rollout.retry().await?;
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn deleted_at_rest_the_set_is_as_it_was(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    rollout.delete().await?;
    rollout.expect_gone().await?;
    expect_partition(&db, 0).await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await
}

async fn deleted_in_the_middle_every_pod_stays(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    rollout.delete().await?;
    rollout.expect_gone().await?;
    all_is_well(cluster);
    expect_partition(&db, 2).await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}

/// The partition that the first object left is not a user's setting.
async fn put_back_by_hand_and_guarded_again_the_set_is_as_it_was(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    rollout.delete().await?;
    rollout.expect_gone().await?;
    all_is_well(cluster);
    db.set_image("v1").await?;
    db.expect_rest(["v1"; 3]).await?;
    let again = cluster.phased("db").start().await?;
    again.delete().await?;
    again.expect_gone().await?;
    expect_partition(&db, 0).await?;
    db.expect_no_annotations().await
}

/// S002-10
async fn a_partition_of_users_is_what_it_was_when_it_is_let_go(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).partition(7).start().await?;
    let rollout = cluster.phased("db").start().await?;
    expect_partition(&db, 3).await?;
    rollout.delete().await?;
    rollout.expect_gone().await?;
    expect_partition(&db, 7).await
}
