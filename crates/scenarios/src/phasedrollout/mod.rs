//! What the operator does for PhasedRollouts, on every control plane.

mod certificates;
mod failing;
mod gates;
mod holding;
mod impostor;
mod input;
mod native;
mod peer;
mod prometheus;
mod seed;
mod versions;

use serde_json::Value;
use stateward_api::phasedrollout::{LastCheck, PhasedRollout, PhasedRolloutStatus, RollingPodStatus};

use crate::harness::{Cluster, Outcome, Rollout, Scenario, Set, partition};

/// All scenarios that run in virtual time.
pub fn all() -> Vec<Scenario> {
    [
        failing::all(),
        gates::all(),
        holding::all(),
        input::all(),
        native::all(),
        peer::all(),
        seed::all(),
        versions::all(),
    ]
    .concat()
}

/// Scenarios that query a server: a real Prometheus, or a stand-in.
pub fn live() -> Vec<Scenario> {
    [certificates::all(), impostor::all(), prometheus::all()]
        .concat()
        .into_iter()
        .map(Scenario::live)
        .collect()
}

type Phased<'c> = Rollout<'c, PhasedRollout>;

/// A set of three pods with checks that succeed until the scenario changes the metrics.
async fn guarded(cluster: &Cluster) -> Outcome<(Set<'_>, Phased<'_>)> {
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster.phased("db").start().await?;
    Ok((db, rollout))
}

/// The same with v2 in its template: the first pod is updated, and the checks before the second fail.
pub(crate) async fn one_pod_new(cluster: &Cluster) -> Outcome<(Set<'_>, Phased<'_>)> {
    let (db, rollout) = guarded(cluster).await?;
    stop_at_second_gate(cluster, &db, &rollout).await?;
    Ok((db, rollout))
}

/// Rolls out v2 to the first pod, with checks that fail from then on.
async fn stop_at_second_gate(cluster: &Cluster, db: &Set<'_>, rollout: &Phased<'_>) -> Outcome {
    db.set_image("v2").await?;
    expect_partition(db, 2).await?;
    cluster.metrics().says("errors", [1.0]);
    expect_checks(rollout, "a failed check at partition 2", |checks| {
        checks.partition == 2 && checks.consecutive_failed_checks > 0
    })
    .await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}

/// A set of two pods with this check, which succeeds until the scenario changes the metrics.
async fn two_pods(cluster: &Cluster, check: Value) -> Outcome<(Set<'_>, Phased<'_>)> {
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let rollout = cluster.phased("db").check(check).start().await?;
    Ok((db, rollout))
}

/// Makes every check succeed.
fn all_is_well(cluster: &Cluster) {
    cluster.metrics().says("errors", []);
}

/// Waits until every pod is updated and the status shows it.
async fn expect_out<const N: usize>(db: &Set<'_>, rollout: &Phased<'_>, tag: &str) -> Outcome {
    db.expect_rest([tag; N]).await?;
    rollout.expect_phase("Updated").await.map(drop)
}

/// The last check in a status.
fn last_check(status: PhasedRolloutStatus) -> LastCheck {
    let checks = status.rolling_pod_status;
    checks.and_then(|checks| checks.last_check).unwrap_or_default()
}

async fn expect_partition(db: &Set<'_>, expected: i32) -> Outcome {
    db.eventually(format!("partition {expected}"), |set, _| match partition(set) {
        Some(partition) if partition == expected => Ok(()),
        other => Err(format!("partition {other:?}")),
    })
    .await
}

/// Waits until `check` accepts the checks of a gate.
async fn expect_checks(
    rollout: &Phased<'_>,
    what: &str,
    mut check: impl FnMut(&RollingPodStatus) -> bool,
) -> Outcome<PhasedRolloutStatus> {
    rollout
        .eventually(what, |status| match &status.rolling_pod_status {
            Some(checks) if check(checks) => Ok(status.clone()),
            other => Err(format!("{other:?}")),
        })
        .await
}
