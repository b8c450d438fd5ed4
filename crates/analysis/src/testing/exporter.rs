//! A Prometheus exporter with values that a test sets.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use parking_lot::RwLock;
use tokio::task::JoinHandle;

/// An exporter on loopback. It stops when it is dropped.
#[derive(Debug)]
pub struct Exporter {
    socket: SocketAddr,
    metrics: Arc<RwLock<String>>,
    server: JoinHandle<()>,
}

impl Exporter {
    /// Starts an exporter without metrics.
    pub async fn start() -> io::Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let socket = listener.local_addr()?;
        let metrics = Arc::new(RwLock::new(String::new()));
        let shown = metrics.clone();
        let handler = move || async move { shown.read().clone() };
        let router = Router::new().route("/metrics", get(handler));
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            socket,
            metrics,
            server,
        })
    }

    /// Sets the metrics, in the text format: `errors_total{pod="db-0"} 3`, one per line.
    pub fn set(&self, metrics: &str) {
        metrics.clone_into(&mut self.metrics.write());
    }

    /// The address.
    pub fn socket(&self) -> SocketAddr {
        self.socket
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.server.abort();
    }
}
