//! Scenarios with a real Prometheus: the scenario provides what it scrapes.

use serde_json::{Value, json};
use stateward_analysis::testing::{Exporter, RealPrometheus};
use stateward_api::analysis::Phase;

use super::analysis::{analysis, expect_runs, template};
use crate::harness::{Cluster, Failure, Outcome, Rollout, Set};
use crate::scenarios;

scenarios![
    a_good_canary_passes_a_real_prometheus,
    a_canary_that_raises_the_error_rate_is_rolled_back_by_a_real_prometheus,
    a_range_of_time_is_asked_of_a_real_prometheus,
    a_query_that_finds_nothing_is_no_success,
    a_prometheus_that_is_down_turns_the_version_down,
    a_query_that_prometheus_refuses_is_told_in_its_words,
];

/// A Prometheus and its scrape target.
struct Sight {
    prometheus: RealPrometheus,
    exporter: Exporter,
}

/// Request metrics with this share of errors.
fn traffic(errors: f64) -> String {
    format!(
        "requests{{code=\"200\"}} {}\nrequests{{code=\"500\"}} {errors}\n",
        1.0 - errors
    )
}

const ERROR_RATE: &str = r#"sum(requests{code="500"}) / sum(requests)"#;

async fn sight(cluster: &mut Cluster) -> Outcome<Sight> {
    let exporter = Exporter::start().await?;
    exporter.set(&traffic(0.01));
    let started = RealPrometheus::start(&exporter)
        .await
        .map_err(std::io::Error::other)?;
    let Some(prometheus) = started else {
        return Err(Failure::NotHere("there is no prometheus in PATH".into()));
    };
    prometheus.has(ERROR_RATE).await.map_err(std::io::Error::other)?;
    cluster.ask_providers();
    cluster.with_operator().await?;
    Ok(Sight { prometheus, exporter })
}

/// A set of three pods whose rollouts run an analysis of this metric between the first pod and the others.
async fn analysed<'c>(
    cluster: &'c Cluster,
    address: &str,
    query: &str,
    patch: Value,
) -> Outcome<(Set<'c>, Rollout<'c>)> {
    let mut metric = json!({
        "name": "error-rate", "interval": "1s", "count": 3, "successCondition": "result[0] < 0.05",
        "provider": {"prometheus": {"address": "{{args.prometheus}}", "query": query, "timeout": 5}},
    });
    json_patch::merge(&mut metric, &patch);
    let args = json!([{"name": "prometheus", "value": address}]);
    template(cluster, "checks", json!({"metrics": [metric], "args": args})).await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 40}, analysis("checks"), {"setWeight": 80}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    Ok((db, rollout))
}

async fn a_good_canary_passes_a_real_prometheus(cluster: &mut Cluster) -> Outcome {
    let sight = sight(cluster).await?;
    let (db, rollout) = analysed(cluster, &sight.prometheus.address(), ERROR_RATE, json!({})).await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    let runs = expect_runs(cluster, &[Phase::Successful]).await?;
    let status = runs[0].status.clone().unwrap_or_default();
    let measurements = &status.metric_results[0].measurements;
    cluster.expect("three measurements", measurements.len() == 3)?;
    let noted = measurements[0].metadata.get("ResolvedPrometheusQuery");
    cluster.expect(
        "the query is noted",
        noted.is_some_and(|query| query == ERROR_RATE),
    )?;
    cluster.expect("and the answer", measurements[0].value == "[0.01]")
}

async fn a_canary_that_raises_the_error_rate_is_rolled_back_by_a_real_prometheus(
    cluster: &mut Cluster,
) -> Outcome {
    let sight = sight(cluster).await?;
    let patient = json!({"count": 30, "failureLimit": 1});
    let (db, rollout) = analysed(cluster, &sight.prometheus.address(), ERROR_RATE, patient).await?;
    db.set_image("v2").await?;
    expect_runs(cluster, &[Phase::Running]).await?;
    sight.exporter.set(&traffic(0.2));
    expect_runs(cluster, &[Phase::Failed]).await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_phase("Failed").await?;
    rollout.expect_message("2 failed, 1 allowed").await.map(drop)
}

async fn a_range_of_time_is_asked_of_a_real_prometheus(cluster: &mut Cluster) -> Outcome {
    let sight = sight(cluster).await?;
    let range = json!({"start": "now() - duration(\"10s\")", "end": "now()", "step": "1s"});
    let over_time = json!({
        "successCondition": "len(result) > 0 && all(result, # < 0.05)",
        "provider": {"prometheus": {"rangeQuery": range}},
    });
    let (db, rollout) = analysed(cluster, &sight.prometheus.address(), ERROR_RATE, over_time).await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    expect_runs(cluster, &[Phase::Successful]).await.map(drop)
}

async fn a_query_that_finds_nothing_is_no_success(cluster: &mut Cluster) -> Outcome {
    let sight = sight(cluster).await?;
    let careless = json!({
        "count": 1, "successCondition": null, "failureCondition": "any(result, # > 0.05)", "consecutiveErrorLimit": 0,
    });
    let (db, rollout) = analysed(cluster, &sight.prometheus.address(), "nothing", careless).await?;
    db.set_image("v2").await?;
    expect_runs(cluster, &[Phase::Error]).await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_message("there is no data").await.map(drop)
}

async fn a_prometheus_that_is_down_turns_the_version_down(cluster: &mut Cluster) -> Outcome {
    let Sight { prometheus, .. } = sight(cluster).await?;
    let address = prometheus.address();
    drop(prometheus);
    let at_once = json!({"count": 1, "consecutiveErrorLimit": 0});
    let (db, rollout) = analysed(cluster, &address, ERROR_RATE, at_once).await?;
    db.set_image("v2").await?;
    expect_runs(cluster, &[Phase::Error]).await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_message("connection refused").await.map(drop)
}

async fn a_query_that_prometheus_refuses_is_told_in_its_words(cluster: &mut Cluster) -> Outcome {
    let sight = sight(cluster).await?;
    let at_once = json!({"count": 1, "consecutiveErrorLimit": 0});
    let (db, rollout) = analysed(cluster, &sight.prometheus.address(), "sum(", at_once).await?;
    db.set_image("v2").await?;
    expect_runs(cluster, &[Phase::Error]).await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_message("bad_data").await.map(drop)
}
