//! Runs long work outside the async workers: parsing responses and evaluating conditions.
//!
//! The operator's timers, probes and Lease share the async workers. A response of a megabyte, or a condition that uses up its step limit,
//! would block one of them.
//!
//! On a single-threaded runtime the work runs in place. That is where time is virtual (scenarios, simulation, `stateward plan`): another
//! thread would finish at a time that no seed controls.

use std::panic::resume_unwind;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::limit::NamespaceLimit;

/// The maximum number of concurrent tasks of one namespace, and in total.
const PER_NAMESPACE: usize = 2;
const TOTAL: usize = 4;

/// A namespace rests for this multiple of its long work, so that it uses at most half a core. Work within [`SHORT`] does not count: usual
/// responses and conditions take no longer.
const REST: u32 = 3;
const SHORT: Duration = Duration::from_millis(3);

/// Worker threads with a limit per namespace. Clones share the limit.
#[derive(Clone, Debug)]
pub struct Workers(NamespaceLimit);

impl Default for Workers {
    fn default() -> Self {
        Self(NamespaceLimit::new(PER_NAMESPACE, TOTAL))
    }
}

impl Workers {
    /// Runs `work` for a namespace. Once started it counts until it ends, even if the caller is cancelled.
    pub async fn run<T: Send + 'static>(
        &self,
        namespace: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            return work();
        }
        let permit = self.0.acquire(namespace).await;
        let runtime = Handle::current();
        let done = spawn_blocking(move || {
            let began = Instant::now();
            let done = work();
            if let (Some(permit), Some(rest)) = (permit, rest(began.elapsed())) {
                let resting = permit.into_namespace();
                runtime.spawn(async move {
                    sleep(rest).await;
                    drop(resting);
                });
            }
            done
        });
        match done.await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime is shutting down, and with it the caller.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

/// How long a namespace rests after work of this duration.
fn rest(took: Duration) -> Option<Duration> {
    (took > SHORT).then(|| took * REST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, mpsc};
    use std::thread;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_is_done_away_from_the_async_workers_and_few_of_a_namespace_at_a_time() {
        let workers = Workers::default();
        let (begun, begins) = mpsc::channel();
        let mut ends = Vec::new();
        let running = Arc::new(AtomicUsize::new(0));
        for _ in 0..10 {
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            let (workers, begun, running) = (workers.clone(), begun.clone(), running.clone());
            tokio::spawn(async move {
                let here = thread::current().id();
                let work = move || {
                    running.fetch_add(1, Ordering::SeqCst);
                    let _ = begun.send(thread::current().id() != here);
                    let _ = ended.recv();
                    running.fetch_sub(1, Ordering::SeqCst);
                };
                workers.run("hostile", work).await;
            });
        }
        let elsewhere = tokio::task::spawn_blocking(move || {
            let elsewhere: Vec<_> = (0..PER_NAMESPACE).map(|_| begins.recv().unwrap()).collect();
            (elsewhere, begins)
        });
        let (elsewhere, begins) = elsewhere.await.unwrap();
        assert_eq!(elsewhere, [true; PER_NAMESPACE]);
        // The only async worker is free, and so is a thread for another namespace.
        assert_eq!(workers.run("shop", || 7).await, 7);
        assert_eq!(running.load(Ordering::SeqCst), PER_NAMESPACE);
        drop((ends, begins));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_that_nobody_waits_for_counts_until_it_has_ended() {
        let workers = Workers::default();
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(std::sync::Mutex::new(ended));
        let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
        for _ in 0..PER_NAMESPACE {
            let (workers, ended, begun) = (workers.clone(), ended.clone(), begun.clone());
            let waiting = tokio::spawn(async move {
                let work = move || {
                    begun.send(()).unwrap();
                    let _ = ended.lock().unwrap().recv();
                };
                workers.run("hostile", work).await;
            });
            begins.recv().await.unwrap();
            waiting.abort();
            let _ = waiting.await;
        }
        let hostile = workers.clone();
        let third = tokio::spawn(async move { hostile.run("hostile", || ()).await });
        assert_eq!(workers.run("shop", || 7).await, 7);
        assert!(!third.is_finished());
        drop(end);
        third.await.unwrap();
    }

    #[test]
    fn long_work_is_followed_by_a_rest() {
        assert_eq!(rest(SHORT), None);
        assert_eq!(rest(Duration::from_millis(100)), Some(Duration::from_millis(300)));
    }

    #[tokio::test(start_paused = true)]
    async fn in_virtual_time_work_is_done_in_place() {
        let here = thread::current().id();
        let there = Workers::default().run("shop", || thread::current().id()).await;
        assert_eq!(there, here);
    }
}
