//! Handing the set over to Kubernetes, and managing it again.

use serde_json::json;
use stateward_kubelet::{Behaviour, Match};

use super::{all_is_well, expect_out, expect_partition, guarded, one_pod_new};
use crate::harness::{Cluster, Outcome};
use crate::scenarios;

scenarios![
    without_checks_kubernetes_goes_on_by_itself,
    the_later_name_leaves_a_set_to_kubernetes_too,
    taken_back_in_the_middle_the_next_pod_waits_for_its_checks,
    taken_back_at_rest_the_guard_is_up_again,
    taken_back_as_kubernetes_comes_to_its_end_nothing_returns,
    deleted_while_left_to_kubernetes_nothing_changes,
];

/// S002-09
async fn without_checks_kubernetes_goes_on_by_itself(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    rollout
        .patch("skip the checks", json!({"skipCheck": true}))
        .await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Suspended").await?;
    expect_partition(&db, 0).await?;
    db.set_image("v3").await?;
    db.expect_rest(["v3"; 3]).await?;
    rollout
        .expect_condition("Updated", "Unknown", "Suspended")
        .await
        .map(drop)
}

async fn the_later_name_leaves_a_set_to_kubernetes_too(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    rollout
        .patch("leave it to Kubernetes", json!({"standardRollingUpdate": true}))
        .await?;
    rollout.expect_phase("Suspended").await?;
    expect_partition(&db, 0).await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await
}

async fn taken_back_in_the_middle_the_next_pod_waits_for_its_checks(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    cluster.metrics().says("errors", [1.0]);
    let stuck = Match::set("db").ordinal(1).with_image("example.com/db:v2");
    cluster.pods().program(stuck.clone(), Behaviour::never_ready());
    rollout
        .patch("skip the checks", json!({"skipCheck": true}))
        .await?;
    rollout.expect_phase("Suspended").await?;
    db.set_image("v2").await?;
    db.expect_images(["v1", "v2", "v2"]).await?;
    rollout.patch("check again", json!({"skipCheck": false})).await?;
    expect_partition(&db, 1).await?;
    rollout.expect_event("RolloutStarted", "found").await?;
    cluster.pods().program(stuck, Behaviour::default());
    rollout.expect_message("the gate before pod db-0").await?;
    db.expect_rest(["v1", "v2", "v2"]).await?;
    all_is_well(cluster);
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn taken_back_at_rest_the_guard_is_up_again(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    rollout
        .patch("skip the checks", json!({"skipCheck": true}))
        .await?;
    rollout.expect_phase("Suspended").await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.patch("check again", json!({"skipCheck": null})).await?;
    rollout.expect_phase("Updated").await?;
    rollout.expect_event("Suspended", "nothing is checked").await?;
    rollout.expect_event("ManagementResumed", "checked again").await?;
    expect_partition(&db, 3).await?;
    cluster.metrics().says("errors", [1.0]);
    db.set_image("v3").await?;
    rollout.expect_message("the gate before pod db-2").await?;
    db.expect_rest(["v2"; 3]).await
}

/// Whichever of the two is faster: pods that the user has let Kubernetes update stay updated.
async fn taken_back_as_kubernetes_comes_to_its_end_nothing_returns(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    for (old, new) in [("v1", "v2"), ("v2", "v3"), ("v3", "v4"), ("v4", "v5")] {
        rollout
            .patch("skip the checks", json!({"skipCheck": true}))
            .await?;
        rollout.expect_phase("Suspended").await?;
        let last = Match::set("db")
            .ordinal(0)
            .with_image(format!("example.com/db:{new}"));
        cluster.pods().program(last.clone(), Behaviour::never_ready());
        db.set_image(new).await?;
        db.expect_images([new, new, new]).await?;
        cluster.pods().program(last, Behaviour::default());
        rollout.expect_phase("Suspended").await?;
        rollout.patch("check again", json!({"skipCheck": false})).await?;
        expect_out::<3>(&db, &rollout, new).await?;
        cluster.note(&format!("{old} is behind us"));
    }
    rollout.expect_events_at_most("RolloutAborted", 0).await
}

async fn deleted_while_left_to_kubernetes_nothing_changes(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    rollout
        .patch("skip the checks", json!({"skipCheck": true}))
        .await?;
    rollout.expect_phase("Suspended").await?;
    rollout.delete().await?;
    rollout.expect_gone().await?;
    expect_partition(&db, 0).await
}
