//! The status for people and scripts, and its columns in `kubectl get`.

use serde_json::{Value, json};
use stateward_kubelet::{Behaviour, Match};

use super::paused_at;
use crate::harness::{Cluster, Outcome, Rollout};
use crate::scenarios;

scenarios![
    the_step_stays_when_a_rollout_is_done,
    the_step_of_an_aborted_rollout_is_the_first,
    the_step_of_a_rollout_without_steps_is_none_of_none,
    an_invalid_spec_has_its_reason,
    a_workload_that_another_object_manages_has_its_reason,
    a_rollback_has_one_reason_under_way_and_another_when_it_is_over,
    a_broken_pod_that_is_held_has_its_reason,
    a_pod_that_fits_on_no_node_is_told_and_is_no_failure,
    a_probe_that_does_not_pass_is_told_and_is_no_failure,
];

/// Waits until it has failed for this reason, and checks the conditions and `kubectl get`.
async fn expect_failed(rollout: &Rollout<'_>, reason: &str) -> Outcome {
    rollout
        .eventually(format!("failed for the reason {reason}"), |status| {
            let conditions = status.conditions.iter();
            let told: Vec<_> = conditions.map(|condition| condition.reason.as_str()).collect();
            let everywhere = told.iter().all(|told| *told == reason) && !told.is_empty();
            match status.phase == "Failed" && status.reason == reason && everywhere {
                true => Ok(()),
                false => Err(format!("{}, {:?}", status.reason, told)),
            }
        })
        .await?;
    rollout
        .expect_columns([("Status", "Failed".into()), ("Reason", reason.into())])
        .await
}

/// Waits until it is in this phase, and checks its step: the index, the text, and the column of `kubectl get`.
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

/// As in Argo Rollouts; and a complete rollout is not mistaken for one at its last step.
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

async fn an_invalid_spec_has_its_reason(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (_db, rollout) = paused_at(cluster, 2, 50).await?;
    rollout
        .patch(
            "name a plugin that is not there",
            json!({"plugin": {"name": "other"}}),
        )
        .await?;
    expect_failed(&rollout, "InvalidSpec").await
}

async fn a_workload_that_another_object_manages_has_its_reason(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let _db = cluster.statefulset("db").replicas(2).start().await?;
    let _first = cluster.rollout("db").start().await?;
    let second = cluster.rollout("db").named("second").create().await?;
    expect_failed(&second, "WorkloadClaimed").await
}

/// The on-call user sees whether there is anything left to do.
async fn a_rollback_has_one_reason_under_way_and_another_when_it_is_over(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 2, 50).await?;
    let old = Match::image("example.com/db:v1");
    cluster.pods().program(old.clone(), Behaviour::never_ready());
    rollout.abort().await?;
    expect_failed(&rollout, "RollingBack").await?;
    cluster.pods().program(old, Behaviour::default());
    expect_failed(&rollout, "RolledBack").await?;
    db.expect_rest(["v1"; 2]).await
}

async fn a_broken_pod_that_is_held_has_its_reason(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let new = Match::image("example.com/db:v2");
    cluster.pods().program(new, Behaviour::config_error());
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    expect_failed(&rollout, "PodBroken").await
}

/// A rollout whose new pod does not become Ready reports why, and continues when it does.
async fn waits_for(cluster: &Cluster, behaviour: Behaviour, reason: &str, why: &str) -> Outcome {
    let new = Match::image("example.com/db:v2");
    cluster.pods().program(new.clone(), behaviour);
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    let message = format!("waiting for pod db-1 to be Ready ({why}");
    let status = rollout.expect_message(&message).await?;
    let told = status.pods.iter().find(|pod| pod.name == "db-1");
    let told = told.and_then(|pod| pod.reason.as_deref()) == Some(reason);
    if status.phase != "Progressing" || !told {
        return Err(cluster.unmet(format!("Progressing, {reason}"), format!("{status:?}")));
    }
    cluster.pods().program(new, Behaviour::default());
    db.delete_pod(1).await?;
    rollout.expect_step(1, "Paused").await.map(drop)
}

async fn a_pod_that_fits_on_no_node_is_told_and_is_no_failure(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let why = "Unschedulable: 0/";
    waits_for(cluster, Behaviour::unschedulable(), "Unschedulable", why).await
}

async fn a_probe_that_does_not_pass_is_told_and_is_no_failure(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let why = "running, readiness probe not passing)";
    waits_for(cluster, Behaviour::never_ready(), "ReadinessProbe", why).await
}
