//! Taking over from sts-plus-operator.

use serde_json::json;
use stateward_api::phasedrollout::SuccessOn;

use super::{expect_out, expect_partition};
use crate::harness::{Cluster, Outcome};
use crate::scenarios;

scenarios![
    a_rollout_of_another_operator_goes_on_where_it_was,
    an_object_of_another_operator_can_be_deleted,
];

/// An object as the other operator leaves it in the middle of a rollout.
fn left_behind() -> serde_json::Value {
    json!({"metadata": {"finalizers": ["sts.plus/finalizer"]}})
}

fn peer_status() -> serde_json::Value {
    json!({
        "phase": "Rolling",
        "updateRevision": "db-0",
        "rolloutStartTime": "2025-01-01T00:00:00Z",
        "conditions": [
            {
                "type": "Ready", "status": "True", "reason": "Ready", "message": "",
                "lastTransitionTime": "2025-01-01T00:00:00Z",
            },
            {
                "type": "Updated", "status": "False", "reason": "Rolling", "message": "",
                "lastTransitionTime": "2025-01-01T00:00:00Z",
            },
        ],
        "rollingPodStatus": {
            "status": "WaitForChecks", "partition": 2, "analisysStartTime": "2025-01-01T00:00:00Z",
            "lastCheckTime": "2025-01-01T00:00:30Z", "consecutiveSuccessfulChecks": 1,
            "consecutiveFailedChecks": 0, "totalFailedChecks": 4,
        },
    })
}

async fn a_rollout_of_another_operator_goes_on_where_it_was(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let db = cluster.statefulset("db").replicas(3).partition(3).start().await?;
    db.set_image("v2").await?;
    db.set_partition(2).await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    let rollout = cluster
        .phased("db")
        .check(json!({"query": {"expr": "healthy"}}))
        .with(&left_behind())
        .create()
        .await?;
    rollout.overwrite(peer_status()).await?;
    let before = db.pods().await?;
    cluster.start_operator();
    rollout.expect_message("the gate before pod db-1").await?;
    rollout.expect_event("RolloutStarted", "found").await?;
    db.expect_same_pods(&before).await?;
    expect_partition(&db, 2).await?;
    // There, data is a success.
    let status = super::expect_checks(&rollout, "a failed check", |checks| {
        checks.consecutive_failed_checks > 0
    })
    .await?;
    cluster.expect("that is told", status.success_on == Some(SuccessOn::Data))?;
    cluster.metrics().says("healthy", [1.0]);
    expect_out::<3>(&db, &rollout, "v2").await?;
    expect_partition(&db, 3).await
}

async fn an_object_of_another_operator_can_be_deleted(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).partition(2).start().await?;
    let rollout = cluster.phased("db").with(&left_behind()).start().await?;
    rollout.delete().await?;
    rollout.expect_gone().await?;
    // Its guard is not a wish of the user's.
    expect_partition(&db, 0).await
}
