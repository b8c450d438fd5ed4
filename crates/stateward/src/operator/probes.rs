//! Health, readiness and metrics over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use stateward_controller::{Metrics, Watches};
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

    /// The answer for an operator with these watches. One that stands by has only that of the lease.
    fn answer(&self, watches: &Watches) -> (StatusCode, String) {
        let (state, text) = STATES[usize::from(self.0.load(Ordering::Relaxed))];
        let (code, text) = match (state, watches.complaint()) {
            (State::Connecting | State::NoDefinition, _) => {
                (StatusCode::SERVICE_UNAVAILABLE, text.to_owned())
            }
            (State::StandingBy | State::Leading, Some(complaint)) => {
                (StatusCode::SERVICE_UNAVAILABLE, complaint)
            }
            (State::StandingBy | State::Leading, None) => (StatusCode::OK, text.to_owned()),
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
    let watches = metrics.watches().clone();
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route(
            "/readyz",
            get(async move || {
                let (code, text) = readiness.answer(&watches);
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
            assert_eq!(readiness.answer(&Watches::default()).1, text, "{state:?}");
        }
    }

    #[test]
    fn who_does_not_see_is_not_ready() {
        let (readiness, watches) = (Readiness::default(), Watches::default());
        readiness.set(State::StandingBy);
        assert_eq!(readiness.answer(&watches).0, StatusCode::OK);
        readiness.set(State::Leading);
        watches.broke("/apis/apps/v1/statefulsets", "it is forbidden");
        let (code, text) = readiness.answer(&watches);
        assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(
            text,
            "the watch of /apis/apps/v1/statefulsets does not work: it is forbidden"
        );
        readiness.set(State::StandingBy);
        assert_eq!(readiness.answer(&watches).0, StatusCode::SERVICE_UNAVAILABLE);
        watches.works("/apis/apps/v1/statefulsets");
        assert_eq!(readiness.answer(&watches).0, StatusCode::OK);
    }
}
