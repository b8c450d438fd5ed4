//! A command takes effect once, for the state the user saw, or is rejected with a message (rule 10).

use serde_json::json;
use stateward_api::analysis::Phase;
use stateward_kubelet::{Behaviour, Match};

use super::analysis::{analysed, expect_runs, metric};
use super::{paused_at, stands_at};
use crate::harness::{Cluster, Outcome};
use crate::scenarios;

scenarios![
    a_full_promotion_skips_the_remaining_steps,
    a_full_promotion_past_a_broken_pod_has_to_be_forced,
    a_step_is_skipped_and_no_other,
    nothing_is_skipped_past_a_pod_that_is_not_ready,
    an_analysis_is_skipped_and_its_run_ends,
    commands_without_a_rollout_are_refused_and_leave_nothing_behind,
    a_full_promotion_of_an_aborted_revision_is_refused,
    a_retry_counts_for_its_revision_only,
    a_promotion_ends_one_pause_only,
    a_promotion_releases_nothing_while_a_released_pod_is_not_ready,
    edited_steps_are_counted_from_the_first,
    steps_added_behind_the_pause_are_taken,
    a_retry_during_the_return_turns_round,
    a_retry_after_the_end_is_refused,
];

/// The canary is healthy, the rollout pauses, and the canary loses its readiness before the user promotes.
async fn a_promotion_releases_nothing_while_a_released_pod_is_not_ready(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}, {"setWeight": 60}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    let new = || Match::image("example.com/db:v2");
    cluster.pods().program(new(), Behaviour::never_ready());
    rollout.expect_message("waiting for pod db-4 to be Ready").await?;
    rollout.promote().await?;
    rollout.expect_step(2, "Progressing").await?;
    rollout.expect_message("waiting for pod db-4 to be Ready").await?;
    stands_at(&db, 4).await?;
    db.expect_no_move().await?;
    cluster.pods().program(new(), Behaviour::default());
    rollout.expect_step(3, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2", "v2", "v2"]).await
}

async fn a_full_promotion_skips_the_remaining_steps(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(4).start().await?;
    let steps = json!([
        {"setWeight": 25}, {"pause": {}}, {"setWeight": 50}, {"pause": {}}, {"setWeight": 75}, {"pause": {}},
    ]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote_full().await?;
    let status = rollout.expect_phase("Successful").await?;
    if status.promote_full || status.current_revision != status.updated_revision {
        return Err(cluster.unmet("done, and no command left", format!("{status:?}")));
    }
    db.expect_rest(["v2"; 4]).await
}

/// The event shows a kubectl user what to write, and the history records who promoted and which steps were skipped.
async fn a_full_promotion_past_a_broken_pod_has_to_be_forced(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 34}, {"pause": {}}, {"setWeight": 67}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let v2 = || Match::image("example.com/db:v2");
    cluster.pods().program(v2(), Behaviour::crash_loop());
    db.set_image("v2").await?;
    rollout.expect_phase("Failed").await?;
    rollout.promote_full().await?;
    rollout
        .expect_event("CommandRefused", "promote --full: pod db-2 is broken on ")
        .await?;
    rollout.expect_no_command().await?;
    stands_at(&db, 2).await?;
    db.expect_no_move().await?;
    rollout.expect_step(0, "Failed").await?;

    rollout.force_promote_full().await?;
    rollout
        .expect_event("RolloutPromoted", "a user skips steps 1 to 4 of 4")
        .await?;
    stands_at(&db, 0).await?;
    // Kubernetes replaces no further pod while that one is not Ready.
    rollout
        .expect_message("steps 1 to 4 of 4 were skipped, the remaining pods follow to ")
        .await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    cluster.pods().program(v2(), Behaviour::default());
    let status = rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 3]).await?;
    let taken = status.history.first().map(|past| &past.taken_commands);
    let told: Vec<_> = taken
        .into_iter()
        .flatten()
        .map(|taken| (taken.command.as_str(), taken.from_step, taken.to_step))
        .collect();
    if told == [("promote --full --force", 0, 4)] && !status.force {
        Ok(())
    } else {
        Err(cluster.unmet("the command in the history", format!("{status:?}")))
    }
}

async fn a_step_is_skipped_and_no_other(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(4).start().await?;
    let steps = json!([
        {"setWeight": 25}, {"pause": {}}, {"pause": {"duration": "1h"}}, {"setWeight": 50}, {"pause": {}},
    ]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let v2 = || Match::image("example.com/db:v2");
    cluster.pods().program(v2(), Behaviour::never_ready());
    db.set_image("v2").await?;
    rollout.expect_message("waiting for pod db-3 to be Ready").await?;
    // Its weight stays in force: the following pause has the same.
    rollout
        .overwrite(json!({"skipCurrentStep": true, "requestedBy": "alice"}))
        .await?;
    rollout.expect_step(1, "Paused").await?;
    rollout
        .expect_event("StepSkipped", "alice skips step 1 of 5 (25 %)")
        .await?;
    rollout.expect_no_command().await?;
    stands_at(&db, 3).await?;
    cluster.expect("a pause is skipped", rollout.skip().await?)?;
    rollout.expect_step(2, "Paused").await?;
    cluster.pods().program(v2(), Behaviour::default());
    db.expect_rest(["v1", "v1", "v1", "v2"]).await?;
    // The next skip releases a pod; the operator rejects it until it has seen that one Ready.
    rollout.skip_when_allowed().await?;
    rollout.expect_step(4, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2", "v2"]).await?;
    rollout.skip_when_allowed().await?;
    let status = rollout.expect_phase("Successful").await?;
    let taken = status.history.first().map(|past| &past.taken_commands);
    let steps: Vec<_> = taken
        .into_iter()
        .flatten()
        .map(|taken| (taken.command.as_str(), taken.from_step))
        .collect();
    if steps == [("skip", 0), ("skip", 1), ("skip", 2), ("skip", 4)] {
        Ok(())
    } else {
        Err(cluster.unmet("four steps that were skipped", format!("{status:?}")))
    }
}

/// Rule 16
async fn nothing_is_skipped_past_a_pod_that_is_not_ready(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 20}, {"setWeight": 60}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let new = || Match::image("example.com/db:v2");
    cluster.pods().program(new(), Behaviour::never_ready());
    db.set_image("v2").await?;
    rollout.expect_message("waiting for pod db-4 to be Ready").await?;
    cluster.expect("it is refused", !rollout.skip().await?)?;
    rollout
        .expect_event(
            "CommandRefused",
            "skip: what follows would release further pods: waiting for pod db-4 to be Ready",
        )
        .await?;
    rollout.expect_step(0, "Progressing").await?;
    stands_at(&db, 4).await?;
    db.expect_no_move().await?;
    cluster.pods().program(new(), Behaviour::default());
    rollout.expect_step(2, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2", "v2", "v2"]).await
}

async fn an_analysis_is_skipped_and_its_run_ends(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let metric = metric("errors", json!({"interval": "2s", "count": 1000}));
    let (db, rollout) = analysed(cluster, json!([metric])).await?;
    db.set_image("v2").await?;
    expect_runs(cluster, &[Phase::Running]).await?;
    cluster.expect("an analysis is skipped", rollout.skip().await?)?;
    rollout.expect_event("StepSkipped", "(analysis)").await?;
    rollout.expect_phase("Successful").await?;
    let runs = expect_runs(cluster, &[Phase::Successful]).await?;
    cluster.expect("nobody asks on its behalf any more", runs[0].spec.terminate)
}

/// Gap 9 of the state of the art: such a command was kept and applied to the next rollout.
async fn commands_without_a_rollout_are_refused_and_leave_nothing_behind(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 34}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let before = db.pods().await?;
    rollout.promote_full().await?;
    rollout
        .expect_event("CommandRefused", "promote --full: no rollout")
        .await?;
    rollout.abort().await?;
    rollout
        .expect_event("CommandRefused", "abort: no rollout")
        .await?;
    rollout.retry().await?;
    rollout
        .expect_event("CommandRefused", "retry: there is no aborted")
        .await?;
    rollout.expect_no_command().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}

async fn a_full_promotion_of_an_aborted_revision_is_refused(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    rollout.promote_full().await?;
    rollout.expect_event("CommandRefused", "promote --full").await?;
    rollout.expect_no_command().await?;
    db.expect_rest(["v1"; 3]).await?;
    db.set_image("v3").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v3"]).await
}

async fn a_retry_counts_for_its_revision_only(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 2, 50).await?;
    for retries in 1..=2 {
        rollout.abort().await?;
        rollout.expect_message("every pod is back").await?;
        rollout.retry().await?;
        let status = rollout.expect_step(1, "Paused").await?;
        if status.restart_count != Some(retries) || status.restarted_at.is_none() || status.aborted {
            return Err(cluster.unmet(format!("{retries} retries"), format!("{status:?}")));
        }
    }
    rollout.promote().await?;
    let status = rollout.expect_phase("Successful").await?;
    if status.restart_count != Some(2) {
        return Err(cluster.unmet("two retries on record", format!("{status:?}")));
    }
    db.set_image("v3").await?;
    let status = rollout.expect_step(1, "Paused").await?;
    match status.restart_count {
        None => Ok(()),
        other => Err(cluster.unmet("no retry of the next revision", format!("{other:?}"))),
    }
}

async fn a_promotion_ends_one_pause_only(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {}}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    let status = rollout.expect_step(2, "Paused").await?;
    if status.pause_conditions.is_empty() {
        return Err(cluster.unmet("a pause of its own", format!("{status:?}")));
    }
    db.expect_rest(["v1", "v2"]).await?;
    rollout.expect_step(2, "Paused").await.map(drop)
}

async fn edited_steps_are_counted_from_the_first(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 40).await?;
    let before = db.pods().await?;
    let steps = json!([{"pause": {}}, {"setWeight": 20}, {"pause": {}}, {"setWeight": 60}, {"pause": {}}]);
    rollout
        .patch(
            "edit the steps",
            json!({"strategy": {"canary": {"steps": steps}}}),
        )
        .await?;
    rollout.expect_event("StepsChanged", "2 pods stay").await?;
    rollout.expect_step(0, "Paused").await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await?;
    rollout.promote().await?;
    rollout.expect_step(2, "Paused").await?;
    db.expect_same_pods(&before).await?;
    rollout.promote().await?;
    rollout.expect_step(4, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2", "v2", "v2"]).await
}

async fn steps_added_behind_the_pause_are_taken(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 4, 25).await?;
    let steps = json!([{"setWeight": 25}, {"pause": {}}, {"setWeight": 75}, {"pause": {}}]);
    rollout
        .patch(
            "edit the steps",
            json!({"strategy": {"canary": {"steps": steps}}}),
        )
        .await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_step(3, "Paused").await?;
    db.expect_rest(["v1", "v2", "v2", "v2"]).await
}

async fn a_retry_during_the_return_turns_round(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 80).await?;
    rollout.abort().await?;
    rollout
        .eventually("pods return", |status| match status.returning {
            Some(_) => Ok(()),
            None => Err(String::new()),
        })
        .await?;
    rollout.retry().await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v2", "v2", "v2", "v2"]).await
}

async fn a_retry_after_the_end_is_refused(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 2, 50).await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    let before = db.pods().await?;
    rollout.retry().await?;
    rollout
        .expect_event("CommandRefused", "retry: there is no aborted")
        .await?;
    rollout.expect_no_command().await?;
    let status = rollout.expect_phase("Successful").await?;
    if status.restart_count.is_some() {
        return Err(cluster.unmet("no retry on record", format!("{status:?}")));
    }
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await
}
