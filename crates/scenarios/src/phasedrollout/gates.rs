//! The gates: before the first pod, before each next one, and after the last.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::json;
use stateward_kubelet::{Behaviour, Match};

use super::{
    Phased, all_is_well, expect_checks, expect_out, expect_partition, guarded, last_check, one_pod_new,
    two_pods,
};
use crate::harness::{Cluster, Doing, Outcome};
use crate::scenarios;

scenarios![
    a_version_goes_out_one_pod_after_the_other,
    nothing_moves_before_the_checks_before_the_first_pod_succeed,
    the_last_pod_is_checked_too,
    the_guard_is_up_at_rest_and_while_the_last_checks_are_made,
    pods_go_one_at_a_time_whatever_the_set_would_allow,
    only_checks_in_a_row_count,
    the_message_counts_the_checks_as_the_rest_of_the_status_does,
    a_pod_that_is_lost_during_the_checks_begins_them_anew,
    a_pod_that_comes_and_goes_is_told_only_so_often,
    a_gate_that_waits_can_be_passed_by_hand,
    a_gate_whose_checks_fail_can_be_passed_by_hand,
    a_gate_is_skipped_and_its_pod_is_not,
    no_gate_is_passed_by_hand_while_a_pod_is_unwell,
    pods_have_to_be_ready_for_long_enough,
    a_pod_that_is_not_broken_but_slow_is_waited_for,
    some_data_is_a_success_where_the_spec_says_so,
    a_changed_query_counts_from_the_next_check,
    an_operator_that_starts_again_goes_on_counting,
    a_pod_that_is_lost_while_the_operator_is_away_begins_the_checks_anew,
    another_meaning_begins_the_checks_anew,
    ordinals_may_begin_anywhere,
    two_operators_at_once_check_no_less,
];

/// S002-01 S002-04 S002-06 S002-10
async fn a_version_goes_out_one_pod_after_the_other(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    let before = cluster.pod_changes();
    db.set_image("v2").await?;
    let status = rollout.expect_phase("Rolling").await?;
    cluster.expect("when it began is told", status.rollout_start_time.is_some())?;
    db.expect_rest(["v2"; 3]).await?;
    let status = rollout.expect_phase("Updated").await?;
    cluster.expect(
        "when it ended is told",
        status.rollout_end_time.is_some() && status.rolling_pod_status.is_none(),
    )?;
    db.expect_one_down_at_most(before)?;
    // Two before each of three pods, and two after the last.
    let asked = cluster.metrics().asked("errors");
    cluster.expect(&format!("at least eight checks, not {asked}"), asked >= 8)?;
    rollout
        .expect_condition("Updated", "True", "every pod runs")
        .await?;
    rollout
        .expect_event("ChecksPassed", "the gate before pod db-2")
        .await?;
    rollout
        .expect_event("ChecksPassed", "the gate after the last pod")
        .await?;
    rollout.expect_event("RolloutCompleted", "every pod runs").await
}

/// S002-11: a backup may be running.
async fn nothing_moves_before_the_checks_before_the_first_pod_succeed(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    cluster.metrics().says("errors", [1.0]);
    db.set_image("v2").await?;
    expect_checks(&rollout, "three failed checks at partition 3", |checks| {
        checks.partition == 3 && checks.total_failed_checks >= 3 && checks.status == "WaitForChecks"
    })
    .await?;
    db.expect_rest(["v1"; 3]).await?;
    all_is_well(cluster);
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn the_last_pod_is_checked_too(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    db.set_image("v2").await?;
    expect_partition(&db, 0).await?;
    cluster.metrics().says("errors", [1.0]);
    rollout.expect_message("the gate after the last pod").await?;
    expect_checks(&rollout, "a failed check", |checks| {
        checks.consecutive_failed_checks > 0
    })
    .await?;
    db.expect_rest(["v2"; 3]).await?;
    all_is_well(cluster);
    rollout.expect_phase("Updated").await.map(drop)
}

/// S002-03
async fn the_guard_is_up_at_rest_and_while_the_last_checks_are_made(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    expect_partition(&db, 3).await?;
    db.set_image("v2").await?;
    expect_partition(&db, 0).await?;
    cluster.metrics().says("errors", [1.0]);
    rollout.expect_message("the gate after the last pod").await?;
    expect_partition(&db, 3).await?;
    // A template change moves no pod now.
    db.set_image("v3").await?;
    rollout.expect_message("the gate before pod db-2").await?;
    db.expect_rest(["v2"; 3]).await?;
    all_is_well(cluster);
    expect_out::<3>(&db, &rollout, "v3").await?;
    expect_partition(&db, 3).await
}

/// S002-05
async fn pods_go_one_at_a_time_whatever_the_set_would_allow(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let many = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 3}}});
    let db = cluster
        .statefulset("db")
        .replicas(3)
        .parallel()
        .spec(many)
        .start()
        .await?;
    let rollout = cluster.phased("db").start().await?;
    let before = cluster.pod_changes();
    db.set_image("v2").await?;
    expect_out::<3>(&db, &rollout, "v2").await?;
    db.expect_one_down_at_most(before)
}

async fn only_checks_in_a_row_count(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = two_pods(cluster, json!({"successThreshold": 3})).await?;
    db.set_image("v2").await?;
    expect_checks(&rollout, "one good check", |checks| {
        checks.consecutive_successful_checks == 1
    })
    .await?;
    cluster.metrics().says("errors", [1.0]);
    let status = expect_checks(&rollout, "a bad one", |checks| {
        checks.consecutive_failed_checks > 0
    })
    .await?;
    let checks = status.rolling_pod_status.unwrap_or_default();
    cluster.expect(
        "the good one is forgotten",
        checks.consecutive_successful_checks == 0,
    )?;
    all_is_well(cluster);
    let status = expect_checks(&rollout, "a good one again", |checks| {
        checks.consecutive_successful_checks == 1
    })
    .await?;
    let checks = status.rolling_pod_status.unwrap_or_default();
    cluster.expect(
        "the bad ones are told",
        checks.consecutive_failed_checks == 0 && checks.total_failed_checks > 0 && checks.partition == 2,
    )?;
    expect_out::<2>(&db, &rollout, "v2").await
}

async fn the_message_counts_the_checks_as_the_rest_of_the_status_does(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = two_pods(cluster, json!({"successThreshold": 3})).await?;
    db.set_image("v2").await?;
    for count in [1, 2] {
        let status = expect_checks(&rollout, "one more good check", |checks| {
            checks.consecutive_successful_checks == count
        })
        .await?;
        let message = &status.rollout.message;
        let expected =
            format!("pod 1 of 2: the gate before pod db-1 is running: {count} of 3 checks in a row");
        cluster.expect(
            &format!("{expected:?}, not {message:?}"),
            message.starts_with(&expected),
        )?;
    }
    expect_out::<2>(&db, &rollout, "v2").await
}

async fn a_pod_that_is_lost_during_the_checks_begins_them_anew(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    let unwell = Match::set("db").ordinal(0);
    cluster.pods().program(unwell.clone(), Behaviour::never_ready());
    db.delete_pod(0).await?;
    rollout.expect_message("waiting for pod db-0 to be Ready").await?;
    all_is_well(cluster);
    let asked = cluster.metrics().asked("errors");
    rollout.expect_event("ChecksRestarted", "start over").await?;
    cluster.pods().program(unwell, Behaviour::default());
    expect_out::<3>(&db, &rollout, "v2").await?;
    let checks = cluster.metrics().asked("errors") - asked;
    cluster.expect(&format!("three whole gates, not {checks} checks"), checks >= 6)
}

/// Repeated events say nothing new. An operator that was killed starts counting from zero.
async fn a_pod_that_comes_and_goes_is_told_only_so_often(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = two_pods(cluster, json!({"initialDelaySeconds": 3600})).await?;
    let (flaps, half) = (Match::set("db").ordinal(0), Duration::from_millis(300));
    cluster
        .pods()
        .program(flaps.clone(), Behaviour::flapping(half, half));
    db.set_image("v2").await?;
    for _ in 0..30 {
        rollout.expect_message("waiting for pod db-0 to be Ready").await?;
        rollout.expect_message("the gate before pod db-1").await?;
    }
    rollout.expect_event("ChecksRestarted", "repeated often").await?;
    rollout.expect_events_at_most("ChecksRestarted", 20).await?;
    cluster.pods().program(flaps, Behaviour::default());
    pass(&rollout).await?;
    // Other events are still recorded.
    rollout.expect_event("RolloutResumed", "a user goes on").await
}

/// Passes the current gate. An operator with a stale view may reject the command first.
async fn pass(rollout: &Phased<'_>) -> Outcome {
    while !rollout.go_on().await? {
        rollout.expect_message("the gate").await?;
    }
    Ok(())
}

/// No scenario waits for an hour: each gate is passed by hand, one at a time.
async fn a_gate_that_waits_can_be_passed_by_hand(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = two_pods(cluster, json!({"initialDelaySeconds": 3600})).await?;
    db.set_image("v2").await?;
    for (gate, images) in [
        ("the gate before pod db-1", ["v1", "v1"]),
        ("the gate before pod db-0", ["v1", "v2"]),
        ("the gate after the last pod", ["v2", "v2"]),
    ] {
        rollout.expect_message(gate).await?;
        db.expect_rest(images).await?;
        pass(&rollout).await?;
    }
    expect_out::<2>(&db, &rollout, "v2").await?;
    rollout
        .expect_event("RolloutResumed", "without the rest of the checks")
        .await?;
    rollout.expect_no_command().await?;
    expect_partition(&db, 2).await?;
    cluster.expect("nobody was asked", cluster.metrics().asked("errors") == 0)
}

async fn a_gate_is_skipped_and_its_pod_is_not(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = two_pods(cluster, json!({"initialDelaySeconds": 3600})).await?;
    let new = || Match::image("example.com/db:v2");
    cluster.pods().program(new(), Behaviour::never_ready());
    db.set_image("v2").await?;
    rollout.expect_message("the gate before pod db-1").await?;
    rollout.skip_when_allowed().await?;
    rollout.expect_message("waiting for pod db-1 to be Ready").await?;
    cluster.expect("a pod is waited for", !rollout.skip().await?)?;
    rollout
        .expect_event("CommandRefused", "skip: the next gate waits for the same pod")
        .await?;
    cluster.pods().program(new(), Behaviour::default());
    for gate in ["the gate before pod db-0", "the gate after the last pod"] {
        rollout.expect_message(gate).await?;
        rollout.skip_when_allowed().await?;
    }
    expect_out::<2>(&db, &rollout, "v2").await?;
    cluster.expect("nobody was asked", cluster.metrics().asked("errors") == 0)?;
    let status = rollout.get().await?.status.unwrap_or_default().rollout;
    let taken = status.history.first().map(|past| &past.taken_commands);
    let skips: Vec<_> = taken
        .into_iter()
        .flatten()
        .map(|taken| (taken.command.as_str(), taken.from_step))
        .collect();
    cluster.expect(
        "three gates that were skipped",
        skips == [("skip", 0), ("skip", 2), ("skip", 4)],
    )
}

async fn a_gate_whose_checks_fail_can_be_passed_by_hand(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    pass(&rollout).await?;
    rollout.expect_message("the gate before pod db-0").await?;
    db.expect_rest(["v1", "v2", "v2"]).await?;
    all_is_well(cluster);
    expect_out::<3>(&db, &rollout, "v2").await
}

/// Only checks can be skipped.
async fn no_gate_is_passed_by_hand_while_a_pod_is_unwell(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    let unwell = Match::set("db").ordinal(0);
    cluster.pods().program(unwell.clone(), Behaviour::never_ready());
    rollout.expect_message("waiting for pod db-0 to be Ready").await?;
    rollout.go_on().await?;
    rollout
        .expect_event(
            "CommandRefused",
            "promote: only checks can be skipped: waiting for pod db-0",
        )
        .await?;
    // However often the command is sent, it is never kept for later.
    for _ in 0..8 {
        rollout.go_on().await?;
    }
    cluster.expect(
        "a user's word is no contest",
        cluster.look(|view| {
            let mut events = view.events.values();
            !events.any(|event| event.reason.as_deref() == Some("StatusContested"))
        }),
    )?;
    expect_partition(&db, 2).await?;
    cluster.pods().program(unwell, Behaviour::default());
    db.expect_rest(["v1", "v1", "v2"]).await?;
    pass(&rollout).await?;
    db.expect_rest(["v1", "v2", "v2"]).await?;
    all_is_well(cluster);
    expect_out::<3>(&db, &rollout, "v2").await
}

/// S002-05
async fn pods_have_to_be_ready_for_long_enough(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster
        .statefulset("db")
        .replicas(2)
        .min_ready_seconds(3)
        .start()
        .await?;
    let rollout = cluster.phased("db").start().await?;
    db.set_image("v2").await?;
    expect_partition(&db, 1).await?;
    cluster.metrics().says("errors", [1.0]);
    let status = expect_checks(&rollout, "a failed check", |checks| {
        checks.consecutive_failed_checks > 0
    })
    .await?;
    let began = status
        .rolling_pod_status
        .and_then(|checks| checks.analisys_start_time);
    let pods: Api<Pod> = Api::namespaced(cluster.client(), cluster.namespace());
    let pod = pods.get("db-1").await.doing("get pod db-1")?;
    let conditions = pod
        .status
        .and_then(|status| status.conditions)
        .unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
    let ready = ready.and_then(|ready| Some(ready.last_transition_time.as_ref()?.0));
    let available = ready.map(|ready| ready + SignedDuration::from_secs(3));
    cluster.expect(
        &format!("checks that began at {began:?} are not before {available:?}"),
        available.is_some() && began >= available,
    )?;
    all_is_well(cluster);
    expect_out::<2>(&db, &rollout, "v2").await
}

/// S002-04: also if the guard was not up when the template changed.
async fn a_pod_that_is_not_broken_but_slow_is_waited_for(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    let starting = Match::set("db").ordinal(0);
    cluster.pods().program(starting.clone(), Behaviour::never_ready());
    rollout.expect_message("waiting for pod db-0 to be Ready").await?;
    let asked = cluster.metrics().asked("errors");
    db.set_image("v2").await?;
    rollout.expect_phase("Rolling").await?;
    rollout
        .expect_message("checks begin when every pod is available: waiting for pod db-0")
        .await?;
    db.expect_no_move().await?;
    cluster.expect("no check was made", cluster.metrics().asked("errors") == asked)?;
    cluster.pods().program(starting, Behaviour::default());
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn some_data_is_a_success_where_the_spec_says_so(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = two_pods(
        cluster,
        json!({"successOn": "Data", "query": {"expr": "healthy"}}),
    )
    .await?;
    db.set_image("v2").await?;
    let status = expect_checks(&rollout, "a failed check", |checks| {
        checks.consecutive_failed_checks > 0
    })
    .await?;
    let last = last_check(status);
    cluster.expect(
        "no data is told",
        last.reason == "NoData" && last.answer == "no data",
    )?;
    cluster.metrics().says("healthy", [f64::NAN]);
    expect_checks(&rollout, "an answer that is NaN", |checks| {
        let last = checks.last_check.clone().unwrap_or_default();
        last.reason == "NaN" && checks.status == "PrometheusError" && checks.partition == 2
    })
    .await?;
    cluster.metrics().says("healthy", [0.0, 1.0]);
    expect_out::<2>(&db, &rollout, "v2").await
}

async fn a_changed_query_counts_from_the_next_check(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    let other = json!({"check": {"query": {"expr": "latency"}, "successThreshold": 1}});
    rollout.patch("ask something else", other).await?;
    expect_out::<3>(&db, &rollout, "v2").await?;
    cluster.expect("the other was asked", cluster.metrics().asked("latency") > 0)
}

async fn an_operator_that_starts_again_goes_on_counting(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = two_pods(cluster, json!({"successThreshold": 4})).await?;
    db.set_image("v2").await?;
    expect_checks(&rollout, "two good checks", |checks| {
        checks.consecutive_successful_checks == 2
    })
    .await?;
    cluster.stop_operator();
    let before = cluster.metrics().asked("errors");
    cluster.start_operator();
    expect_partition(&db, 1).await?;
    let asked = cluster.metrics().asked("errors") - before;
    // One may have been in flight when the operator stopped.
    cluster.expect(&format!("two more checks, not {asked}"), (1..=3).contains(&asked))?;
    expect_out::<2>(&db, &rollout, "v2").await
}

async fn ordinals_may_begin_anywhere(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster
        .statefulset("db")
        .replicas(2)
        .ordinals_start(5)
        .start()
        .await?;
    let rollout = cluster.phased("db").start().await?;
    db.set_image("v2").await?;
    rollout
        .expect_event("ChecksPassed", "the gate before pod db-6")
        .await?;
    rollout.expect_phase("Updated").await?;
    db.expect_rest(["v2"; 2]).await
}

async fn two_operators_at_once_check_no_less(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    cluster.start_another_operator();
    let before = cluster.pod_changes();
    db.set_image("v2").await?;
    expect_partition(&db, 2).await?;
    cluster.metrics().says("errors", [1.0]);
    expect_checks(&rollout, "a failed check", |checks| {
        checks.consecutive_failed_checks > 0
    })
    .await?;
    // An operator with a stale view, in which a pod is down, rolls that pod back and starts at the first gate again.
    db.eventually("the other pods are as they were, all are Ready", |_, pods| {
        let old = pods
            .iter()
            .filter(|pod| pod.ordinal < Some(2) && pod.image == "v1");
        if old.count() == 2 && pods.iter().filter(|pod| pod.ready).count() == 3 {
            Ok(())
        } else {
            Err("not yet".into())
        }
    })
    .await?;
    all_is_well(cluster);
    expect_out::<3>(&db, &rollout, "v2").await?;
    db.expect_one_down_at_most(before)
}

async fn a_pod_that_is_lost_while_the_operator_is_away_begins_the_checks_anew(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_operator().await?;
    // Rare enough that the next check does not come before the pod is lost, however slow the machine is.
    let (db, rollout) = two_pods(cluster, json!({"periodSeconds": 60})).await?;
    db.set_image("v2").await?;
    expect_checks(&rollout, "a good check", |checks| {
        checks.consecutive_successful_checks == 1
    })
    .await?;
    cluster.stop_operator();
    let lost: Vec<_> = db.pods().await?.into_iter().map(|pod| pod.uid).take(1).collect();
    db.delete_pod(0).await?;
    db.eventually("pod db-0 is another one", |_, pods| {
        let there = pods.iter().filter(|pod| pod.ready && !lost.contains(&pod.uid));
        if there.count() == 2 {
            Ok(())
        } else {
            Err("not all are Ready".into())
        }
    })
    .await?;
    cluster.start_operator();
    rollout.expect_event("ChecksRestarted", "db-0").await?;
    expect_partition(&db, 2).await?;
    rollout
        .patch("ask more often", json!({"check": {"periodSeconds": 1}}))
        .await?;
    expect_out::<2>(&db, &rollout, "v2").await
}

/// Earlier successes no longer count.
async fn another_meaning_begins_the_checks_anew(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = two_pods(cluster, json!({"successThreshold": 3})).await?;
    db.set_image("v2").await?;
    expect_checks(&rollout, "a good check", |checks| {
        checks.consecutive_successful_checks > 0
    })
    .await?;
    rollout
        .patch("turn it round", json!({"check": {"successOn": "Data"}}))
        .await?;
    expect_checks(&rollout, "a failed check at partition 2", |checks| {
        checks.partition == 2 && checks.consecutive_failed_checks > 0
    })
    .await?;
    rollout
        .expect_event("CheckFailed", "no data was returned")
        .await?;
    cluster.metrics().says("errors", [1.0]);
    expect_out::<2>(&db, &rollout, "v2").await
}
