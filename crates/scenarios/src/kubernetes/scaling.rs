//! Scaling while pods run two revisions.

use serde_json::json;

use crate::harness::{Cluster, Outcome};
use crate::scenarios;

scenarios![
    scaling_to_zero_promotes_a_paused_canary,
    ordinals_added_above_the_partition_start_on_the_new_revision,
    ordinals_added_below_a_raised_partition_start_on_the_old_revision,
    scaling_down_takes_the_updated_pods_first,
    moving_the_first_ordinal_replaces_the_pods_outside,
];

/// All three counters are zero, so the rollout counts as complete (k/k#121534): a scale to zero skips every gate.
async fn scaling_to_zero_promotes_a_paused_canary(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(3).partition(2).start().await?;
    db.set_image("v2").await?;
    db.expect_images(["v1", "v1", "v2"]).await?;
    db.expect_ready().await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;

    db.scale(0).await?;
    db.expect_images([]).await?;
    db.eventually("the canary's revision is current", |set, _| {
        let status = set.status.clone().unwrap_or_default();
        if status.replicas == 0 && status.current_revision == status.update_revision {
            Ok(())
        } else {
            Err(format!(
                "{} replicas, {:?} and {:?}",
                status.replicas, status.current_revision, status.update_revision
            ))
        }
    })
    .await?;

    db.scale(3).await?;
    db.expect_images(["v2", "v2", "v2"]).await?;
    db.expect_ready().await
}

async fn ordinals_added_above_the_partition_start_on_the_new_revision(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(3).partition(2).start().await?;
    db.set_image("v2").await?;
    db.expect_images(["v1", "v1", "v2"]).await?;
    db.expect_ready().await?;

    db.scale(5).await?;
    db.expect_images(["v1", "v1", "v2", "v2", "v2"]).await?;
    db.expect_ready().await
}

async fn ordinals_added_below_a_raised_partition_start_on_the_old_revision(cluster: &mut Cluster) -> Outcome {
    let db = cluster
        .statefulset("db")
        .replicas(2)
        .partition(100)
        .start()
        .await?;
    db.set_image("v2").await?;
    db.eventually("an update revision beside the current one", |set, _| {
        let status = set.status.clone().unwrap_or_default();
        if status.current_revision == status.update_revision {
            Err("one revision".to_owned())
        } else {
            Ok(())
        }
    })
    .await?;

    db.scale(4).await?;
    db.expect_images(["v1", "v1", "v1", "v1"]).await?;
    db.expect_ready().await
}

async fn scaling_down_takes_the_updated_pods_first(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(4).partition(3).start().await?;
    db.set_image("v2").await?;
    db.expect_images(["v1", "v1", "v1", "v2"]).await?;
    db.expect_ready().await?;

    db.scale(3).await?;
    db.expect_images(["v1", "v1", "v1"]).await?;
    db.expect_ready().await?;
    // The canary is gone, and still the set is not promoted: its pods are not on the update revision.
    db.eventually("current and update revision differ", |set, _| {
        let status = set.status.clone().unwrap_or_default();
        if status.current_revision == status.update_revision {
            Err("they are the same".to_owned())
        } else {
            Ok(())
        }
    })
    .await
}

async fn moving_the_first_ordinal_replaces_the_pods_outside(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(2).start().await?;
    db.patch("start at ordinal 1", json!({"ordinals": {"start": 1}}))
        .await?;
    db.eventually("pods 1 and 2, Ready", |_, pods| {
        let ready: Vec<_> = pods
            .iter()
            .filter(|pod| pod.ready)
            .map(|pod| pod.ordinal)
            .collect();
        if ready == [Some(1), Some(2)] && pods.len() == 2 {
            Ok(())
        } else {
            Err(format!("{ready:?} Ready"))
        }
    })
    .await
}
