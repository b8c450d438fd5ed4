//! Template changes and scaling during a rollout.

use kube::api::{DeleteParams, PropagationPolicy};

use super::{all_is_well, expect_out, expect_partition, guarded, one_pod_new};
use crate::harness::{Cluster, Doing, Outcome, PodRow, Set, container};
use crate::scenarios;

scenarios![
    a_template_that_is_put_back_returns_every_pod,
    a_third_version_begins_before_its_first_pod,
    scaling_up_exposes_no_further_pod,
    a_gate_names_the_next_old_pod_above_one_that_was_new_before_scaling_up,
    scaling_down_counts_the_pods_that_are_left,
    scaling_down_below_the_new_pods_begins_before_the_first,
    scaling_up_at_the_last_gate_keeps_every_pod_new,
    a_change_that_also_scales_waits_for_its_checks,
    scaling_to_zero_never_promotes,
    a_version_that_is_applied_to_no_pods_is_taken_on_and_told,
    a_set_that_is_made_anew_is_another_one,
    a_set_that_is_made_anew_while_nobody_looks_has_its_gates,
    a_set_that_is_made_anew_around_its_pods_gives_them_nothing_unchecked,
    a_set_that_is_made_anew_in_the_middle_returns_every_pod,
];

async fn a_template_that_is_put_back_returns_every_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    db.set_image("v1").await?;
    expect_out::<3>(&db, &rollout, "v1").await?;
    expect_partition(&db, 3).await
}

async fn a_third_version_begins_before_its_first_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    db.set_image("v3").await?;
    rollout.expect_message("the gate before pod db-2").await?;
    db.expect_rest(["v1"; 3]).await?;
    all_is_well(cluster);
    expect_out::<3>(&db, &rollout, "v3").await
}

/// The updated pod stays updated, and the next one is the last.
async fn scaling_up_exposes_no_further_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    db.scale(5).await?;
    db.expect_rest(["v1", "v1", "v2", "v1", "v1"]).await?;
    rollout.expect_message("the gate before pod db-4").await?;
    all_is_well(cluster);
    expect_out::<5>(&db, &rollout, "v2").await
}

/// Releasing pod 3 releases pod 2 below it, which runs the new version already.
async fn a_gate_names_the_next_old_pod_above_one_that_was_new_before_scaling_up(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    db.scale(5).await?;
    rollout.expect_message("the gate before pod db-4").await?;
    all_is_well(cluster);
    rollout
        .expect_message("pod 3 of 5: the gate before pod db-3")
        .await?;
    rollout
        .expect_message("pod 4 of 5: the gate before pod db-1")
        .await?;
    expect_out::<5>(&db, &rollout, "v2").await
}

async fn scaling_down_counts_the_pods_that_are_left(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(4).start().await?;
    let rollout = cluster.phased("db").start().await?;
    db.set_image("v2").await?;
    expect_partition(&db, 2).await?;
    cluster.metrics().says("errors", [1.0]);
    rollout.expect_message("the gate before pod db-1").await?;
    db.expect_rest(["v1", "v1", "v2", "v2"]).await?;
    db.scale(3).await?;
    rollout.expect_event("Scaled", "from 4 to 3").await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    rollout.expect_message("the gate before pod db-1").await?;
    expect_partition(&db, 2).await?;
    all_is_well(cluster);
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn scaling_down_below_the_new_pods_begins_before_the_first(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    db.scale(1).await?;
    rollout.expect_message("the gate before pod db-0").await?;
    db.expect_rest(["v1"]).await?;
    all_is_well(cluster);
    db.expect_rest(["v2"]).await?;
    rollout.expect_phase("Updated").await.map(drop)
}

async fn scaling_up_at_the_last_gate_keeps_every_pod_new(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    db.set_image("v2").await?;
    expect_partition(&db, 0).await?;
    cluster.metrics().says("errors", [1.0]);
    rollout.expect_message("the gate after the last pod").await?;
    db.scale(5).await?;
    db.expect_rest(["v2"; 5]).await?;
    all_is_well(cluster);
    rollout.expect_phase("Updated").await?;
    expect_partition(&db, 5).await
}

/// The added pods are above the guard, so Kubernetes creates them on the new version; the operator rolls them back.
async fn a_change_that_also_scales_waits_for_its_checks(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    cluster.metrics().says("errors", [1.0]);
    let template = serde_json::json!({
        "replicas": 4,
        "template": {"spec": {"containers": [container("example.com/db:v2")]}},
    });
    db.patch("scale and change the image", template).await?;
    rollout.expect_message("the gate before pod db-3").await?;
    db.expect_rest(["v1"; 4]).await?;
    all_is_well(cluster);
    expect_out::<4>(&db, &rollout, "v2").await
}

async fn scaling_to_zero_never_promotes(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    db.scale(0).await?;
    rollout
        .expect_event("ScaledToZero", "its template is restored")
        .await?;
    rollout.expect_message("scaled to zero: pods will run").await?;
    all_is_well(cluster);
    db.scale(3).await?;
    expect_out::<3>(&db, &rollout, "v1").await?;
    rollout.expect_message("apply it again to roll it out").await?;
    db.set_image("v2").await?;
    expect_out::<3>(&db, &rollout, "v2").await
}

/// There is no pod to check and none to roll back to.
async fn a_version_that_is_applied_to_no_pods_is_taken_on_and_told(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    db.scale(0).await?;
    rollout.expect_message("scaled to zero: pods will run").await?;
    db.set_image("v2").await?;
    rollout
        .expect_event("AdoptedWithoutChecks", "was applied while there are no pods")
        .await?;
    db.scale(3).await?;
    expect_out::<3>(&db, &rollout, "v2").await?;
    expect_partition(&db, 3).await
}

async fn a_set_that_is_made_anew_is_another_one(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    let gone = db.api().delete(db.name(), &DeleteParams::foreground()).await;
    gone.doing("delete statefulset db")?;
    rollout.expect_phase("ErrorSTSNotFound").await?;
    db_is_gone(cluster).await?;
    all_is_well(cluster);
    let db = cluster.statefulset("db").replicas(2).image("v4").start().await?;
    rollout.expect_phase("Updated").await?;
    expect_partition(&db, 2).await
}

/// Its revisions have the names of the earlier ones, and nothing else is the same.
async fn a_set_that_is_made_anew_while_nobody_looks_has_its_gates(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    expect_partition(&db, 3).await?;
    cluster.metrics().says("errors", [1.0]);
    cluster.stop_operator();
    let gone = db.api().delete(db.name(), &DeleteParams::foreground()).await;
    gone.doing("delete statefulset db")?;
    db_is_gone(cluster).await?;
    let db = cluster.statefulset("db").replicas(3).partition(3).start().await?;
    db.set_image("v2").await?;
    db.eventually("its controller knows of both", |set, _| {
        let status = set.status.as_ref();
        match status.map(|status| (&status.current_revision, &status.update_revision)) {
            Some((current, update)) if current != update => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    cluster.start_operator();
    rollout.expect_event("RolloutStarted", "found").await?;
    rollout.expect_message("the gate before pod db-2").await?;
    db.expect_rest(["v1"; 3]).await?;
    all_is_well(cluster);
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn db_is_gone(cluster: &Cluster) -> Outcome {
    cluster
        .eventually("the set and its pods are gone", |view| {
            if view.sets.is_empty() && view.pods.is_empty() {
                Ok(())
            } else {
                Err(format!("{:?}", view.pods.keys()))
            }
        })
        .await
}

/// Deletes the set without its pods and recreates it with v2, held at a partition.
async fn make_anew<'c>(cluster: &'c Cluster, db: &Set<'_>, partition: i32) -> Outcome<Set<'c>> {
    let orphan = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    cluster.note("take statefulset db away from its pods");
    let gone = db.api().delete(db.name(), &orphan).await;
    gone.doing("delete statefulset db")?;
    cluster
        .eventually("the set is gone, its pods are not", |view| {
            if view.sets.is_empty() && view.pods.len() == 3 {
                Ok(())
            } else {
                Err(format!("{:?}", view.sets.keys()))
            }
        })
        .await?;
    let anew = cluster.statefulset("db").replicas(3).image("v2");
    anew.partition(partition).create().await
}

/// Users do this to change immutable fields; Kubernetes then does not know the version that the pods run.
async fn a_set_that_is_made_anew_around_its_pods_gives_them_nothing_unchecked(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    cluster.metrics().says("errors", [1.0]);
    let before = db.pods().await?;
    let db = make_anew(cluster, &db, 3).await?;
    rollout.expect_event("WorkloadRecreated", "apply db-").await?;
    rollout.expect_message("was taken out of the template").await?;
    db.expect_rest(["v1"; 3]).await?;
    let uids = |pods: &[PodRow]| pods.iter().map(|pod| pod.uid.clone()).collect::<Vec<_>>();
    let after = db.pods().await?;
    cluster.expect("they are the same pods", uids(&before) == uids(&after))?;
    db.set_image("v2").await?;
    rollout.expect_message("the gate before pod db-2").await?;
    db.expect_rest(["v1"; 3]).await?;
    all_is_well(cluster);
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn a_set_that_is_made_anew_in_the_middle_returns_every_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    let db = make_anew(cluster, &db, 2).await?;
    rollout.expect_event("WorkloadRecreated", "apply db-").await?;
    db.expect_rest(["v1"; 3]).await?;
    all_is_well(cluster);
    rollout.expect_phase("Updated").await?;
    db.set_image("v2").await?;
    expect_out::<3>(&db, &rollout, "v2").await
}
