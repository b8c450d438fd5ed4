//! The partition of a rolling update.

use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::json;

use crate::harness::{Cluster, Outcome, PodRow};
use crate::scenarios;

scenarios![
    pods_at_or_above_the_partition_are_updated_from_the_top,
    lowering_the_partition_updates_only_the_pods_it_uncovers,
    raising_the_partition_moves_no_pod_back,
    a_pod_below_the_partition_comes_back_on_the_old_revision,
    a_pod_under_a_raised_partition_comes_back_on_the_old_revision,
    a_partition_above_replicas_holds_every_pod,
    the_partition_counts_from_the_first_ordinal,
    a_new_set_ignores_its_partition,
    a_rolling_update_without_a_block_keeps_none_and_updates_every_pod,
    max_unavailable_is_dropped_while_its_gate_is_off,
];

/// S000-02, S003-02
async fn pods_at_or_above_the_partition_are_updated_from_the_top(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(5).partition(2).start().await?;
    db.set_image("v2").await?;
    db.expect_images(["v1", "v1", "v2", "v2", "v2"]).await?;
    db.expect_ready().await?;
    db.expect_rest(["v1", "v1", "v2", "v2", "v2"]).await?;

    let updated = ordinals(db.births().iter().filter(|pod| pod.image == "v2"));
    if updated != [4, 3, 2] {
        return Err(cluster.unmet("updates in the order 4, 3, 2", format!("{updated:?}")));
    }
    Ok(())
}

/// S000-01
async fn lowering_the_partition_updates_only_the_pods_it_uncovers(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(4).partition(3).start().await?;
    db.set_image("v2").await?;
    db.expect_images(["v1", "v1", "v1", "v2"]).await?;
    db.expect_ready().await?;
    let before = db.pods().await?;

    db.set_partition(2).await?;
    db.expect_images(["v1", "v1", "v2", "v2"]).await?;
    db.expect_ready().await?;
    db.expect_rest(["v1", "v1", "v2", "v2"]).await?;

    let after = db.pods().await?;
    let kept: Vec<_> = before
        .iter()
        .zip(&after)
        .map(|(before, after)| before.uid == after.uid)
        .collect();
    if kept != [true, true, false, true] {
        return Err(cluster.unmet("only db-2 replaced", format!("kept: {kept:?}")));
    }
    Ok(())
}

async fn raising_the_partition_moves_no_pod_back(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(5).partition(3).start().await?;
    db.set_image("v2").await?;
    db.expect_images(["v1", "v1", "v1", "v2", "v2"]).await?;
    db.expect_ready().await?;
    let before = db.pods().await?;

    db.set_partition(5).await?;
    db.expect_observed().await?;
    db.expect_same_pods(&before).await?;
    db.expect_no_move().await
}

async fn a_pod_below_the_partition_comes_back_on_the_old_revision(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(3).partition(2).start().await?;
    db.set_image("v2").await?;
    db.expect_images(["v1", "v1", "v2"]).await?;
    db.expect_ready().await?;
    let before = db.pods().await?;

    db.delete_pod(0).await?;
    expect_replaced(&db, &before, 0).await?;
    db.expect_images(["v1", "v1", "v2"]).await
}

/// The only effect of raising a partition: a pod that is deleted anyway comes back on the old revision.
async fn a_pod_under_a_raised_partition_comes_back_on_the_old_revision(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(3).partition(1).start().await?;
    db.set_image("v2").await?;
    db.expect_images(["v1", "v2", "v2"]).await?;
    db.expect_ready().await?;

    db.set_partition(3).await?;
    db.expect_observed().await?;
    db.delete_pod(2).await?;
    db.expect_images(["v1", "v2", "v1"]).await?;
    db.expect_ready().await
}

/// The guard that keeps every pod as it is while no rollout runs. S002-03
async fn a_partition_above_replicas_holds_every_pod(cluster: &mut Cluster) -> Outcome {
    let db = cluster
        .statefulset("db")
        .replicas(3)
        .partition(100)
        .start()
        .await?;
    db.set_image("v2").await?;
    let set = db.expect_observed().await?;
    db.expect_rest(["v1", "v1", "v1"]).await?;

    let (current, update) = revisions(&set);
    if current == update {
        return Err(cluster.unmet(
            "an update revision beside the current one",
            format!("{current} twice"),
        ));
    }
    Ok(())
}

/// The API documentation says ordinals; the controller counts indexes (k/k#128529).
async fn the_partition_counts_from_the_first_ordinal(cluster: &mut Cluster) -> Outcome {
    let db = cluster
        .statefulset("db")
        .replicas(3)
        .ordinals_start(5)
        .partition(1)
        .start()
        .await?;
    db.set_image("v2").await?;
    db.expect_images(["v1", "v2", "v2"]).await?;
    db.expect_ready().await?;
    db.expect_rest(["v1", "v2", "v2"]).await?;

    let pods = db.pods().await?;
    let seen = ordinals(pods.iter());
    if seen != [5, 6, 7] {
        return Err(cluster.unmet("ordinals 5, 6, 7", format!("{seen:?}")));
    }
    Ok(())
}

async fn a_new_set_ignores_its_partition(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(2).partition(1).start().await?;
    db.expect_images(["v1", "v1"]).await?;
    db.eventually("one revision for current and update", |set, _| {
        let (current, update) = revisions(set);
        if current == update {
            Ok(())
        } else {
            Err(format!("{current} and {update}"))
        }
    })
    .await
}

async fn a_rolling_update_without_a_block_keeps_none_and_updates_every_pod(cluster: &mut Cluster) -> Outcome {
    let db = cluster
        .statefulset("db")
        .replicas(2)
        .spec(json!({"updateStrategy": {"type": "RollingUpdate"}}))
        .start()
        .await?;
    let strategy = db.get().await?.spec.and_then(|spec| spec.update_strategy);
    if strategy.is_none_or(|strategy| strategy.rolling_update.is_some()) {
        return Err(cluster.unmet("no rollingUpdate block", "one was filled in"));
    }
    db.set_image("v2").await?;
    db.expect_images(["v2", "v2"]).await?;
    db.expect_ready().await
}

/// A client cannot rely on the field (k/k#137409): without the gate the server drops it silently.
async fn max_unavailable_is_dropped_while_its_gate_is_off(cluster: &mut Cluster) -> Outcome {
    cluster.needs_max_unavailable_off().await?;
    let strategy = json!({"updateStrategy": {"rollingUpdate": {"partition": 0, "maxUnavailable": 2}}});
    let db = cluster
        .statefulset("db")
        .replicas(1)
        .spec(strategy)
        .start()
        .await?;
    let kept = db
        .get()
        .await?
        .spec
        .and_then(|spec| spec.update_strategy?.rolling_update?.max_unavailable);
    match kept {
        None => Ok(()),
        Some(kept) => Err(cluster.unmet("no maxUnavailable", format!("{kept:?}"))),
    }
}

fn ordinals<'p>(pods: impl Iterator<Item = &'p PodRow>) -> Vec<u32> {
    pods.filter_map(|pod| pod.ordinal).collect()
}

fn revisions(set: &StatefulSet) -> (String, String) {
    let status = set.status.as_ref();
    let name = |name: Option<&String>| name.cloned().unwrap_or_default();
    (
        name(status.and_then(|status| status.current_revision.as_ref())),
        name(status.and_then(|status| status.update_revision.as_ref())),
    )
}

/// Waits until the pod with this index is a different one than in `before`, and Ready.
async fn expect_replaced(db: &crate::harness::Set<'_>, before: &[PodRow], index: usize) -> Outcome {
    db.eventually(format!("pod {index} replaced and Ready"), |_, pods| {
        match (before.get(index), pods.get(index)) {
            (Some(before), Some(now)) if before.uid != now.uid && now.ready => Ok(()),
            _ => Err("not yet".to_owned()),
        }
    })
    .await
}
