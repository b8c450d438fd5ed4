//! What Kubernetes does with a broken version.

use std::time::Duration;

use serde_json::json;
use stateward_kubelet::{Behaviour, Match};

use crate::harness::{Cluster, Outcome, Set, container};
use crate::scenarios;

scenarios![
    a_broken_revision_stops_an_ordered_update_at_its_first_pod,
    a_reverted_template_leaves_the_broken_pod_of_an_ordered_set_stuck,
    deleting_the_stuck_pod_before_the_revert_brings_it_back_broken,
    a_parallel_set_heals_itself_when_the_template_is_reverted,
    a_crash_loop_that_is_ready_for_a_moment_rolls_on,
    min_ready_seconds_stop_a_crash_loop_that_is_ready_for_a_moment,
];

const BROKEN: &str = "example.com/db:v2";

async fn a_broken_revision_stops_an_ordered_update_at_its_first_pod(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(3).start().await?;
    cluster
        .pods()
        .program(Match::image(BROKEN), Behaviour::image_pull_error());
    db.set_image("v2").await?;
    expect_broken(&db, "ErrImagePull").await?;
    db.expect_images(["v1", "v1", "v2"]).await?;
    db.expect_no_move().await
}

/// The trap in every manual rollback of a StatefulSet (k/k#67250): the set reports the old revision, and one pod does not run it.
async fn a_reverted_template_leaves_the_broken_pod_of_an_ordered_set_stuck(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(3).start().await?;
    cluster
        .pods()
        .program(Match::image(BROKEN), Behaviour::never_ready());
    db.set_image("v2").await?;
    db.expect_images(["v1", "v1", "v2"]).await?;

    db.set_image("v1").await?;
    db.eventually("current and update revision are the same again", |set, _| {
        let status = set.status.clone().unwrap_or_default();
        if status.current_revision == status.update_revision {
            Ok(())
        } else {
            Err("they differ".to_owned())
        }
    })
    .await?;
    db.expect_no_move().await?;
    db.expect_images(["v1", "v1", "v2"]).await?;

    // Deleting the pod helps only now.
    db.delete_pod(2).await?;
    db.expect_images(["v1", "v1", "v1"]).await?;
    db.expect_ready().await
}

async fn deleting_the_stuck_pod_before_the_revert_brings_it_back_broken(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(2).start().await?;
    cluster
        .pods()
        .program(Match::image(BROKEN), Behaviour::never_ready());
    db.set_image("v2").await?;
    db.expect_images(["v1", "v2"]).await?;
    let before = db.pods().await?;

    db.delete_pod(1).await?;
    db.eventually("db-1 replaced by another broken one", |_, pods| {
        match (before.get(1), pods.get(1)) {
            (Some(before), Some(now)) if now.uid != before.uid && now.image == "v2" => Ok(()),
            _ => Err("not yet".to_owned()),
        }
    })
    .await
}

async fn a_parallel_set_heals_itself_when_the_template_is_reverted(cluster: &mut Cluster) -> Outcome {
    cluster.needs_max_unavailable_off().await?;
    let db = cluster.statefulset("db").replicas(3).parallel().start().await?;
    cluster
        .pods()
        .program(Match::image(BROKEN), Behaviour::never_ready());
    db.set_image("v2").await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;

    db.set_image("v1").await?;
    db.expect_images(["v1", "v1", "v1"]).await?;
    db.expect_ready().await
}

/// Without `minReadySeconds`, Ready counts at once: a container that runs for a moment between crashes counts as healthy, and the broken
/// version moves on to the next pod.
async fn a_crash_loop_that_is_ready_for_a_moment_rolls_on(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(2).start().await?;
    cluster.pods().program(
        Match::image(BROKEN),
        Behaviour::crash_loop().ready_for(Duration::from_secs(1)),
    );
    db.set_image("v2").await?;
    db.expect_images(["v2", "v2"]).await?;
    db.eventually("a pod of the set has crashed", |_, pods| {
        if pods.iter().any(|pod| pod.restarts > 0) {
            Ok(())
        } else {
            Err("none has".to_owned())
        }
    })
    .await
}

async fn min_ready_seconds_stop_a_crash_loop_that_is_ready_for_a_moment(cluster: &mut Cluster) -> Outcome {
    cluster.needs_max_unavailable_off().await?;
    // Parallel, because an ordered set would not even begin: none of its pods has been Ready for an hour.
    let db = cluster.statefulset("db").replicas(2).parallel().start().await?;
    cluster.pods().program(
        Match::image(BROKEN),
        Behaviour::crash_loop().ready_for(Duration::from_secs(1)),
    );
    let containers = json!([container(BROKEN)]);
    let change = json!({"minReadySeconds": 3600, "template": {"spec": {"containers": containers}}});
    db.patch("set image v2 and ask for an hour of readiness", change)
        .await?;
    expect_broken(&db, "CrashLoopBackOff").await?;
    db.expect_no_move().await?;
    db.expect_images(["v1", "v2"]).await
}

/// Waits until the last pod's container is waiting with this reason.
async fn expect_broken(db: &Set<'_>, reason: &str) -> Outcome {
    db.eventually(format!("the last pod waits: {reason}"), |_, pods| {
        match pods.last() {
            Some(pod) if pod.waiting.as_deref() == Some(reason) => Ok(()),
            _ => Err("it does not".to_owned()),
        }
    })
    .await
}
