//! Sizes that a tenant controls: the operator limits them before it spends memory or time.

use kube::Api;
use serde_json::{Value, json};
use stateward_api::analysis::{AnalysisRun, INSTANCE, INSTANCE_LABEL, Phase};

use super::analysis::{analysis, metric, runs_api, template};
use crate::harness::{Cluster, Doing, Outcome};
use crate::scenarios;

scenarios![
    args_that_grow_too_long_hold_the_rollout_before_anything_moves,
    a_run_whose_args_grow_too_long_ends_in_an_error,
    patterns_that_are_too_many_or_too_large_are_refused,
    texts_and_lists_that_are_too_long_are_refused,
    a_set_of_too_many_replicas_is_refused_until_it_is_scaled_down,
];

/// 100 000 bytes once the arg is filled in.
fn growing() -> Value {
    let query = "{{args.a}}".repeat(100);
    json!({"metrics": [metric("errors", json!({"provider": {"prometheus": {"query": query}}}))],
           "args": [{"name": "a", "value": "x".repeat(1_000)}]})
}

const TOO_LONG: &str =
    "provider.prometheus.query: has 100000 bytes once its args are filled in; at most 65536 are allowed";

async fn args_that_grow_too_long_hold_the_rollout_before_anything_moves(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    template(cluster, "checks", growing()).await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 40}, analysis("checks")]);
    let rollout = cluster.rollout("db").steps(steps).create().await?;
    rollout.expect_condition("InvalidSpec", "True", TOO_LONG).await?;
    db.expect_rest(["v1"; 3]).await
}

/// Expects that a user's own run ends with this error.
async fn expect_error(cluster: &Cluster, spec: Value, words: &str) -> Outcome {
    let run = json!({"metadata": {"labels": {INSTANCE_LABEL: INSTANCE}}, "spec": spec});
    cluster.create("analysisruns", "own", run).await?;
    let api: Api<AnalysisRun> = runs_api(cluster);
    let over = |run: Option<&AnalysisRun>| {
        let status = run.and_then(|run| run.status.as_ref());
        status.is_some_and(|status| status.phase == Phase::Error && status.message.contains(words))
    };
    let ended = kube::runtime::wait::await_condition(api, "own", over).await;
    ended
        .map_err(|error| kube::Error::Service(error.into()))
        .doing("wait for the run to end")
        .map(drop)
}

async fn a_run_whose_args_grow_too_long_ends_in_an_error(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    expect_error(cluster, growing(), TOO_LONG).await
}

async fn patterns_that_are_too_many_or_too_large_are_refused(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let metrics = json!([metric("errors", json!({}))]);
    let many: Vec<_> = (0..101).map(|_| json!({"metricName": "errors"})).collect();
    let refused = template(cluster, "many", json!({"metrics": metrics, "dryRun": many})).await;
    cluster.expect("more than a hundred patterns are refused", refused.is_err())?;
    let large = json!([{"metricName": "(a|b)*a(a|b){500}c|errors"}]);
    let spec = json!({"metrics": metrics, "dryRun": large});
    let words = "spec.dryRun: \"(a|b)*a(a|b){500}c|errors\" is too large a regular expression";
    expect_error(cluster, spec, words).await
}

async fn texts_and_lists_that_are_too_long_are_refused(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let long = json!({"successCondition": "x".repeat(16 * 1024 + 1)});
    let refused = template(cluster, "long", json!({"metrics": [metric("errors", long)]})).await;
    cluster.expect("a condition that is too long is refused", refused.is_err())?;
    let metrics: Vec<_> = (0..101)
        .map(|number| metric(&number.to_string(), json!({})))
        .collect();
    let refused = template(cluster, "many", json!({"metrics": metrics})).await;
    cluster.expect("more than a hundred metrics are refused", refused.is_err())?;
    let query = "x".repeat(64 * 1024 + 1);
    let long = json!({"provider": {"prometheus": {"query": query}}});
    let refused = template(cluster, "query", json!({"metrics": [metric("errors", long)]})).await;
    cluster.expect("a query that is too long is refused", refused.is_err())
}

async fn a_set_of_too_many_replicas_is_refused_until_it_is_scaled_down(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let rollout = cluster.rollout("db").start().await?;
    db.scale(5_001).await?;
    let words = "spec.replicas of the workload: 5001 is more than 5000";
    rollout.expect_condition("Stalled", "True", words).await?;
    rollout.expect_event("WorkloadUnfit", words).await?;
    db.scale(2).await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v1"; 2]).await
}
