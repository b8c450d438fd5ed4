//! Checks that fail, and a Prometheus that does not answer.

use std::time::Duration;

use serde_json::{Value, json};
use stateward_kubelet::{Behaviour, Match};

use super::{
    Phased, all_is_well, expect_checks, expect_out, expect_partition, guarded, last_check, one_pod_new,
    two_pods,
};
use crate::harness::{Cluster, Outcome, Set};
use crate::scenarios;

scenarios![
    failed_checks_hold_the_rollout,
    a_failed_gate_is_checked_again_on_request,
    a_failed_gate_can_be_passed_by_hand,
    more_tries_take_the_failure_back,
    a_slip_in_the_spec_of_one_that_is_held_returns_no_pod,
    failed_checks_return_every_pod_where_the_policy_says_so,
    failed_checks_that_recover_go_on,
    a_prometheus_that_does_not_answer_is_no_success,
    a_broken_pod_fails_the_rollout_at_once,
    the_last_gate_can_return_every_pod_too,
    an_old_pod_that_is_stuck_does_not_hold_up_its_cure,
    a_version_that_an_old_pod_is_in_the_way_of_is_not_turned_down,
    a_crash_loop_that_is_ready_for_a_moment_does_not_hold_up_its_cure,
    a_crash_loop_that_comes_back_after_its_back_off_opens_no_gate,
    crash_loops_that_take_turns_do_not_hold_up_their_cure,
    a_version_is_not_turned_down_while_the_old_pod_stops,
    pods_that_return_are_progress,
];

/// A set whose failed rollouts roll back every pod.
async fn returning(cluster: &Cluster, replicas: i32, check: Value) -> Outcome<(Set<'_>, Phased<'_>)> {
    let db = cluster.statefulset("db").replicas(replicas).start().await?;
    let rollout = cluster
        .phased("db")
        .check(check)
        .spec(json!({"failurePolicy": "Rollback"}))
        .start()
        .await?;
    Ok((db, rollout))
}

async fn failed_checks_hold_the_rollout(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = two_pods(cluster, json!({"maxTries": 2})).await?;
    db.set_image("v2").await?;
    expect_partition(&db, 1).await?;
    cluster.metrics().says("errors", [1.0, 2.0]);
    let status = rollout.expect_phase("Failed").await?;
    let checks = status.rolling_pod_status.clone().unwrap_or_default();
    cluster.expect(
        "what failed is told",
        checks.status == "ChecksFailed"
            && checks.tries_left == Some(0)
            && checks.consecutive_failed_checks == 2,
    )?;
    let last = checks.last_check.unwrap_or_default();
    cluster.expect(
        "and what was answered",
        last.answer == "2 series" && last.verdict == "Failed" && last.reason == "DataReturned",
    )?;
    rollout.expect_message("2 of 2 in a row did not succeed").await?;
    rollout
        .expect_condition("Stalled", "True", "ChecksFailed")
        .await?;
    rollout
        .expect_columns([("Phase", "Failed".into()), ("Reason", "ChecksFailed".into())])
        .await?;
    rollout
        .expect_event("ChecksFailed", "the gate before pod db-0")
        .await?;
    // A stopped rollout makes no further checks and moves no pod.
    all_is_well(cluster);
    let asked = cluster.metrics().asked("errors");
    db.expect_rest(["v1", "v2"]).await?;
    cluster.expect("nobody asks any more", cluster.metrics().asked("errors") == asked)?;
    rollout.expect_phase("Failed").await.map(drop)
}

async fn a_failed_gate_is_checked_again_on_request(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = two_pods(cluster, json!({"maxTries": 1})).await?;
    db.set_image("v2").await?;
    expect_partition(&db, 1).await?;
    cluster.metrics().says("errors", [1.0]);
    rollout.expect_phase("Failed").await?;
    all_is_well(cluster);
    rollout.retry().await?;
    expect_out::<2>(&db, &rollout, "v2").await?;
    rollout
        .expect_event("ChecksRestarted", "a user repeats the checks")
        .await
}

async fn a_failed_gate_can_be_passed_by_hand(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [1.0]);
    let (db, rollout) = two_pods(cluster, json!({"maxTries": 1})).await?;
    db.set_image("v2").await?;
    rollout.expect_message("the gate before pod db-1 failed").await?;
    rollout.promote().await?;
    rollout.expect_message("the gate before pod db-0 failed").await?;
    db.expect_rest(["v1", "v2"]).await?;
    rollout.promote_full().await?;
    expect_out::<2>(&db, &rollout, "v2").await
}

async fn more_tries_take_the_failure_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [1.0]);
    let (db, rollout) = two_pods(cluster, json!({"maxTries": 1})).await?;
    db.set_image("v2").await?;
    rollout.expect_phase("Failed").await?;
    rollout
        .patch("allow more tries", json!({"check": {"maxTries": null}}))
        .await?;
    rollout.expect_phase("Rolling").await?;
    all_is_well(cluster);
    expect_out::<2>(&db, &rollout, "v2").await
}

async fn failed_checks_return_every_pod_where_the_policy_says_so(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = returning(cluster, 3, json!({"maxTries": 2})).await?;
    db.set_image("v2").await?;
    expect_partition(&db, 1).await?;
    cluster.metrics().says("errors", [1.0]);
    rollout
        .expect_event("RolloutAborted", "the gate before pod db-0 failed")
        .await?;
    db.expect_rest(["v1"; 3]).await?;
    let status = rollout.expect_phase("Failed").await?;
    cluster.expect("it was rejected", status.rollout.aborted)?;
    rollout.expect_message("every pod is back").await.map(drop)
}

async fn failed_checks_that_recover_go_on(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    all_is_well(cluster);
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn a_prometheus_that_does_not_answer_is_no_success(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    cluster.metrics().is_silent_about("errors");
    db.set_image("v2").await?;
    let status = expect_checks(&rollout, "three errors", |checks| {
        checks.total_failed_checks >= 3 && checks.status == "PrometheusError"
    })
    .await?;
    let last = last_check(status);
    cluster.expect(
        "why there is no answer is told",
        last.reason == "ConnectionRefused" && last.verdict == "Error" && last.message.contains("refused"),
    )?;
    db.expect_rest(["v1"; 3]).await?;
    all_is_well(cluster);
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn a_broken_pod_fails_the_rollout_at_once(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster
        .pods()
        .program(Match::image("example.com/db:v2"), Behaviour::crash_loop());
    let (db, rollout) = returning(cluster, 3, json!({})).await?;
    db.set_image("v2").await?;
    rollout
        .expect_event("RolloutAborted", "pod db-2 is broken")
        .await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_message("every pod is back").await.map(drop)
}

/// Kubernetes has forgotten the previous version by then.
async fn the_last_gate_can_return_every_pod_too(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = returning(cluster, 2, json!({"maxTries": 1})).await?;
    db.set_image("v2").await?;
    expect_partition(&db, 0).await?;
    cluster.metrics().says("errors", [1.0]);
    rollout
        .expect_event("RolloutAborted", "the gate after the last pod failed")
        .await?;
    db.expect_rest(["v1"; 2]).await?;
    rollout.expect_phase("Failed").await.map(drop)
}

async fn a_slip_in_the_spec_of_one_that_is_held_returns_no_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = two_pods(cluster, json!({"maxTries": 1})).await?;
    db.set_image("v2").await?;
    expect_partition(&db, 1).await?;
    cluster.metrics().says("errors", [1.0]);
    rollout.expect_phase("Failed").await?;
    rollout.patch("slip", json!({"targetRef": "d b"})).await?;
    rollout.expect_message("spec.targetRef").await?;
    db.expect_rest(["v1", "v2"]).await?;
    all_is_well(cluster);
    rollout.patch("put it right", json!({"targetRef": "db"})).await?;
    // The earlier failures are no longer recorded, and the checks run again.
    expect_out::<2>(&db, &rollout, "v2").await
}

/// A set whose first pod is stuck on v1, with a rollout to v2 and a deadline of three seconds.
async fn stuck<'c>(cluster: &'c Cluster, policy: &str) -> Outcome<(Set<'c>, Phased<'c>)> {
    let db = cluster
        .statefulset("db")
        .replicas(2)
        .spec(json!({"podManagementPolicy": policy}))
        .start()
        .await?;
    let impatient = json!({"progressDeadlineSeconds": 3, "failurePolicy": "Rollback"});
    let rollout = cluster.phased("db").spec(impatient).start().await?;
    let stuck = Match::image("example.com/db:v1").ordinal(0);
    cluster.pods().program(stuck, Behaviour::never_ready());
    db.delete_pod(0).await?;
    db.set_image("v2").await?;
    rollout.expect_message("waiting for pod db-0").await?;
    Ok((db, rollout))
}

/// Before the first pod is updated the new version is not at fault, and nothing is rejected.
async fn an_old_pod_that_is_stuck_does_not_hold_up_its_cure(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = stuck(cluster, "Parallel").await?;
    rollout
        .expect_event("UnreadyPodsIgnored", "not waiting any longer for db-0")
        .await?;
    expect_out::<2>(&db, &rollout, "v2").await
}

/// With OrderedReady, Kubernetes replaces no pod while one below is not Ready, so no step is reached; a rollback would wait for that pod
/// just the same.
async fn a_version_that_an_old_pod_is_in_the_way_of_is_not_turned_down(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = stuck(cluster, "OrderedReady").await?;
    rollout
        .expect_message(
            "no progress for 3s at pod 1 of 2: waiting for pod db-0 to be Ready (running, readiness probe not passing); replace it and every other old pod without checks",
        )
        .await?;
    db.expect_rest(["v1"; 2]).await?;
    rollout.promote_full().await?;
    expect_out::<2>(&db, &rollout, "v2").await
}

/// Without a readiness probe it is Ready whenever its container has just started.
async fn a_crash_loop_that_is_ready_for_a_moment_does_not_hold_up_its_cure(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).parallel().start().await?;
    let rollout = cluster.phased("db").start().await?;
    crashing(cluster, &db, 0, Duration::from_secs(2), |restarts, ready| {
        restarts > 0 && !ready
    })
    .await?;
    db.set_image("v2").await?;
    rollout
        .expect_message("not waiting for pod 0, which was not Ready before")
        .await?;
    expect_out::<3>(&db, &rollout, "v2").await
}

/// By then its container's last exit is long ago and the next one near: if its readiness were trusted, the checks would succeed and the pod
/// would block the next gate.
async fn a_crash_loop_that_comes_back_after_its_back_off_opens_no_gate(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).parallel().start().await?;
    let impatient = json!({"progressDeadlineSeconds": 8});
    let rollout = cluster.phased("db").spec(impatient).start().await?;
    crashing(cluster, &db, 0, Duration::from_secs(5), |restarts, ready| {
        restarts > 1 && ready
    })
    .await?;
    db.set_image("v2").await?;
    rollout
        .expect_message("not waiting for pod 0, which was not Ready before")
        .await?;
    expect_out::<3>(&db, &rollout, "v2").await
}

/// One of them is Ready whenever the other is not, so that neither is unready for as long as the deadline.
async fn crash_loops_that_take_turns_do_not_hold_up_their_cure(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).parallel().start().await?;
    let impatient = json!({"progressDeadlineSeconds": 8});
    let rollout = cluster.phased("db").spec(impatient).start().await?;
    for (pod, moment) in [(0, 2), (1, 3)] {
        crashing(cluster, &db, pod, Duration::from_secs(moment), |restarts, _| {
            restarts > 0
        })
        .await?;
    }
    db.set_image("v2").await?;
    expect_out::<3>(&db, &rollout, "v2").await?;
    rollout
        .expect_event("UnreadyPodsIgnored", "not waiting any longer for db-")
        .await
}

/// Recreates a pod that crashes again and again, after being Ready for `moment`; waits until it is in that state.
async fn crashing(
    cluster: &Cluster,
    db: &Set<'_>,
    pod: u32,
    moment: Duration,
    stands: fn(u32, bool) -> bool,
) -> Outcome {
    let sick = Match::image("example.com/db:v1").ordinal(pod);
    cluster
        .pods()
        .program(sick, Behaviour::crash_loop().ready_for(moment));
    db.delete_pod(pod).await?;
    db.eventually("the pod crashes", |_, pods| {
        let mut sick = pods.iter().filter(|found| found.ordinal == Some(pod));
        if sick.any(|pod| stands(pod.restarts as u32, pod.ready)) {
            Ok(())
        } else {
            Err("not yet".into())
        }
    })
    .await
    .map(drop)
}

/// As long as no pod has run a version, the version is not at fault.
async fn a_version_is_not_turned_down_while_the_old_pod_stops(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster
        .statefulset("db")
        .replicas(2)
        .spec(json!({"template": {"spec": {"terminationGracePeriodSeconds": 60}}}))
        .start()
        .await?;
    let impatient = json!({"progressDeadlineSeconds": 3, "failurePolicy": "Rollback"});
    let rollout = cluster.phased("db").spec(impatient).start().await?;
    let slow = Behaviour::slow_termination(Duration::from_secs(8));
    cluster.pods().program(Match::image("example.com/db:v1"), slow);
    db.set_image("v2").await?;
    rollout
        .expect_message("no progress for 3s at pod 1 of 2: waiting for pod db-1 to run")
        .await?;
    rollout.expect_message("pod db-1 has not stopped").await?;
    expect_out::<2>(&db, &rollout, "v2").await
}

/// Three pods roll back before the third version's first checks, which takes longer than the progress deadline.
async fn pods_that_return_are_progress(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(4).start().await?;
    let rollout = cluster
        .phased("db")
        .spec(json!({"progressDeadlineSeconds": 8, "failurePolicy": "Rollback"}))
        .start()
        .await?;
    let slow = Behaviour::ready_after(Duration::from_secs(3));
    cluster.pods().program(Match::image("example.com/db:v1"), slow);
    db.set_image("v2").await?;
    expect_partition(&db, 1).await?;
    cluster.metrics().says("errors", [1.0]);
    rollout.expect_message("the gate before pod db-0").await?;
    db.set_image("v3").await?;
    db.expect_rest(["v1"; 4]).await?;
    all_is_well(cluster);
    expect_out::<4>(&db, &rollout, "v3").await
}
