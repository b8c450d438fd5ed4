//! The order in which pods are created, deleted and wait for each other.

use std::time::Duration;

use serde_json::json;
use stateward_kubelet::{Behaviour, Match};

use crate::harness::{Cluster, Outcome};
use crate::scenarios;

scenarios![
    an_ordered_set_waits_for_each_pod_before_it_creates_the_next,
    a_parallel_set_creates_all_pods_at_once,
    a_parallel_set_still_updates_one_pod_at_a_time,
    min_ready_seconds_hold_the_next_pod,
    a_pod_that_is_not_ready_below_holds_an_ordered_update,
    a_failed_pod_is_replaced,
    a_set_on_delete_updates_only_what_somebody_deletes,
];

/// S003-04
async fn an_ordered_set_waits_for_each_pod_before_it_creates_the_next(cluster: &mut Cluster) -> Outcome {
    cluster
        .pods()
        .program(Match::set("db").ordinal(1), Behaviour::never_ready());
    let db = cluster.statefulset("db").replicas(3).create().await?;
    db.eventually("db-1 runs, not Ready", |_, pods| {
        let running = pods
            .iter()
            .any(|pod| pod.ordinal == Some(1) && pod.phase == "Running" && !pod.ready);
        if running {
            Ok(())
        } else {
            Err("it does not".to_owned())
        }
    })
    .await?;
    db.expect_no_move().await?;
    db.expect_images(["v1", "v1"]).await?;

    cluster
        .pods()
        .program(Match::set("db").ordinal(1), Behaviour::default());
    db.expect_ready().await
}

/// S003-04
async fn a_parallel_set_creates_all_pods_at_once(cluster: &mut Cluster) -> Outcome {
    cluster.pods().program(Match::set("db"), Behaviour::never_ready());
    let db = cluster.statefulset("db").replicas(3).parallel().create().await?;
    db.expect_images(["v1", "v1", "v1"]).await
}

async fn a_parallel_set_still_updates_one_pod_at_a_time(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(3).parallel().start().await?;
    cluster
        .pods()
        .program(Match::image("example.com/db:v2"), Behaviour::never_ready());
    db.set_image("v2").await?;
    db.expect_images(["v1", "v1", "v2"]).await?;
    db.expect_no_move().await
}

/// An hour is longer than any test: the pods are Ready, but not available, and an ordered set does not even begin.
async fn min_ready_seconds_hold_the_next_pod(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(3).start().await?;
    db.patch("ask for an hour of readiness", json!({"minReadySeconds": 3600}))
        .await?;
    db.set_image("v2").await?;
    db.expect_no_move().await?;
    db.expect_images(["v1", "v1", "v1"]).await?;

    db.patch("take it back", json!({"minReadySeconds": 0})).await?;
    db.expect_images(["v2", "v2", "v2"]).await
}

async fn a_pod_that_is_not_ready_below_holds_an_ordered_update(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(3).start().await?;
    cluster
        .pods()
        .program(Match::set("db").ordinal(0), Behaviour::never_ready());
    db.eventually("db-0 is not Ready", |_, pods| {
        if pods.first().is_some_and(|pod| !pod.ready) {
            Ok(())
        } else {
            Err("it is".to_owned())
        }
    })
    .await?;
    db.eventually("the set counts two Ready", |set, _| {
        let ready = set.status.as_ref().and_then(|status| status.ready_replicas);
        if ready == Some(2) {
            Ok(())
        } else {
            Err(format!("{ready:?}"))
        }
    })
    .await?;

    db.set_image("v2").await?;
    db.expect_no_move().await?;
    db.expect_images(["v1", "v1", "v1"]).await?;

    cluster
        .pods()
        .program(Match::set("db").ordinal(0), Behaviour::default());
    db.expect_images(["v2", "v2", "v2"]).await
}

async fn a_failed_pod_is_replaced(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let before = db.pods().await?;
    cluster
        .pods()
        .program(Match::set("db").ordinal(1), Behaviour::evicted(Duration::ZERO));
    db.eventually("db-1 replaced", |_, pods| match pods.get(1) {
        Some(pod) if before.get(1).is_some_and(|before| before.uid != pod.uid) => Ok(()),
        _ => Err("not yet".to_owned()),
    })
    .await?;
    cluster
        .pods()
        .program(Match::set("db").ordinal(1), Behaviour::default());
    db.expect_ready().await
}

/// Up to 1.36 `currentRevision` then never advances, even when every pod is new (k/k#73492). S002-02
async fn a_set_on_delete_updates_only_what_somebody_deletes(cluster: &mut Cluster) -> Outcome {
    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    let db = cluster
        .statefulset("db")
        .replicas(2)
        .spec(on_delete)
        .start()
        .await?;
    db.set_image("v2").await?;
    db.expect_no_move().await?;
    db.expect_images(["v1", "v1"]).await?;

    db.delete_pod(0).await?;
    db.expect_images(["v2", "v1"]).await?;
    db.expect_ready().await?;
    db.delete_pod(1).await?;
    db.expect_images(["v2", "v2"]).await?;
    db.expect_ready().await?;
    db.eventually("the old revision is still current", |set, _| {
        let status = set.status.clone().unwrap_or_default();
        let updated = status.updated_replicas == Some(2);
        if updated && status.current_revision != status.update_revision {
            Ok(())
        } else {
            Err(format!("{status:?}"))
        }
    })
    .await
}
