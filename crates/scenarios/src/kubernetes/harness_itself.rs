//! The harness must fail when it should, and say why.

use crate::harness::{Cluster, Outcome};
use crate::scenarios;

scenarios![a_wrong_expectation_fails_with_expected_seen_and_timeline];

async fn a_wrong_expectation_fails_with_expected_seen_and_timeline(cluster: &mut Cluster) -> Outcome {
    cluster.statefulset("db").replicas(2).start().await?;
    cluster.impatient();
    let db = cluster.existing("db");
    let Err(failure) = db.expect_images(["v1", "v9"]).await else {
        return Err(cluster.unmet("a failure", "images [v1 v9] passed"));
    };
    let message = failure.to_string();
    let told = [
        "expected: db: images [v1 v9]",
        "    seen: images [v1 v1]; pods: db-0 v1 Running Ready, db-1 v1 Running Ready",
        "timeline:",
        "-- create statefulset db",
        "db-1 v1 Running Ready\n",
    ];
    match told.iter().find(|part| !message.contains(**part)) {
        None => Ok(()),
        Some(missing) => Err(cluster.unmet(format!("a message with {missing:?}"), message)),
    }
}
