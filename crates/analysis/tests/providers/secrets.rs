//! Secrets of a cluster: one GET each, in the run's namespace, every time.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rstest::rstest;
use serde_json::json;
use stateward_analysis::http::Http;
use stateward_analysis::{KubeSecrets, Providers};

use crate::stand_in::{Seen, StandIn, ask, loopback, status};

/// An API server with one Secret.
async fn api_server(address: String) -> StandIn {
    StandIn::answering(move |seen: &Seen| {
        let data = |text: &str| STANDARD.encode(text);
        match seen.path.as_str() {
            "/api/v1/namespaces/shop/secrets/datadog" => status(
                200,
                json!({
                    "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "datadog", "namespace": "shop"},
                    "data": {"api-key": data("a"), "app-key": data("b"), "address": data(&address)},
                })
                .to_string(),
            ),
            "/api/v1/namespaces/shop/secrets/forbidden" => status(403, failure("Forbidden", 403)),
            _ => status(404, failure("NotFound", 404)),
        }
    })
    .await
}

fn failure(reason: &str, code: u16) -> String {
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "code": code,
        "message": "what it says of itself", "metadata": {},
    })
    .to_string()
}

fn providers(server: &StandIn) -> Providers {
    let config = kube::Config::new(server.url("").parse().unwrap());
    let client = kube::Client::try_from(config).unwrap();
    Providers::new(Http::new(loopback()), KubeSecrets(client))
}

#[tokio::test]
async fn a_secret_is_read_by_name_each_time_it_is_needed() {
    let datadog = StandIn::answering(|_| r#"{"series": []}"#).await;
    let server = api_server(datadog.url("")).await;
    let providers = providers(&server);
    for _ in 0..2 {
        ask(&providers, json!({"datadog": {"query": "q"}})).await.unwrap();
    }
    assert_eq!(datadog.seen()[1].header("dd-api-key"), "a");
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    for request in seen {
        assert_eq!(
            (request.method.as_str(), request.path.as_str()),
            ("GET", "/api/v1/namespaces/shop/secrets/datadog")
        );
    }
}

#[rstest]
#[case("absent", "secret shop/absent does not exist; it holds the keys for datadog")]
#[case("forbidden", "secret shop/forbidden cannot be read: Forbidden (403)")]
#[tokio::test]
async fn a_secret_that_cannot_be_had_is_told(#[case] name: &str, #[case] expected: &str) {
    let server = api_server(String::new()).await;
    let metric = json!({"datadog": {"query": "q", "secretRef": {"name": name}}});
    let error = ask(&providers(&server), metric).await.unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[rstest]
#[case("../../other/secrets/datadog")]
#[case("datadog/../../../other/secrets/datadog")]
#[case("..")]
#[case("datadog?limit=1")]
#[case("%2e%2e")]
#[case("Datadog")]
#[case("-datadog")]
#[tokio::test]
async fn a_name_cannot_lead_to_another_namespace(#[case] name: &str) {
    let server = api_server(String::new()).await;
    let metric = json!({"datadog": {"query": "q", "secretRef": {"name": name}}});
    let error = ask(&providers(&server), metric).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "provider.datadog: {name:?} is not the name of a secret: lower case letters, digits, - and ."
        )
    );
    assert!(server.seen().is_empty());
}
