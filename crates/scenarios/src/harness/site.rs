//! A web server of one scenario.

use axum::Router;
use tokio::task::JoinHandle;

use super::Outcome;

/// Listens on this machine until it is dropped.
pub struct Site {
    /// `127.0.0.1:54321`
    pub address: String,
    server: JoinHandle<()>,
}

impl Site {
    /// Serves `router` on a free port.
    pub async fn serve(router: Router) -> Outcome<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let server = tokio::spawn(async move {
            // The server ends with the scenario.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, server })
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.server.abort();
    }
}
