//! Authentication.

use rstest::rstest;
use serde_json::{Value, json};
use stateward_analysis::http::Http;
use stateward_analysis::{AwsCredentials, MapSecrets, Providers};
use stateward_core::analysis::Data;

use crate::stand_in::{Names, Seen, StandIn, ask, loopback, owned, providers, status};
use crate::tls::serve;
use stateward_analysis::testing::Authority;

fn metric(url: &str, authentication: Value) -> Value {
    json!({"web": {"url": url, "authentication": authentication}})
}

fn client(token_url: &str, secret: &str) -> Value {
    json!({"oauth2": {"tokenUrl": token_url, "clientId": "stateward", "clientSecret": secret, "scopes": ["read", "list"]}})
}

#[tokio::test]
async fn a_name_and_a_password_go_as_basic_authentication() {
    let server = StandIn::answering(|_| "7").await;
    let basic = json!({"basicAuth": {"username": "me", "password": "pw"}, "oauth2": {}, "sigv4": {}});
    ask(&providers(), metric(&server.url("/"), basic)).await.unwrap();
    assert_eq!(server.only().header("authorization"), "Basic bWU6cHc=");
}

#[tokio::test]
async fn a_token_is_asked_for_once_and_kept() {
    let tokens =
        StandIn::answering(|_| r#"{"access_token": "t1", "token_type": "bearer", "expires_in": 3600}"#).await;
    let server = StandIn::answering(|_| "7").await;
    let providers = providers();
    let metric = metric(&server.url("/"), client(&tokens.url("/token"), "s&cret"));
    for _ in 0..3 {
        let reply = ask(&providers, metric.clone()).await.unwrap();
        assert_eq!(reply.data, Data::Number(7.0));
    }
    let asked = tokens.only();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/token"));
    // "stateward:s%26cret", as the standard requires.
    assert_eq!(asked.header("authorization"), "Basic c3RhdGV3YXJkOnMlMjZjcmV0");
    assert_eq!(
        asked.form(),
        owned(&[("grant_type", "client_credentials"), ("scope", "read list")])
    );
    assert_eq!(server.seen().len(), 3);
    assert!(
        server
            .seen()
            .iter()
            .all(|it| it.header("authorization") == "Bearer t1")
    );
}

#[tokio::test]
async fn a_token_is_another_ones_only_with_the_same_secret() {
    let tokens = StandIn::answering(|_| r#"{"access_token": "t1", "expires_in": "3600"}"#).await;
    let server = StandIn::answering(|_| "7").await;
    let providers = providers();
    for secret in ["one", "other"] {
        let metric = metric(&server.url("/"), client(&tokens.url("/"), secret));
        ask(&providers, metric).await.unwrap();
    }
    assert_eq!(tokens.seen().len(), 2);
}

#[tokio::test]
async fn a_token_near_its_end_is_not_used() {
    let tokens = StandIn::answering(|_| r#"{"access_token": "t1", "expires_in": 5}"#).await;
    let server = StandIn::answering(|_| "7").await;
    let providers = providers();
    let metric = metric(&server.url("/"), client(&tokens.url("/"), "s"));
    ask(&providers, metric.clone()).await.unwrap();
    ask(&providers, metric).await.unwrap();
    assert_eq!(tokens.seen().len(), 2);
}

#[tokio::test]
async fn a_token_that_is_refused_is_forgotten() {
    let tokens = StandIn::answering(|_| r#"{"access_token": "t1", "expires_in": 3600}"#).await;
    let server = StandIn::answering(|_| status(401, "")).await;
    let providers = providers();
    let metric = metric(&server.url("/"), client(&tokens.url("/"), "s"));
    for _ in 0..2 {
        let error = ask(&providers, metric.clone()).await.unwrap_err();
        assert_eq!(error.kind(), "ClientStatus");
    }
    assert_eq!(tokens.seen().len(), 2);
}

#[tokio::test]
async fn a_server_that_wants_the_secret_in_the_form_gets_it_there() {
    let tokens = StandIn::answering(|seen: &Seen| {
        let form = seen.form();
        if form.contains(&("client_secret".to_owned(), "s".to_owned())) {
            status(200, r#"{"access_token": "t1"}"#)
        } else {
            status(401, "")
        }
    })
    .await;
    let server = StandIn::answering(|_| "7").await;
    ask(
        &providers(),
        metric(&server.url("/"), client(&tokens.url("/"), "s")),
    )
    .await
    .unwrap();
    assert_eq!(tokens.seen()[1].header("authorization"), "");
}

#[rstest]
#[case(
    200,
    r#"{"error": "invalid_client"}"#,
    "the answer is not JSON with an access_token"
)]
#[case(200, "<html>", "the answer is not JSON with an access_token")]
#[case(500, "", "answered with status 500")]
#[tokio::test]
async fn a_token_that_is_not_given_is_told(
    #[case] code: u16,
    #[case] body: &'static str,
    #[case] expected: &str,
) {
    let tokens = StandIn::answering(move |_| status(code, body)).await;
    let server = StandIn::answering(|_| "7").await;
    let error = ask(
        &providers(),
        metric(&server.url("/"), client(&tokens.url("/"), "s")),
    )
    .await
    .unwrap_err();
    assert_eq!(error.to_string(), format!("{}: {expected}", tokens.url("")));
    assert!(server.seen().is_empty());
}

const AMP: &str = "aps-workspaces.eu-west-1.amazonaws.com";

fn keys() -> AwsCredentials {
    let variables = |name: &str| {
        let value = match name {
            "AWS_ACCESS_KEY_ID" => "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY" => "canary-secret",
            _ => "canary-session",
        };
        Some(value.to_owned())
    };
    AwsCredentials::from_variables(variables).unwrap()
}

#[tokio::test]
async fn queries_to_managed_prometheus_are_signed() {
    let authority = Authority::new().unwrap();
    let answer = |_: &Seen| {
        let scalar = json!({"status": "success", "data": {"resultType": "scalar", "result": [1, "7"]}});
        status(200, scalar.to_string())
    };
    let server = serve(&authority, AMP, answer).await;
    let names = Names::default().with(AMP, &[server.socket]);
    let http = Http::new(loopback()).resolver(names).trusting(&authority.pem());
    let providers =
        Providers::new(http.unwrap(), MapSecrets::default()).aws(Some(keys()), vec!["shop".to_owned()]);
    let address = format!("https://{AMP}/workspaces/ws-1");
    let metric = json!({"prometheus": {
        "address": address, "query": "up", "authentication": {"sigv4": {"region": "eu-west-1"}},
    }});
    let reply = ask(&providers, metric).await.unwrap();
    assert_eq!(reply.data, Data::Number(7.0));
    let seen = server.only();
    assert_eq!(seen.path, "/workspaces/ws-1/api/v1/query");
    assert_eq!(seen.header("x-amz-date"), "20261116T060000Z");
    assert_eq!(seen.header("x-amz-security-token"), "canary-session");
    assert!(
        seen.header("authorization").starts_with(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261116/eu-west-1/aps/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature="
        ),
        "{}",
        seen.header("authorization")
    );
}

#[rstest]
#[case("http://prometheus:9090", json!({"sigv4": {"region": "r"}}), "sigv4: signs for Amazon Managed Service for Prometheus only, at https://aps-workspaces.REGION.amazonaws.com of the region it names")]
#[case("https://aps-workspaces.r.amazonaws.com", json!({"sigv4": {"region": "r"}}), "sigv4: needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment of the operator")]
#[case("http://x", json!({"sigv4": {"region": "r", "roleArn": "arn"}}), "sigv4.roleArn: is not served; the operator signs with the keys of its own environment")]
#[case("http://x", json!({"sigv4": {"region": "r", "profile": "p"}}), "sigv4.profile: is not served; the operator signs with the keys of its own environment")]
#[case("http://x", json!({"oauth2": {"tokenUrl": "http://t", "clientId": "c"}}), "oauth2.clientSecret: is empty")]
#[case("http://x", json!({"basicAuth": {"username": "u"}}), "basicAuth.password: is empty")]
#[tokio::test]
async fn what_cannot_let_in_is_told(
    #[case] url: &str,
    #[case] authentication: Value,
    #[case] expected: &str,
) {
    let error = ask(&providers(), metric(url, authentication)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("provider.web.authentication.{expected}")
    );
}

#[rstest]
#[case(&["shop"], json!({"insecure": true}), "provider.prometheus.authentication.sigv4: does not go with insecure or caCertificate")]
#[case(&["shop"], json!({"caCertificate": Authority::new().unwrap().pem()}), "provider.prometheus.authentication.sigv4: does not go with insecure or caCertificate")]
#[case(&["other"], json!({}), "provider.prometheus.authentication.sigv4: is not open to namespace shop; an administrator can allow it with the operator's flag --aws-signing-namespace shop")]
#[case(&[], json!({}), "provider.prometheus.authentication.sigv4: is not open to namespace shop; an administrator can allow it with the operator's flag --aws-signing-namespace shop")]
#[tokio::test]
async fn the_operators_keys_sign_for_listed_namespaces_and_checked_certificates_only(
    #[case] namespaces: &[&str],
    #[case] patch: Value,
    #[case] expected: &str,
) {
    let namespaces = namespaces.iter().map(|name| (*name).to_owned()).collect();
    let providers =
        Providers::new(Http::new(loopback()), MapSecrets::default()).aws(Some(keys()), namespaces);
    let mut metric = json!({
        "address": format!("https://{AMP}"), "query": "up", "authentication": {"sigv4": {"region": "eu-west-1"}},
    });
    metric
        .as_object_mut()
        .unwrap()
        .extend(patch.as_object().unwrap().clone());
    let error = ask(&providers, json!({"prometheus": metric})).await.unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn two_ways_in_are_one_too_many() {
    let both = json!({"basicAuth": {"username": "u", "password": "p"}, "sigv4": {"region": "r"}});
    assert_eq!(
        ask(&providers(), metric("http://x", both))
            .await
            .unwrap_err()
            .to_string(),
        "provider.web.authentication: has more than one of sigv4, oauth2 and basicAuth; a request is let in one way"
    );
}
