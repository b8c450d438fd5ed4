//! How much of the shared resources one namespace can use.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use async_trait::async_trait;
use futures::future::join_all;
use rstest::rstest;
use serde_json::{Value, json};
use stateward_analysis::http::{Http, Resolve};
use stateward_analysis::{MapSecrets, MetricProvider, MetricQuery, ProviderError, Providers, Redactor};
use stateward_core::analysis::{Data, Reply};

use crate::stand_in::{StandIn, ask, loopback, status, with_secrets};

/// Resolves on the shared blocking pool, like `getaddrinfo`, and hangs for every name but one.
struct Hanging {
    good: SocketAddr,
    under_way: Arc<AtomicUsize>,
    gate: Arc<Mutex<mpsc::Receiver<()>>>,
}

#[async_trait]
impl Resolve for Hanging {
    async fn resolve(&self, host: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        let (good, hangs) = (self.good, host != "prometheus");
        let (under_way, gate) = (self.under_way.clone(), self.gate.clone());
        let lookup = tokio::task::spawn_blocking(move || {
            if hangs {
                under_way.fetch_add(1, Ordering::SeqCst);
                // Ends with the test.
                let _ = gate.lock().map(|gate| gate.recv());
            }
            vec![good]
        });
        lookup.await.map_err(io::Error::other)
    }
}

async fn ask_from(providers: &Providers, namespace: &str, provider: Value) -> Result<Reply, ProviderError> {
    let metric = serde_json::from_value(json!({"name": "errors", "provider": provider})).unwrap();
    let query = MetricQuery {
        metric: &metric,
        namespace,
        now: "2026-11-16T06:00:00Z".parse().unwrap(),
        range: None,
        redactor: &Redactor::default(),
    };
    providers.query(&query).await
}

#[test]
fn lookups_that_hang_in_one_namespace_fail_no_metric_of_another() {
    const THREADS: usize = 32;
    let (open, gate) = mpsc::channel();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(2)
        .max_blocking_threads(THREADS)
        .build()
        .unwrap();
    let reply = runtime.block_on(async {
        let server = StandIn::answering(|_| "1").await;
        let under_way = Arc::new(AtomicUsize::new(0));
        let resolver = Hanging {
            good: server.socket,
            under_way: under_way.clone(),
            gate: Arc::new(Mutex::new(gate)),
        };
        let providers = Arc::new(Providers::new(
            Http::new(loopback()).resolver(resolver),
            MapSecrets::default(),
        ));
        // The queries time out, but their lookups continue.
        let questions = (0..2 * THREADS).map(|index| {
            let web = json!({"web": {"url": format!("http://{index}.hostile/"), "timeoutSeconds": 1}});
            let providers = providers.clone();
            async move { ask_from(&providers, "hostile", web).await }
        });
        for answer in join_all(questions).await {
            assert_eq!(answer.unwrap_err().kind(), "Timeout");
        }
        assert!(under_way.load(Ordering::SeqCst) > 0, "lookups hang");
        let web = json!({"web": {"url": "http://prometheus/", "timeoutSeconds": 5}});
        ask_from(&providers, "shop", web).await
    });
    drop(open);
    assert_eq!(reply.unwrap().data, Data::Number(1.0));
}

/// Every provider that reads JSON.
fn every_provider(server: &StandIn) -> Vec<Value> {
    let address = server.url("");
    let client = json!({"oauth2": {"tokenUrl": address, "clientId": "i", "clientSecret": "s"}});
    vec![
        json!({"prometheus": {"address": address, "query": "up"}}),
        json!({"web": {"url": address}}),
        json!({"web": {"url": address, "jsonPath": "{$.a}"}}),
        json!({"web": {"url": address, "authentication": client}}),
        json!({"graphite": {"address": address, "query": "target=a"}}),
        json!({"skywalking": {"address": address, "query": "query { x }"}}),
        json!({"datadog": {"query": "q"}}),
        json!({"datadog": {"query": "q", "apiVersion": "v2"}}),
        json!({"newRelic": {"query": "q"}}),
    ]
}

fn secrets(address: &str) -> MapSecrets {
    let here = ("address", address);
    MapSecrets::default()
        .with("shop", "datadog", &[("api-key", "a"), ("app-key", "b"), here])
        .with("shop", "influxdb", &[("authToken", "a"), ("org", "b"), here])
        .with(
            "shop",
            "newrelic",
            &[
                ("personal-api-key", "a"),
                ("account-id", "1"),
                ("base-url-nerdgraph", address),
            ],
        )
}

/// Small as text, large as a tree.
#[rstest]
#[case::objects(r#"{"":0},"#, "[", "{}]")]
#[case::numbers("0,", "[", "0]")]
#[case::in_a_field(r#"{"":0},"#, r#"{"data": ["#, r#"{}], "status": "success"}"#)]
#[case::before_its_type(
    r#"{"":0},"#,
    r#"{"status": "success", "data": {"result": [{},"#,
    r#"{}], "resultType": "vector"}}"#
)]
#[case::keys(r#""a":0,"#, "{", r#""b":0}"#)]
#[tokio::test]
async fn an_answer_of_more_values_than_the_limit_is_an_error_of_every_provider(
    #[case] part: &'static str,
    #[case] start: &'static str,
    #[case] end: &'static str,
) {
    let parts = 1_000_000 / part.len();
    let server = StandIn::answering(move |_| format!("{start}{}{end}", part.repeat(parts))).await;
    let providers = with_secrets(secrets(&server.url("")));
    for metric in every_provider(&server) {
        let error = ask(&providers, metric.clone()).await.unwrap_err();
        assert!(
            matches!(error.kind(), "TooLarge" | "TooComplex"),
            "{metric}: {error}"
        );
    }
}

#[rstest]
#[case::json_of_web("web", 200_000, r#"{"":0},"#)]
#[case::csv_of_influxdb("influxdb", 1_000_000, ",,0,x\n")]
#[tokio::test]
async fn an_answer_within_its_bytes_may_still_have_too_many_values(
    #[case] provider: &str,
    #[case] bytes: usize,
    #[case] part: &'static str,
) {
    let body = match provider {
        "web" => format!("[{}0]", part.repeat(bytes / part.len())),
        _ => format!(
            "#datatype,string,long,string\n#default,_result,,\n,result,table,_value\n{}",
            part.repeat(bytes / part.len())
        ),
    };
    let server = StandIn::answering(move |_| body.clone()).await;
    let providers = with_secrets(secrets(&server.url("")));
    let metric = match provider {
        "web" => json!({"web": {"url": server.url("/")}}),
        _ => json!({"influxdb": {"query": "q"}}),
    };
    let error = ask(&providers, metric).await.unwrap_err();
    assert_eq!(error.kind(), "TooComplex", "{error}");
    assert!(error.to_string().contains("20000 values"), "{error}");
}

#[tokio::test]
async fn a_large_answer_of_prometheus_is_read() {
    let sample = r#"[1800000000.123,"0.123456789"],"#;
    let values = sample.repeat(30_000);
    let values = values.trim_end_matches(',').to_owned();
    let body = format!(
        r#"{{"status":"success","data":{{"result":[{{"metric":{{"a":"b"}},"values":[{values}]}}],"resultType":"matrix"}}}}"#
    );
    let server = StandIn::answering(move |_| status(200, body.clone())).await;
    let metric = json!({"prometheus": {"address": server.url(""), "query": "up"}});
    let reply = ask(&with_secrets(MapSecrets::default()), metric).await.unwrap();
    assert_eq!(reply.data, Data::Numbers(vec![0.123_456_789; 30_000]));
}
