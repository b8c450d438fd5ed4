//! Leadership on a thread of its own.
//!
//! Work of the operator can block every async worker for a while: a large answer, a costly condition, a machine that is short
//! of CPU. Renewals must not wait for it, or one tenant's object costs all tenants the leader. So the election runs on its own
//! thread, with its own runtime and its own client, and shares nothing with the workers but the [`Fence`] and the [`Pulse`].
//!
//! A leader whose workers are blocked is still safe: nobody else leads while the lease is renewed, and what was decided before
//! is bound to the version that it was decided on. It must not lead for ever, though: without a [`Pulse`] for a minute the lease
//! is no longer renewed, the fence falls, and another operator takes over as after a lost connection.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use crate::fence::Fence;
use crate::lease::Election;

/// How often whoever works shows that it does.
const BEAT: Duration = Duration::from_secs(1);

/// After so long without a sign of life nothing works any more.
const WEDGED: Duration = Duration::from_secs(60);

/// Shows that the operator's work goes on. Cheap to clone; clones are the same pulse.
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
    /// A pulse that is lost after so long without a beat.
    pub fn lost_after(wedged: Duration) -> Self {
        Self {
            last: Arc::new(Mutex::new(Instant::now())),
            wedged,
        }
    }

    /// Beats for as long as it is polled: poll it in the task whose work it stands for.
    pub async fn keep(&self) -> std::convert::Infallible {
        loop {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            sleep(BEAT.min(self.wedged / 4)).await;
        }
    }

    /// How long ago the last beat was.
    pub fn age(&self) -> Duration {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Whether the work goes on.
    pub fn is_alive(&self) -> bool {
        self.age() < self.wedged
    }

    async fn until(&self, alive: bool) {
        while self.is_alive() != alive {
            sleep(BEAT.min(self.wedged / 4)).await;
        }
    }
}

/// An election that goes on on a thread of its own.
#[derive(Debug)]
pub struct Leadership {
    terms: mpsc::UnboundedReceiver<Fence>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Leadership {
    /// Stands for election again and again, until it is told to resign. `election` is made on the thread, so that its client
    /// belongs to that thread's runtime.
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

    /// Waits until we lead. The fence is open for as long as we do. `None` when there is nobody to stand for election any
    /// more.
    pub async fn next(&mut self) -> Option<Fence> {
        // Where nothing was served meanwhile, a term may be over before it began.
        loop {
            let fence = self.terms.recv().await?;
            if fence.lets_pass() {
                return Some(fence);
            }
        }
    }

    /// Gives the lease back if we hold it, so that others need not wait, and stands no more.
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
            // Whoever could say so is gone, too.
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
        // Where it is only closing, what is on its way may still arrive.
        if unless(told(), held).await.is_none() {
            break;
        }
    }
    election.release().await;
}

/// What comes of `work`, unless it is `told` to stop before.
async fn unless<T>(told: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        () = told => None,
    }
}
