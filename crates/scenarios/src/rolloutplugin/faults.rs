//! A network that keeps breaking connections.

use serde_json::json;

use crate::harness::{Cluster, Outcome};
use crate::scenarios;

scenarios![a_rollout_ends_where_every_third_request_is_reset];

/// A reconcile reads the template, posts an event and writes the status. If it started over whenever one of its requests is reset, it would
/// never finish.
async fn a_rollout_ends_where_every_third_request_is_reset(cluster: &mut Cluster) -> Outcome {
    cluster.reset_every(3);
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 34}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    rollout.expect_phase("Successful").await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_event("RolloutCompleted", "every pod runs").await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 3]).await?;
    for event in [
        "RolloutStarted",
        "RolloutPaused",
        "RolloutResumed",
        "RolloutCompleted",
    ] {
        rollout.expect_events_at_most(event, 1).await?;
    }
    db.set_image("v3").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    db.expect_rest(["v2"; 3]).await
}
