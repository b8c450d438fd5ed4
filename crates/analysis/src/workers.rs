//! Work that may take long, away from the async workers: parsing answers and evaluating conditions.
//!
//! The operator's timers, probes and lease share the async workers. An answer of a megabyte or a condition that uses up its step
//! limit would hold one of them for as long as it takes.
//!
//! On a runtime with a single thread the work is done in place. That is where time is virtual (scenarios, simulation, `stateward
//! plan`): a thread beside it would finish at a moment that no seed decides.

use std::panic::resume_unwind;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::limit::NamespaceLimit;

/// How many pieces of work of one namespace, and of all, are done at the same time.
const PER_NAMESPACE: usize = 2;
const TOTAL: usize = 4;

/// A namespace that has worked for long rests so many times as long, so that it has half a core at most. What is done within
/// [`SHORT`] is not counted: that is what ordinary answers and conditions take.
const REST: u32 = 3;
const SHORT: Duration = Duration::from_millis(3);

/// Does work on threads of its own, with a limit per namespace. Clones share the limit.
#[derive(Clone, Debug)]
pub struct Workers(NamespaceLimit);

impl Default for Workers {
    fn default() -> Self {
        Self(NamespaceLimit::new(PER_NAMESPACE, TOTAL))
    }
}

impl Workers {
    /// Does `work` for a namespace. Once begun it counts against the limit until it has ended, even if nobody waits for it.
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
                // The runtime is shutting down, and with it whoever waits here.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

/// How long a namespace rests after work that took so long.
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
        // The one async worker is free, and so is a thread for somebody else.
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
