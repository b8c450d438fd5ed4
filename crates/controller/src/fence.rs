//! An operator that does not lead writes nothing.
//!
//! Every request of the operator goes through [`guard`]. It lets reads pass and checks the [`Fence`] for everything else: an
//! operator that was cut off, paused or deposed finds the fence shut, whatever it was about to do. The fence shuts by itself when
//! its time is up, without a running task.

use std::future;
use std::sync::Arc;

use http::{Method, Request, Uri};
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tower::BoxError;

use crate::metrics::Metrics;

/// Whether writes may pass. Cheap to clone; clones share one fence.
#[derive(Clone, Debug)]
pub struct Fence(Arc<watch::Sender<State>>);

#[derive(Clone, Copy, Debug)]
struct State {
    gate: Gate,
    /// Writes in flight.
    under_way: usize,
}

#[derive(Clone, Copy, Debug)]
enum Gate {
    /// Nobody else can lead.
    Open,
    /// Nobody else can lead until then.
    Until(Instant),
    /// No new writes pass; writes in flight may arrive.
    Closing,
    /// Another operator may lead.
    Shut,
}

impl Gate {
    fn lets_pass(self) -> bool {
        match self {
            Self::Open => true,
            Self::Until(end) => Instant::now() < end,
            Self::Closing | Self::Shut => false,
        }
    }
}

/// The error of a write that was not sent.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("not written: this operator no longer leads")]
pub struct Fenced;

impl Fence {
    /// A fence that is always open, for an operator without leader election.
    pub fn open() -> Self {
        Self::at(Gate::Open)
    }

    /// A fence that is open until `end`, unless it is extended.
    pub(crate) fn until(end: Instant) -> Self {
        Self::at(Gate::Until(end))
    }

    fn at(gate: Gate) -> Self {
        Self(Arc::new(watch::Sender::new(State { gate, under_way: 0 })))
    }

    /// Extends the time it is open to `end`. A fence that was shut or has expired stays shut.
    pub(crate) fn extend(&self, end: Instant) {
        self.0.send_modify(|state| {
            if let Gate::Until(before) = state.gate
                && Instant::now() < before
            {
                state.gate = Gate::Until(end);
            }
        });
    }

    /// When it expires; `None` if it never does or is shut.
    pub(crate) fn end(&self) -> Option<Instant> {
        match self.0.borrow().gate {
            Gate::Until(end) => Some(end),
            Gate::Open | Gate::Closing | Gate::Shut => None,
        }
    }

    /// Lets no new write pass. Writes in flight may arrive.
    pub fn close(&self) {
        self.0.send_modify(|state| {
            if state.gate.lets_pass() {
                state.gate = Gate::Closing;
            }
        });
    }

    /// Lets nothing pass, and cancels writes in flight.
    pub fn shut(&self) {
        self.0.send_modify(|state| state.gate = Gate::Shut);
    }

    /// Waits until another operator may lead.
    pub async fn lost(&self) {
        self.fallen().await;
    }

    /// Waits until no write is in flight.
    pub async fn idle(&self) {
        let mut states = self.0.subscribe();
        // We hold the sender, so it cannot be dropped.
        let _ = states.wait_for(|state| state.under_way == 0).await;
    }

    /// Whether a write may begin.
    pub fn lets_pass(&self) -> bool {
        self.0.borrow().gate.lets_pass()
    }

    fn begin(&self) -> Result<UnderWay, Fenced> {
        let mut begun = false;
        self.0.send_modify(|state| {
            if state.gate.lets_pass() {
                state.under_way += 1;
                begun = true;
            }
        });
        if begun {
            Ok(UnderWay(self.clone()))
        } else {
            Err(Fenced)
        }
    }

    /// Waits until writes in flight must be cancelled.
    async fn fallen(&self) {
        let mut states = self.0.subscribe();
        loop {
            let gate = states.borrow_and_update().gate;
            let time_is_up = async {
                match gate {
                    Gate::Until(end) => sleep_until(end).await,
                    Gate::Shut => {}
                    Gate::Open | Gate::Closing => future::pending().await,
                }
            };
            tokio::select! {
                () = time_is_up => return,
                changed = states.changed() => if changed.is_err() {
                    future::pending::<()>().await;
                },
            }
        }
    }
}

/// Counts a write until it is answered or cancelled.
struct UnderWay(Fence);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.under_way -= 1);
    }
}

/// A client whose writes are counted and pass only while `fence` is open, and that marks a watch as working when it is answered.
///
/// A write that was sent just before the fence shut may still arrive after it: the lease stays valid for a while longer, which
/// gives the network time to lose or deliver it.
pub fn guard(client: Client, fence: Fence, metrics: Metrics) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, fence, metrics) = (client.clone(), fence.clone(), metrics.clone());
        async move {
            if is_read(request.method()) {
                let watched = is_watch(request.uri()).then(|| request.uri().path().to_owned());
                let answer = client.send(request).await?;
                if let Some(path) = watched.filter(|_| answer.status().is_success()) {
                    metrics.watches().works(&path);
                }
                return Ok(answer);
            }
            let write = metrics.write(request.method(), request.uri().path());
            let _under_way = fence.begin().inspect_err(|_| write.fenced())?;
            tokio::select! {
                biased;
                answer = client.send(request) => {
                    write.answered(answer.as_ref().map(http::Response::status).ok());
                    answer.map_err(BoxError::from)
                }
                () = fence.fallen() => {
                    write.fenced();
                    Err(Fenced.into())
                }
            }
        }
    });
    Client::new(service, namespace)
}

pub(crate) fn is_watch(uri: &Uri) -> bool {
    let mut parameters = uri.query().unwrap_or_default().split('&');
    parameters.any(|parameter| matches!(parameter, "watch=true" | "watch=1"))
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_fence_falls_by_itself_and_cannot_be_raised_again() {
        let start = Instant::now();
        let fence = Fence::until(start + Duration::from_secs(10));
        assert!(fence.begin().is_ok());
        fence.extend(start + Duration::from_secs(12));
        fence.fallen().await;
        assert_eq!(start.elapsed(), Duration::from_secs(12));
        fence.extend(start + Duration::from_secs(60));
        assert!(fence.begin().is_err() && !fence.lets_pass());
    }

    #[tokio::test(start_paused = true)]
    async fn a_closing_fence_waits_for_what_is_on_its_way() {
        let fence = Fence::open();
        let write = fence.begin();
        fence.close();
        assert!(fence.begin().is_err());
        let early = tokio::time::timeout(Duration::from_secs(1), fence.idle()).await;
        assert!(early.is_err());
        drop(write);
        fence.idle().await;
    }
}
