//! Every kind of failure has its own message.

use axum::body::Body;
use axum::response::Response;
use rstest::rstest;
use serde_json::{Value, json};
use stateward_analysis::http::{Http, WEB_LIMIT};
use stateward_analysis::{MapSecrets, ProviderError, Providers};
use stateward_core::analysis::Data;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::stand_in::{Names, StandIn, ask, loopback, providers, status};

async fn web(url: &str) -> ProviderError {
    ask(&providers(), json!({"web": {"url": url}})).await.unwrap_err()
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = web(&url).await;
    assert_eq!(error.kind(), "ConnectionRefused");
    assert_eq!(error.to_string(), format!("{url}: connection refused"));
}

#[tokio::test]
async fn nobody_has_that_name() {
    let providers = Providers::new(
        Http::new(loopback()).resolver(Names::default()),
        MapSecrets::default(),
    );
    let error = ask(&providers, json!({"web": {"url": "http://nobody.invalid/"}}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "NameNotResolved");
    assert_eq!(
        error.to_string(),
        "nobody.invalid: the name was not resolved: name or service not known"
    );
}

#[tokio::test]
async fn nobody_answers_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let metric = json!({"web": {"url": url, "timeoutSeconds": 1}});
    let error = ask(&providers(), metric).await.unwrap_err();
    assert_eq!(error.kind(), "Timeout");
    assert_eq!(error.to_string(), format!("{url}: no answer within 1 s"));
}

#[tokio::test]
async fn an_answer_that_trickles_is_cut_off_in_time() {
    let url = raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n1", true).await;
    let metric = json!({"web": {"url": url, "timeoutSeconds": 1}});
    assert_eq!(ask(&providers(), metric).await.unwrap_err().kind(), "Timeout");
}

#[rstest]
#[case(400, "ClientStatus")]
#[case(401, "ClientStatus")]
#[case(404, "ClientStatus")]
#[case(500, "ServerStatus")]
#[case(503, "ServerStatus")]
#[tokio::test]
async fn a_bad_status_is_told_without_the_body(#[case] code: u16, #[case] kind: &str) {
    let server = StandIn::answering(move |_| status(code, "the body is nobody's business")).await;
    let error = web(&server.url("/path?token=x")).await;
    assert_eq!(error.kind(), kind);
    assert_eq!(
        error.to_string(),
        format!("{}: answered with status {code}", server.url(""))
    );
}

#[rstest]
#[case(WEB_LIMIT, true)]
#[case(WEB_LIMIT + 1, false)]
#[tokio::test]
async fn an_answer_is_read_up_to_its_limit(#[case] size: usize, #[case] fits: bool) {
    let server = StandIn::answering(move |_| "x".repeat(size)).await;
    let reply = ask(&providers(), json!({"web": {"url": server.url("/")}})).await;
    if fits {
        assert_eq!(reply.unwrap().data, Data::Text("x".repeat(size)));
    } else {
        let error = reply.unwrap_err();
        assert_eq!(error.kind(), "TooLarge");
        assert_eq!(
            error.to_string(),
            format!("{}: the answer is longer than 262144 bytes", server.url(""))
        );
    }
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    let server = StandIn::answering(|_| {
        let endless = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b'x'; 64 * 1024]));
        Response::new(Body::from_stream(endless))
    })
    .await;
    assert_eq!(web(&server.url("/")).await.kind(), "TooLarge");
}

#[tokio::test]
async fn compressed_answers_are_neither_asked_for_nor_taken() {
    let server = StandIn::answering(|_| {
        Response::builder()
            .header("content-encoding", "gzip")
            .body(Body::from("anything"))
            .unwrap()
    })
    .await;
    let error = web(&server.url("/")).await;
    assert_eq!(server.only().header("accept-encoding"), "identity");
    assert_eq!(
        error.to_string(),
        format!(
            "{}: the answer is not without compression, as was asked for",
            server.url("")
        )
    );
}

/// A server with a constant response, after which it closes the connection or not.
async fn raw(answer: &'static [u8], stays: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer).await;
                if stays {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    url
}

#[rstest]
#[case(b"SSH-2.0-OpenSSH_9.6\r\n", "Malformed")]
#[case(b"", "Connection")]
#[case(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort", "Connection")]
#[tokio::test]
async fn what_is_no_http_and_what_breaks_off_are_told_apart(
    #[case] answer: &'static [u8],
    #[case] kind: &str,
) {
    let url = raw(answer, false).await;
    let error = web(&url).await;
    assert_eq!(error.kind(), kind, "{error}");
}

#[tokio::test]
async fn headers_without_end_are_not_read() {
    let mut answer = b"HTTP/1.1 200 OK\r\n".to_vec();
    for _ in 0..20_000 {
        answer.extend_from_slice(b"x-filler: 0123456789\r\n");
    }
    let url = raw(answer.leak(), true).await;
    assert_eq!(web(&url).await.kind(), "Malformed");
}

#[tokio::test]
async fn proxies_of_the_environment_are_not_heard_of() {
    // The client does not read the environment; every other test here shows that it connects directly.
    let server = StandIn::answering(|_| "7").await;
    ask(&providers(), json!({"web": {"url": server.url("/x")}}))
        .await
        .unwrap();
    // A proxy would have received an absolute URL.
    assert_eq!(server.only().path, "/x");
}

#[rstest]
#[case(json!({}), "provider: names no provider")]
#[case(json!({"job": {"spec": {}}}), "provider.job: is not asked over HTTP; its Job is run instead")]
#[case(json!({"cloudWatch": {}}), "provider.cloudWatch: is not served")]
#[case(json!({"kayenta": {}}), "provider.kayenta: is not served")]
#[case(json!({"plugin": {}}), "provider.plugin: is not served")]
#[case(json!({"web": {"url": "http://x", "timeoutSeconds": 9999}}), "provider.web.timeoutSeconds: 9999 is not between 1 and 600")]
#[case(json!({"web": {"url": "ftp://x"}}), "provider.web.url: is ftp; http and https are spoken")]
#[case(json!({"web": {"url": "http://x", "method": "BREW"}}), r#"provider.web.method: "BREW" is not GET, POST or PUT"#)]
#[case(json!({"web": {"url": "http://x", "body": "y"}}), "provider.web.body: goes with POST or PUT; the method is GET")]
#[case(json!({"web": {"url": "http://x", "headers": [{"key": "a b", "value": "c"}]}}), "provider.web.headers[0].key: is not the name of a header")]
#[case(json!({"web": {"url": "http://x", "headers": [{"key": "a", "value": "canary\r\nb: c"}]}}), "provider.web.headers[0].value: cannot be sent in a header: it has a control character")]
#[case(json!({"web": {"url": "http://x", "caCertificate": "not PEM"}}), "provider.web.caCertificate: is not PEM with a certificate of an authority")]
#[case(json!({"prometheus": {"query": "up"}}), "provider.prometheus.address: is empty, and the operator has no default")]
#[case(json!({"prometheus": {"address": "http://x"}}), "provider.prometheus.query: is empty")]
#[case(json!({"prometheus": {"address": "http://x", "query": "up", "timeout": -1}}), "provider.prometheus.timeout: -1 is not between 1 and 600")]
#[case(json!({"prometheus": {"address": "http://x", "query": "up", "rangeQuery": {}}}), "provider.prometheus.rangeQuery: has not come to a start and an end")]
#[case(json!({"datadog": {}}), "provider.datadog.query: and queries are empty; there must be one to ask")]
#[case(json!({"datadog": {"query": "q", "apiVersion": "v3"}}), r#"provider.datadog.apiVersion: "v3" is not v1 or v2"#)]
#[case(json!({"datadog": {"query": "q", "interval": "5x"}}), r#"provider.datadog.interval: "5x" is not a number of seconds or a duration such as 30s, 5m or 1h30m"#)]
#[case(json!({"datadog": {"query": "q"}}), "secret shop/datadog does not exist; it holds the keys for datadog")]
#[case(json!({"datadog": {"query": "q", "secretRef": {"name": "mine"}}}), "secret shop/mine does not exist; it holds the keys for datadog")]
#[case(json!({"newRelic": {"query": "q"}}), "secret shop/newrelic does not exist; it holds the keys for newRelic")]
#[case(json!({"influxdb": {"query": "q"}}), "secret shop/influxdb does not exist; it holds the keys for influxdb")]
#[case(json!({"wavefront": {"query": "q", "address": "x.wavefront.com"}}), "secret shop/wavefront-api-tokens does not exist; it holds the keys for wavefront")]
#[case(json!({"wavefront": {"query": "q", "address": "http://x"}}), "provider.wavefront.address: is not a host such as example.wavefront.com")]
#[tokio::test]
async fn a_metric_that_cannot_be_asked_says_why(#[case] provider: Value, #[case] expected: &str) {
    assert_eq!(
        ask(&providers(), provider).await.unwrap_err().to_string(),
        expected
    );
}
