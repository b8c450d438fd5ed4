//! Health, readiness and metrics over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use stateward_controller::leadership::Pulse;
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

/// What is told.
pub(super) struct Probed {
    pub(super) metrics: Metrics,
    pub(super) readiness: Readiness,
    pub(super) pulse: Pulse,
}

/// Serves on a thread of its own until the process ends: whoever asks whether the operator lives must be answered while it
/// works, and not only when it is done.
pub(super) fn serve_apart(listener: TcpListener, probed: Probed) -> std::io::Result<()> {
    let listener = listener.into_std()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new().name("probes".into()).spawn(move || {
        runtime.block_on(async {
            match TcpListener::from_std(listener) {
                Ok(listener) => serve(listener, probed).await,
                Err(error) => tracing::error!(%error, "probes and metrics cannot be served"),
            }
        });
    })?;
    Ok(())
}

/// Serves until it is dropped.
async fn serve(listener: TcpListener, probed: Probed) {
    if let Err(error) = axum::serve(listener, router(probed)).await {
        tracing::error!(%error, "probes and metrics are no longer served");
    }
}

/// Long work is no reason to be restarted; work that does not end is.
fn health(pulse: &Pulse) -> (StatusCode, String) {
    if pulse.is_alive() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    let seconds = pulse.age().as_secs();
    (
        StatusCode::SERVICE_UNAVAILABLE,
        format!("nothing has worked for {seconds} s\n"),
    )
}

fn router(probed: Probed) -> Router {
    let Probed {
        metrics,
        readiness,
        pulse,
    } = probed;
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let watches = metrics.watches().clone();
    Router::new()
        .route("/healthz", get(async move || health(&pulse)))
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

    #[tokio::test(start_paused = true)]
    async fn long_work_is_healthy_and_work_without_an_end_is_not() {
        let pulse = Pulse::lost_after(std::time::Duration::from_secs(60));
        tokio::time::advance(std::time::Duration::from_secs(59)).await;
        assert_eq!(health(&pulse), (StatusCode::OK, "ok\n".to_owned()));
        tokio::time::advance(std::time::Duration::from_secs(2)).await;
        let (code, text) = health(&pulse);
        assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(text, "nothing has worked for 61 s\n");
    }

    #[test]
    fn probes_are_answered_while_every_worker_is_blocked() {
        use std::io::{Read, Write};
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let probed = Probed {
            metrics: Metrics::default(),
            readiness: Readiness::default(),
            pulse: Pulse::default(),
        };
        let served = runtime.block_on(async { serve_apart(listener, probed) });
        served.unwrap();
        let (release, until) = std::sync::mpsc::channel::<()>();
        let (blocked, is_blocked) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            blocked.send(()).unwrap();
            // Not an await: the worker can do nothing else.
            let _ = until.recv();
        });
        is_blocked.recv().unwrap();
        for (path, expected) in [("/healthz", "200 OK"), ("/readyz", "503"), ("/metrics", "200 OK")] {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream
                .set_read_timeout(Some(std::time::Duration::from_secs(60)))
                .unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {expected}")),
                "{path}: {answer}"
            );
        }
        drop(release);
    }

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
