//! Template changes during a rollout: a third version, the old one, a restart, a fix (rules 6, 7 and 8).

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use stateward_api::rollout::RolloutEnd;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_kubelet::{Behaviour, Match};

use super::paused_at;
use crate::harness::{Cluster, Doing, Outcome, PodRow, Rollout, Set};
use crate::scenarios;

scenarios![
    a_third_version_begins_again_from_the_first_stable_one,
    a_restart_by_kubectl_is_a_rollout_of_its_own,
    a_restart_by_kubectl_in_the_middle_begins_again,
    a_new_version_after_an_aborted_one_just_starts,
    a_new_version_during_a_return_just_starts,
    the_stable_version_back_in_the_template_clears_an_abort,
    a_broken_stable_pod_does_not_block_the_fix,
    a_stable_version_that_never_came_up_does_not_block_the_fix,
    an_undo_by_kubectl_in_the_middle_returns_every_pod,
    an_undo_by_kubectl_after_the_end_is_a_rollout_of_its_own,
    a_third_version_in_the_middle_comes_to_its_end,
    a_third_version_over_a_broken_second_one_comes_to_its_end,
    a_broken_stable_pod_of_a_parallel_set_does_not_block_the_fix,
    what_became_of_each_version_is_kept,
];

/// Like `kubectl rollout undo`: applies the data of the revision before the last one as a patch.
async fn undo(cluster: &Cluster, db: &Set<'_>) -> Outcome {
    let revisions: Api<ControllerRevision> = Api::namespaced(cluster.client(), cluster.namespace());
    let list = revisions
        .list(&ListParams::default())
        .await
        .doing("list revisions")?;
    let mut history = list.items;
    // Like kubectl: revisions that another object controls are not part of the set's history.
    history.retain(|revision| {
        revision
            .owner_references()
            .iter()
            .any(|owner| owner.kind == "StatefulSet")
    });
    history.sort_by_key(|revision| -revision.revision);
    let Some(before) = history.get(1).and_then(|revision| revision.data.as_ref()) else {
        return Err(cluster.unmet("a revision before the last one", format!("{}", history.len())));
    };
    cluster.note("rollout undo");
    let undone = db
        .api()
        .patch(db.name(), &PatchParams::default(), &Patch::Strategic(&before.0))
        .await;
    undone.doing("undo the rollout of db").map(drop)
}

/// Like `kubectl rollout restart`.
async fn restart(db: &Set<'_>, at: &str) -> Outcome {
    let annotations = json!({"kubectl.kubernetes.io/restartedAt": at});
    let template = json!({"template": {"metadata": {"annotations": annotations}}});
    db.patch("rollout restart", template).await
}

async fn a_third_version_begins_again_from_the_first_stable_one(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}, {"setWeight": 60}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    let first = rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_step(3, "Paused").await?;
    db.set_image("v3").await?;
    let second = rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v1", "v1", "v3"]).await?;
    if second.stable_revision != first.stable_revision {
        return Err(cluster.unmet("the same stable revision", format!("{second:?}")));
    }
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v1"; 5]).await
}

async fn a_restart_by_kubectl_is_a_rollout_of_its_own(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 34}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let before = db.pods().await?;
    restart(&db, "2026-01-01T00:00:00Z").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1"; 3]).await?;
    expect_only_the_last_replaced(cluster, &db, &before).await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await.map(drop)
}

async fn a_restart_by_kubectl_in_the_middle_begins_again(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    let (first, before) = (rollout.get().await?, db.pods().await?);
    restart(&db, "2026-01-01T00:00:00Z").await?;
    expect_another_in_the_pause(&rollout, first).await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    expect_only_the_last_replaced(cluster, &db, &before).await
}

/// Waits for a pause with another revision than that of `first`.
async fn expect_another_in_the_pause(rollout: &Rollout<'_>, first: RolloutPlugin) -> Outcome {
    let first = first.status.and_then(|status| status.updated_revision);
    rollout
        .eventually("another revision in the pause", |status| {
            if status.updated_revision != first && status.phase == "Paused" {
                Ok(())
            } else {
                Err(String::new())
            }
        })
        .await
}

async fn expect_only_the_last_replaced(cluster: &Cluster, db: &Set<'_>, before: &[PodRow]) -> Outcome {
    let pods = db.pods().await?;
    let kept: Vec<_> = pods
        .iter()
        .zip(before)
        .map(|(now, before)| now.uid == before.uid)
        .collect();
    if kept == [true, true, false] {
        return Ok(());
    }
    Err(cluster.unmet("only the last pod is new", format!("kept: {kept:?}")))
}

/// Invariant 43.
async fn a_new_version_after_an_aborted_one_just_starts(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.set_image("v3").await?;
    let status = rollout.expect_step(1, "Paused").await?;
    if status.aborted || status.aborted_revision.is_some() {
        return Err(cluster.unmet("nothing aborted", format!("{status:?}")));
    }
    db.expect_rest(["v1", "v1", "v3"]).await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v3"; 3]).await
}

async fn a_new_version_during_a_return_just_starts(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 80).await?;
    rollout.abort().await?;
    rollout
        .eventually("pods return", |status| match status.returning {
            Some(_) => Ok(()),
            None => Err(String::new()),
        })
        .await?;
    db.set_image("v3").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v3", "v3", "v3", "v3"]).await
}

async fn the_stable_version_back_in_the_template_clears_an_abort(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    let before = db.pods().await?;
    db.set_image("v1").await?;
    let status = rollout.expect_phase("Successful").await?;
    if status.aborted {
        return Err(cluster.unmet("not aborted", format!("{status:?}")));
    }
    db.expect_no_move().await?;
    db.expect_same_pods(&before).await
}

/// Breaks the highest pod of three and rolls out the fix.
async fn the_fix_comes_through(cluster: &Cluster, db: &Set<'_>) -> Outcome {
    let steps = json!([{"setWeight": 34}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let broken = Match::image("example.com/db:v1").ordinal(2);
    cluster.pods().program(broken, Behaviour::crash_loop());
    db.eventually("a crash loop", |_, pods| match pods[2].waiting.as_deref() {
        Some("CrashLoopBackOff") => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 3]).await
}

/// Invariant 44, with OrderedReady: Kubernetes replaces no pod while another one is not Ready (k/k#67250).
async fn a_broken_stable_pod_does_not_block_the_fix(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    the_fix_comes_through(cluster, &db).await
}

/// With OrderedReady there is only the first pod then, and no step but the last would replace it.
async fn a_stable_version_that_never_came_up_does_not_block_the_fix(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let v1 = Match::image("example.com/db:v1");
    cluster.pods().program(v1, Behaviour::crash_loop());
    let db = cluster.statefulset("db").replicas(3).create().await?;
    let steps = json!([{"setWeight": 34}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).create().await?;
    rollout.expect_message("CrashLoopBackOff").await?;
    db.set_image("v2").await?;
    rollout.expect_step(0, "Progressing").await?;
    rollout.promote_full().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 3]).await
}

/// Rule 7
async fn an_undo_by_kubectl_in_the_middle_returns_every_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 67).await?;
    db.expect_rest(["v1", "v2", "v2"]).await?;
    undo(cluster, &db).await?;
    rollout
        .expect_event("TemplateReverted", "returning every pod")
        .await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v1"; 3]).await
}

async fn an_undo_by_kubectl_after_the_end_is_a_rollout_of_its_own(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    rollout.promote().await?;
    db.expect_images(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    undo(cluster, &db).await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v2", "v2", "v1"]).await?;
    rollout.promote().await?;
    db.expect_images(["v1"; 3]).await?;
    rollout.expect_phase("Successful").await.map(drop)
}

async fn a_third_version_in_the_middle_comes_to_its_end(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    let first = rollout.get().await?;
    db.set_image("v3").await?;
    expect_another_in_the_pause(&rollout, first).await?;
    db.expect_rest(["v1", "v1", "v3"]).await?;
    rollout.promote().await?;
    let status = rollout.expect_phase("Successful").await?;
    if status.current_revision != status.updated_revision {
        return Err(cluster.unmet("one revision", format!("{status:?}")));
    }
    db.expect_rest(["v3"; 3]).await
}

/// k/k#75498: Kubernetes counts down to -1 here, and the API server rejects its status.
async fn a_third_version_over_a_broken_second_one_comes_to_its_end(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let first = Match::image("example.com/db:v2").ordinal(0);
    cluster.pods().program(first, Behaviour::never_ready());
    let db = cluster.statefulset("db").replicas(2).parallel().start().await?;
    let steps = json!([{"setWeight": 100}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    db.eventually("every pod is new, one of them not Ready", |set, _| {
        let told = set.status.clone().unwrap_or_default();
        if told.updated_replicas == Some(2) && told.ready_replicas == Some(1) {
            Ok(())
        } else {
            Err(format!("{told:?}"))
        }
    })
    .await?;
    db.set_image("v3").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v3"; 2]).await
}

/// k/k#137409: with the `maxUnavailable` gate on, a Parallel set waits for its broken pods as well.
async fn a_broken_stable_pod_of_a_parallel_set_does_not_block_the_fix(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).parallel().start().await?;
    the_fix_comes_through(cluster, &db).await
}

async fn what_became_of_each_version_is_kept(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 2, 50).await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.set_image("v3").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.set_image("v4").await?;
    rollout.expect_step(1, "Paused").await?;
    db.set_image("v5").await?;
    rollout
        .expect_event("RolloutStarted", "takes the place of")
        .await?;
    db.expect_rest(["v2", "v5"]).await?;
    let requested = db.get().await?.status.and_then(|status| status.update_revision);
    rollout
        .eventually("the pause of v5, not of v4", |status| {
            if status.updated_revision == requested && status.phase == "Paused" {
                Ok(())
            } else {
                Err(format!("{:?}", status.updated_revision))
            }
        })
        .await?;
    db.set_image("v2").await?;
    rollout
        .expect_event("TemplateReverted", "returning every pod")
        .await?;
    let status = rollout.expect_phase("Successful").await?;
    let history = status.history.into_iter();
    let told: Vec<_> = history.map(|past| (past.outcome, past.message)).collect();
    let by = match told.get(1) {
        Some((RolloutEnd::Replaced, by)) => by.clone(),
        _ => None,
    };
    let expected = [
        (RolloutEnd::PutBack, None),
        (RolloutEnd::Replaced, by),
        (RolloutEnd::Aborted, Some("aborted by a user".to_owned())),
        (RolloutEnd::Successful, None),
        (RolloutEnd::TakenOn, None),
    ];
    cluster.expect(
        &format!("what became of v5, v4, v3, v2 and v1, not {told:?}"),
        told == expected,
    )
}
