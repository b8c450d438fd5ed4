//! The published example, unchanged.

use serde_json::{Value, json};

use super::{expect_checks, expect_out, expect_partition};
use crate::harness::{Cluster, Outcome};
use crate::scenarios;

scenarios![
    the_example_applies_as_printed_and_holds_while_data_is_returned,
    the_example_goes_out_when_nothing_is_returned,
];

/// The published page: the object and its Secret.
const PAGE: &str = include_str!("../../../../test/phasedrollout/phasedrollout.yaml");

fn documents() -> Outcome<Vec<Value>> {
    let read = |document: &str| serde_saphyr::from_str(document).map_err(std::io::Error::other);
    Ok(PAGE.split("---\n").map(read).collect::<Result<_, _>>()?)
}

/// Its spec, except for the times: the scenarios do not wait for minutes.
fn example() -> Outcome<Value> {
    let mut spec = documents()?[0]["spec"].clone();
    spec["check"]["initialDelaySeconds"] = 1.into();
    spec["check"]["periodSeconds"] = 1.into();
    Ok(spec)
}

/// Creates the example's Secret and the right to read it.
async fn secret(cluster: &Cluster) -> Outcome {
    let printed = &documents()?[1];
    let keys = json!({"stringData": printed["stringData"], "type": printed["type"]});
    cluster.create("secrets", "prom-secret", keys).await?;
    cluster.let_operator_read("prom-secret").await
}

/// S002-06 S002-07: the query returns data as long as any target is up.
async fn the_example_applies_as_printed_and_holds_while_data_is_returned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    secret(cluster).await?;
    let web = cluster.statefulset("web").replicas(3).start().await?;
    cluster.metrics().says("up{}", [1.0, 1.0, 0.0]);
    let rollout = cluster
        .phased("web")
        .named("phasedrollout-sample")
        .spec(example()?)
        .start()
        .await?;
    expect_partition(&web, 3).await?;
    web.set_image("v2").await?;
    let status = rollout.expect_phase("Failed").await?;
    let checks = status.rolling_pod_status.unwrap_or_default();
    cluster.expect(
        "ten tries, all of them failed",
        checks.consecutive_failed_checks == 10 && checks.tries_left == Some(0),
    )?;
    web.expect_rest(["v1"; 3]).await
}

/// S002-04 S002-07
async fn the_example_goes_out_when_nothing_is_returned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    secret(cluster).await?;
    let web = cluster.statefulset("web").replicas(2).start().await?;
    let rollout = cluster
        .phased("web")
        .named("phasedrollout-sample")
        .spec(example()?)
        .start()
        .await?;
    web.set_image("v2").await?;
    expect_checks(&rollout, "a good check before the first pod", |checks| {
        checks.partition == 2 && checks.consecutive_successful_checks > 0
    })
    .await?;
    expect_out::<2>(&web, &rollout, "v2").await?;
    let asked = cluster.metrics().asked("up{}");
    cluster.expect(&format!("at least nine checks, not {asked}"), asked >= 9)
}
