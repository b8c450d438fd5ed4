//! Health, readiness and metrics over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use stateward_controller::Metrics;
use tokio::net::TcpListener;

/// How far the operator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The API server has not answered yet.
    Connecting,
    /// The API server does not know RolloutPlugins.
    NoDefinition,
    /// Another one leads.
    StandingBy,
    /// This one does.
    Leading,
}

/// How far the operator is, for whoever asks. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Readiness(Arc<AtomicU8>);

const STATES: [(State, &str); 4] = [
    (State::Connecting, "waiting for the API server"),
    (
        State::NoDefinition,
        "waiting for the definition of RolloutPlugin; apply it with: stateward install --crds | kubectl apply -f -",
    ),
    (State::StandingBy, "ready, stands by"),
    (State::Leading, "ready, leads"),
];

impl Default for Readiness {
    fn default() -> Self {
        Self(Arc::new(AtomicU8::new(State::Connecting as u8)))
    }
}

impl Readiness {
    pub(super) fn set(&self, state: State) {
        self.0.store(state as u8, Ordering::Relaxed);
    }

    fn answer(&self) -> (StatusCode, &'static str) {
        let (state, text) = STATES[usize::from(self.0.load(Ordering::Relaxed))];
        let code = match state {
            State::Connecting | State::NoDefinition => StatusCode::SERVICE_UNAVAILABLE,
            State::StandingBy | State::Leading => StatusCode::OK,
        };
        (code, text)
    }
}

/// Serves until it is dropped.
pub(super) async fn serve(listener: TcpListener, metrics: Metrics, readiness: Readiness) {
    if let Err(error) = axum::serve(listener, router(metrics, readiness)).await {
        tracing::error!(%error, "probes and metrics are no longer served");
    }
}

fn router(metrics: Metrics, readiness: Readiness) -> Router {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route(
            "/readyz",
            get(async move || {
                let (code, text) = readiness.answer();
                (code, format!("{text}\n"))
            }),
        )
        .route(
            "/metrics",
            get(async move || ([(header::CONTENT_TYPE, OPEN_METRICS)], metrics.text()).into_response()),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_own_answer() {
        let readiness = Readiness::default();
        for (state, text) in STATES {
            readiness.set(state);
            assert_eq!(readiness.answer().1, text, "{state:?}");
        }
    }
}
