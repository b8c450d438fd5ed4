//! A leader whose workers are blocked, in real time: the election thread must still renew.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::convert::Infallible;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stateward_clock::Clock;
use stateward_cluster::faults::{Call, Fate, Plan};
use stateward_cluster::{Cluster, Options};
use stateward_controller::leadership::{Leadership, Pulse};
use stateward_controller::lease::{Election, Timing};

/// How long to wait for a renewal before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reports every write to the Lease.
struct Writes(Mutex<Sender<()>>);

impl Plan for Writes {
    fn fate(&self, call: &Call) -> Fate {
        if call.path.contains("/leases/") && call.method == "PUT" {
            let _ = self.0.lock().unwrap().send(());
        }
        Fate::Pass
    }
}

fn stand(pulse: Pulse) -> (Leadership, Receiver<()>) {
    let (sender, writes) = channel();
    let election = move || {
        let clock = Clock::wall();
        let cluster = Cluster::start(Options::at(clock.clone()));
        let client = cluster.client_with("operator", Arc::new(Writes(Mutex::new(sender))));
        let timing = Timing::of(Duration::from_secs(3));
        Ok::<_, Infallible>(Election::new(client, "default", "stateward", "us", timing, clock))
    };
    (Leadership::stand(election, pulse).unwrap(), writes)
}

#[test]
fn the_lease_is_renewed_while_every_worker_is_blocked() {
    const WORKERS: usize = 2;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .unwrap();
    let (mut leadership, writes) = stand(Pulse::default());
    let fence = runtime.block_on(leadership.next()).unwrap();
    let (blocked, all_blocked) = channel();
    let release: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (release, until) = channel::<()>();
            let blocked = blocked.clone();
            runtime.spawn(async move {
                blocked.send(()).unwrap();
                // Not an await: it blocks the worker.
                let _ = until.recv();
            });
            release
        })
        .collect();
    (0..WORKERS).for_each(|_| all_blocked.recv_timeout(PATIENCE).unwrap());
    // Longer than the Lease lasts without a renewal.
    while writes.try_recv().is_ok() {}
    for renewal in 0..10 {
        let seen = writes.recv_timeout(PATIENCE);
        assert!(seen.is_ok(), "the lease was renewed {renewal} times and no more");
    }
    assert!(fence.lets_pass());
    drop(release);
    runtime.block_on(leadership.resign());
}

#[test]
fn a_leader_that_does_no_work_any_more_gives_up_and_leads_again_when_it_does() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let pulse = Pulse::lost_after(Duration::from_millis(500));
    let (mut leadership, _writes) = stand(pulse.clone());
    let first = runtime.block_on(async {
        tokio::select! {
            fence = leadership.next() => fence.unwrap(),
            never = pulse.keep() => match never {},
        }
    });
    // Nothing is polled here, so there is no heartbeat.
    let waiting = runtime.block_on(async { tokio::time::timeout(PATIENCE, first.lost()).await });
    assert!(waiting.is_ok(), "it leads although nothing works");
    assert!(!first.lets_pass());
    let second = runtime.block_on(async {
        tokio::select! {
            fence = leadership.next() => fence.unwrap(),
            never = pulse.keep() => match never {},
        }
    });
    assert!(second.lets_pass());
    runtime.block_on(leadership.resign());
}

#[test]
fn who_resigns_leaves_the_lease_to_others() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (mut leadership, writes) = stand(Pulse::default());
    let fence = runtime.block_on(leadership.next()).unwrap();
    fence.close();
    runtime.block_on(leadership.resign());
    assert!(writes.try_iter().count() > 0, "the lease was not released");
}
