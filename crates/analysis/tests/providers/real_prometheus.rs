//! A real Prometheus, for what a stand-in cannot show.

use serde_json::{Value, json};
use stateward_analysis::testing::{Exporter, RealPrometheus};
use stateward_analysis::{MetricProvider, MetricQuery, ProviderError, Providers, Range, Redactor};
use stateward_clock::Clock;
use stateward_core::analysis::{Data, Reply};

use crate::stand_in::providers;

async fn ask(providers: &Providers, metric: Value, back: Option<i64>) -> Result<Reply, ProviderError> {
    let metric = serde_json::from_value(json!({"name": "m", "provider": {"prometheus": metric}})).unwrap();
    let now = Clock::wall().now();
    let query = MetricQuery {
        metric: &metric,
        namespace: "shop",
        now,
        range: back.map(|seconds| Range {
            start: now - jiff::SignedDuration::from_secs(seconds),
            end: now,
            step: jiff::SignedDuration::from_secs(1),
        }),
        redactor: &Redactor::default(),
    };
    providers.query(&query).await
}

#[tokio::test]
async fn a_real_prometheus_is_asked_and_understood() {
    let exporter = Exporter::start().await.unwrap();
    exporter.set("errors{pod=\"db-0\"} 3\nerrors{pod=\"db-1\"} 4.5\nratio NaN\nbounds +Inf\n");
    let Some(prometheus) = RealPrometheus::start(&exporter).await.unwrap() else {
        return;
    };
    // The steps of a subquery are aligned to whole seconds, so the first samples may be too new for one.
    prometheus.has("sum_over_time(errors[30s:1s])").await.unwrap();
    let providers = providers().default_prometheus(Some(prometheus.address()));
    let query = |query: &str| json!({"query": query});

    let reply = ask(&providers, query("sort(errors)"), None).await.unwrap();
    assert_eq!(reply.data, Data::Numbers(vec![3.0, 4.5]));
    assert!(reply.newest.is_some());
    assert_eq!(reply.notes["ResolvedPrometheusQuery"], "sort(errors)");

    let data = async |text: &str| ask(&providers, query(text), None).await.unwrap().data;
    assert_eq!(data("scalar(sum(errors))").await, Data::Number(7.5));
    assert_eq!(data("nothing_by_that_name").await, Data::Numbers(vec![]));
    assert_eq!(data("bounds").await, Data::Numbers(vec![f64::INFINITY]));
    assert_eq!(data("-bounds").await, Data::Numbers(vec![f64::NEG_INFINITY]));
    assert_eq!(data("\"hello\"").await, Data::Document("hello".into()));
    let Data::Numbers(ratio) = data("ratio").await else {
        panic!("numbers")
    };
    assert!(ratio.len() == 1 && ratio[0].is_nan());

    // A subquery and a range both return a matrix.
    let Data::Numbers(subquery) = data("errors{pod=\"db-0\"}[30s:1s]").await else {
        panic!("numbers")
    };
    assert!(!subquery.is_empty() && subquery.iter().all(|value| *value == 3.0));
    let range = json!({"query": "sum(errors)", "rangeQuery": {"start": "", "end": "", "step": "1s"}});
    let Data::Numbers(range) = ask(&providers, range, Some(5)).await.unwrap().data else {
        panic!("numbers")
    };
    assert!(!range.is_empty() && range.iter().all(|value| *value == 7.5));

    let error = ask(&providers, query("errors{"), None).await.unwrap_err();
    assert_eq!(error.kind(), "ClientStatus");
    assert!(
        error
            .to_string()
            .contains("answered with status 400: bad_data: invalid parameter \"query\""),
        "{error}"
    );
    let error = ask(&providers, query("errors * on() errors"), None)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("answered with status 422: execution:"),
        "{error}"
    );
}
