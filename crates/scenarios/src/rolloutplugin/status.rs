//! What the status says to people and scripts, and what `kubectl get` shows of it.

use serde_json::{Value, json};

use super::paused_at;
use crate::harness::{Cluster, Outcome, Rollout};
use crate::scenarios;

scenarios![
    the_step_stays_when_a_rollout_is_done,
    the_step_of_an_aborted_rollout_is_the_first,
    the_step_of_a_rollout_without_steps_is_none_of_none,
];

/// Waits until it is in this phase, and checks its step: as a number, as people read it, and as `kubectl get` shows it.
async fn expect_step(rollout: &Rollout<'_>, phase: &str, index: i32, step: Option<&str>) -> Outcome {
    let expected = format!("phase {phase} at step {index}, which is {step:?}");
    rollout
        .eventually(expected, |status| {
            let there = (
                status.phase.as_str(),
                status.current_step_index,
                status.step.as_deref(),
            );
            match there == (phase, Some(index), step) {
                true => Ok(()),
                false => Err(format!("{there:?}")),
            }
        })
        .await?;
    let cell = step.map_or(Value::Null, Value::from);
    rollout
        .expect_columns([("Status", phase.into()), ("Step", cell)])
        .await
}

/// As with Argo Rollouts; and what is done is not taken for a rollout at its last step.
async fn the_step_stays_when_a_rollout_is_done(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 2, 50).await?;
    expect_step(&rollout, "Paused", 1, Some("2/2")).await?;
    rollout.promote().await?;
    expect_step(&rollout, "Successful", 2, Some("2/2")).await?;
    db.expect_rest(["v2"; 2]).await?;
    let more =
        json!({"strategy": {"canary": {"steps": [{"setWeight": 50}, {"pause": {}}, {"setWeight": 100}]}}});
    rollout.patch("add a step", more).await?;
    expect_step(&rollout, "Successful", 3, Some("3/3")).await?;
    cluster.start_operator();
    db.expect_no_move().await?;
    db.set_image("v3").await?;
    expect_step(&rollout, "Paused", 1, Some("2/3")).await?;
    db.expect_rest(["v2", "v3"]).await
}

async fn the_step_of_an_aborted_rollout_is_the_first(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 2, 50).await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    expect_step(&rollout, "Failed", 0, None).await?;
    rollout.retry().await?;
    expect_step(&rollout, "Paused", 1, Some("2/2")).await?;
    db.set_image("v1").await?;
    expect_step(&rollout, "Successful", 2, Some("2/2")).await
}

async fn the_step_of_a_rollout_without_steps_is_none_of_none(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let rollout = cluster.rollout("db").start().await?;
    expect_step(&rollout, "Successful", 0, Some("0/0")).await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 2]).await?;
    expect_step(&rollout, "Successful", 0, Some("0/0")).await
}
