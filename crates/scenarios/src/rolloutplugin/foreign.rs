//! Other writers: users, GitOps tools, a second operator. The operator itself writes little.

use std::collections::BTreeMap;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{paused_at, stands_at};
use crate::harness::{Cluster, Doing, Outcome, Set};
use crate::scenarios;

scenarios![
    a_partition_lowered_by_hand_is_put_back_and_its_pods_too,
    a_partition_lowered_while_the_operator_is_down_is_put_back_and_its_pods_too,
    a_partition_raised_by_hand_is_put_back,
    a_guard_lowered_by_hand_is_put_back,
    a_git_tool_that_applies_again_and_again_changes_nothing,
    a_git_tool_with_a_partition_of_its_own_does_not_win,
    a_git_tool_that_applies_an_aborted_version_moves_no_pod,
    a_git_tool_keeps_the_fields_that_are_its_own,
    two_operators_at_once_do_one_thing_at_a_time,
    ten_steps_need_thirty_writes_at_most,
    a_settled_world_is_not_written_to,
    everything_released_behind_our_back_is_brought_back,
    a_contested_guard_is_put_back_and_reported,
    who_writes_the_status_as_often_as_we_do_meets_moderation,
];

async fn a_partition_lowered_by_hand_is_put_back_and_its_pods_too(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 20).await?;
    db.set_partition(0).await?;
    stands_at(&db, 4).await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    rollout.expect_step(1, "Paused").await.map(drop)
}

async fn a_partition_lowered_while_the_operator_is_down_is_put_back_and_its_pods_too(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 20).await?;
    cluster.stop_operator();
    db.set_partition(2).await?;
    db.expect_rest(["v1", "v1", "v2", "v2", "v2"]).await?;
    let since = cluster.pod_changes();
    cluster.start_operator();
    stands_at(&db, 4).await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    db.expect_one_down_at_most(since)?;
    rollout.expect_step(1, "Paused").await.map(drop)
}

async fn a_partition_raised_by_hand_is_put_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 40).await?;
    let before = db.pods().await?;
    db.set_partition(5).await?;
    stands_at(&db, 3).await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await?;
    rollout.expect_step(1, "Paused").await.map(drop)
}

async fn a_guard_lowered_by_hand_is_put_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    cluster.rollout("db").start().await?;
    let before = db.pods().await?;
    db.set_partition(0).await?;
    stands_at(&db, 3).await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await
}

/// A GitOps tool's manifest, applied server-side.
async fn apply(cluster: &Cluster, db: &Set<'_>, manifest: &Value) -> Outcome {
    cluster.note("a Git tool applies its manifest");
    let params = PatchParams::apply("argocd-controller").force();
    let applied = db.api().patch("db", &params, &Patch::Apply(manifest)).await;
    applied.doing("apply a manifest").map(drop)
}

async fn a_git_tool_that_applies_again_and_again_changes_nothing(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}, {"setWeight": 60}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let manifest = cluster.statefulset("db").replicas(5).image("v2").manifest();
    for step in [1, 3] {
        for _ in 0..5 {
            apply(cluster, &db, &manifest).await?;
            db.expect_observed().await?;
        }
        rollout.expect_step(step, "Paused").await?;
        apply(cluster, &db, &manifest).await?;
        if step == 1 {
            rollout.promote().await?;
        }
    }
    db.expect_rest(["v1", "v1", "v2", "v2", "v2"]).await?;
    let new = db.births().iter().filter(|pod| pod.image == "v2").count();
    if new != 3 {
        return Err(cluster.unmet("three new pods in all", format!("{new}")));
    }
    Ok(())
}

/// Each time a pod may be updated before the partition is restored. That pod is rolled back too.
async fn a_git_tool_with_a_partition_of_its_own_does_not_win(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let manifest = cluster.statefulset("db").replicas(5).partition(0).image("v2");
    let manifest = manifest.manifest();
    for round in 0..4 {
        if round % 2 == 0 {
            apply(cluster, &db, &manifest).await?;
        } else {
            // Like `kubectl apply`.
            db.patch("apply", manifest["spec"].clone()).await?;
        }
        stands_at(&db, 4).await?;
        db.expect_images(["v1", "v1", "v1", "v1", "v2"]).await?;
    }
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 5]).await
}

async fn a_git_tool_that_applies_an_aborted_version_moves_no_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    let before = db.pods().await?;
    let manifest = cluster.statefulset("db").replicas(3).image("v2").manifest();
    for _ in 0..3 {
        apply(cluster, &db, &manifest).await?;
        db.expect_no_move().await?;
    }
    db.expect_same_pods(&before).await?;
    let status = rollout.expect_phase("Failed").await?;
    if !status.aborted {
        return Err(cluster.unmet("still aborted", format!("{status:?}")));
    }
    Ok(())
}

/// Rule 21.
async fn a_git_tool_keeps_the_fields_that_are_its_own(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, _rollout) = paused_at(cluster, 3, 34).await?;
    let set = db.get().await?;
    let ours = set
        .metadata
        .managed_fields
        .iter()
        .flatten()
        .filter(|entry| entry.manager.as_deref() == Some("stateward"));
    let mut owned: Vec<String> = Vec::new();
    for entry in ours {
        paths(&json!(entry.fields_v1), String::new(), &mut owned);
    }
    owned.sort();
    let expected = [
        "f:metadata/f:annotations/f:stateward.dev/managed-by",
        "f:spec/f:updateStrategy/f:rollingUpdate/f:partition",
        "f:spec/f:updateStrategy/f:type",
    ];
    if owned != expected {
        return Err(cluster.unmet(format!("{expected:?} are ours"), format!("{owned:?}")));
    }
    Ok(())
}

fn paths(fields: &Value, path: String, into: &mut Vec<String>) {
    match fields.as_object().filter(|fields| !fields.is_empty()) {
        None => into.push(path),
        Some(fields) => {
            for (key, value) in fields {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}/{key}")
                };
                paths(value, path, into);
            }
        }
    }
}

/// Invariant 25.
async fn two_operators_at_once_do_one_thing_at_a_time(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.start_another_operator();
    let (db, rollout) = paused_at(cluster, 5, 60).await?;
    db.expect_rest(["v1", "v1", "v2", "v2", "v2"]).await?;
    let since = cluster.pod_changes();
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await?;
    db.expect_one_down_at_most(since)?;
    rollout.retry().await?;
    let status = rollout.expect_step(1, "Paused").await?;
    if status.restart_count != Some(1) {
        return Err(cluster.unmet("one retry", format!("{status:?}")));
    }
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 5]).await?;
    let births = db.births();
    let new = births.iter().filter(|pod| pod.image == "v2").count();
    // No lease fences them here: the one whose watch lags may take the first release of a retry back once, which costs a pod a restart.
    if !(8..=9).contains(&new) || !(16..=18).contains(&births.len()) {
        return Err(cluster.unmet("8 new pods of 16", format!("{new} of {}", births.len())));
    }
    Ok(())
}

/// The operator's writes by resource.
fn count(cluster: &Cluster) -> Outcome<BTreeMap<String, usize>> {
    let mut count = BTreeMap::new();
    for write in cluster.operator_writes()? {
        *count.entry(write.resource).or_default() += 1;
    }
    Ok(count)
}

async fn ten_steps_need_thirty_writes_at_most(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(10).start().await?;
    let steps: Vec<_> = (1..=10).map(|step| json!({"setWeight": step * 10})).collect();
    let rollout = cluster.rollout("db").steps(json!(steps)).start().await?;
    let before: usize = count(cluster)?.values().sum();
    db.set_image("v2").await?;
    db.expect_images(["v2"; 10]).await?;
    rollout.expect_phase("Successful").await?;
    stands_at(&db, 10).await?;
    let after = count(cluster)?;
    let writes = after.values().sum::<usize>() - before;
    if !(11..=30).contains(&writes) {
        return Err(cluster.unmet("11 to 30 writes", format!("{writes}: {after:?}")));
    }
    Ok(())
}

/// Rule 18.
async fn a_settled_world_is_not_written_to(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    let quiet = async |moment: &str| -> Outcome {
        db.expect_no_move().await?;
        let before = count(cluster)?;
        cluster.start_operator();
        for _ in 0..3 {
            db.expect_no_move().await?;
        }
        let after = count(cluster)?;
        if before == after {
            return Ok(());
        }
        Err(cluster.unmet(format!("no write {moment}: {before:?}"), format!("{after:?}")))
    };
    quiet("in a pause").await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    stands_at(&db, 3).await?;
    quiet("after an abort").await?;
    db.set_image("v3").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    stands_at(&db, 3).await?;
    rollout
        .eventually("former templates are deleted", |status| {
            match status.former_template_copies {
                true => Err("they are not".into()),
                false => Ok(()),
            }
        })
        .await?;
    quiet("after a rollout").await
}

/// A user sets the partition to 0 while the operator is down: Kubernetes has forgotten the stable version by then, and no step was passed.
async fn everything_released_behind_our_back_is_brought_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    cluster.stop_operator();
    db.set_partition(0).await?;
    db.eventually("Kubernetes has forgotten the old version", |set, _| {
        let told = set.status.clone().unwrap_or_default();
        if told.current_revision == told.update_revision {
            Ok(())
        } else {
            Err(String::new())
        }
    })
    .await?;
    cluster.start_operator();
    rollout.expect_event("RolloutAborted", "no longer knows").await?;
    db.expect_images(["v1"; 3]).await?;
    rollout.expect_message("go on with another version").await?;
    stands_at(&db, 3).await?;
    db.expect_rest(["v1"; 3]).await
}

/// The operator restores a guard every time a client undoes it, and reports which client does.
async fn a_contested_guard_is_put_back_and_reported(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster.rollout("db").start().await?;
    // An operator that crashes in between starts counting from zero.
    for _ in 0..20 {
        db.set_partition(0).await?;
        tokio::select! {
            put_back = stands_at(&db, 3) => put_back?,
            contested = rollout.expect_event("WorkloadContested", "keeps changing") => {
                contested?;
                return stands_at(&db, 3).await;
            }
        }
    }
    Err(cluster.unmet("somebody says stop", "twenty rounds"))
}

/// Another controller for the same kind of object, such as upstream's own.
async fn who_writes_the_status_as_often_as_we_do_meets_moderation(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster.rollout("db").start().await?;
    let before = db.pods().await?;
    // An operator that crashes in between starts counting from zero.
    for _ in 0..30 {
        rollout.overwrite(json!({"message": "all mine"})).await?;
        tokio::select! {
            put_right = rollout.expect_message("every pod runs") => { put_right?; }
            told = rollout.expect_event("StatusContested", "--show-managed-fields") => {
                told?;
                return db.expect_same_pods(&before).await;
            }
        }
    }
    Err(cluster.unmet("somebody says stop", "thirty rounds"))
}
