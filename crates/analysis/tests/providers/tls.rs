//! Certificates: trusted, untrusted, and not verified.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use stateward_analysis::http::Http;
use stateward_analysis::testing::Authority;
use stateward_analysis::{MapSecrets, Providers};
use stateward_core::analysis::Data;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::stand_in::{Names, Seen, StandIn, ask, loopback, providers, redirect};

/// A server with a certificate of this authority for `name`.
pub(crate) async fn serve(
    authority: &Authority,
    name: &str,
    answer: impl Fn(&Seen) -> axum::response::Response + Clone + Send + Sync + 'static,
) -> StandIn {
    let signed = authority.sign(name).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(signed.certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap(),
        )
        .unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let socket = tcp.local_addr().unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    StandIn::serve(TlsListener { tcp, acceptor }, socket, answer)
}

struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.tcp.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

fn seven(_: &Seen) -> axum::response::Response {
    axum::response::IntoResponse::into_response("7")
}

fn https(server: &StandIn) -> String {
    format!("https://{}/", server.socket)
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_where_it_is_given() {
    let authority = Authority::new().unwrap();
    let server = serve(&authority, "127.0.0.1", seven).await;
    let web = json!({"url": https(&server), "caCertificate": authority.pem()});
    let reply = ask(&providers(), json!({"web": web})).await.unwrap();
    assert_eq!(reply.data, Data::Number(7.0));
    let trusting = Http::new(loopback()).trusting(&authority.pem()).unwrap();
    let providers = Providers::new(trusting, MapSecrets::default());
    ask(&providers, json!({"web": {"url": https(&server)}}))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_stranger_is_not_trusted() {
    let server = serve(&Authority::new().unwrap(), "127.0.0.1", seven).await;
    let stranger = Authority::new().unwrap().pem();
    for web in [
        json!({"url": https(&server)}),
        json!({"url": https(&server), "caCertificate": stranger}),
    ] {
        let error = ask(&providers(), json!({"web": web})).await.unwrap_err();
        assert_eq!(error.kind(), "CertificateNotTrusted");
        assert_eq!(
            error.to_string(),
            format!(
                "https://{}: its certificate is not trusted: no authority that is trusted here signed it; caCertificate names another one",
                server.socket
            )
        );
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_certificate_for_another_name_is_not_trusted() {
    let authority = Authority::new().unwrap();
    let server = serve(&authority, "elsewhere.example", seven).await;
    let web = json!({"url": https(&server), "caCertificate": authority.pem()});
    let error = ask(&providers(), json!({"web": web})).await.unwrap_err();
    assert_eq!(error.kind(), "CertificateNotTrusted");
    assert!(error.to_string().ends_with("it is for another name"), "{error}");
}

#[tokio::test]
async fn a_certificate_is_not_looked_at_only_where_the_metric_says_so() {
    let server = serve(&Authority::new().unwrap(), "elsewhere.example", seven).await;
    let metric = |insecure: bool| json!({"web": {"url": https(&server), "insecure": insecure}});
    assert_eq!(
        ask(&providers(), metric(true)).await.unwrap().data,
        Data::Number(7.0)
    );
    assert_eq!(
        ask(&providers(), metric(false)).await.unwrap_err().kind(),
        "CertificateNotTrusted"
    );
    let both =
        json!({"url": https(&server), "insecure": true, "caCertificate": Authority::new().unwrap().pem()});
    assert_eq!(
        ask(&providers(), json!({"web": both}))
            .await
            .unwrap_err()
            .to_string(),
        "provider.web.caCertificate: and insecure are given; a certificate is checked or it is not"
    );
}

#[tokio::test]
async fn plain_http_where_tls_is_expected_is_told() {
    let server = StandIn::answering(|_| "7").await;
    let error = ask(&providers(), json!({"web": {"url": https(&server)}}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "Tls", "{error}");
}

#[tokio::test]
async fn a_name_is_what_the_certificate_is_held_to_not_its_address() {
    let authority = Authority::new().unwrap();
    let server = serve(&authority, "prometheus.shop.svc", seven).await;
    let names = Names::default().with("prometheus.shop.svc", &[server.socket]);
    let providers = Providers::new(Http::new(loopback()).resolver(names), MapSecrets::default());
    let web = json!({"url": "https://prometheus.shop.svc/", "caCertificate": authority.pem()});
    ask(&providers, json!({"web": web})).await.unwrap();
    assert_eq!(server.only().header("host"), "prometheus.shop.svc");
}

#[tokio::test]
async fn a_redirection_from_https_to_http_is_not_followed() {
    let plain = StandIn::answering(|_| "7").await;
    let to = plain.url("/");
    let authority = Authority::new().unwrap();
    let server = serve(&authority, "127.0.0.1", move |_| redirect(302, &to)).await;
    let web = json!({"url": https(&server), "caCertificate": authority.pem()});
    let error = ask(&providers(), json!({"web": web})).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "https://{}: redirected from https to http, which is not followed",
            server.socket
        )
    );
    assert!(plain.seen().is_empty());
}
