//! A proxy configured by a flag, and what the egress rules still refuse.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rstest::rstest;
use serde_json::json;
use stateward_analysis::http::Http;
use stateward_analysis::testing::Authority;
use stateward_analysis::{Egress, MapSecrets, Providers};
use stateward_core::analysis::Data;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::stand_in::{Names, ask, loopback, status};
use crate::tls::serve;

/// How a proxy responds to CONNECT.
#[derive(Clone, Copy)]
enum Tunnel {
    To(SocketAddr),
    Refused,
}

/// A proxy that answers `7` to a plain request, and the headers of the requests it received.
async fn proxy(tunnel: Tunnel) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let socket = listener.local_addr().unwrap();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            seen.lock().unwrap().push(head.clone());
            match (head.starts_with("CONNECT "), tunnel) {
                (true, Tunnel::To(target)) => {
                    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                    let mut server = TcpStream::connect(target).await.unwrap();
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                }
                (true, Tunnel::Refused) => {
                    let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
                    client.write_all(refusal).await.unwrap();
                }
                (false, _) => {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n7";
                    client.write_all(answer).await.unwrap();
                }
            }
        }
    });
    (socket, heads)
}

fn through(socket: SocketAddr, egress: Egress) -> Http {
    let proxy = format!("http://me:pw@{socket}").parse().unwrap();
    // The proxy resolves names: the client's resolver has none.
    Http::new(egress).resolver(Names::default()).proxy(Some(proxy))
}

#[tokio::test]
async fn a_plain_request_goes_to_the_proxy_whole() {
    let (socket, heads) = proxy(Tunnel::Refused).await;
    let providers = Providers::new(through(socket, Egress::default()), MapSecrets::default());
    let web = json!({"web": {"url": "http://prometheus.example:8080/x?a=b", "headers": [{"key": "X-Key", "value": "k"}]}});
    assert_eq!(ask(&providers, web).await.unwrap().data, Data::Number(7.0));
    let heads = heads.lock().unwrap().clone();
    assert_eq!(heads.len(), 1);
    let head = heads[0].to_ascii_lowercase();
    assert!(
        head.starts_with("get http://prometheus.example:8080/x?a=b http/1.1\r\n"),
        "{head}"
    );
    assert!(head.contains("\r\nhost: prometheus.example:8080\r\n"), "{head}");
    assert!(
        head.contains("\r\nproxy-authorization: basic bwu6chc=\r\n"),
        "{head}"
    );
    assert!(head.contains("\r\nx-key: k\r\n"), "{head}");
}

#[tokio::test]
async fn an_encrypted_request_goes_through_a_tunnel_and_the_proxy_sees_none_of_it() {
    let authority = Authority::new().unwrap();
    let server = serve(&authority, "prometheus.example", |_| status(200, "9")).await;
    let (socket, heads) = proxy(Tunnel::To(server.socket)).await;
    let http = through(socket, Egress::default())
        .trusting(&authority.pem())
        .unwrap();
    let providers = Providers::new(http, MapSecrets::default());
    let web =
        json!({"web": {"url": "https://prometheus.example/x", "headers": [{"key": "X-Key", "value": "k"}]}});
    assert_eq!(ask(&providers, web).await.unwrap().data, Data::Number(9.0));
    assert_eq!(
        *heads.lock().unwrap(),
        [
            "CONNECT prometheus.example:443 HTTP/1.1\r\nhost: prometheus.example:443\r\nproxy-authorization: Basic bWU6cHc=\r\n\r\n"
        ]
    );
    let seen = server.only();
    assert_eq!((seen.path.as_str(), seen.header("x-key")), ("/x", "k"));
    assert_eq!(seen.header("proxy-authorization"), "");
}

#[rstest]
#[case("http://169.254.169.254/")]
#[case("https://169.254.169.254/")]
#[case("http://0x7f000001/")]
#[case("http://[::ffff:127.0.0.1]/")]
#[case("http://[64:ff9b:1::1]/")]
#[case("http://localhost/")]
#[case("https://a.LOCALHOST./")]
#[case("http://metadata.google.internal/computeMetadata/v1/")]
#[case("https://kubernetes.default.svc/api")]
#[case("https://172-18-0-2.kubernetes.default.svc.cluster.local/api")]
#[case("http://x.169-254-169-254.shop.pod/latest/meta-data/")]
#[case("https://api.example.com/api")]
#[tokio::test]
async fn what_is_refused_is_not_asked_of_the_proxy_either(#[case] url: &str) {
    let (socket, heads) = proxy(Tunnel::Refused).await;
    let egress = Egress {
        refuse_names: vec!["api.example.com".to_owned()],
        ..Egress::default()
    };
    let providers = Providers::new(through(socket, egress), MapSecrets::default());
    let error = ask(&providers, json!({"web": {"url": url}})).await.unwrap_err();
    assert_eq!(error.kind(), "EgressRefused", "{error}");
    assert!(heads.lock().unwrap().is_empty());
}

#[rstest]
#[case(
    "http://x.169-254-169-254.shop.pod",
    "is an address of a cloud's metadata service, and is not dialled"
)]
#[case("http://localhost", "is a name of the machine itself, and is not dialled")]
#[case("http://prometheus..svc", "has an empty label, and is not dialled")]
#[tokio::test]
async fn a_host_that_is_refused_behind_a_proxy_is_named_with_the_reason(
    #[case] url: &str,
    #[case] why: &str,
) {
    let (socket, _) = proxy(Tunnel::Refused).await;
    let providers = Providers::new(through(socket, Egress::default()), MapSecrets::default());
    let error = ask(&providers, json!({"web": {"url": url}})).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{url} {why}"));
}

#[rstest]
#[case("http://prometheus.example/", true)]
#[case("http://10.1.2.3/", true)]
#[case("http://other.example/", false)]
#[case("http://10.2.0.1/", false)]
#[tokio::test]
async fn what_is_not_listed_is_not_asked_with_a_proxy_or_without(#[case] url: &str, #[case] listed: bool) {
    let egress = Egress {
        only: ["prometheus.example", "10.1.0.0/16"]
            .map(|text| text.parse().unwrap())
            .into(),
        ..Egress::default()
    };
    let (socket, heads) = proxy(Tunnel::Refused).await;
    let providers = Providers::new(through(socket, egress.clone()), MapSecrets::default());
    let answer = ask(&providers, json!({"web": {"url": url}})).await;
    assert_eq!(heads.lock().unwrap().len(), usize::from(listed));
    if listed {
        assert_eq!(answer.unwrap().data, Data::Number(7.0));
        return;
    }
    let names = Names::default().with("other.example", &["10.2.0.1:80".parse().unwrap()]);
    let direct = Providers::new(Http::new(egress).resolver(names), MapSecrets::default());
    let error = ask(&direct, json!({"web": {"url": url}})).await.unwrap_err();
    assert_eq!(error, answer.unwrap_err());
    assert!(
        error
            .to_string()
            .ends_with(" is not listed in --egress-only, and is not dialled"),
        "{error}"
    );
}

#[tokio::test]
async fn a_host_that_is_listed_is_asked_without_a_proxy() {
    let server = crate::stand_in::StandIn::answering(|_| "1").await;
    let names = Names::default().with("listed.example", &[server.socket]);
    let egress = Egress {
        only: vec!["*.example".parse().unwrap()],
        ..loopback()
    };
    let providers = Providers::new(Http::new(egress).resolver(names), MapSecrets::default());
    let web = json!({"web": {"url": "http://listed.example/"}});
    assert_eq!(ask(&providers, web).await.unwrap().data, Data::Number(1.0));
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    let (socket, _) = proxy(Tunnel::Refused).await;
    let providers = Providers::new(through(socket, Egress::default()), MapSecrets::default());
    let error = ask(&providers, json!({"web": {"url": "https://prometheus.example/"}}))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("https://prometheus.example: the proxy http://{socket} answered with status 407")
    );
    assert!(!format!("{providers:?}").contains("pw"));
}

#[rstest]
#[case("https://proxy:3128", "--egress-proxy: is https; a proxy is reached by http")]
#[case("socks5://proxy", "--egress-proxy: is socks5; http and https are spoken")]
#[case("http://proxy/path", "--egress-proxy: has a path")]
fn what_is_no_proxy_is_refused(#[case] text: &str, #[case] expected: &str) {
    let error = text.parse::<stateward_analysis::http::Proxy>().unwrap_err();
    assert!(error.to_string().starts_with(expected), "{error}");
}
