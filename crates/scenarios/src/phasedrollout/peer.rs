//! Taking over from sts-plus-operator, whatever state its objects and sets are in when it is stopped.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use stateward_api::phasedrollout::SuccessOn;
use stateward_kubelet::{Behaviour, Match};

use super::{Phased, expect_checks, expect_out, expect_partition};
use crate::harness::{Cluster, Doing, Outcome, Set};
use crate::scenarios;

scenarios![
    a_rollout_of_another_operator_goes_on_where_it_was,
    an_object_of_another_operator_that_is_replaced_keeps_its_meaning,
    a_rollout_that_another_operator_has_not_begun_waits_for_its_checks,
    a_prometheus_error_of_another_operator_is_found_again,
    a_pod_that_another_operator_waits_for_is_waited_for,
    an_object_at_rest_with_another_operator_is_at_rest,
    a_pod_that_another_operator_forgot_returns,
    a_set_that_another_operator_left_to_kubernetes_stays_so,
    a_set_that_another_operator_misses_is_waited_for,
    a_set_that_another_operator_cannot_manage_is_managed_when_it_can_be,
    the_one_that_another_operator_named_goes_first,
    one_that_another_operator_named_and_that_means_another_set_holds_up_nobody,
    a_set_that_another_operator_guards_for_an_object_that_means_another_is_let_go,
    an_object_of_another_operator_can_be_deleted,
    an_object_that_was_deleted_when_its_operator_was_gone_lets_go,
    an_object_that_was_deleted_in_the_middle_when_its_operator_was_gone_leaves_every_pod,
];

const LONG_AGO: &str = "2025-01-01T00:00:00Z";

/// Fields that the other operator writes on its objects.
fn left_behind() -> Value {
    json!({"metadata": {"finalizers": ["sts.plus/finalizer"]}})
}

/// A status of the other operator. With `checks`, those of a pod that is being rolled.
fn peer_status(phase: &str, [ready, updated]: [&str; 2], checks: Option<Value>) -> Value {
    let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": LONG_AGO});
    let reason = if ready == "True" && phase != "Suspended" {
        "Ready"
    } else {
        phase
    };
    json!({
        "phase": phase,
        "updateRevision": "db-0",
        "rolloutStartTime": LONG_AGO,
        "conditions": [condition("Ready", ready, reason), condition("Updated", updated, phase)],
        "rollingPodStatus": checks,
    })
}

/// A status in the middle of a rollout.
fn rolling(word: &str, partition: i32, successes: i32) -> Value {
    let checks = json!({
        "status": word, "partition": partition, "analisysStartTime": LONG_AGO,
        "lastCheckTime": "2025-01-01T00:00:30Z", "consecutiveSuccessfulChecks": successes,
        "consecutiveFailedChecks": 0, "totalFailedChecks": 4,
    });
    peer_status("Rolling", ["True", "False"], Some(checks))
}

/// An object of the other operator for `db`, with this status.
async fn object<'c>(cluster: &'c Cluster, name: &str, spec: Value, status: Value) -> Outcome<Phased<'c>> {
    let rollout = cluster
        .phased("db")
        .named(name)
        .check(json!({"query": {"expr": "healthy"}}))
        .spec(spec)
        .with(&left_behind())
        .create()
        .await?;
    rollout.overwrite(status).await?;
    Ok(rollout)
}

/// Sets the other operator's annotation on a set.
async fn annotate(cluster: &Cluster, db: &Set<'_>, name: &str) -> Outcome {
    cluster.note(&format!("the other operator takes db for {name}"));
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"sts.plus/phasedRollout": name}}}));
    let written = db.api().patch(db.name(), &PatchParams::default(), &patch).await;
    written.doing("annotate statefulset db").map(drop)
}

/// A set of three pods at rest, guarded as by the other operator.
async fn at_rest(cluster: &Cluster) -> Outcome<Set<'_>> {
    let db = cluster.statefulset("db").replicas(3).partition(3).start().await?;
    annotate(cluster, &db, "db").await?;
    Ok(db)
}

/// Starts the operator and waits for `look`; until then no pod may move.
async fn take_over<T>(cluster: &Cluster, db: &Set<'_>, look: impl AsyncFnOnce() -> Outcome<T>) -> Outcome<T> {
    let before = db.pods().await?;
    cluster.start_operator();
    let seen = look().await?;
    db.expect_same_pods(&before).await?;
    Ok(seen)
}

async fn expect_failed_check(rollout: &Phased<'_>) -> Outcome {
    // For the other operator, data is a success.
    let failed = expect_checks(rollout, "a failed check", |checks| {
        checks.consecutive_failed_checks > 0
    });
    failed.await.map(drop)
}

/// Waits until the rollout continues and completes.
async fn expect_goes_on(cluster: &Cluster, db: &Set<'_>, rollout: &Phased<'_>) -> Outcome {
    cluster.metrics().says("healthy", [1.0]);
    expect_out::<3>(db, rollout, "v2").await?;
    expect_partition(db, 3).await
}

async fn a_rollout_of_another_operator_goes_on_where_it_was(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let db = at_rest(cluster).await?;
    db.set_image("v2").await?;
    db.set_partition(2).await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    // All checks that it required have succeeded, long ago.
    let rollout = object(cluster, "db", json!({}), rolling("WaitForChecks", 2, 2)).await?;
    take_over(cluster, &db, async || {
        rollout.expect_message("the gate before pod db-1").await?;
        expect_failed_check(&rollout).await
    })
    .await?;
    rollout.expect_event("RolloutStarted", "found").await?;
    expect_partition(&db, 2).await?;
    let status = rollout.expect_phase("Rolling").await?;
    cluster.expect("that is told", status.success_on == Some(SuccessOn::Data))?;
    rollout.expect_columns([("Success-On", json!("Data"))]).await?;
    expect_goes_on(cluster, &db, &rollout).await
}

/// `kubectl replace` with the manifest: nothing in it names the other operator.
async fn an_object_of_another_operator_that_is_replaced_keeps_its_meaning(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let db = at_rest(cluster).await?;
    db.set_image("v2").await?;
    let rollout = object(cluster, "db", json!({}), rolling("WaitForChecks", 3, 0)).await?;
    take_over(cluster, &db, async || expect_failed_check(&rollout).await).await?;
    let bare = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let replaced = rollout.api().patch("db", &PatchParams::default(), &bare).await;
    replaced.doing("replace phasedrollout db")?;
    let asked = cluster.metrics().asked("healthy");
    rollout
        .eventually("more checks fail", |status| {
            let again = cluster.metrics().asked("healthy") > asked + 3;
            let failed = status.rolling_pod_status.as_ref();
            let failed = failed.is_some_and(|checks| checks.consecutive_failed_checks > 0);
            if again && failed && status.success_on == Some(SuccessOn::Data) {
                Ok(())
            } else {
                Err(format!("{:?}", status.success_on))
            }
        })
        .await?;
    db.expect_rest(["v1"; 3]).await?;
    expect_goes_on(cluster, &db, &rollout).await
}

async fn a_rollout_that_another_operator_has_not_begun_waits_for_its_checks(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_definitions().await?;
    let db = at_rest(cluster).await?;
    db.set_image("v2").await?;
    let rollout = object(cluster, "db", json!({}), rolling("WaitForInitialDelay", 3, 0)).await?;
    take_over(cluster, &db, async || {
        rollout.expect_message("the gate before pod db-2").await?;
        expect_failed_check(&rollout).await
    })
    .await?;
    expect_partition(&db, 3).await?;
    expect_goes_on(cluster, &db, &rollout).await
}

/// The Secret is missing for both operators.
async fn a_prometheus_error_of_another_operator_is_found_again(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let db = at_rest(cluster).await?;
    cluster.let_operator_read("prom-secret").await?;
    db.set_image("v2").await?;
    db.set_partition(1).await?;
    db.expect_rest(["v1", "v2", "v2"]).await?;
    let secret = json!({"check": {"query": {"secretRef": "prom-secret"}}});
    let rollout = object(cluster, "db", secret, rolling("PrometheusError", 1, 1)).await?;
    cluster.metrics().says("healthy", [1.0]);
    take_over(cluster, &db, async || {
        expect_checks(&rollout, "no Secret", |checks| {
            let last = checks.last_check.clone().unwrap_or_default();
            checks.status == "PrometheusError" && last.reason == "SecretError"
        })
        .await
    })
    .await?;
    expect_partition(&db, 1).await?;
    let token = json!({"stringData": {"token": "token"}});
    cluster.create("secrets", "prom-secret", token).await?;
    expect_goes_on(cluster, &db, &rollout).await
}

async fn a_pod_that_another_operator_waits_for_is_waited_for(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let db = at_rest(cluster).await?;
    let slow = Match::set("db").ordinal(2).with_image("example.com/db:v2");
    cluster.pods().program(slow.clone(), Behaviour::never_ready());
    cluster.metrics().says("healthy", [1.0]);
    db.set_image("v2").await?;
    db.set_partition(2).await?;
    db.expect_images(["v1", "v1", "v2"]).await?;
    let waits = rolling("WaitForAllPodsToBeAvailable", 2, 0);
    let rollout = object(cluster, "db", json!({}), waits).await?;
    take_over(cluster, &db, async || {
        rollout.expect_message("waiting for pod db-2 to be Ready").await
    })
    .await?;
    expect_partition(&db, 2).await?;
    cluster.pods().program(slow, Behaviour::default());
    expect_goes_on(cluster, &db, &rollout).await
}

async fn an_object_at_rest_with_another_operator_is_at_rest(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let db = at_rest(cluster).await?;
    let status = peer_status("Updated", ["True", "True"], None);
    let rollout = object(cluster, "db", json!({}), status).await?;
    take_over(cluster, &db, async || rollout.expect_phase("Updated").await).await?;
    expect_partition(&db, 3).await?;
    db.set_image("v2").await?;
    expect_failed_check(&rollout).await?;
    db.expect_rest(["v1"; 3]).await?;
    expect_goes_on(cluster, &db, &rollout).await
}

/// It reports completion when the template is reverted in the middle; a pod on the intermediate version stays there.
async fn a_pod_that_another_operator_forgot_returns(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let db = at_rest(cluster).await?;
    db.set_image("v2").await?;
    db.set_partition(2).await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    db.set_partition(3).await?;
    db.set_image("v1").await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    let status = peer_status("Updated", ["True", "True"], None);
    let rollout = object(cluster, "db", json!({}), status).await?;
    let before = db.pods().await?;
    cluster.start_operator();
    expect_out::<3>(&db, &rollout, "v1").await?;
    rollout
        .expect_event("RollbackCompleted", "every pod is back")
        .await?;
    let after = db.pods().await?;
    let stayed = before[..2]
        .iter()
        .zip(&after)
        .all(|(one, other)| one.uid == other.uid);
    cluster.expect("no other pod has moved", stayed)
}

async fn a_set_that_another_operator_left_to_kubernetes_stays_so(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    annotate(cluster, &db, "db").await?;
    let status = peer_status("Suspended", ["True", "Unknown"], None);
    let spec = json!({"standardRollingUpdate": true});
    let rollout = object(cluster, "db", spec, status).await?;
    take_over(cluster, &db, async || {
        rollout
            .expect_message("left to Kubernetes' own rolling update")
            .await
    })
    .await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Suspended").await.map(drop)
}

async fn a_set_that_another_operator_misses_is_waited_for(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let status = peer_status("ErrorSTSNotFound", ["False", "Unknown"], None);
    let rollout = object(cluster, "db", json!({}), status).await?;
    cluster.start_operator();
    rollout.expect_message("waiting for StatefulSet db").await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    rollout.expect_phase("Updated").await?;
    expect_partition(&db, 3).await
}

/// It also annotates sets that it cannot manage.
async fn a_set_that_another_operator_cannot_manage_is_managed_when_it_can_be(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_definitions().await?;
    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    let db = cluster.statefulset("db").spec(on_delete).start().await?;
    annotate(cluster, &db, "db").await?;
    let status = peer_status("ErrorCannotManage", ["False", "Unknown"], None);
    let rollout = object(cluster, "db", json!({}), status).await?;
    take_over(cluster, &db, async || {
        rollout.expect_message("only RollingUpdate").await
    })
    .await?;
    let rolling = json!({"updateStrategy": {"type": "RollingUpdate"}});
    db.patch("let it be rolled", rolling).await?;
    rollout.expect_phase("Updated").await?;
    expect_partition(&db, 3).await
}

/// S002-10: also if the other object would come first by name and age.
async fn the_one_that_another_operator_named_goes_first(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let db = at_rest(cluster).await?;
    annotate(cluster, &db, "second").await?;
    let errors = peer_status("ErrorCannotManage", ["False", "Unknown"], None);
    let first = object(cluster, "first", json!({}), errors).await?;
    let updated = peer_status("Updated", ["True", "True"], None);
    let second = object(cluster, "second", json!({}), updated).await?;
    take_over(cluster, &db, async || {
        first
            .expect_message("already managed by PhasedRollout second")
            .await?;
        second.expect_phase("Updated").await
    })
    .await?;
    first.expect_phase("ErrorCannotManage").await?;
    first
        .expect_condition("Ready", "False", "already managed by PhasedRollout second")
        .await?;
    db.set_image("v2").await?;
    expect_failed_check(&second).await?;
    cluster.metrics().says("healthy", [1.0]);
    expect_out::<3>(&db, &second, "v2").await?;
    second.delete().await?;
    second.expect_gone().await?;
    first.expect_phase("Updated").await?;
    expect_partition(&db, 3).await
}

async fn one_that_another_operator_named_and_that_means_another_set_holds_up_nobody(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_definitions().await?;
    let db = at_rest(cluster).await?;
    annotate(cluster, &db, "second").await?;
    let errors = peer_status("ErrorCannotManage", ["False", "Unknown"], None);
    let first = object(cluster, "first", json!({}), errors).await?;
    let updated = peer_status("Updated", ["True", "True"], None);
    let second = object(cluster, "second", json!({}), updated).await?;
    take_over(cluster, &db, async || {
        first
            .expect_message("already managed by PhasedRollout second")
            .await?;
        second.expect_phase("Updated").await.map(drop)
    })
    .await?;
    let cache = json!({"targetRef": "cache"});
    second.patch("mean another set", cache).await?;
    first.expect_phase("Updated").await?;
    expect_partition(&db, 3).await
}

/// The other operator would guard it forever. The object's status is about another set.
async fn a_set_that_another_operator_guards_for_an_object_that_means_another_is_let_go(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_operator().await?;
    let cache = cluster.statefulset("cache").replicas(2).start().await?;
    let rollout = cluster.phased("cache").named("db").start().await?;
    cluster.stop_operator();
    let db = at_rest(cluster).await?;
    take_over(cluster, &db, async || {
        expect_partition(&db, 0).await?;
        expect_no_claim(&db).await
    })
    .await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Updated").await?;
    expect_partition(&cache, 2).await
}

async fn an_object_of_another_operator_can_be_deleted(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let db = at_rest(cluster).await?;
    cluster.start_operator();
    let rollout = cluster.phased("db").with(&left_behind()).start().await?;
    rollout.delete().await?;
    rollout.expect_gone().await?;
    // The other operator's guard is not a user's setting.
    expect_partition(&db, 0).await?;
    expect_no_claim(&db).await
}

/// Waits until a set carries no claim.
async fn expect_no_claim(db: &Set<'_>) -> Outcome {
    db.eventually("no claim is left", |set, _| {
        let mut annotations = set.metadata.annotations.clone().unwrap_or_default();
        annotations.remove("stateward.dev/left");
        if annotations.is_empty() {
            Ok(())
        } else {
            Err(format!("{annotations:?}"))
        }
    })
    .await
}

/// No other operator would remove the finalizer, and the next object would wait forever.
async fn an_object_that_was_deleted_when_its_operator_was_gone_lets_go(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let db = at_rest(cluster).await?;
    let updated = peer_status("Updated", ["True", "True"], None);
    let rollout = object(cluster, "db", json!({}), updated.clone()).await?;
    let next = object(cluster, "next", json!({}), updated).await?;
    rollout.delete().await?;
    take_over(cluster, &db, async || {
        rollout.expect_gone().await?;
        next.expect_phase("Updated").await
    })
    .await?;
    expect_partition(&db, 3).await?;
    next.delete().await?;
    next.expect_gone().await?;
    expect_partition(&db, 0).await?;
    expect_no_claim(&db).await
}

async fn an_object_that_was_deleted_in_the_middle_when_its_operator_was_gone_leaves_every_pod(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_definitions().await?;
    let db = at_rest(cluster).await?;
    db.set_image("v2").await?;
    db.set_partition(2).await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    let rollout = object(cluster, "db", json!({}), rolling("WaitForChecks", 2, 2)).await?;
    rollout.delete().await?;
    take_over(cluster, &db, async || {
        rollout.expect_gone().await?;
        rollout
            .expect_event("RolloutFrozen", "every pod stays as it is")
            .await?;
        expect_no_claim(&db).await
    })
    .await?;
    expect_partition(&db, 2).await
}
