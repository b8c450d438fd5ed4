//! Leader election on its own thread.
//!
//! The operator's work can block every async worker for a while: a large response, an expensive condition, a shortage of CPU. Lease
//! renewal must not wait for it, or one tenant's object costs all tenants the leader. So the election runs on its own thread, with
//! its own runtime and client, and shares only the [`Fence`] and the [`Pulse`] with the workers.
//!
//! A leader whose workers are blocked is still safe: nobody else leads while the lease is renewed, and each write is bound to the
//! version that it was decided on. It must not lead forever, though: without a [`Pulse`] for a minute the lease is no longer
//! renewed, the fence closes, and another operator takes over as after a lost connection.

use std::future::Future;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use crate::fence::Fence;
use crate::lease::Election;

/// The interval of the heartbeat.
const BEAT: Duration = Duration::from_secs(1);

/// After this time without a heartbeat the workers count as stuck.
const WEDGED: Duration = Duration::from_secs(60);

/// The heartbeat of the operator's work. Cheap to clone; clones share one heartbeat.
#[derive(Clone, Debug)]
pub struct Pulse {
    last: Arc<Mutex<Instant>>,
    wedged: Duration,
}

impl Default for Pulse {
    fn default() -> Self {
        Self::lost_after(WEDGED)
    }
}

impl Pulse {
    /// A pulse that is lost after `wedged` without a beat.
    pub fn lost_after(wedged: Duration) -> Self {
        Self {
            last: Arc::new(Mutex::new(Instant::now())),
            wedged,
        }
    }

    /// Beats for as long as it is polled: poll it in the task whose work it reports on.
    pub async fn keep(&self) -> std::convert::Infallible {
        loop {
            *self.last.lock() = Instant::now();
            sleep(BEAT.min(self.wedged / 4)).await;
        }
    }

    /// The time since the last beat.
    pub fn age(&self) -> Duration {
        self.last.lock().elapsed()
    }

    /// Whether the last beat is recent enough.
    pub fn is_alive(&self) -> bool {
        self.age() < self.wedged
    }

    async fn until(&self, alive: bool) {
        while self.is_alive() != alive {
            sleep(BEAT.min(self.wedged / 4)).await;
        }
    }
}

/// A leader election that runs on its own thread.
#[derive(Debug)]
pub struct Leadership {
    terms: mpsc::UnboundedReceiver<Fence>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Leadership {
    /// Runs for election repeatedly until it is told to resign. `election` is called on the thread, so that its client belongs to
    /// that thread's runtime.
    pub fn stand<E>(
        election: impl FnOnce() -> Result<Election, E> + Send + 'static,
        pulse: Pulse,
    ) -> std::io::Result<Self>
    where
        E: std::fmt::Display,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (won, terms) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::Builder::new().name("lease".into()).spawn(move || {
            runtime.block_on(async {
                match election() {
                    Ok(election) => lead(election, won, stopped, pulse).await,
                    Err(error) => tracing::error!(%error, "cannot stand for election"),
                }
            });
        })?;
        Ok(Self {
            terms,
            stop,
            thread: Some(thread),
        })
    }

    /// Waits until we lead. The fence is open for as long as we do. `None` when the election thread has ended.
    pub async fn next(&mut self) -> Option<Fence> {
        // A term may be over before it is received.
        loop {
            let fence = self.terms.recv().await?;
            if fence.lets_pass() {
                return Some(fence);
            }
        }
    }

    /// Releases the lease if we hold it, so that others need not wait, and ends the election.
    pub async fn resign(mut self) {
        // It may have ended by itself.
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let ended = tokio::task::spawn_blocking(move || thread.join());
            if !matches!(ended.await, Ok(Ok(()))) {
                tracing::error!("the thread of the lease has panicked");
            }
        }
    }
}

async fn lead(
    mut election: Election,
    won: mpsc::UnboundedSender<Fence>,
    stopped: watch::Receiver<bool>,
    pulse: Pulse,
) {
    let told = || {
        let mut stopped = stopped.clone();
        async move {
            // The sender is gone, so nothing can ask for a stop any more.
            let _ = stopped.wait_for(|stop| *stop).await;
        }
    };
    while let Some(fence) = unless(told(), async {
        pulse.until(true).await;
        election.win().await
    })
    .await
    {
        if won.send(fence.clone()).is_err() {
            break;
        }
        let held = async {
            tokio::select! {
                () = election.hold(&fence) => {}
                () = pulse.until(false) => {
                    tracing::error!(lease = election.name(), age = ?pulse.age(), "nothing works any more; no longer leads");
                    fence.shut();
                }
            }
        };
        // If the fence is only closing, requests in flight may still arrive.
        if unless(told(), held).await.is_none() {
            break;
        }
    }
    election.release().await;
}

/// The result of `work`, or `None` if `told` completes first.
async fn unless<T>(told: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        () = told => None,
    }
}
