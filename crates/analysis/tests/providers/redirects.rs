//! Redirects: every hop is checked, and nothing is sent along to other origins.

use rstest::rstest;
use serde_json::json;
use stateward_analysis::http::Http;
use stateward_analysis::{MapSecrets, Providers};
use stateward_core::analysis::Data;

use crate::stand_in::{Names, StandIn, ask, loopback, providers, redirect, status};

#[rstest]
#[case(301)]
#[case(302)]
#[case(303)]
#[case(307)]
#[case(308)]
#[tokio::test]
async fn a_redirection_on_the_same_host_keeps_its_headers(#[case] code: u16) {
    let server = StandIn::answering(move |seen| match seen.path.as_str() {
        "/old" => redirect(code, "/new?x=1"),
        _ => status(200, "7"),
    })
    .await;
    let web = json!({"url": server.url("/old"), "headers": [{"key": "X-Key", "value": "k"}]});
    let reply = ask(&providers(), json!({"web": web})).await.unwrap();
    assert_eq!(reply.data, Data::Number(7.0));
    assert_eq!(server.seen()[1].path, "/new");
    assert_eq!(server.seen()[1].header("x-key"), "k");
}

#[tokio::test]
async fn credentials_stay_behind_when_the_port_changes() {
    let other = StandIn::answering(|_| "7").await;
    let to = other.url("/");
    let server = StandIn::answering(move |_| redirect(302, &to)).await;
    let web = json!({
        "url": server.url("/"),
        "headers": [{"key": "X-Key", "value": "k"}, {"key": "Cookie", "value": "c"}],
        "authentication": {"basicAuth": {"username": "u", "password": "p"}},
    });
    ask(&providers(), json!({"web": web})).await.unwrap();
    assert_eq!(server.only().header("authorization"), "Basic dTpw");
    let seen = other.only();
    for name in ["x-key", "cookie", "authorization", "referer"] {
        assert_eq!(seen.header(name), "", "{name}");
    }
}

#[tokio::test]
async fn a_name_and_password_in_a_location_are_not_sent() {
    let server = StandIn::answering(|seen| match seen.path.as_str() {
        "/old" => redirect(302, &format!("http://me:pw@{}/new", seen.header("host"))),
        _ => status(200, "7"),
    })
    .await;
    ask(&providers(), json!({"web": {"url": server.url("/old")}}))
        .await
        .unwrap();
    assert_eq!(server.seen()[1].header("authorization"), "");
}

#[rstest]
#[case("http://169.254.169.254/latest/meta-data/", "EgressRefused")]
#[case("http://[::1]:8080/", "EgressRefused")]
#[case("http://127.0.0.2/", "EgressRefused")]
#[case("//0xa9fea9fe/", "EgressRefused")]
#[case("http://meta/", "EgressRefused")]
#[case("file:///etc/passwd", "RedirectRefused")]
#[case("gopher://127.0.0.1:6379/_x", "RedirectRefused")]
#[case("http://[bad", "RedirectRefused")]
#[tokio::test]
async fn a_redirection_does_not_get_past_the_guard(#[case] to: &'static str, #[case] kind: &str) {
    let server = StandIn::answering(move |_| redirect(302, to)).await;
    let names = Names::default()
        .with("web", &[server.socket])
        .with("meta", &["169.254.169.254:80".parse().unwrap()]);
    let providers = Providers::new(Http::new(loopback()).resolver(names), MapSecrets::default());
    let error = ask(&providers, json!({"web": {"url": "http://web/"}}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
}

#[tokio::test]
async fn redirections_are_followed_five_times() {
    let server = StandIn::answering(|seen| {
        let hops: usize = seen.path.trim_start_matches('/').parse().unwrap();
        match hops {
            0 => status(200, "7"),
            hops => redirect(302, &format!("/{}", hops - 1)),
        }
    })
    .await;
    let web = |hops: usize| json!({"web": {"url": server.url(&format!("/{hops}"))}});
    assert_eq!(ask(&providers(), web(5)).await.unwrap().data, Data::Number(7.0));
    let error = ask(&providers(), web(6)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}: redirected more than 5 times", server.url(""))
    );
}

#[rstest]
#[case(302, "GET", "")]
#[case(307, "POST", "hello")]
#[tokio::test]
async fn a_post_becomes_a_get_or_stays_as_it_was(
    #[case] code: u16,
    #[case] method: &str,
    #[case] body: &str,
) {
    let server = StandIn::answering(move |seen| match seen.path.as_str() {
        "/old" => redirect(code, "/new"),
        _ => status(200, "7"),
    })
    .await;
    let web = json!({"url": server.url("/old"), "method": "POST", "body": "hello"});
    ask(&providers(), json!({"web": web})).await.unwrap();
    assert_eq!(server.seen()[1].method, method);
    assert_eq!(server.seen()[1].body, body);
}

/// A response to a request without the query, such as no data, would count.
#[rstest]
#[case(302, "RedirectRefused")]
#[case(303, "RedirectRefused")]
#[tokio::test]
async fn a_question_is_not_lost_on_the_way(#[case] code: u16, #[case] expected: &str) {
    let empty = r#"{"status": "success", "data": {"resultType": "vector", "result": []}}"#;
    let server = StandIn::answering(move |seen| match seen.path.as_str() {
        "/api/v1/query" => redirect(code, "/elsewhere"),
        _ => status(200, empty),
    })
    .await;
    let prometheus = json!({"address": server.url(""), "query": "up"});
    let error = ask(&providers(), json!({"prometheus": prometheus}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), expected);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_body_does_not_go_to_another_host() {
    let other = StandIn::answering(|_| "7").await;
    let to = other.url("/");
    let server = StandIn::answering(move |_| redirect(307, &to)).await;
    let web = json!({"url": server.url("/"), "method": "POST", "body": "secret"});
    let error = ask(&providers(), json!({"web": web})).await.unwrap_err();
    assert_eq!(error.kind(), "RedirectRefused");
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn a_redirection_to_nowhere_is_told() {
    let server = StandIn::answering(|_| status(302, "")).await;
    let error = ask(&providers(), json!({"web": {"url": server.url("/")}}))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}: redirected without a location", server.url(""))
    );
}
