//! An image that cannot be pulled: its pod alternates between two waiting reasons.

use serde_json::json;
use stateward_kubelet::{Behaviour, Match};

use crate::harness::{Cluster, Outcome, Rollout, Set};
use crate::scenarios;

scenarios![
    a_first_failed_pull_is_told_and_is_no_failure_yet,
    pulls_that_fail_again_and_again_are_told_once,
];

/// A rollout whose new pod cannot pull its image.
async fn rolled(cluster: &Cluster) -> Outcome<(Set<'_>, Rollout<'_>)> {
    let new = Match::image("example.com/db:v2");
    cluster.pods().program(new, Behaviour::image_pull_error());
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    Ok((db, rollout))
}

/// Waits until the new pod is waiting with this reason.
async fn expect_waiting(cluster: &Cluster, reason: &str) -> Outcome {
    cluster
        .eventually(format!("db-1 waits for the reason {reason}"), |view| {
            let pod = view.pods.get("db-1").ok_or("no such pod")?;
            if pod.waiting.as_deref() == Some(reason) {
                Ok(())
            } else {
                Err(pod.to_string())
            }
        })
        .await
}

async fn a_first_failed_pull_is_told_and_is_no_failure_yet(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (_db, rollout) = rolled(cluster).await?;
    let status = rollout
        .expect_message("waiting for pod db-1 to be Ready (ErrImagePull: failed to pull")
        .await?;
    if status.phase != "Progressing" {
        return Err(cluster.unmet("no failure yet", format!("{status:?}")));
    }
    rollout.expect_message("ImagePullBackOff").await?;
    rollout.expect_phase("Failed").await.map(drop)
}

/// Rule 18
async fn pulls_that_fail_again_and_again_are_told_once(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (_db, rollout) = rolled(cluster).await?;
    rollout.expect_phase("Failed").await?;
    let writes = || -> Outcome<usize> {
        let writes = cluster.operator_writes()?;
        Ok(writes.iter().filter(|write| write.verb != "create").count())
    };
    let before = writes()?;
    for _ in 0..2 {
        expect_waiting(cluster, "ErrImagePull").await?;
        expect_waiting(cluster, "ImagePullBackOff").await?;
    }
    let after = writes()?;
    cluster.expect(&format!("no write after {before}, not {after}"), before == after)?;
    rollout.expect_phase("Failed").await?;
    rollout.expect_events_at_most("PodBroken", 1).await
}
