//! Leader election on the embedded cluster, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::{Api, Client};
use rstest::rstest;
use stateward_clock::Clock;
use stateward_cluster::faults::{Call, Fate, Plan};
use stateward_cluster::{Cluster, Options};
use stateward_controller::fence::{Fence, guard};
use stateward_controller::lease::{Election, Timing};
use stateward_controller::metrics::Metrics;
use tokio::time::{Instant, sleep, timeout};

const LEASE: Duration = Duration::from_secs(15);

fn cluster() -> (Cluster, Clock) {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap(), 1.0);
    (Cluster::start(Options::at(clock.clone())), clock)
}

fn election(client: Client, who: &str, clock: &Clock) -> Election {
    let timing = Timing::of(LEASE);
    Election::new(client, "default", "stateward", who, timing, clock.clone())
}

/// Drops every request for Leases while it is set.
#[derive(Default)]
struct Cut(AtomicBool);

impl Plan for Cut {
    fn fate(&self, call: &Call) -> Fate {
        if self.0.load(Ordering::Relaxed) && call.path.contains("/leases") {
            Fate::Lost
        } else {
            Fate::Pass
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_killed_leader_is_followed_within_the_lease_time() {
    let (cluster, clock) = cluster();
    let mut first = election(cluster.client("first"), "first", &clock);
    let fence = first.win().await;
    let leading = tokio::spawn(async move { first.hold(&fence).await });
    let mut second = election(cluster.client("second"), "second", &clock);
    let waiting = tokio::spawn(async move { second.win().await });
    sleep(Duration::from_secs(61)).await;
    assert!(!waiting.is_finished(), "a leader that lives is left alone");

    leading.abort();
    let killed = Instant::now();
    let fence = waiting.await.unwrap();
    assert!(fence.lets_pass());
    assert!(
        killed.elapsed() > LEASE - Duration::from_secs(3) && killed.elapsed() <= LEASE,
        "{:?}",
        killed.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_once() {
    let (cluster, clock) = cluster();
    let mut first = election(cluster.client("first"), "first", &clock);
    let fence = first.win().await;
    let mut second = election(cluster.client("second"), "second", &clock);
    let waiting = tokio::spawn(async move { second.win().await });
    sleep(Duration::from_secs(5)).await;

    let released = Instant::now();
    fence.close();
    first.release().await;
    waiting.await.unwrap();
    assert!(
        released.elapsed() < Duration::from_secs(1),
        "{:?}",
        released.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_writing_before_another_leads() {
    let (cluster, clock) = cluster();
    let cut = Arc::new(Cut::default());
    let client = cluster.client_with("first", cut.clone());
    let mut first = election(client.clone(), "first", &clock);
    let fence = first.win().await;
    // The worst case: everything but the renewals arrives.
    let writing = tokio::spawn(write_on(guard(client, fence.clone(), Metrics::default())));
    let leading = tokio::spawn(async move {
        first.hold(&fence).await;
        Instant::now()
    });
    let mut second = election(cluster.client("second"), "second", &clock);
    let waiting = tokio::spawn(async move { (second.win().await, Instant::now()) });
    sleep(Duration::from_secs(30)).await;
    cut.0.store(true, Ordering::Relaxed);

    let last_write = writing.await.unwrap();
    let lost = leading.await.unwrap();
    let (_, won) = waiting.await.unwrap();
    assert!(last_write <= lost && lost + Duration::from_secs(4) < won);
}

/// Writes every 100 ms until it is fenced, and returns the time of the last write.
async fn write_on(client: Client) -> Instant {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let mut last = Instant::now();
    for number in 0.. {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(format!("write-{number}"));
        if api.create(&PostParams::default(), &map).await.is_err() {
            break;
        }
        last = Instant::now();
        sleep(Duration::from_millis(100)).await;
    }
    last
}

/// Drops, rejects and delays requests at random.
struct Rough(Mutex<fastrand::Rng>);

impl Plan for Rough {
    fn fate(&self, call: &Call) -> Fate {
        let mut random = self.0.lock().unwrap();
        match random.u8(0..10) {
            0 => Fate::Lost,
            1 if call.is_write() => Fate::AppliedThenLost,
            2 if call.is_write() => Fate::AppliedThenRefused(504),
            3 => Fate::Refused(503),
            4 => Fate::Late(Duration::from_millis(random.u64(0..12_000))),
            _ => Fate::Pass,
        }
    }
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn of_three_candidates_on_a_bad_network_never_two_lead(#[values(1, 2, 3, 4, 5, 6, 7, 8)] seed: u64) {
    let (cluster, clock) = cluster();
    let leading: Arc<Mutex<Vec<Option<Fence>>>> = Arc::new(Mutex::new(vec![None, None, None]));
    let terms = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for who in 0..3 {
        let rough = Rough(Mutex::new(fastrand::Rng::with_seed(seed * 10 + who as u64)));
        let client = cluster.client_with("candidate", Arc::new(rough));
        let (leading, terms, clock) = (leading.clone(), terms.clone(), clock.clone());
        tasks.push(tokio::spawn(async move {
            let mut random = fastrand::Rng::with_seed(seed + who as u64);
            let mut election = election(client, &format!("candidate-{who}"), &clock);
            loop {
                let fence = election.win().await;
                leading.lock().unwrap()[who] = Some(fence.clone());
                terms.fetch_add(1, Ordering::Relaxed);
                let patience = Duration::from_secs(random.u64(5..120));
                if timeout(patience, election.hold(&fence)).await.is_err() {
                    fence.close();
                    election.release().await;
                }
            }
        }));
    }
    for _ in 0..20_000 {
        sleep(Duration::from_millis(50)).await;
        let open = leading
            .lock()
            .unwrap()
            .iter()
            .flatten()
            .filter(|fence| fence.lets_pass())
            .count();
        assert!(open <= 1, "{open} lead at the same time");
    }
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    let terms = terms.load(Ordering::Relaxed);
    assert!(terms > 5, "only {terms} terms: the test shows nothing");
}

#[tokio::test(start_paused = true)]
async fn renewals_are_the_only_writes_of_a_leader_and_of_one_who_waits() {
    let (cluster, clock) = cluster();
    let mut first = election(cluster.client("first"), "first", &clock);
    let fence = first.win().await;
    let mut second = election(cluster.client("second"), "second", &clock);
    let both = async { tokio::join!(first.hold(&fence), second.win()) };
    assert!(timeout(Duration::from_secs(61), both).await.is_err());
    let of = |user: &str| -> Vec<String> {
        let entries = cluster.audit().into_iter().filter(|entry| entry.user == user);
        entries
            .map(|entry| format!("{} {}", entry.verb, entry.resource))
            .collect()
    };
    let mut expected = vec!["create leases".to_owned()];
    expected.extend(vec!["update leases".to_owned(); 30]);
    assert_eq!(of("first"), expected);
    assert_eq!(of("second"), Vec::<String>::new());
}
