//! A thousand concurrent runs on the embedded cluster in a separate process: their cost, and whether they keep their interval.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use stateward_api::analysis::{AnalysisRun, INSTANCE, INSTANCE_LABEL};
use stateward_core::expr::{Answer, Condition, Shape};
use tokio::time::sleep;

use crate::fleet::Fleet;
use crate::large::{cluster, connect};
use crate::process::Process;
use crate::row;

/// The number of runs, their interval, and the duration.
const RUNS: usize = 1000;
const INTERVAL: Duration = Duration::from_secs(10);
const WATCHED: Duration = Duration::from_secs(60);

/// The operator's metrics.
const WRITES: &str = r#"stateward_writes_total{verb="patch",resource="analysisruns",outcome="ok"}"#;
const MEASURED: &str = r#"stateward_measurements_total{phase="Successful"}"#;

pub(crate) async fn measure() {
    condition();
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = dir.path().join("kubeconfig");
    let (_cluster, _talk) = cluster(&kubeconfig);
    let client = connect(&kubeconfig).await;
    Fleet::new(client.clone(), "default").define().await;
    let url = site().await;
    let operator = Process::start_with(&kubeconfig, "default", &["--allow-egress=127.0.0.1"]);
    sleep(Duration::from_secs(5)).await;
    let before = operator.resident();
    let runs: Api<AnalysisRun> = Api::namespaced(client, "default");
    let create = |number: usize| {
        let (runs, run) = (runs.clone(), run(number, &url));
        async move { runs.create(&PostParams::default(), &run).await.unwrap() }
    };
    stream::iter((0..RUNS).map(create))
        .buffer_unordered(16)
        .count()
        .await;
    sleep(INTERVAL).await;
    let (writes_before, measured_before) = (operator.metric(WRITES), operator.metric(MEASURED));
    sleep(WATCHED).await;
    let since = |now: Option<f64>, before: Option<f64>| now.unwrap_or(f64::NAN) - before.unwrap_or(f64::NAN);
    let writes = since(operator.metric(WRITES), writes_before);
    let measured = since(operator.metric(MEASURED), measured_before);
    row(
        &format!("{RUNS} runs with intervals of 10 s: memory added"),
        format!("{} MiB", operator.resident().saturating_sub(before)),
        "100 MiB",
    );
    row(
        "  writes for a measurement",
        format!("{:.2}", writes / measured),
        "1",
    );
    let drift = behind(&runs).await;
    row(
        "  the latest measurement, behind its beat",
        format!("{:.2} %", drift.as_secs_f64() / INTERVAL.as_secs_f64() * 100.0),
        "1 %",
    );
    let all = operator.metric(MEASURED).unwrap_or(f64::NAN);
    row(
        "  on a core, for one measurement",
        format!("{:.0} µs", operator.cpu().as_secs_f64() / all * 1e6),
        "",
    );
}

/// The maximum delay of a run's last measurement.
async fn behind(runs: &Api<AnalysisRun>) -> Duration {
    let runs = runs.list(&ListParams::default()).await.unwrap();
    let one = |run: &AnalysisRun| {
        let status = run.status.clone()?;
        let measurements = status.metric_results.first()?.measurements.iter();
        let beat = status.started_at?;
        let since = measurements.last()?.started_at?.duration_since(beat);
        let behind = since
            .as_millis()
            .rem_euclid(i128::try_from(INTERVAL.as_millis()).ok()?);
        Some(Duration::from_millis(u64::try_from(behind).ok()?))
    };
    runs.iter().filter_map(one).max().unwrap_or_default()
}

fn run(number: usize, url: &str) -> AnalysisRun {
    let run = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
        "metadata": {"name": format!("run-{number}"), "labels": {INSTANCE_LABEL: INSTANCE}},
        "spec": {"metrics": [{
            "name": "errors", "interval": "10s", "successCondition": "result.value < 0.05",
            "provider": {"web": {"url": url}},
        }]},
    });
    serde_json::from_value(run).unwrap()
}

/// A web server with a constant response.
async fn site() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = || async { r#"{"value": 0.01}"# };
    let router = axum::Router::new().route("/", axum::routing::get(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/")
}

/// A typical condition.
fn condition() {
    const TIMES: u32 = 100_000;
    let source = "len(result) > 0 && all(result, # < 0.05)";
    let answer = Answer::numbers([0.01, 0.02, 0.03]);
    let compiled = Condition::compile(source, Shape::Numbers).unwrap();
    let began = Instant::now();
    for _ in 0..TIMES {
        std::hint::black_box(compiled.holds(&answer, Timestamp::UNIX_EPOCH).unwrap());
    }
    let took = began.elapsed().as_secs_f64() / f64::from(TIMES) * 1e6;
    row("a condition is judged", format!("{took:.2} µs"), "20 µs");
}
