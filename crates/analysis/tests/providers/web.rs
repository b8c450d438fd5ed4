//! An HTTP endpoint.

use serde_json::json;
use stateward_core::analysis::Data;

use crate::stand_in::{StandIn, ask, owned, providers, status};

#[tokio::test]
async fn a_get_sends_its_headers_and_no_body() {
    let server = StandIn::answering(|_| r#"{"data": {"ok": true}}"#).await;
    let web = json!({
        "url": server.url("/measure?window=5m"),
        "headers": [{"key": "X-Token", "value": "t"}, {"key": "Host", "value": "elsewhere"}],
        "jsonPath": "{$.data.ok}",
    });
    let reply = ask(&providers(), json!({"web": web})).await.unwrap();
    assert_eq!(reply.data, Data::Document(json!(true)));
    let seen = server.only();
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("GET", "/measure"));
    assert_eq!(seen.query, owned(&[("window", "5m")]));
    assert_eq!(seen.header("x-token"), "t");
    assert_eq!(seen.header("host"), server.socket.to_string());
    assert!(seen.header("user-agent").starts_with("stateward/"));
    assert_eq!(seen.body, "");
}

#[tokio::test]
async fn a_post_sends_its_body_as_it_is_and_json_as_json() {
    let server = StandIn::answering(|_| "3").await;
    let post = |extra: serde_json::Value| {
        let mut web = json!({"url": server.url("/"), "method": "POST"});
        web.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!({"web": web})
    };
    ask(&providers(), post(json!({"body": "plain"}))).await.unwrap();
    ask(
        &providers(),
        post(json!({"jsonBody": {"a": [1]}, "method": "PUT"})),
    )
    .await
    .unwrap();
    let seen = server.seen();
    assert_eq!(
        (seen[0].method.as_str(), seen[0].body.as_str()),
        ("POST", "plain")
    );
    assert_eq!(seen[0].header("content-type"), "");
    assert_eq!(seen[1].method, "PUT");
    assert_eq!(seen[1].json(), json!({"a": [1]}));
    assert_eq!(seen[1].header("content-type"), "application/json");
}

#[tokio::test]
async fn every_2xx_is_an_answer() {
    let server = StandIn::answering(|_| status(202, "accepted")).await;
    let reply = ask(&providers(), json!({"web": {"url": server.url("/")}}))
        .await
        .unwrap();
    assert_eq!(reply.data, Data::Text("accepted".to_owned()));
}

#[tokio::test]
async fn a_name_and_password_in_the_url_let_in() {
    let server = StandIn::answering(|_| "1").await;
    let url = server.url("/").replace("http://", "http://me:pw@");
    ask(&providers(), json!({"web": {"url": url}})).await.unwrap();
    assert_eq!(server.only().header("authorization"), "Basic bWU6cHc=");
}
