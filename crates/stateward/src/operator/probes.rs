//! Health, readiness and metrics over HTTP.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::serve::Listener;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use parking_lot::{Mutex, MutexGuard};
use stateward_controller::leadership::Pulse;
use stateward_controller::{Metrics, Watches};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// The state of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The API server has not answered yet.
    Connecting,
    /// The API server does not serve RolloutPlugins.
    NoDefinition,
    /// Another operator leads.
    StandingBy,
    /// This operator leads.
    Leading,
}

/// The shared state of the operator. Cheap to clone.
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

    /// The response for these watches. A standby operator only watches the Lease.
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

/// The data behind the endpoints.
pub(super) struct Probed {
    pub(super) metrics: Metrics,
    pub(super) readiness: Readiness,
    pub(super) pulse: Pulse,
}

/// Serves on its own thread until the process ends, so that probes are answered while the operator's workers are busy.
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

/// Limits for clients, which are not authenticated.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Concurrent connections. Beyond it, a new connection evicts the oldest one of an address with more connections.
    connections: usize,
    /// Concurrent connections of one address, so that one client cannot block the kubelet's probes.
    of_one_address: usize,
    /// The timeout of a request's headers.
    header: Duration,
    /// The timeout of a connection, which serves one request.
    connection: Duration,
}

const LIMITS: Limits = Limits {
    connections: 128,
    of_one_address: 16,
    header: Duration::from_secs(5),
    connection: Duration::from_secs(30),
};

/// Serves until it is dropped.
async fn serve(listener: TcpListener, probed: Probed) {
    serve_within(listener, router(probed), LIMITS).await;
}

async fn serve_within(mut listener: TcpListener, router: Router, limits: Limits) {
    let open = Open::default();
    loop {
        // axum's accept, which retries on errors such as too many open files.
        let (stream, peer) = Listener::accept(&mut listener).await;
        let Some((place, evicted)) = open.take(peer.ip(), limits) else {
            tracing::debug!(%peer, "too many connections; this one is closed");
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let _place = place;
            let mut server = auto::Builder::new(TokioExecutor::new()).http1_only();
            server
                .http1()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.header)
                .keep_alive(false);
            let served = server.serve_connection(TokioIo::new(stream), service);
            let served = tokio::time::timeout(limits.connection, served);
            tokio::select! {
                served = served => match served {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::debug!(%peer, %error, "a connection ended early"),
                    Err(_) => tracing::debug!(%peer, "a connection took too long"),
                },
                // Dropping the sender, which is how a connection is evicted, resolves it too.
                _ = evicted => tracing::debug!(%peer, "a connection gave way to one of another address"),
            }
        });
    }
}

/// The connections that are open.
#[derive(Clone, Default)]
struct Open(Arc<Mutex<Connections>>);

#[derive(Default)]
struct Connections {
    /// The connections by address, oldest first. Dropping a sender evicts its connection.
    of: HashMap<IpAddr, VecDeque<(u64, oneshot::Sender<()>)>>,
    /// The number of the next connection.
    next: u64,
}

/// A connection's slot, until it is dropped.
struct Place {
    open: Open,
    address: IpAddr,
    number: u64,
}

impl Open {
    /// A slot, and a receiver that resolves on eviction. `None` if no slot is available.
    fn take(&self, address: IpAddr, limits: Limits) -> Option<(Place, oneshot::Receiver<()>)> {
        let mut open = self.lock();
        let all: usize = open.of.values().map(VecDeque::len).sum();
        let count = open.of.get(&address).map_or(0, VecDeque::len);
        if count >= limits.of_one_address {
            return None;
        }
        if all >= limits.connections {
            let oldest = |places: &VecDeque<_>| places.front().map(|(number, _)| Reverse(*number));
            let most = open
                .of
                .values_mut()
                .max_by_key(|places| (places.len(), oldest(places)))?;
            if most.len() <= count {
                return None;
            }
            most.pop_front();
        }
        let (keep, evicted) = oneshot::channel();
        let number = open.next;
        open.next += 1;
        open.of.entry(address).or_default().push_back((number, keep));
        let open = self.clone();
        Some((
            Place {
                open,
                address,
                number,
            },
            evicted,
        ))
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.0.lock()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        if let Some(places) = open.of.get_mut(&self.address) {
            places.retain(|(number, _)| *number != self.number);
            if places.is_empty() {
                open.of.remove(&self.address);
            }
        }
    }
}

/// Long work must not restart the operator; work that never ends must.
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    /// A server with these limits, and its address.
    async fn served(limits: Limits) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = router(Probed {
            metrics: Metrics::default(),
            readiness: Readiness::default(),
            pulse: Pulse::default(),
        });
        tokio::spawn(serve_within(listener, router, limits));
        address
    }

    const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";

    /// The bytes received until the server closes the connection.
    async fn answer(stream: &mut TcpStream, request: &[u8]) -> String {
        let mut said = Vec::new();
        // The server may close the connection first.
        let _ = stream.write_all(request).await;
        let _ = stream.read_to_end(&mut said).await;
        String::from_utf8(said).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_finish_its_request_is_cut_off() {
        let address = served(LIMITS).await;
        for begun in [&b""[..], b"GET /healthz HTTP/1.1\r\nhost: a\r\n"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let said = answer(&mut stream, begun).await;
            assert!(!said.contains("200 OK"), "{said}");
        }
    }

    #[tokio::test]
    async fn one_client_cannot_keep_the_others_out() {
        let address = served(Limits {
            of_one_address: 2,
            header: Duration::from_secs(3600),
            connection: Duration::from_secs(3600),
            ..LIMITS
        })
        .await;
        let first = TcpStream::connect(address).await.unwrap();
        let mut second = TcpStream::connect(address).await.unwrap();
        let mut third = TcpStream::connect(address).await.unwrap();
        assert_eq!(answer(&mut third, HEALTH).await, "", "there is no place for it");
        assert!(answer(&mut second, HEALTH).await.ends_with("ok\n"));
        drop(first);
        loop {
            let mut next = TcpStream::connect(address).await.unwrap();
            if answer(&mut next, HEALTH).await.ends_with("ok\n") {
                break;
            }
        }
    }

    #[test]
    fn places_are_counted_for_each_address_and_for_all() {
        let limits = Limits {
            connections: 3,
            of_one_address: 2,
            ..LIMITS
        };
        let open = Open::default();
        let [one, other]: [IpAddr; 2] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
        let places = [open.take(one, limits), open.take(one, limits)];
        assert!(places.iter().all(Option::is_some) && open.take(one, limits).is_none());
        let third = open.take(other, limits);
        assert!(third.is_some(), "there are three");
        drop(places);
        assert!(open.take(other, limits).is_some());
        drop(third);
        assert!(open.lock().of.is_empty());
    }

    /// Otherwise slow clients of several addresses could block the kubelet's probes.
    #[test]
    fn an_address_with_fewer_connections_takes_the_oldest_place_of_one_with_most() {
        let limits = Limits {
            connections: 4,
            of_one_address: 2,
            ..LIMITS
        };
        let open = Open::default();
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let mut slow: Vec<_> = [1, 1, 2, 2]
            .map(|last| open.take(address(last), limits).unwrap())
            .into();
        let mut evicted =
            |index: usize| slow[index].1.try_recv() == Err(oneshot::error::TryRecvError::Closed);
        let probe = open.take(address(3), limits);
        assert!(probe.is_some());
        assert_eq!([0, 1, 2, 3].map(&mut evicted), [true, false, false, false]);
        assert!(open.take(address(2), limits).is_none(), "it has enough");
        // With two connections, it is now one of those with most.
        let other = open.take(address(4), limits);
        assert!(other.is_some());
        assert_eq!([0, 1, 2, 3].map(&mut evicted), [true, false, true, false]);
        assert!(open.take(address(1), limits).is_none(), "no other has more");
        drop((slow, probe, other));
        assert!(open.lock().of.is_empty());
    }

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
            // Not an await: the worker is blocked.
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
