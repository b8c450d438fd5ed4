//! The plan of a PhasedRollout, and what then happens.

use serde_json::json;
use stateward_preview::Outcome as Ending;

use super::{agrees, ends, planned, since};
use crate::harness::{Cluster, Outcome};
use crate::scenarios;

scenarios![
    checks_before_each_pod_go_as_planned,
    checks_that_fail_hold_the_rollout_as_planned,
];

async fn checks_before_each_pod_go_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster.phased("db").start().await?;
    let plan = planned(cluster, &db, &rollout, Vec::new(), &[]).await?;
    let before = since(cluster);
    db.set_image("v2").await?;
    rollout.expect_phase("Rolling").await?;
    rollout.expect_phase("Updated").await?;
    ends(cluster, &plan, Ending::Successful)?;
    agrees(cluster, &before, &plan)
}

async fn checks_that_fail_hold_the_rollout_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster.phased("db").check(json!({"maxTries": 2})).start().await?;
    let plan = planned(cluster, &db, &rollout, Vec::new(), &["metric=fails"]).await?;
    let before = since(cluster);
    cluster.metrics().says("errors", [1.0]);
    db.set_image("v2").await?;
    rollout.expect_message("the gate before pod db-2 failed").await?;
    ends(cluster, &plan, Ending::Held)?;
    agrees(cluster, &before, &plan)
}
