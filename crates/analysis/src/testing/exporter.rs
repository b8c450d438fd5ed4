//! Something to scrape, with values that a test sets.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::routing::get;
use tokio::task::JoinHandle;

/// An exporter on this machine's loopback. It ends when it is dropped.
#[derive(Debug)]
pub struct Exporter {
    socket: SocketAddr,
    metrics: Arc<RwLock<String>>,
    server: JoinHandle<()>,
}

impl Exporter {
    /// Starts one without metrics.
    pub async fn start() -> io::Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let socket = listener.local_addr()?;
        let metrics = Arc::new(RwLock::new(String::new()));
        let shown = metrics.clone();
        let handler = move || async move { shown.read().unwrap_or_else(PoisonError::into_inner).clone() };
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

    /// Shows these metrics from now on, in the text format: `errors_total{pod="db-0"} 3`, each on a line of its own.
    pub fn set(&self, metrics: &str) {
        metrics.clone_into(&mut self.metrics.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Where it is.
    pub fn socket(&self) -> SocketAddr {
        self.socket
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.server.abort();
    }
}
