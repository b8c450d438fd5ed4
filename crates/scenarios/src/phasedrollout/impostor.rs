//! Servers that are not a Prometheus: their answers never count as a success, and the status distinguishes them.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::IntoResponse;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::prometheus::expect_unasked;
use super::{expect_out, last_check};
use crate::harness::{Cluster, Outcome, Site};
use crate::scenarios;

scenarios![
    what_is_no_answer_of_a_prometheus_is_no_success,
    a_token_goes_before_a_password_and_silence_is_no_success,
];

/// The next response.
#[derive(Clone, Default)]
struct Line {
    status: u16,
    body: String,
    /// Requires this `Authorization` header.
    authorization: Option<&'static str>,
    /// Never responds.
    silent: bool,
}

type Script = Arc<Mutex<Line>>;

/// A server that gives a programmed response.
struct Impostor {
    site: Site,
    script: Script,
}

impl Impostor {
    async fn start() -> Outcome<Self> {
        let script = Script::default();
        let router = Router::new().fallback(answer).with_state(script.clone());
        let site = Site::serve(router).await?;
        Ok(Self { site, script })
    }

    fn says(&self, status: u16, body: impl Into<String>) {
        self.plays(Line {
            status,
            body: body.into(),
            ..Line::default()
        });
    }

    fn plays(&self, line: Line) {
        *self.script.lock() = line;
    }
}

async fn answer(State(script): State<Script>, headers: HeaderMap, form: String) -> impl IntoResponse {
    let line = script.lock().clone();
    // A client that sends `time` uses its own clock, and Prometheus has no data in the future of its own.
    if form.contains("time=") {
        return (StatusCode::BAD_REQUEST, Body::empty());
    }
    if line.silent {
        std::future::pending::<()>().await;
    }
    let brought = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    if line
        .authorization
        .is_some_and(|wanted| brought != Some(wanted.as_bytes()))
    {
        return (StatusCode::UNAUTHORIZED, Body::empty());
    }
    let status = StatusCode::from_u16(line.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Body::from(line.body))
}

/// A vector in the form of Prometheus' response.
fn answered(result: &Value) -> String {
    json!({"status": "success", "data": {"resultType": "vector", "result": result}}).to_string()
}

/// S002-06
async fn what_is_no_answer_of_a_prometheus_is_no_success(cluster: &mut Cluster) -> Outcome {
    let impostor = Impostor::start().await?;
    cluster.ask_providers();
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let query = json!({"query": {"expr": "errors", "url": impostor.site.address}});
    let rollout = cluster.phased("db").check(query).start().await?;
    impostor.says(500, "a stack trace");
    db.set_image("v2").await?;
    expect_unasked(&rollout, "ServerStatus", "500").await?;
    let overloaded = json!({"status": "error", "errorType": "timeout", "error": "too busy"});
    impostor.says(503, overloaded.to_string());
    expect_unasked(&rollout, "ServerStatus", "503").await?;
    impostor.says(404, "no such page");
    expect_unasked(&rollout, "ClientStatus", "404").await?;
    impostor.says(204, "");
    expect_unasked(&rollout, "UnexpectedStatus", "204").await?;
    impostor.says(200, "<html>please log in</html>");
    expect_unasked(&rollout, "Malformed", "JSON").await?;
    impostor.says(
        200,
        r#"{"status": "success", "data": {"resultType": "vector", "resul"#,
    );
    expect_unasked(&rollout, "Malformed", "JSON").await?;
    impostor.says(200, "");
    expect_unasked(&rollout, "Malformed", "JSON").await?;
    // Only spaces, and more of them than the operator reads.
    impostor.says(200, format!("{}{}", answered(&json!([])), " ".repeat(2 << 20)));
    expect_unasked(&rollout, "TooLarge", "").await?;
    let partial = json!({
        "status": "success", "warnings": ["half of the stores did not answer"],
        "data": {"resultType": "vector", "result": []},
    });
    impostor.says(200, partial.to_string());
    rollout
        .eventually("an answer that is not whole is an error", |status| {
            let last = last_check(status.clone());
            if last.verdict == "Error" && last.message.contains("half of the stores") {
                Ok(())
            } else {
                Err(format!("{last:?}"))
            }
        })
        .await?;
    impostor.says(200, answered(&json!([{"metric": {}, "value": [0, "NaN"]}])));
    rollout
        .eventually("data that is no number is told", |status| {
            let last = last_check(status.clone());
            if last.verdict == "Failed" && last.reason == "NaN" {
                Ok(())
            } else {
                Err(format!("{last:?}"))
            }
        })
        .await?;
    db.expect_rest(["v1"; 2]).await?;
    impostor.says(200, answered(&json!([])));
    expect_out::<2>(&db, &rollout, "v2").await
}

/// S002-06
async fn a_token_goes_before_a_password_and_silence_is_no_success(cluster: &mut Cluster) -> Outcome {
    let impostor = Impostor::start().await?;
    cluster.ask_providers();
    cluster.let_operator_read("prom-secret").await?;
    let keys = json!({"stringData": {"token": "t0ken", "username": "me", "password": "s3cret"}});
    cluster.create("secrets", "prom-secret", keys).await?;
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let query = json!({"query": {
        "expr": "errors", "url": impostor.site.address, "secretRef": "prom-secret", "timeoutSeconds": 1,
    }});
    let rollout = cluster.phased("db").check(query).start().await?;
    impostor.plays(Line {
        silent: true,
        ..Line::default()
    });
    db.set_image("v2").await?;
    expect_unasked(&rollout, "Timeout", "").await?;
    let basic = Line {
        status: 200,
        body: answered(&json!([])),
        authorization: Some("Basic bWU6czNjcmV0"),
        silent: false,
    };
    impostor.plays(basic.clone());
    expect_unasked(&rollout, "ClientStatus", "401").await?;
    db.expect_rest(["v1"; 2]).await?;
    impostor.plays(Line {
        authorization: Some("Bearer t0ken"),
        ..basic
    });
    expect_out::<2>(&db, &rollout, "v2").await
}
