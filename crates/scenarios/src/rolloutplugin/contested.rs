//! A client that keeps reverting the operator's writes, such as a self-healing GitOps tool whose manifest has a partition.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::json;
use stateward_kubelet::{Behaviour, Match};

use super::{paused_at, stands_at};
use crate::harness::{Cluster, Doing, Outcome, Rollout, Set};
use crate::scenarios;

scenarios![
    a_git_tool_that_lowers_the_partition_every_time_rolls_no_set_through_a_pause,
    a_git_tool_rolls_no_set_through_a_manual_pause,
    a_git_tool_rolls_no_set_through_a_plan_that_became_invalid,
    a_git_tool_rolls_no_set_whose_plan_was_never_valid,
    a_client_that_drops_the_claim_every_time_is_told_apart_from_one_that_writes_the_partition,
    a_contested_status_delays_no_guard,
];

/// Names the object that manages a set.
const MANAGED_BY: &str = "stateward.dev/managed-by";

/// The GitOps tool's manifest has a partition of 0.
async fn apply(cluster: &Cluster, db: &Set<'_>) -> Outcome {
    let manifest = cluster.statefulset("db").replicas(5).partition(0).image("v2");
    let params = PatchParams::apply("argocd-controller").force();
    let patch = Patch::Apply(manifest.manifest());
    let applied = db.api().patch("db", &params, &patch).await;
    applied.doing("apply a manifest").map(drop)
}

/// Applies it once, and waits until the operator restores the partition.
async fn apply_and_wait(cluster: &Cluster, db: &Set<'_>, partition: i32) -> Outcome {
    apply(cluster, db).await?;
    stands_at(db, partition).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(())
}

/// After each revert Kubernetes may replace the next pod before the partition is restored. It continues only once that pod is Ready, which
/// takes far longer than the operator's reaction.
async fn expect_no_further_pod(cluster: &Cluster, db: &Set<'_>) -> Outcome {
    let births = db.births();
    let strays = births.iter().filter(|pod| pod.image == "v2");
    let strays: Vec<_> = strays
        .filter(|pod| !["db-3", "db-4"].contains(&pod.name.as_str()))
        .collect();
    cluster.expect(
        &format!("no pod beyond the next is v2, not {strays:?}"),
        strays.is_empty(),
    )
}

async fn expect_contested(rollout: &Rollout<'_>) -> Outcome {
    let words = "argocd-controller (field manager) keeps changing spec.updateStrategy.rollingUpdate.partition of StatefulSet db \
                 in namespace";
    rollout.expect_condition("Contested", "True", words).await?;
    rollout.expect_event("WorkloadContested", words).await?;
    rollout.expect_message(&format!("contested: {words}")).await?;
    // Once, and once more after a restart.
    rollout.expect_events_at_most("WorkloadContested", 2).await
}

async fn a_git_tool_that_lowers_the_partition_every_time_rolls_no_set_through_a_pause(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 20).await?;
    let new = || Match::image("example.com/db:v2");
    let slow = Behaviour::ready_after(Duration::from_secs(30));
    cluster.pods().program(new(), slow);
    for _ in 0..10 {
        apply_and_wait(cluster, &db, 4).await?;
    }
    let fight = async {
        loop {
            apply_and_wait(cluster, &db, 4).await?;
        }
    };
    let ended: Outcome = tokio::select! {
        ended = fight => ended,
        reported = expect_contested(&rollout) => reported,
    };
    ended?;
    stands_at(&db, 4).await?;
    cluster.pods().program(new(), Behaviour::default());
    expect_no_further_pod(cluster, &db).await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    rollout.expect_step(1, "Paused").await?;
    // Once the GitOps tool stops, the condition clears.
    rollout
        .eventually("the condition goes", |status| {
            match status
                .conditions
                .iter()
                .any(|condition| condition.kind == "Contested")
            {
                true => Err("it is there".into()),
                false => Ok(()),
            }
        })
        .await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 5]).await
}

/// Applies the manifest repeatedly. A pod that Kubernetes replaces before the partition is restored takes long to become Ready.
async fn keep_applying(cluster: &Cluster, db: &Set<'_>, partition: i32) -> Outcome {
    let new = || Match::image("example.com/db:v2");
    let slow = Behaviour::ready_after(Duration::from_secs(30));
    cluster.pods().program(new(), slow);
    for _ in 0..8 {
        apply_and_wait(cluster, db, partition).await?;
    }
    cluster.pods().program(new(), Behaviour::default());
    expect_no_further_pod(cluster, db).await
}

async fn a_git_tool_rolls_no_set_through_a_manual_pause(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let rollout = cluster.rollout("db").steps(json!([{"setWeight": 100}]));
    let rollout = rollout.spec(json!({"paused": true})).start().await?;
    keep_applying(cluster, &db, 5).await?;
    db.expect_rest(["v1"; 5]).await?;
    rollout.expect_step(0, "Paused").await?;
    rollout.patch("resume", json!({"paused": false})).await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 5]).await
}

/// The steps name a template that does not exist.
fn invalid_steps() -> serde_json::Value {
    json!([{"setWeight": 20}, {"pause": {}}, {"analysis": {"templates": [{"templateName": "missing"}]}}])
}

async fn a_git_tool_rolls_no_set_through_a_plan_that_became_invalid(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 20).await?;
    let edited = json!({"strategy": {"canary": {"steps": invalid_steps()}}});
    rollout.patch("name a missing template", edited).await?;
    rollout
        .expect_condition("InvalidSpec", "True", "AnalysisTemplate")
        .await?;
    keep_applying(cluster, &db, 4).await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    let steps = json!({"strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {}}]}}});
    rollout.patch("name no template", steps).await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 5]).await
}

async fn a_git_tool_rolls_no_set_whose_plan_was_never_valid(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).partition(4).start().await?;
    db.set_image("v2").await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    let rollout = cluster.rollout("db").steps(invalid_steps()).create().await?;
    rollout.expect_event("RolloutStarted", "found db-").await?;
    // The event and the claim come before the record of the adoption. A pod that another client has updated by then counts as one that
    // the adoption found updated, and stays so.
    rollout
        .eventually("the adoption is recorded", |status| {
            match status.current_step_started_at {
                Some(_) => Ok(()),
                None => Err(String::new()),
            }
        })
        .await?;
    keep_applying(cluster, &db, 4).await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    rollout
        .expect_condition("InvalidSpec", "True", "AnalysisTemplate")
        .await?;
    let steps = json!({"strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {}}]}}});
    rollout.patch("name no template", steps).await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await
}

/// Such a client replaces the object instead of applying to it.
async fn a_client_that_drops_the_claim_every_time_is_told_apart_from_one_that_writes_the_partition(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 2, 50).await?;
    let words = "another client keeps removing the annotation stateward.dev/managed-by of StatefulSet db in namespace";
    for _ in 0..20 {
        let drop = Patch::Merge(json!({"metadata": {"annotations": {MANAGED_BY: null}}}));
        let dropped = db.api().patch("db", &PatchParams::default(), &drop).await;
        dropped.doing("drop the claim")?;
        let claimed = db.eventually("the claim is there", |set, _| {
            let annotations = set.metadata.annotations.iter().flatten();
            match annotations.into_iter().any(|(name, _)| name == MANAGED_BY) {
                true => Ok(()),
                false => Err("it is not".into()),
            }
        });
        tokio::select! {
            claimed = claimed => claimed?,
            contested = rollout.expect_condition("Contested", "True", words) => {
                contested?;
                rollout.expect_event("WorkloadContested", words).await?;
                return db.expect_rest(["v1", "v2"]).await;
            }
        }
    }
    Err(cluster.unmet("it is told who drops the claim", "twenty rounds"))
}

/// The operator restores the status less and less often; it restores the partition after every foreign write all the same.
async fn a_contested_status_delays_no_guard(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster.rollout("db").start().await?;
    let before = db.pods().await?;
    for _ in 0..30 {
        rollout.overwrite(json!({"message": "all mine"})).await?;
        tokio::select! {
            put_right = rollout.expect_message("every pod runs") => { put_right?; }
            contested = rollout.expect_event("StatusContested", "--show-managed-fields") => {
                contested?;
                break;
            }
        }
    }
    let fight = async {
        loop {
            rollout.overwrite(json!({"message": "all mine"})).await?;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let guard = async {
        for _ in 0..5 {
            db.set_partition(0).await?;
            db.expect_observed().await?;
            stands_at(&db, 3).await?;
        }
        Ok(())
    };
    let ended: Outcome = tokio::select! {
        ended = fight => ended,
        guarded = guard => guarded,
    };
    ended?;
    db.expect_same_pods(&before).await
}
