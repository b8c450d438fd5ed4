//! Pauses and stalls (rules 11, 12 and 14).

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stateward_kubelet::{Behaviour, Match};

use super::paused_at;
use crate::harness::{Cluster, Doing, Failure, Outcome, Set};
use crate::scenarios;

scenarios![
    a_pause_longer_than_the_deadline_stays_a_pause,
    a_pause_by_hand_stops_exposure_in_the_middle_of_a_step,
    a_pause_by_hand_before_a_change_releases_nothing,
    no_progress_for_too_long_is_a_failure_that_a_longer_deadline_takes_back,
    no_progress_for_too_long_is_a_failure_that_a_ready_pod_takes_back,
    no_progress_for_too_long_aborts_where_asked,
    no_progress_for_too_long_aborts_under_the_names_of_the_plugin,
    readiness_that_comes_and_goes_is_not_progress,
    an_image_that_cannot_be_pulled_fails_fast,
    a_pod_that_is_killed_for_its_memory_fails_fast,
    a_pod_that_cannot_be_configured_fails_fast,
    a_broken_pod_aborts_where_that_is_asked_of_broken_pods_alone,
    a_broken_pod_that_may_get_well_is_waited_for,
    a_crash_loop_that_is_ready_for_a_moment_passes_no_step,
    a_new_pod_lost_in_a_pause_by_hand_comes_back_new,
    a_set_scaled_in_a_pause_by_hand_moves_no_pod,
    a_new_pod_that_breaks_in_a_pause_is_caught,
    a_pause_by_hand_outlasts_a_timed_one,
    a_pod_that_is_unwell_at_rest_meets_no_deadline,
    a_partition_that_is_refused_is_told_and_no_fault_of_the_version,
];

/// Makes every pod of the new version behave like this.
fn new_pods(cluster: &Cluster, behaviour: Behaviour) {
    cluster
        .pods()
        .program(Match::image("example.com/db:v2"), behaviour);
}

/// Uses another rollout as a clock.
async fn time_passes(cluster: &Cluster, time: &str) -> Outcome {
    let web = cluster.statefulset("web").replicas(1).start().await?;
    let pause = json!([{"pause": {"duration": time}}]);
    let timer = cluster.rollout("web").steps(pause).start().await?;
    web.set_image("v2").await?;
    web.expect_images(["v2"]).await?;
    timer.expect_phase("Successful").await.map(drop)
}

/// Gap 15 of the state of the art: paused time counted against the deadline.
async fn a_pause_longer_than_the_deadline_stays_a_pause(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let deadline = json!({"progressDeadlineSeconds": 1, "progressDeadlineAbort": true});
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {}}]);
    let rollout = cluster
        .rollout("db")
        .steps(steps)
        .spec(json!({"progressDeadlineSeconds": 30, "progressDeadlineAbort": true}))
        .start()
        .await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.patch("shorten the deadline", deadline).await?;
    time_passes(cluster, "3s").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout
        .patch("lengthen the deadline", json!({"progressDeadlineSeconds": 600}))
        .await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 2]).await
}

async fn a_pause_by_hand_stops_exposure_in_the_middle_of_a_step(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    new_pods(cluster, Behaviour::ready_after(Duration::from_secs(3)));
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 80}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    cluster
        .eventually("the first new pod is made", |view| {
            let new = view.births.iter().find(|pod| pod.image == "v2");
            new.map(drop).ok_or_else(String::new)
        })
        .await?;
    rollout.patch("pause", json!({"paused": true})).await?;
    rollout.expect_phase("Paused").await?;
    db.expect_images(["v1", "v1", "v1", "v1", "v2"]).await?;
    db.expect_ready().await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2"]).await?;
    rollout.patch("resume", json!({"paused": false})).await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v2", "v2", "v2", "v2"]).await
}

async fn a_pause_by_hand_before_a_change_releases_nothing(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 34}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    rollout.patch("pause", json!({"paused": true})).await?;
    let before = db.pods().await?;
    db.set_image("v2").await?;
    rollout.expect_step(0, "Paused").await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await?;
    rollout.patch("resume", json!({"paused": false})).await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}

async fn no_progress_for_too_long_is_a_failure_that_a_longer_deadline_takes_back(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_operator().await?;
    new_pods(cluster, Behaviour::never_ready());
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {}}]);
    let rollout = cluster
        .rollout("db")
        .steps(steps)
        .spec(json!({"progressDeadlineSeconds": 2}))
        .start()
        .await?;
    db.set_image("v2").await?;
    let status = rollout
        .expect_condition("Progressing", "False", "ProgressDeadlineExceeded")
        .await?;
    if status.phase != "Failed" || status.aborted {
        return Err(cluster.unmet("failed, not aborted", format!("{status:?}")));
    }
    rollout
        .expect_event("ProgressDeadlineExceeded", "no progress")
        .await?;
    rollout.expect_condition("Stalled", "True", "no progress").await?;
    db.expect_rest(["v1", "v2"]).await?;
    let longer = json!({"progressDeadlineSeconds": 500});
    rollout.patch("lengthen the deadline", longer).await?;
    rollout.expect_step(0, "Progressing").await?;
    new_pods(cluster, Behaviour::default());
    rollout.expect_step(1, "Paused").await.map(drop)
}

async fn no_progress_for_too_long_is_a_failure_that_a_ready_pod_takes_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    new_pods(cluster, Behaviour::never_ready());
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {}}]);
    let rollout = cluster
        .rollout("db")
        .steps(steps)
        .spec(json!({"progressDeadlineSeconds": 2}))
        .start()
        .await?;
    db.set_image("v2").await?;
    rollout.expect_phase("Failed").await?;
    new_pods(cluster, Behaviour::default());
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await.map(drop)
}

async fn aborts(cluster: &mut Cluster, spec: Value) -> Outcome {
    cluster.with_operator().await?;
    new_pods(cluster, Behaviour::never_ready());
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 67}]);
    let rollout = cluster.rollout("db").steps(steps).spec(spec).start().await?;
    db.set_image("v2").await?;
    let status = rollout.expect_message("every pod is back").await?;
    if !status.aborted || !status.message.contains("no progress for") {
        return Err(cluster.unmet("aborted for want of progress", format!("{status:?}")));
    }
    db.expect_rest(["v1"; 3]).await
}

async fn no_progress_for_too_long_aborts_where_asked(cluster: &mut Cluster) -> Outcome {
    let spec = json!({"progressDeadlineSeconds": 2, "progressDeadlineAbort": true});
    aborts(cluster, spec).await
}

async fn no_progress_for_too_long_aborts_under_the_names_of_the_plugin(cluster: &mut Cluster) -> Outcome {
    let config = json!({"timeoutSeconds": 2, "timeoutAbort": true});
    aborts(cluster, json!({"plugin": {"config": config}})).await
}

async fn readiness_that_comes_and_goes_is_not_progress(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let half = Duration::from_millis(700);
    new_pods(cluster, Behaviour::flapping(half, half));
    let db = cluster
        .statefulset("db")
        .replicas(2)
        .min_ready_seconds(3)
        .start()
        .await?;
    let steps = json!([{"setWeight": 50}, {"pause": {}}]);
    let rollout = cluster
        .rollout("db")
        .steps(steps)
        .spec(json!({"progressDeadlineSeconds": 8}))
        .start()
        .await?;
    db.set_image("v2").await?;
    rollout
        .expect_condition("Progressing", "False", "ProgressDeadlineExceeded")
        .await?;
    let status = rollout.get().await?.status.unwrap_or_default();
    if status.current_step_index != Some(0) {
        return Err(cluster.unmet("still the first step", format!("{status:?}")));
    }
    Ok(())
}

async fn fails_fast(cluster: &mut Cluster, behaviour: Behaviour, reason: &str) -> Outcome {
    cluster.with_operator().await?;
    new_pods(cluster, behaviour);
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 67}, {"pause": {}}]);
    // The deadline is ten minutes: nothing here waits for it.
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout
        .expect_condition("Progressing", "False", "PodBroken")
        .await?;
    let status = rollout.expect_message(reason).await?;
    if status.phase != "Failed" {
        return Err(cluster.unmet("phase Failed", format!("{status:?}")));
    }
    rollout.expect_event("PodBroken", "db-2").await?;
    let new = db.births().iter().filter(|pod| pod.image == "v2").count();
    if new != 1 {
        return Err(cluster.unmet("one pod exposed", format!("{new}")));
    }
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 3]).await
}

async fn an_image_that_cannot_be_pulled_fails_fast(cluster: &mut Cluster) -> Outcome {
    fails_fast(cluster, Behaviour::image_pull_error(), "ImagePull").await
}

async fn a_pod_that_is_killed_for_its_memory_fails_fast(cluster: &mut Cluster) -> Outcome {
    fails_fast(cluster, Behaviour::oom_killed(), "OOMKilled").await
}

async fn a_pod_that_cannot_be_configured_fails_fast(cluster: &mut Cluster) -> Outcome {
    fails_fast(cluster, Behaviour::config_error(), "CreateContainerConfigError").await
}

/// Rule 12
async fn a_broken_pod_aborts_where_that_is_asked_of_broken_pods_alone(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    new_pods(cluster, Behaviour::crash_loop());
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let abort = json!({"brokenPods": "Abort", "progressDeadlineAbort": false});
    let steps = json!([{"setWeight": 40}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).spec(abort).start().await?;
    db.set_image("v2").await?;
    rollout.expect_event("RolloutAborted", "CrashLoopBackOff").await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_phase("Failed").await.map(drop)
}

/// Rule 12
async fn a_broken_pod_that_may_get_well_is_waited_for(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    new_pods(cluster, Behaviour::crash_loop());
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let wait = json!({"brokenPods": "Wait", "progressDeadlineAbort": true});
    let steps = json!([{"setWeight": 40}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).spec(wait).start().await?;
    db.set_image("v2").await?;
    rollout.expect_message("CrashLoopBackOff").await?;
    rollout.expect_step(0, "Progressing").await?;
    new_pods(cluster, Behaviour::ready_after(Duration::from_millis(20)));
    db.delete_pod(2).await?;
    rollout.expect_step(1, "Paused").await.map(drop)
}

/// Gap 11 of the state of the art: without a readiness probe a crash-looping pod is Ready for a moment after every restart.
async fn a_crash_loop_that_is_ready_for_a_moment_passes_no_step(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let moment = Behaviour::crash_loop().ready_for(Duration::from_millis(300));
    new_pods(cluster, moment);
    let db = cluster
        .statefulset("db")
        .replicas(3)
        // Kubernetes reports readiness in whole seconds.
        .min_ready_seconds(2)
        .start()
        .await?;
    let steps = json!([{"setWeight": 34}, {"setWeight": 67}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_message("CrashLoopBackOff").await?;
    let status = rollout.expect_phase("Failed").await?;
    if status.current_step_index != Some(0) {
        return Err(cluster.unmet("still the first step", format!("{status:?}")));
    }
    db.expect_no_move().await
}

async fn a_new_pod_lost_in_a_pause_by_hand_comes_back_new(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 40).await?;
    rollout.patch("pause", json!({"paused": true})).await?;
    rollout.expect_message("paused by spec.paused").await?;
    db.delete_pod(4).await?;
    cluster
        .eventually("the pod is made again", |view| match view.births.len() {
            8 => Ok(()),
            other => Err(format!("{other} pods were made")),
        })
        .await?;
    db.expect_rest(["v1", "v1", "v1", "v2", "v2"]).await?;
    match db.births().len() {
        8 => rollout.expect_phase("Paused").await.map(drop),
        other => Err(cluster.unmet("no other pod made again", format!("{other}"))),
    }
}

async fn a_set_scaled_in_a_pause_by_hand_moves_no_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 20).await?;
    rollout.patch("pause", json!({"paused": true})).await?;
    rollout.expect_message("paused by spec.paused").await?;
    db.scale(8).await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v2", "v1", "v1", "v1"])
        .await?;
    rollout.expect_phase("Paused").await.map(drop)
}

async fn a_new_pod_that_breaks_in_a_pause_is_caught(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 67).await?;
    new_pods(cluster, Behaviour::crash_loop());
    rollout.expect_event("PodBroken", "CrashLoopBackOff").await?;
    rollout.expect_phase("Failed").await?;
    rollout
        .patch("abort on failure", json!({"progressDeadlineAbort": true}))
        .await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 3]).await
}

async fn a_pause_by_hand_outlasts_a_timed_one(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(4).start().await?;
    let steps =
        json!([{"setWeight": 25}, {"pause": {"duration": "5s"}}, {"setWeight": 50}, {"setWeight": 75}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.patch("pause", json!({"paused": true})).await?;
    rollout.expect_message("paused by spec.paused").await?;
    time_passes(cluster, "6s").await?;
    db.expect_rest(["v1", "v1", "v1", "v2"]).await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.patch("resume", json!({"paused": false})).await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 4]).await
}

/// A deadline applies to rollouts: a stable version has nothing to roll back to.
async fn a_pod_that_is_unwell_at_rest_meets_no_deadline(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster
        .rollout("db")
        .spec(json!({"progressDeadlineSeconds": 1, "progressDeadlineAbort": true}))
        .start()
        .await?;
    let middle = Match::image("example.com/db:v1").ordinal(1);
    cluster.pods().program(middle.clone(), Behaviour::never_ready());
    rollout.expect_message("db-1").await?;
    let before = db.pods().await?;
    time_passes(cluster, "3s").await?;
    let status = rollout.expect_phase("Progressing").await?;
    if status.aborted || status.returning.is_some() {
        return Err(cluster.unmet("nothing aborted", format!("{status:?}")));
    }
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await?;
    cluster.pods().program(middle, Behaviour::default());
    rollout.expect_phase("Successful").await.map(drop)
}

/// Makes the API server reject every change of the set's partition.
async fn freeze_partition(cluster: &Cluster, db: &Set<'_>) -> Outcome {
    let name = policy(cluster);
    let partition = |object: &str| format!("{object}.spec.updateStrategy.rollingUpdate.partition");
    let rule = format!(
        "object.metadata.name != '{}' || {} == {}",
        db.name(),
        partition("object"),
        partition("oldObject")
    );
    let sets = json!({
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["statefulsets"],
    });
    let policy = json!({
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [sets]},
            "validations": [{"expression": rule, "message": "partitions are frozen"}],
        },
    });
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace()}});
    let binding = json!({
        "metadata": {"name": name},
        "spec": {
            "policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": here},
        },
    });
    let policy = serde_json::from_value(policy).map_err(kube::Error::SerdeError);
    let policy: ValidatingAdmissionPolicy = policy.doing("read a policy")?;
    let binding = serde_json::from_value(binding).map_err(kube::Error::SerdeError);
    let binding: ValidatingAdmissionPolicyBinding = binding.doing("read a binding")?;
    let created = policies(cluster).create(&PostParams::default(), &policy).await;
    if let Err(kube::Error::Api(status)) = &created
        && matches!(status.code, 404 | 501)
    {
        return Err(Failure::NotHere("it has no admission policies".into()));
    }
    created.doing("create a policy")?;
    let bound = bindings(cluster).create(&PostParams::default(), &binding).await;
    bound.doing("bind a policy")?;
    // The API server takes a moment to apply a new policy.
    let trial = Patch::Merge(json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}}));
    let params = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    while db.api().patch(db.name(), &params, &trial).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn thaw_partition(cluster: &Cluster) -> Outcome {
    let (name, now) = (policy(cluster), DeleteParams::default());
    let unbound = bindings(cluster).delete(&name, &now).await;
    unbound.doing("unbind the policy")?;
    let deleted = policies(cluster).delete(&name, &now).await;
    deleted.doing("delete the policy").map(drop)
}

/// Policies are cluster-scoped.
fn policy(cluster: &Cluster) -> String {
    format!("partitions.{}", cluster.namespace())
}

fn policies(cluster: &Cluster) -> Api<ValidatingAdmissionPolicy> {
    Api::all(cluster.client())
}

fn bindings(cluster: &Cluster) -> Api<ValidatingAdmissionPolicyBinding> {
    Api::all(cluster.client())
}

async fn a_partition_that_is_refused_is_told_and_no_fault_of_the_version(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster
        .rollout("db")
        .steps(json!([{"setWeight": 34}, {"pause": {}}]))
        .spec(json!({"progressDeadlineSeconds": 15, "progressDeadlineAbort": true}))
        .start()
        .await?;
    let before = db.pods().await?;
    freeze_partition(cluster, &db).await?;
    db.set_image("v2").await?;
    rollout.expect_message("partitions are frozen").await?;
    rollout
        .expect_event("RequestRefused", "partitions are frozen")
        .await?;
    time_passes(cluster, "20s").await?;
    db.expect_same_pods(&before).await?;
    thaw_partition(cluster).await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}
