//! Puts secrets into every possible place, provokes every error, and checks that no output contains one.

use std::fmt::Debug;

use axum::response::Response;
use serde_json::{Value, json};
use stateward_analysis::http::Http;
use stateward_analysis::{
    AwsCredentials, Egress, MapSecrets, MetricProvider, MetricQuery, Providers, Redactor,
};

use crate::stand_in::{Names, Seen, StandIn, ask, loopback, redirect, status};

/// Part of every secret, and of nothing else.
const CANARY: &str = "c4n4ry";

/// Base64 of `me:c4n4ry` and of `c4n4ry-id:c4n4ry-secret`.
const ENCODED: [&str; 2] = ["bWU6YzRuNHJ5", "YzRuNHJ5LWlkOmM0bjRyeS1zZWNyZXQ"];

fn clean(what: &str, shown: &str) {
    for secret in [CANARY].iter().chain(&ENCODED) {
        assert!(!shown.contains(secret), "{what} shows a secret: {shown}");
    }
}

fn check(what: &str, shown: &(impl Debug + ?Sized)) {
    clean(what, &format!("{shown:?}"));
    clean(what, &format!("{shown:#?}"));
}

fn secrets(address: &str) -> MapSecrets {
    MapSecrets::default()
        .with(
            "shop",
            "datadog",
            &[
                ("api-key", "c4n4ry-api"),
                ("app-key", "c4n4ry-app"),
                ("address", address),
            ],
        )
        .with(
            "shop",
            "influxdb",
            &[("authToken", "c4n4ry-token"), ("org", "o"), ("address", address)],
        )
        .with(
            "shop",
            "newrelic",
            &[
                ("personal-api-key", "c4n4ry-nr"),
                ("account-id", "1"),
                ("base-url-nerdgraph", address),
            ],
        )
        .with(
            "shop",
            "wavefront-api-tokens",
            &[("example.invalid", "c4n4ry-wf")],
        )
}

/// Every provider, with secrets in every field that may hold one.
fn metrics(address: &str) -> Vec<Value> {
    let with_user = address.replace("http://", "http://me:c4n4ry@");
    let headers = json!([{"key": "X-Key", "value": "c4n4ry-header"}]);
    let basic = json!({"basicAuth": {"username": "me", "password": "c4n4ry"}});
    let client = json!({"oauth2": {"tokenUrl": format!("{with_user}/token?k=c4n4ry"), "clientId": "c4n4ry-id", "clientSecret": "c4n4ry-secret"}});
    vec![
        json!({"prometheus": {"address": with_user, "query": "up", "headers": headers, "timeout": 1}}),
        json!({"prometheus": {"address": address, "query": "up", "headers": headers, "authentication": basic, "timeout": 1}}),
        json!({"prometheus": {"address": address, "query": "up", "authentication": client, "timeout": 1}}),
        json!({"web": {"url": format!("{with_user}/p?token=c4n4ry#c4n4ry"), "headers": headers, "method": "POST", "body": "c4n4ry", "timeoutSeconds": 1}}),
        json!({"web": {"url": address, "authentication": basic, "method": "POST", "jsonBody": {"k": "c4n4ry"}, "jsonPath": "{$.a}", "timeoutSeconds": 1}}),
        json!({"graphite": {"address": with_user, "query": "target=a"}}),
        json!({"skywalking": {"address": with_user, "query": "query { x }"}}),
        json!({"datadog": {"query": "q", "requestTimeout": "1s"}}),
        json!({"datadog": {"query": "q", "apiVersion": "v2", "requestTimeout": "1s"}}),
        json!({"newRelic": {"query": "q"}}),
        json!({"influxdb": {"query": "q"}}),
        json!({"wavefront": {"address": "example.invalid", "query": "q"}}),
    ]
}

/// Checks all output of an error, an answer and the provider itself.
async fn scan(providers: &Providers, address: &str) {
    check("the dispatcher", providers);
    for metric in metrics(address) {
        let named: String = metric.to_string().chars().take(20).collect();
        match ask(providers, metric).await {
            Ok(reply) => check(&named, &reply),
            Err(error) => {
                check(&named, &error);
                clean(&named, &error.to_string());
                clean(&named, error.kind());
            }
        }
    }
}

fn asking(address: &str, egress: Egress) -> Providers {
    let keys = AwsCredentials {
        access_key_id: "c4n4ry-id".to_owned(),
        secret_access_key: "c4n4ry-key".to_owned(),
        session_token: Some("c4n4ry-session".to_owned()),
    };
    check("the keys for AWS", &keys);
    check("the secrets", &secrets(address));
    let http = Http::new(egress).resolver(Names::default());
    Providers::new(http, secrets(address)).aws(Some(keys), vec!["shop".to_owned()])
}

#[tokio::test]
async fn no_answer_shows_a_secret() {
    // Each repeats the request in a place that a message might show.
    type Answer = fn(&Seen) -> Response;
    let answers: [Answer; 6] = [
        |seen| status(500, format!("{seen:?} {:?}", seen.headers)),
        |seen| status(401, format!("{seen:?} {:?}", seen.headers)),
        |seen| status(200, format!("<{}>", seen.path)),
        |seen| match seen.path.as_str() {
            "/token" => status(200, r#"{"access_token": "c4n4ry-given"}"#),
            _ => status(403, format!("{seen:?}")),
        },
        |_| redirect(302, "http://me:c4n4ry@169.254.169.254/c4n4ry?c4n4ry"),
        |_| redirect(307, "ftp://me:c4n4ry@host/"),
    ];
    for answer in answers {
        let server = StandIn::answering(answer).await;
        let address = server.url("");
        scan(&asking(&address, loopback()), &address).await;
    }
}

#[tokio::test]
async fn no_failure_to_connect_shows_a_secret() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    scan(&asking(&address, loopback()), &address).await;
    scan(&asking(&address, Egress::default()), &address).await;
    scan(&asking("http://me:c4n4ry@[bad", loopback()), "http://[bad").await;
}

#[tokio::test]
async fn what_a_provider_repeats_in_its_own_words_is_redacted() {
    let server = StandIn::answering(|_| {
        let body = json!({"status": "error", "errorType": "bad_data", "error": "header c4n4ry-header, password c4n4ry"});
        status(400, body.to_string())
    })
    .await;
    let address = server.url("");
    let metric = json!({"prometheus": {
        "address": address, "query": "up", "headers": [{"key": "X-Key", "value": "c4n4ry-header"}],
        "authentication": {"basicAuth": {"username": "me", "password": "c4n4ry"}},
    }});
    let error = ask(&asking(&address, loopback()), metric).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{address}: answered with status 400: bad_data: header (redacted), password (redacted)")
    );
}

/// An endpoint may send the credentials of the request back. Conditions judge the original; the redactor hides it in output.
#[tokio::test]
async fn what_lets_a_request_in_is_hidden_in_what_is_answered() {
    let server = StandIn::answering(|seen| match seen.path.as_str() {
        "/token" => status(200, r#"{"access_token": "c4n4ry-given"}"#),
        _ => {
            let said = seen
                .headers
                .get("authorization")
                .map(|value| value.to_str().unwrap().to_owned());
            status(200, json!({ "said": said }).to_string())
        }
    })
    .await;
    let address = server.url("");
    let with_user = address.replace("http://", "http://me:c4n4ry@");
    let basic = json!({"basicAuth": {"username": "me", "password": "c4n4ry"}});
    let client = json!({"oauth2": {
        "tokenUrl": format!("{address}/token"), "clientId": "c4n4ry-id", "clientSecret": "c4n4ry-secret",
    }});
    for web in [
        json!({"url": address, "authentication": basic}),
        json!({"url": address, "authentication": client}),
        json!({"url": with_user}),
    ] {
        let metric = serde_json::from_value(json!({"name": "m", "provider": {"web": web}})).unwrap();
        let redactor = Redactor::default();
        let query = MetricQuery {
            metric: &metric,
            namespace: "shop",
            now: jiff::Timestamp::UNIX_EPOCH,
            range: None,
            redactor: &redactor,
        };
        let reply = asking(&address, loopback()).query(&query).await.unwrap();
        let answer = format!("{:?}", reply.data);
        let shown = redactor.redact(&answer);
        assert_ne!(shown, answer, "nothing was sent");
        clean("the answer", &shown);
    }
}

#[test]
fn no_question_and_no_metric_shows_a_secret() {
    for provider in metrics("http://prometheus:9090") {
        // A URL with a password is in the metric's own text; the fields for secrets are not shown.
        if provider.to_string().contains("me:c4n4ry@") || provider.pointer("/web/jsonBody").is_some() {
            continue;
        }
        let metric = serde_json::from_value(json!({"name": "m", "provider": provider})).unwrap();
        let query = MetricQuery {
            metric: &metric,
            namespace: "shop",
            now: jiff::Timestamp::UNIX_EPOCH,
            range: None,
            redactor: &Redactor::default(),
        };
        check("the question", &query);
        check("the metric", &metric);
    }
}
