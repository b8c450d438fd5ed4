//! Prometheus, with a stand-in that checks requests.

use serde_json::{Value, json};
use stateward_analysis::Range;
use stateward_core::analysis::Data;

use crate::stand_in::{StandIn, ask, ask_for_range, owned, providers, status};

fn vector() -> String {
    json!({"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": {"pod": "db-0"}, "value": [1_794_808_800, "0.5"]},
    ]}})
    .to_string()
}

fn metric(address: &str) -> Value {
    json!({"prometheus": {"address": address, "query": "rate(errors[5m]) > 0"}})
}

#[tokio::test]
async fn an_instant_is_asked_by_form_and_is_the_servers_own() {
    let server = StandIn::answering(|_| vector()).await;
    let reply = ask(&providers(), metric(&server.url("/prefix/"))).await.unwrap();
    assert_eq!(reply.data, Data::Numbers(vec![0.5]));
    assert_eq!(reply.newest, "2026-11-16T06:00:00Z".parse().ok());
    assert_eq!(reply.notes["ResolvedPrometheusQuery"], "rate(errors[5m]) > 0");
    let seen = server.only();
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("POST", "/prefix/api/v1/query")
    );
    assert_eq!(seen.header("content-type"), "application/x-www-form-urlencoded");
    assert_eq!(seen.form(), owned(&[("query", "rate(errors[5m]) > 0")]));
}

#[tokio::test]
async fn a_range_is_asked_from_start_to_end_in_steps() {
    let server = StandIn::answering(|_| {
        json!({"status": "success", "data": {"resultType": "matrix", "result": [
            {"metric": {}, "values": [[1_794_808_500, "1"], [1_794_808_560, "2"]]},
        ]}})
        .to_string()
    })
    .await;
    let mut metric = metric(&server.url(""));
    metric["prometheus"]["rangeQuery"] =
        json!({"start": "now() - duration('5m')", "end": "now()", "step": "1m"});
    let range = Range {
        start: "2026-11-16T05:55:00Z".parse().unwrap(),
        end: "2026-11-16T06:00:00Z".parse().unwrap(),
        step: jiff::SignedDuration::from_millis(1500),
    };
    let reply = ask_for_range(&providers(), metric, Some(range)).await.unwrap();
    assert_eq!(reply.data, Data::Numbers(vec![1.0, 2.0]));
    let seen = server.only();
    assert_eq!(seen.path, "/api/v1/query_range");
    assert_eq!(
        seen.form()[1..],
        owned(&[
            ("start", "1794808500.000"),
            ("end", "1794808800.000"),
            ("step", "1.5")
        ])
    );
}

#[tokio::test]
async fn where_post_is_not_allowed_get_is_tried() {
    let server = StandIn::answering(|seen| match seen.method.as_str() {
        "POST" => status(405, ""),
        _ => status(200, vector()),
    })
    .await;
    let mut metric = metric(&server.url("/?tenant=shop"));
    metric["prometheus"]["headers"] = json!([{"key": "X-Scope-OrgID", "value": "shop"}]);
    ask(&providers(), metric).await.unwrap();
    let seen = &server.seen()[1];
    assert_eq!((seen.method.as_str(), seen.body.as_str()), ("GET", ""));
    assert_eq!(seen.header("x-scope-orgid"), "shop");
    assert_eq!(
        seen.query,
        owned(&[("tenant", "shop"), ("query", "rate(errors[5m]) > 0"),])
    );
}

#[tokio::test]
async fn an_address_needs_no_scheme_and_may_be_the_operators() {
    let server = StandIn::answering(|_| vector()).await;
    ask(&providers(), metric(&server.socket.to_string()))
        .await
        .unwrap();
    let providers = providers().default_prometheus(Some(server.url("")));
    ask(&providers, json!({"prometheus": {"query": "up"}}))
        .await
        .unwrap();
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn what_prometheus_refuses_is_told_in_its_words() {
    let server = StandIn::answering(|_| {
        let body =
            json!({"status": "error", "errorType": "bad_data", "error": "invalid parameter \"query\""});
        status(400, body.to_string())
    })
    .await;
    let error = ask(&providers(), metric(&server.url(""))).await.unwrap_err();
    assert_eq!(error.kind(), "ClientStatus");
    assert_eq!(
        error.to_string(),
        format!(
            "{}: answered with status 400: bad_data: invalid parameter \"query\"",
            server.url("")
        )
    );
}

#[tokio::test]
async fn a_status_that_is_neither_an_answer_nor_a_refusal_is_told_apart() {
    let server = StandIn::answering(|_| status(204, "")).await;
    let error = ask(&providers(), metric(&server.url(""))).await.unwrap_err();
    assert_eq!(error.kind(), "UnexpectedStatus");
}

#[tokio::test]
async fn what_is_no_prometheus_is_told() {
    let server = StandIn::answering(|_| "<html>hello</html>").await;
    let error = ask(&providers(), metric(&server.url(""))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: the answer is not Prometheus' JSON with a status and a vector, matrix, scalar or string",
            server.url("")
        )
    );
}
