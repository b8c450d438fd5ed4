//! Objects that an earlier version of the operator has written, in the middle of a rollout.

use serde_json::{Value, json};
use stateward_api::rollout::FormerState;

use super::{paused_at, stands_at};
use crate::harness::{Cluster, Kind, Outcome, Rollout};
use crate::scenarios;

scenarios![
    a_paused_rollout_goes_on_after_an_upgrade_of_the_operator,
    a_rollback_goes_on_after_an_upgrade_of_the_operator,
    an_aborted_version_stays_aborted_after_an_upgrade_of_the_operator,
];

/// Stops the operator, rewrites the status as a version before `status.state` wrote it, and starts this version.
pub(crate) async fn upgrade<K: Kind>(cluster: &Cluster, rollout: &Rollout<'_, K>) -> Outcome {
    cluster.stop_operator();
    let before = rollout.raw().await?;
    rollout.overwrite(as_before(&before["status"]["state"])).await?;
    let written = rollout.raw().await?;
    cluster.expect(
        &format!("the server keeps the fields of that version: {written}"),
        written["status"]["workloadUid"].is_string() && written["status"]["state"].is_null(),
    )?;
    cluster.start_operator();
    rollout
        .eventually("the state is moved", |status| {
            let status = K::record(status);
            if *status.former == FormerState::default() && !status.state.is_empty() {
                Ok(())
            } else {
                Err(format!("{status:?}"))
            }
        })
        .await
}

/// The status fields of a version before `status.state`, for this state.
fn as_before(state: &Value) -> Value {
    let (stable, rollout, rollback) = (&state["stable"], &state["rollout"], &state["rollback"]);
    json!({
        "state": null,
        "workloadUid": state["workloadUid"],
        "workloadSetting": state["originalPartition"],
        "stableTemplateHash": stable["templateHash"],
        "stableTemplateCopy": stable["templateCopy"],
        "formerTemplateCopies": state["formerTemplateCopies"],
        "stepReplicas": rollout["stepReplicas"],
        "progressedAt": rollout["progressedAt"],
        "reachedReplicas": rollout["maxAvailable"],
        "exposedReplicas": rollout["maxReplaced"],
        "floorReplicas": rollout["minUpdated"],
        "keptPods": rollout["keptPods"],
        "shareLimit": rollout["shareLimit"],
        "stoppedReplicas": rollout["stoppedReplicas"],
        "excusedPods": rollout["ignoredPods"],
        "manualPause": rollout["pausedByUser"],
        "fullyPromoted": rollout["fullyPromoted"],
        "takenCommands": rollout["takenCommands"],
        "backgroundStartedAt": rollout["backgroundStartedAt"],
        "backgroundPaused": rollout["backgroundInconclusive"],
        "backgroundWaived": rollout["backgroundWaived"],
        "returning": rollback["cause"],
        "returningFrom": rollback["fromRevision"],
        "returningSince": rollback["startedAt"],
    })
}

async fn a_paused_rollout_goes_on_after_an_upgrade_of_the_operator(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    let before = rollout.get().await?.status.unwrap_or_default();
    upgrade(cluster, &rollout).await?;
    let after = rollout.expect_step(1, "Paused").await?;
    cluster.expect("nothing is forgotten", after.state == before.state)?;
    stands_at(&db, 2).await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 3]).await
}

async fn a_rollback_goes_on_after_an_upgrade_of_the_operator(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 80).await?;
    rollout.abort().await?;
    rollout
        .eventually("pods return", |status| match status.state.rollback {
            Some(_) => Ok(()),
            None => Err(String::new()),
        })
        .await?;
    upgrade(cluster, &rollout).await?;
    rollout.expect_message("every pod is back").await?;
    rollout
        .expect_event("RollbackCompleted", "every pod is back")
        .await?;
    db.expect_rest(["v1"; 5]).await
}

async fn an_aborted_version_stays_aborted_after_an_upgrade_of_the_operator(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    let before = rollout.get().await?.status.unwrap_or_default();
    upgrade(cluster, &rollout).await?;
    let after = rollout.expect_phase("Failed").await?;
    cluster.expect("nothing is forgotten", after.state == before.state)?;
    db.expect_no_move().await?;
    rollout.retry().await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}
