//! Invalid specs: the errors reported, and the guard that stays up.

use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::{Value, json};
use stateward_kubelet::{Behaviour, Match};

use super::analysis::template;
use super::{paused_at, stands_at};
use crate::harness::{Cluster, Doing, Failure, Outcome, Rollout, Set, partition};
use crate::scenarios;

scenarios![
    what_the_schema_knows_to_be_wrong_is_refused,
    an_invalid_reference_is_reported_and_touches_nothing,
    an_invalid_plan_guards_the_set_and_releases_nothing,
    an_address_that_the_operator_never_asks_moves_no_pod,
    an_invalid_plan_stops_a_change_that_is_on_its_way,
    a_plan_that_becomes_invalid_keeps_the_guard,
    a_spec_that_is_put_right_recovers_without_a_restart,
    a_spec_that_goes_wrong_in_the_middle_holds_the_rollout,
    a_set_that_is_updated_by_deletion_is_refused,
    a_second_rollout_of_the_same_set_waits_for_the_first_to_go,
    deleted_at_rest_the_set_is_as_it_was,
    deleted_after_an_abort_the_set_is_as_it_was,
    deleted_in_the_middle_the_set_stays_where_it_is,
    deleted_in_the_middle_the_partition_of_users_is_not_forgotten,
    deleted_with_a_missing_set_it_goes,
    a_set_that_is_deleted_and_made_again_is_another_one,
    an_object_that_is_meant_for_another_set_lets_go_of_the_first,
    an_object_that_is_meant_for_another_set_in_the_middle_leaves_every_pod,
    a_spec_that_is_put_right_takes_on_what_was_rolled_meanwhile,
    deleted_with_a_version_that_waits_no_pod_moves,
    claims_outlive_a_rollout_an_abort_and_the_set,
];

/// Expects that the API server rejects this spec with this message.
async fn refused(cluster: &Cluster, spec: Value, words: &str) -> Outcome {
    let shown = spec.to_string();
    match cluster.rollout("db").named("wrong").spec(spec).create().await {
        Err(Failure::Request { source, .. }) if source.to_string().contains(words) => Ok(()),
        Err(other) => Err(cluster.unmet(format!("{shown} is refused with {words:?}"), other.to_string())),
        Ok(_) => Err(cluster.unmet(format!("{shown} is refused"), "it was taken")),
    }
}

fn steps(steps: Value) -> Value {
    json!({"strategy": {"canary": {"steps": steps}}})
}

async fn what_the_schema_knows_to_be_wrong_is_refused(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let weight = "spec.strategy.canary.steps[0].setWeight";
    refused(cluster, steps(json!([{"setWeight": 140}])), weight).await?;
    refused(cluster, steps(json!([{"setWeight": -1}])), weight).await?;
    let one_kind = "exactly one of setWeight, pause and analysis";
    refused(cluster, steps(json!([{}])), one_kind).await?;
    refused(cluster, steps(json!([{"setWeight": 1, "pause": {}}])), one_kind).await?;
    for name in ["", "Bad_Name", "../../other/statefulsets/db"] {
        let workload = json!({"workloadRef": {"name": name}});
        refused(cluster, workload, "spec.workloadRef.name").await?;
    }
    let deadline = json!({"progressDeadlineSeconds": 0});
    refused(cluster, deadline, "spec.progressDeadlineSeconds").await
}

/// Waits until a rollout reports an invalid spec.
async fn invalid<'c>(
    cluster: &'c Cluster,
    set: &str,
    index: usize,
    spec: Value,
    words: &str,
) -> Outcome<Rollout<'c>> {
    let name = format!("wrong-{index}");
    let rollout = cluster.rollout(set).named(&name).spec(spec).create().await?;
    let status = rollout.expect_condition("InvalidSpec", "True", words).await?;
    rollout.expect_condition("Stalled", "True", words).await?;
    rollout.expect_event("InvalidSpec", words).await?;
    match status.phase.as_str() {
        "Failed" => Ok(rollout),
        _ => Err(cluster.unmet("phase Failed", format!("{status:?}"))),
    }
}

async fn an_invalid_reference_is_reported_and_touches_nothing(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let before = (db.get().await?, db.pods().await?);
    let cases = [
        (
            json!({"workloadRef": {"kind": "DaemonSet"}}),
            "spec.workloadRef: apps/v1 DaemonSet is not served by the plugin \"statefulset\"",
        ),
        (
            json!({"workloadRef": {"namespace": "kube-system"}}),
            "spec.workloadRef.namespace: \"kube-system\" is not",
        ),
        (
            json!({"plugin": {"name": "nobody/knows"}}),
            "spec.plugin.name: \"nobody/knows\" is not known",
        ),
    ];
    for (index, (spec, words)) in cases.into_iter().enumerate() {
        invalid(cluster, "db", index, spec, words).await?;
    }
    let after = db.get().await?;
    if after.metadata.generation != before.0.metadata.generation
        || after.metadata.annotations != before.0.metadata.annotations
    {
        return Err(cluster.unmet("the set as it was", format!("{:?}", after.metadata)));
    }
    db.expect_no_move().await?;
    db.expect_same_pods(&before.1).await
}

/// The guard belongs to the object, not to its plan (rule 1).
async fn an_invalid_plan_guards_the_set_and_releases_nothing(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let missing = json!([{"analysis": {"templates": [{"templateName": "t"}]}}]);
    let cases = [
        (
            steps(json!([{"pause": {"duration": "soon"}}])),
            "spec.strategy.canary.steps[0].pause.duration: \"soon\" is not a number of seconds or a duration",
        ),
        (
            steps(json!([{"pause": {"duration": -30}}])),
            "spec.strategy.canary.steps[0].pause.duration: -30 is negative; it must be 0 or longer",
        ),
        (
            steps(json!([{"setWeight": 100}, {"setWeight": 50}])),
            "spec.strategy.canary.steps[1].setWeight: 50 follows the 100 of step 0",
        ),
        (
            steps(missing),
            "spec.strategy.canary.steps[0].analysis.templates[0].templateName: there is no AnalysisTemplate",
        ),
        (
            json!({"strategy": {"canary": null}}),
            "spec.strategy.canary: is missing",
        ),
        (
            json!({"plugin": {"config": {"timeoutSeconds": "soon"}}}),
            "spec.plugin.config.timeoutSeconds: \"soon\" is not a whole number from 1 to",
        ),
        (
            json!({"plugin": {"config": {"timeoutSecond": 5}}}),
            "spec.plugin.config.timeoutSecond: is not known to the plugin \"statefulset\"; there is timeoutSeconds, timeoutAbort",
        ),
        (
            json!({"progressDeadlineSeconds": 600, "plugin": {"config": {"timeoutSeconds": 30}}}),
            "spec.progressDeadlineSeconds: 600 is not the 30 of spec.plugin.config.timeoutSeconds",
        ),
        (
            json!({"progressDeadlineAbort": false, "plugin": {"config": {"timeoutAbort": true}}}),
            "spec.progressDeadlineAbort: false is not the true of spec.plugin.config.timeoutAbort",
        ),
    ];
    let mut sets = Vec::new();
    for (index, (spec, words)) in cases.into_iter().enumerate() {
        let name = format!("db-{index}");
        let db = cluster.statefulset(&name).replicas(1).start().await?;
        let before = db.pods().await?;
        let rollout = invalid(cluster, &name, index, spec, words).await?;
        rollout
            .expect_message("no pod is released until it is fixed")
            .await?;
        stands_at(&db, 1).await?;
        db.set_image("v2").await?;
        db.expect_observed().await?;
        sets.push((db, before));
    }
    for (db, before) in &sets {
        db.expect_no_move().await?;
        db.expect_same_pods(before).await?;
    }
    Ok(())
}

/// A query that can never succeed is an invalid plan, not a run that fails after the first pod.
async fn an_address_that_the_operator_never_asks_moves_no_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let metrics = json!([{
        "name": "m", "count": 1, "provider": {"web": {"url": "http://{{args.host}}/health", "jsonPath": "{$.ok}"}},
    }]);
    template(
        cluster,
        "t",
        json!({"metrics": metrics, "args": [{"name": "host"}]}),
    )
    .await?;
    let asks = |host: &str| {
        let analysis =
            json!({"templates": [{"templateName": "t"}], "args": [{"name": "host", "value": host}]});
        steps(json!([{"setWeight": 50}, {"pause": {}}, {"analysis": analysis}]))
    };
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let words = "metrics[0].provider.web.url: 169.254.169.254 is an address of a cloud";
    let rollout = invalid(cluster, "db", 0, asks("169.254.169.254"), words).await?;
    stands_at(&db, 2).await?;
    db.set_image("v2").await?;
    db.expect_observed().await?;
    db.expect_no_move().await?;
    rollout
        .patch("ask where nobody listens", asks("10.0.0.9:9"))
        .await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v2"]).await
}

/// A template change in progress when the object is created stops where it is, and goes through the steps once the plan is valid.
async fn an_invalid_plan_stops_a_change_that_is_on_its_way(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let new = Match::image("example.com/db:v2");
    cluster.pods().program(new.clone(), Behaviour::never_ready());
    db.set_image("v2").await?;
    db.expect_images(["v1", "v1", "v2"]).await?;
    let wrong = steps(json!([{"setWeight": 34}, {"pause": {"duration": "soon"}}]));
    let rollout = cluster.rollout("db").spec(wrong).create().await?;
    rollout
        .expect_condition("InvalidSpec", "True", "\"soon\"")
        .await?;
    stands_at(&db, 2).await?;
    // Its pod becomes Ready, and Kubernetes goes no further.
    cluster.pods().program(new, Behaviour::default());
    db.expect_ready().await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    let right = json!([{"setWeight": 34}, {"pause": {}}]);
    rollout.patch("put the steps right", steps(right)).await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}

/// At rest and during a rollout, a client that lowers the partition releases no pod either.
async fn a_plan_that_becomes_invalid_keeps_the_guard(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let wrong = || steps(json!([{"setWeight": 34}, {"pause": {"duration": "soon"}}]));
    let right = || steps(json!([{"setWeight": 34}, {"pause": {}}]));
    let rollout = cluster.rollout("db").spec(right()).start().await?;
    let before = db.pods().await?;
    rollout.patch("break the steps", wrong()).await?;
    rollout
        .expect_condition("InvalidSpec", "True", "\"soon\"")
        .await?;
    db.set_partition(0).await?;
    stands_at(&db, 3).await?;
    db.set_image("v2").await?;
    db.expect_observed().await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await?;
    rollout.patch("put the steps right", right()).await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.patch("break the steps", wrong()).await?;
    rollout
        .expect_condition("InvalidSpec", "True", "\"soon\"")
        .await?;
    let new = || Match::image("example.com/db:v2");
    let slow = Behaviour::ready_after(Duration::from_secs(30));
    cluster.pods().program(new(), slow);
    db.set_partition(0).await?;
    // Kubernetes may have begun to replace the next pod by then. It goes no further before that pod is Ready.
    db.eventually(
        "a partition that releases no third pod",
        |set, _| match partition(set) {
            Some(1 | 2) => Ok(()),
            other => Err(format!("partition {other:?}")),
        },
    )
    .await?;
    cluster.pods().program(new(), Behaviour::default());
    rollout.patch("put the steps right", right()).await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}

async fn a_spec_that_is_put_right_recovers_without_a_restart(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster
        .rollout("db")
        .steps(json!([{"setWeight": 34}, {"pause": {}}]))
        .spec(json!({"plugin": {"name": "nobody/knows"}}))
        .create()
        .await?;
    rollout
        .expect_condition("InvalidSpec", "True", "nobody/knows")
        .await?;
    let plugin = json!({"plugin": {"name": "argoproj/statefulset"}});
    rollout.patch("put the spec right", plugin).await?;
    let status = rollout.expect_phase("Successful").await?;
    if status.conditions.iter().any(|one| one.kind == "InvalidSpec") {
        return Err(cluster.unmet("no condition InvalidSpec", format!("{status:?}")));
    }
    guarded(&db, 3).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}

async fn guarded(db: &Set<'_>, expected: i32) -> Outcome {
    db.eventually(format!("partition {expected}"), |set, _| match partition(set) {
        Some(partition) if partition == expected => Ok(()),
        other => Err(format!("partition {other:?}")),
    })
    .await
}

async fn a_spec_that_goes_wrong_in_the_middle_holds_the_rollout(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    let before = db.pods().await?;
    let wrong = json!([{"setWeight": 34}, {"pause": {"duration": "soon"}}]);
    rollout.patch("break the steps", steps(wrong)).await?;
    rollout
        .expect_condition("InvalidSpec", "True", "\"soon\"")
        .await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await?;
    let right = json!([{"setWeight": 34}, {"pause": {}}]);
    rollout.patch("put the steps right", steps(right)).await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_same_pods(&before).await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 3]).await
}

async fn a_set_that_is_updated_by_deletion_is_refused(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    let db = cluster
        .statefulset("db")
        .replicas(2)
        .spec(on_delete)
        .start()
        .await?;
    let rollout = cluster.rollout("db").create().await?;
    let words = "spec.updateStrategy.type OnDelete: only RollingUpdate";
    rollout.expect_condition("Stalled", "True", words).await?;
    rollout.expect_event("WorkloadUnfit", words).await?;
    let set = db.get().await?;
    if set.metadata.generation != Some(1) || set.metadata.annotations.is_some() {
        return Err(cluster.unmet("the set as it was", format!("{:?}", set.metadata)));
    }
    let rolling = json!({"updateStrategy": {"type": "RollingUpdate"}});
    db.patch("update by rolling", rolling).await?;
    rollout.expect_phase("Successful").await?;
    guarded(&db, 2).await
}

/// Rule 15.
async fn a_second_rollout_of_the_same_set_waits_for_the_first_to_go(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 34}, {"pause": {}}]);
    let first = cluster.rollout("db").steps(steps.clone()).start().await?;
    let second = cluster
        .rollout("db")
        .named("second")
        .steps(steps)
        .create()
        .await?;
    let words = "already managed by RolloutPlugin db";
    second.expect_condition("Stalled", "True", words).await?;
    second.expect_event("WorkloadClaimed", words).await?;
    db.set_image("v2").await?;
    first.expect_step(1, "Paused").await?;
    first.promote().await?;
    first.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 3]).await?;
    first.delete().await?;
    first.expect_gone().await?;
    second.expect_phase("Successful").await?;
    guarded(&db, 3).await?;
    db.set_image("v3").await?;
    second.expect_step(1, "Paused").await?;
    db.expect_rest(["v2", "v2", "v3"]).await
}

/// Rule 20.
async fn deleted_at_rest_the_set_is_as_it_was(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).partition(1).start().await?;
    let rollout = cluster.rollout("db").start().await?;
    let before = db.pods().await?;
    rollout.delete().await?;
    rollout.expect_gone().await?;
    guarded(&db, 1).await?;
    db.expect_no_annotations().await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await
}

/// The template still has the rejected version: the operator restores the stable one and releases the set (rule 20).
async fn deleted_after_an_abort_the_set_is_as_it_was(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 3]).await?;
    let before = db.pods().await?;
    rollout.delete().await?;
    rollout.expect_gone().await?;
    rollout.expect_event("TemplateRestored", "was rejected").await?;
    stands_at(&db, 0).await?;
    db.expect_no_annotations().await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await?;
    db.set_image("v3").await?;
    db.expect_rest(["v3"; 3]).await
}

async fn deleted_in_the_middle_the_set_stays_where_it_is(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 40).await?;
    let before = db.pods().await?;
    rollout.delete().await?;
    rollout.expect_gone().await?;
    rollout
        .expect_event("RolloutFrozen", "every pod stays as it is")
        .await?;
    guarded(&db, 3).await?;
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await?;
    // A recreated one continues from there.
    let again: Rollout<'_> = cluster
        .rollout("db")
        .steps(json!([{"setWeight": 40}, {"pause": {}}]))
        .create()
        .await?;
    again.expect_step(1, "Paused").await?;
    db.expect_same_pods(&before).await?;
    again.abort().await?;
    again.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await
}

async fn deleted_in_the_middle_the_partition_of_users_is_not_forgotten(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).partition(1).start().await?;
    let steps = json!([{"setWeight": 40}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps.clone()).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.delete().await?;
    rollout.expect_gone().await?;
    guarded(&db, 2).await?;
    let again: Rollout<'_> = cluster.rollout("db").steps(steps).create().await?;
    again.expect_step(1, "Paused").await?;
    again.promote().await?;
    again.expect_phase("Successful").await?;
    again.delete().await?;
    again.expect_gone().await?;
    guarded(&db, 1).await?;
    db.expect_no_annotations().await
}

async fn deleted_with_a_missing_set_it_goes(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let rollout = cluster.rollout("db").create().await?;
    rollout
        .expect_message("waiting for StatefulSet db to exist")
        .await?;
    rollout.delete().await?;
    rollout.expect_gone().await
}

/// Deletes the set and waits until it and its pods are gone.
async fn delete(cluster: &Cluster, db: &Set<'_>) -> Outcome {
    let delete = kube::api::DeleteParams::foreground();
    db.api()
        .delete(db.name(), &delete)
        .await
        .doing(format!("delete statefulset {}", db.name()))?;
    cluster
        .eventually("the set is gone", |view| {
            let there = view.sets.len() + view.pods.len();
            if there == 0 {
                Ok(())
            } else {
                Err(format!("{there} are left"))
            }
        })
        .await
}

/// Invariant 27.
async fn a_set_that_is_deleted_and_made_again_is_another_one(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    delete(cluster, &db).await?;
    rollout.expect_phase("Progressing").await?;
    rollout
        .expect_message("waiting for StatefulSet db to exist")
        .await?;
    let again = cluster.statefulset("db").replicas(3).image("v3").start().await?;
    let status = rollout.expect_phase("Successful").await?;
    if status.current_step_started_at.is_some() || status.aborted_revision.is_some() {
        return Err(cluster.unmet("nothing carried over", format!("{status:?}")));
    }
    again.expect_rest(["v3"; 3]).await?;
    guarded(&again, 3).await?;
    again.set_image("v4").await?;
    rollout.expect_step(1, "Paused").await?;
    again.expect_rest(["v3", "v3", "v4"]).await
}

/// Rule 20: changing the reference releases the former set, like a deletion.
async fn an_object_that_is_meant_for_another_set_lets_go_of_the_first(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let cache = cluster.statefulset("cache").replicas(2).start().await?;
    let rollout = cluster.rollout("db").start().await?;
    rollout
        .patch("mean cache", json!({"workloadRef": {"name": "cache"}}))
        .await?;
    db.eventually("it is let go of, with its own partition", |set, _| {
        match (partition(set), held(set)) {
            (Some(0), false) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    cache
        .eventually("it is guarded", |set, _| match (partition(set), held(set)) {
            (Some(2), true) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await?;
    rollout.expect_phase("Successful").await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await
}

async fn an_object_that_is_meant_for_another_set_in_the_middle_leaves_every_pod(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    rollout
        .patch(
            "mean a set that is not there",
            json!({"workloadRef": {"name": "cache"}}),
        )
        .await?;
    db.eventually("it is let go of", |set, _| match (partition(set), held(set)) {
        (Some(2), false) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await?;
    rollout.expect_event("RolloutFrozen", "every pod stays").await?;
    rollout
        .expect_message("waiting for StatefulSet cache to exist")
        .await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    // A typo: revert it.
    rollout
        .patch("mean db again", json!({"workloadRef": {"name": "db"}}))
        .await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}

/// Whether the set carries a claim.
fn held(set: &StatefulSet) -> bool {
    let annotations = set.metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key("stateward.dev/managed-by"))
}

/// Pods that Kubernetes updated while the spec was invalid are not rolled back.
async fn a_spec_that_is_put_right_takes_on_what_was_rolled_meanwhile(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let wrong = json!({"plugin": {"name": "foo"}});
    let rollout = cluster.rollout("db").spec(wrong).create().await?;
    rollout.expect_condition("Stalled", "True", "InvalidSpec").await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout
        .patch("name the plugin", json!({"plugin": {"name": "statefulset"}}))
        .await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 3]).await
}

/// Rule 20
async fn deleted_with_a_version_that_waits_no_pod_moves(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster.rollout("db").start().await?;
    cluster.stop_operator();
    db.set_image("v2").await?;
    rollout.delete().await?;
    cluster.start_operator();
    rollout.expect_gone().await?;
    db.expect_rest(["v1"; 3]).await
}

/// Rule 19
async fn claims_outlive_a_rollout_an_abort_and_the_set(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let set = || cluster.statefulset("db").replicas(2).claim("data");
    let db = set().start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let before = cluster.claims().await?;
    for version in ["v2", "v3"] {
        db.set_image(version).await?;
        rollout.expect_step(1, "Paused").await?;
        rollout.abort().await?;
        rollout.expect_message("every pod is back").await?;
    }
    delete(cluster, &db).await?;
    rollout
        .expect_message("waiting for StatefulSet db to exist")
        .await?;
    let again = set().start().await?;
    rollout.expect_phase("Successful").await?;
    rollout.delete().await?;
    rollout.expect_gone().await?;
    again.expect_rest(["v1"; 2]).await?;
    let after = cluster.claims().await?;
    if before != after || before.len() != 2 {
        return Err(cluster.unmet(format!("the claims {before:?}"), format!("{after:?}")));
    }
    Ok(())
}
