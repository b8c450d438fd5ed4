//! Addresses that the egress rules refuse, in every notation.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use rstest::rstest;
use serde_json::json;
use stateward_analysis::http::{Http, Resolve};
use stateward_analysis::{Egress, MapSecrets, Providers};
use stateward_core::analysis::Data;

use crate::stand_in::{Names, StandIn, ask, loopback};

fn guarded(names: Names) -> Providers {
    Providers::new(
        Http::new(Egress::default()).resolver(names),
        MapSecrets::default(),
    )
}

#[rstest]
#[case("http://127.0.0.1/")]
#[case("http://127.1/")]
#[case("http://2130706433/")]
#[case("http://0x7f000001/")]
#[case("http://0177.0.0.1/")]
#[case("http://0x7f.0.0.0x1/")]
#[case("http://127.0.0.1.:80/")]
#[case("http://①②⑦.⓪.⓪.①/")]
#[case("http://0/")]
#[case("http://0.0.0.0/")]
#[case("http://[::]/")]
#[case("http://[::1]/")]
#[case("http://[::ffff:127.0.0.1]/")]
#[case("http://[::ffff:7f00:1]/")]
#[case("http://[::127.0.0.1]/")]
#[case("http://[64:ff9b::127.0.0.1]/")]
#[case("http://[2002:7f00:1::]/")]
#[case("http://169.254.169.254/latest/meta-data/iam/security-credentials/")]
#[case("http://2852039166/")]
#[case("http://0xa9fea9fe/")]
#[case("http://0251.0376.0251.0376/")]
#[case("http://[::ffff:169.254.169.254]/")]
#[case("http://[fd00:ec2::254]/")]
#[case("http://[fe80::1]/")]
#[case("http://100.100.100.200/")]
#[case("http://user:canary@127.0.0.1/")]
#[case("http://prometheus@169.254.169.254/")]
#[case("http://224.0.0.1/")]
#[case("http://255.255.255.255/")]
#[case("https://127.0.0.1/")]
#[tokio::test]
async fn no_spelling_of_a_refused_address_gets_past(#[case] url: &str) {
    let error = ask(&guarded(Names::default()), json!({"web": {"url": url}}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "EgressRefused", "{error}");
    assert!(error.to_string().contains("--allow-egress"), "{error}");
    assert!(!error.to_string().contains("canary"), "{error}");
}

#[tokio::test]
async fn the_refusal_names_the_address_and_the_flag() {
    let names = Names::default().with("meta.shop.svc", &["169.254.169.254:80".parse().unwrap()]);
    let error = ask(
        &guarded(names),
        json!({"web": {"url": "http://meta.shop.svc/latest"}}),
    )
    .await
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "http://meta.shop.svc is at 169.254.169.254, an address of a cloud's metadata service, and is not dialled; an \
         administrator of the operator can allow it with --allow-egress 169.254.169.254"
    );
}

#[tokio::test]
async fn a_name_with_one_refused_address_among_good_ones_is_refused_whole() {
    let server = StandIn::answering(|_| "1").await;
    let mixed = Names::default().with("mixed", &[server.socket, "[::1]:80".parse().unwrap()]);
    let providers = Providers::new(Http::new(loopback()).resolver(mixed), MapSecrets::default());
    let error = ask(&providers, json!({"web": {"url": "http://mixed/"}}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "EgressRefused");
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn the_next_address_is_tried_where_one_does_not_answer() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed_at = closed.local_addr().unwrap();
    drop(closed);
    let server = StandIn::answering(|_| "1").await;
    let names = Names::default().with("two", &[closed_at, server.socket]);
    let providers = Providers::new(Http::new(loopback()).resolver(names), MapSecrets::default());
    let reply = ask(&providers, json!({"web": {"url": "http://two/"}}))
        .await
        .unwrap();
    assert_eq!(reply.data, Data::Number(1.0));
}

/// Resolves to a good address first, and to a bad one from then on.
struct Rebinding {
    good: SocketAddr,
    asked: Arc<AtomicUsize>,
}

#[async_trait]
impl Resolve for Rebinding {
    async fn resolve(&self, _: &str, _: u16) -> std::io::Result<Vec<SocketAddr>> {
        let bad = "169.254.169.254:80".parse().unwrap();
        let first = self.asked.fetch_add(1, Ordering::SeqCst) == 0;
        Ok(vec![if first { self.good } else { bad }])
    }
}

#[tokio::test]
async fn a_name_is_resolved_once_and_cannot_change_its_mind() {
    let server = StandIn::answering(|_| "1").await;
    let asked = Arc::new(AtomicUsize::new(0));
    let resolver = Rebinding {
        good: server.socket,
        asked: asked.clone(),
    };
    let providers = Providers::new(Http::new(loopback()).resolver(resolver), MapSecrets::default());
    let web = json!({"web": {"url": "http://rebinding/"}});
    assert_eq!(
        ask(&providers, web.clone()).await.unwrap().data,
        Data::Number(1.0)
    );
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // The next request resolves again, and checks the result again.
    assert_eq!(ask(&providers, web).await.unwrap_err().kind(), "EgressRefused");
    assert_eq!(server.seen().len(), 1);
}

#[rstest]
#[case(json!({"prometheus": {"address": "http://127.0.0.1:9090", "query": "up"}}))]
#[case(json!({"prometheus": {"address": "127.0.0.1:9090", "query": "up"}}))]
#[case(json!({"graphite": {"address": "http://127.0.0.1:80", "query": "target=a"}}))]
#[case(json!({"skywalking": {"address": "http://127.0.0.1:12800", "query": "query { x }"}}))]
#[case(json!({"wavefront": {"address": "127.0.0.1", "query": "ts(x)"}}))]
#[case(json!({"datadog": {"query": "q"}}))]
#[case(json!({"newRelic": {"query": "q"}}))]
#[case(json!({"influxdb": {"query": "q"}}))]
#[case(json!({"web": {"url": "http://10.0.0.1/", "authentication": {"oauth2": {"tokenUrl": "http://127.0.0.1/token", "clientId": "i", "clientSecret": "s"}}}}))]
#[tokio::test]
async fn every_provider_goes_through_the_guard(#[case] provider: serde_json::Value) {
    let here = ("address", "http://127.0.0.1:1");
    let secrets = MapSecrets::default()
        .with("shop", "wavefront-api-tokens", &[("127.0.0.1", "t")])
        .with("shop", "datadog", &[("api-key", "a"), ("app-key", "b"), here])
        .with("shop", "influxdb", &[("authToken", "a"), ("org", "b"), here])
        .with(
            "shop",
            "newrelic",
            &[
                ("personal-api-key", "a"),
                ("account-id", "1"),
                ("base-url-nerdgraph", "http://127.0.0.1:1"),
            ],
        );
    let providers = Providers::new(Http::new(Egress::default()), secrets);
    assert_eq!(
        ask(&providers, provider).await.unwrap_err().kind(),
        "EgressRefused"
    );
}
