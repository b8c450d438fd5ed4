//! Failures on nodes, as our kubelet simulates them, and how Kubernetes reacts.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DeleteParams;
use stateward_kubelet::{Behaviour, ClaimBehaviour, Match};

use crate::harness::{Cluster, Doing, Outcome, PodRow, Set};
use crate::scenarios;

scenarios![
    a_flapping_pod_is_ready_and_unready_in_turn,
    a_pod_killed_for_memory_says_so_and_restarts,
    a_pod_that_never_stops_holds_its_ordinal_until_it_is_forced,
    the_pods_of_a_vanished_node_stay_terminating_until_it_returns,
    a_pod_waits_for_its_claim_to_be_bound,
];

async fn a_flapping_pod_is_ready_and_unready_in_turn(cluster: &mut Cluster) -> Outcome {
    let second = Duration::from_secs(1);
    cluster
        .pods()
        .program(Match::set("db"), Behaviour::flapping(second, second));
    let db = cluster.statefulset("db").replicas(1).create().await?;
    for ready in [true, false, true] {
        db.eventually(format!("Ready is {ready}"), |_, pods| match pods.first() {
            Some(pod) if pod.phase == "Running" && pod.ready == ready => Ok(()),
            _ => Err("not yet".to_owned()),
        })
        .await?;
    }
    Ok(())
}

async fn a_pod_killed_for_memory_says_so_and_restarts(cluster: &mut Cluster) -> Outcome {
    cluster.pods().program(Match::set("db"), Behaviour::oom_killed());
    let db = cluster.statefulset("db").replicas(1).create().await?;
    db.eventually("it was started again", |_, pods| match pods.first() {
        Some(pod) if pod.restarts > 0 => Ok(()),
        _ => Err("not yet".to_owned()),
    })
    .await?;
    let pod = pods(cluster).get("db-0").await.doing("get pod db-0")?;
    let container = pod
        .status
        .and_then(|status| status.container_statuses?.into_iter().next());
    let last = container.and_then(|container| container.last_state?.terminated);
    match last {
        Some(last) if last.reason.as_deref() == Some("OOMKilled") && last.exit_code == 137 => Ok(()),
        other => Err(cluster.unmet("last state OOMKilled, exit code 137", format!("{other:?}"))),
    }
}

/// Why a rollback cannot simply wait for the old pod to terminate.
async fn a_pod_that_never_stops_holds_its_ordinal_until_it_is_forced(cluster: &mut Cluster) -> Outcome {
    cluster
        .pods()
        .program(Match::set("db").ordinal(1), Behaviour::never_terminates());
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let before = db.pods().await?;
    db.set_image("v2").await?;
    expect_terminating(&db, &before).await?;

    pods(cluster)
        .delete("db-1", &DeleteParams::default().grace_period(0))
        .await
        .doing("force-delete pod db-1")?;
    db.expect_images(["v2", "v2"]).await?;
    db.expect_ready().await
}

async fn the_pods_of_a_vanished_node_stay_terminating_until_it_returns(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let before = db.pods().await?;
    let pod = pods(cluster).get("db-1").await.doing("get pod db-1")?;
    let name = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
    let Some(node) = cluster.kubelet().node(&name) else {
        return Err(cluster.unmet("db-1 on a node of ours", name));
    };
    node.vanish();
    db.delete_pod(1).await?;
    expect_terminating(&db, &before).await?;

    node.restore();
    db.eventually("db-1 replaced and Ready", |_, pods| {
        match (before.get(1), pods.get(1)) {
            (Some(before), Some(now)) if before.uid != now.uid && now.ready => Ok(()),
            _ => Err("not yet".to_owned()),
        }
    })
    .await
}

async fn a_pod_waits_for_its_claim_to_be_bound(cluster: &mut Cluster) -> Outcome {
    cluster.pods().claims(ClaimBehaviour::NeverProvision);
    let db = cluster
        .statefulset("db")
        .replicas(1)
        .claim("data")
        .create()
        .await?;
    db.eventually("db-0 waits", |_, pods| match pods.first() {
        Some(pod) if pod.phase == "Pending" => Ok(()),
        _ => Err("it does not".to_owned()),
    })
    .await?;
    db.expect_no_move().await?;

    cluster
        .pods()
        .claims(ClaimBehaviour::ProvisionAfter(Duration::ZERO));
    db.expect_ready().await
}

/// Waits until the old db-1 is terminating.
async fn expect_terminating(db: &Set<'_>, before: &[PodRow]) -> Outcome {
    db.eventually("the old db-1 is terminating", |_, pods| {
        match (before.get(1), pods.get(1)) {
            (Some(before), Some(now)) if before.uid == now.uid && now.terminating => Ok(()),
            _ => Err("it is not".to_owned()),
        }
    })
    .await
}

fn pods(cluster: &Cluster) -> Api<Pod> {
    Api::namespaced(cluster.client(), cluster.namespace())
}
