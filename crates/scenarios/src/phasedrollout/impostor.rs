//! Whatever else answers in the place of a Prometheus: never a success, and told apart.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::prometheus::expect_unasked;
use super::{expect_out, last_check};
use crate::harness::{Cluster, Outcome, Site};
use crate::scenarios;

scenarios![what_is_no_answer_of_a_prometheus_is_no_success];

type Script = Arc<Mutex<(u16, String)>>;

/// A server that says whatever it is told to.
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
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        *script = (status, body.into());
    }
}

async fn answer(State(script): State<Script>) -> impl IntoResponse {
    let (status, body) = script.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Body::from(body))
}

/// A vector as Prometheus answers it.
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
    impostor.says(200, "<html>please log in</html>");
    expect_unasked(&rollout, "Malformed", "JSON").await?;
    impostor.says(
        200,
        r#"{"status": "success", "data": {"resultType": "vector", "resul"#,
    );
    expect_unasked(&rollout, "Malformed", "JSON").await?;
    impostor.says(200, "");
    expect_unasked(&rollout, "Malformed", "JSON").await?;
    // Nothing but room in it, and more of that than anybody reads.
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
    db.expect_rest(["v1"; 2]).await?;
    impostor.says(200, answered(&json!([])));
    expect_out::<2>(&db, &rollout, "v2").await
}
