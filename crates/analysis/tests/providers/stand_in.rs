//! A server that records requests and gives configured responses, and helpers for tests.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use serde_json::{Value, json};
use stateward_analysis::http::{Http, Resolve};
use stateward_analysis::{
    Egress, MapSecrets, MetricProvider, MetricQuery, ProviderError, Providers, Range, Redactor,
};
use stateward_core::analysis::Reply;

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn form(&self) -> Vec<(String, String)> {
        pairs(&self.body)
    }
}

fn pairs(text: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// Pairs with owned strings, for comparison.
pub(crate) fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// A local server. It ends with the test's runtime.
pub(crate) struct StandIn {
    pub(crate) socket: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl StandIn {
    pub(crate) async fn answering<R: IntoResponse>(
        answer: impl Fn(&Seen) -> R + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = listener.local_addr().unwrap();
        Self::serve(listener, socket, answer)
    }

    pub(crate) fn serve<R: IntoResponse, L: Listener>(
        listener: L,
        socket: SocketAddr,
        answer: impl Fn(&Seen) -> R + Clone + Send + Sync + 'static,
    ) -> Self
    where
        L::Addr: std::fmt::Debug,
    {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let notes = seen.clone();
        let handler = move |request: Request| async move {
            let (parts, body) = request.into_parts();
            let body = to_bytes(body, 1 << 20).await.unwrap();
            let seen = Seen {
                method: parts.method.to_string(),
                path: parts.uri.path().to_owned(),
                query: pairs(parts.uri.query().unwrap_or_default()),
                headers: parts.headers,
                body: String::from_utf8(body.to_vec()).unwrap(),
            };
            notes.lock().unwrap().push(seen.clone());
            answer(&seen).into_response()
        };
        let router = Router::new().fallback(handler);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { socket, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.socket)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The only request received.
    pub(crate) fn only(&self) -> Seen {
        let mut seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen.remove(0)
    }
}

/// A response with a status and a body.
pub(crate) fn status(status: u16, body: impl Into<Body>) -> Response {
    Response::builder().status(status).body(body.into()).unwrap()
}

/// A redirect.
pub(crate) fn redirect(code: u16, to: &str) -> Response {
    Response::builder()
        .status(code)
        .header("location", to)
        .body(Body::empty())
        .unwrap()
}

/// A resolver with names that a test sets.
#[derive(Clone, Default)]
pub(crate) struct Names(pub(crate) HashMap<String, Vec<SocketAddr>>);

impl Names {
    pub(crate) fn with(mut self, name: &str, addresses: &[SocketAddr]) -> Self {
        self.0.insert(name.to_owned(), addresses.to_vec());
        self
    }
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, host: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        let addresses = self.0.get(host).cloned();
        addresses.ok_or_else(|| {
            io::Error::other("failed to lookup address information: Name or service not known")
        })
    }
}

/// Egress rules that allow loopback.
pub(crate) fn loopback() -> Egress {
    Egress {
        allow: vec!["127.0.0.1".parse().unwrap()],
        ..Egress::default()
    }
}

pub(crate) fn providers() -> Providers {
    Providers::new(Http::new(loopback()), MapSecrets::default())
}

pub(crate) fn with_secrets(secrets: MapSecrets) -> Providers {
    Providers::new(Http::new(loopback()), secrets)
}

pub(crate) async fn ask(providers: &Providers, provider: Value) -> Result<Reply, ProviderError> {
    ask_for_range(providers, provider, None).await
}

/// At six o'clock, for a run in the namespace `shop`.
pub(crate) async fn ask_for_range(
    providers: &Providers,
    provider: Value,
    range: Option<Range>,
) -> Result<Reply, ProviderError> {
    ask_hiding(providers, provider, range, &Redactor::default()).await
}

/// With secrets in `redactor` that the provider does not know.
pub(crate) async fn ask_hiding(
    providers: &Providers,
    provider: Value,
    range: Option<Range>,
    redactor: &Redactor,
) -> Result<Reply, ProviderError> {
    let metric = serde_json::from_value(json!({"name": "errors", "provider": provider})).unwrap();
    let query = MetricQuery {
        metric: &metric,
        namespace: "shop",
        now: "2026-11-16T06:00:00Z".parse().unwrap(),
        range,
        redactor,
    };
    providers.query(&query).await
}
