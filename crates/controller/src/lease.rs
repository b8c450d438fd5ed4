//! Leader election by a Lease, as in client-go.
//!
//! - Whether a leader is alive is judged by when *we* last saw its record change, never by the times in it: clocks differ,
//!   and every change is a sign of life.
//! - Every write is bound to the version that was read, so of two candidates only one succeeds.
//! - A leader may write until its renew deadline, which counts from *before* its last successful renewal was sent. That is
//!   earlier than anyone can take over: others count a whole lease duration from after they saw the renewal.
//! - A leader that resigns empties the record; others see that on their watch and need not wait.
//!
//! All of it uses the monotonic timer; the clock only writes the times that users read.
//!
//! `Candidate` is the protocol, without IO; [`Election`] executes it.

#![expect(
    clippy::disallowed_methods,
    reason = "the name of the lease is the operator's own"
)]

use std::pin::pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use stateward_clock::Clock;
use stateward_plugin::Watches;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::fence::Fence;
use crate::overlap::Scope;

/// The durations of the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long others wait after the last sign of life.
    pub lease: Duration,
    /// How long a leader continues without a renewal. It is shorter, so that a write in flight arrives or is lost before others
    /// take over.
    pub renew: Duration,
    /// How often it renews, and how long to wait after a failure.
    pub retry: Duration,
}

impl Timing {
    /// client-go's proportions: 15, 10 and 2 seconds.
    pub fn of(lease: Duration) -> Self {
        Self {
            lease,
            renew: lease * 2 / 3,
            retry: lease * 2 / 15,
        }
    }
}

/// What a candidate should do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Move {
    /// Write this record, on the version that was read.
    Take(Box<Lease>),
    /// Another operator leads; it cannot be gone before then.
    Wait(Instant),
}

/// A candidate, and the last record that it has seen.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    name: String,
    identity: String,
    lease: Duration,
    scope: Scope,
    seen: Option<Seen>,
}

#[derive(Clone, Debug)]
struct Seen {
    lease: Lease,
    /// When the record was first seen in this state.
    at: Instant,
}

impl Candidate {
    pub(crate) fn new(name: &str, identity: &str, lease: Duration) -> Self {
        Self {
            name: name.to_owned(),
            identity: identity.to_owned(),
            lease,
            scope: Scope::default(),
            seen: None,
        }
    }

    /// Stores the current record, or that there is none.
    pub(crate) fn observe(&mut self, lease: Option<Lease>, now: Instant) {
        let Some(lease) = lease else {
            self.seen = None;
            return;
        };
        if self
            .seen
            .as_ref()
            .is_none_or(|seen| seen.lease.spec != lease.spec)
        {
            self.seen = Some(Seen { lease, at: now });
        } else if let Some(seen) = &mut self.seen {
            // Metadata may change without a sign of life; the version has to follow.
            seen.lease = lease;
        }
    }

    /// Whether the record names us.
    pub(crate) fn leads(&self) -> bool {
        self.seen
            .as_ref()
            .is_some_and(|seen| holder(&seen.lease) == self.identity)
    }

    /// The current leader, as far as we know; empty when there is none.
    pub(crate) fn leader(&self) -> &str {
        self.seen.as_ref().map_or("", |seen| holder(&seen.lease))
    }

    /// What to do now.
    pub(crate) fn step(&self, now: Instant, clock: Timestamp) -> Move {
        let Some(seen) = &self.seen else {
            return Move::Take(Box::new(self.record(None, clock)));
        };
        let theirs = holder(&seen.lease);
        // The leader's record says how long it may be silent; its settings may differ from ours.
        let told = seen
            .lease
            .spec
            .as_ref()
            .and_then(|spec| spec.lease_duration_seconds);
        let told = told.and_then(|seconds| u64::try_from(seconds).ok());
        let end = seen.at + told.map_or(self.lease, Duration::from_secs);
        if theirs.is_empty() || theirs == self.identity || now >= end {
            Move::Take(Box::new(self.record(Some(&seen.lease), clock)))
        } else {
            Move::Wait(end)
        }
    }

    /// The record that releases the Lease; `None` when we do not hold it.
    pub(crate) fn release(&self, clock: Timestamp) -> Option<Lease> {
        let seen = self.seen.as_ref().filter(|_| self.leads())?;
        let mut lease = seen.lease.clone();
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(clock));
        spec.acquire_time = Some(MicroTime(clock));
        Some(lease)
    }

    fn record(&self, before: Option<&Lease>, clock: Timestamp) -> Lease {
        let old = before.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let ours = old.holder_identity.as_deref() == Some(&self.identity);
        let transitions = old.lease_transitions.unwrap_or(0);
        let mut metadata = before.map_or_else(
            || ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            |lease| lease.metadata.clone(),
        );
        self.scope.write(&mut metadata);
        Lease {
            metadata,
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                // The API counts in whole seconds; rounded up, so that others do not wait too short a time.
                lease_duration_seconds: i32::try_from(self.lease.as_millis().div_ceil(1000)).ok(),
                acquire_time: old.acquire_time.filter(|_| ours).or(Some(MicroTime(clock))),
                renew_time: Some(MicroTime(clock)),
                lease_transitions: Some(if ours || before.is_none() {
                    transitions
                } else {
                    transitions + 1
                }),
                ..old
            }),
        }
    }
}

fn holder(lease: &Lease) -> &str {
    lease
        .spec
        .as_ref()
        .and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or_default()
}

/// An election for one Lease.
pub struct Election {
    api: Api<Lease>,
    name: String,
    candidate: Candidate,
    timing: Timing,
    clock: Clock,
    watches: Watches,
}

impl Election {
    /// An election for the Lease `name` in `namespace`. `identity` must be unique.
    pub fn new(
        client: Client,
        namespace: &str,
        name: &str,
        identity: &str,
        timing: Timing,
        clock: Clock,
    ) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
            candidate: Candidate::new(name, identity, timing.lease),
            timing,
            clock,
            watches: Watches::default(),
        }
    }

    /// Writes the namespaces that this operator manages into the Lease.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.candidate.scope = scope;
        self
    }

    /// The name of the Lease.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reports the health of the Lease's watch to `watches`.
    pub fn watches(mut self, watches: Watches) -> Self {
        self.watches = watches;
        self
    }

    /// Waits until we lead. The fence is open for as long as we do.
    pub async fn win(&mut self) -> Fence {
        let named = watcher::Config::default().fields(&format!("metadata.name={}", self.candidate.name));
        let changes = watcher(self.api.clone(), named).default_backoff();
        let mut changes = pin!(changes);
        let mut told = String::new();
        loop {
            let patience = Instant::now() + self.timing.renew;
            let attempt = timeout_at(patience, self.attempt()).await;
            let attempt = attempt.unwrap_or_else(|_| Err(kube::Error::Service("no answer".into())));
            match &attempt {
                Ok(_) => self.watches.works(self.api.resource_url()),
                Err(error) => self.watches.broke(self.api.resource_url(), &error.to_string()),
            }
            match attempt {
                Ok(Ok(fence)) => {
                    tracing::info!(lease = self.candidate.name, "leads");
                    return fence;
                }
                Ok(Err(end)) => {
                    if told != self.candidate.leader() {
                        self.candidate.leader().clone_into(&mut told);
                        tracing::info!(lease = self.candidate.name, leader = told, "stands by");
                    }
                    self.wait(end, &mut changes).await;
                }
                Err(error) => {
                    tracing::warn!(lease = self.candidate.name, %error, "cannot stand for election; will try again");
                    // Jitter, so that candidates do not all retry at once.
                    let spread = 1.0 + fastrand::f64() * 0.2;
                    sleep(self.timing.retry.mul_f64(spread)).await;
                }
            }
        }
    }

    /// Renews the Lease until we may no longer lead. The fence is shut by then.
    pub async fn hold(&mut self, fence: &Fence) {
        loop {
            sleep(self.timing.retry).await;
            let Some(end) = fence.end() else {
                return;
            };
            // One request that hangs must not use up the time for all others.
            let patience = end.min(Instant::now() + self.timing.renew / 2);
            let name = &self.candidate.name.clone();
            match timeout_at(patience, self.renew(fence)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) if self.candidate.leads() => {
                    tracing::warn!(lease = name, %error, "cannot renew; will try again");
                }
                Ok(Err(_)) => {
                    let leader = self.candidate.leader();
                    tracing::warn!(lease = name, leader, "no longer leads");
                    break;
                }
                Err(_) => tracing::warn!(lease = name, "cannot renew: no answer; will try again"),
            }
            if !fence.lets_pass() {
                tracing::warn!(lease = name, "could not renew in time");
                break;
            }
        }
        fence.shut();
    }

    /// Releases the Lease, so that others need not wait.
    pub async fn release(&mut self) {
        let Some(lease) = self.candidate.release(self.clock.now()) else {
            return;
        };
        // Others get the Lease after it expires anyway, so this is not worth a long wait.
        let end = Instant::now() + self.timing.retry;
        let written = timeout_at(end, self.write(&lease)).await;
        match written {
            Ok(Ok(())) => tracing::info!(lease = self.candidate.name, "released"),
            Ok(Err(error)) => tracing::warn!(lease = self.candidate.name, %error, "cannot release"),
            Err(_) => tracing::warn!(lease = self.candidate.name, "cannot release in time"),
        }
    }

    /// Reads the Lease and takes it if it is free; otherwise returns until when it is not.
    async fn attempt(&mut self) -> Result<Result<Fence, Instant>, kube::Error> {
        let lease = self.api.get_opt(&self.candidate.name).await?;
        self.candidate.observe(lease, Instant::now());
        match self.candidate.step(Instant::now(), self.clock.now()) {
            Move::Wait(end) => Ok(Err(end)),
            Move::Take(lease) => {
                let before = Instant::now();
                self.write(&lease).await?;
                Ok(Ok(Fence::until(before + self.timing.renew)))
            }
        }
    }

    async fn renew(&mut self, fence: &Fence) -> Result<(), kube::Error> {
        let before = Instant::now();
        if let Move::Take(lease) = self.candidate.step(before, self.clock.now()) {
            let written = self.write(&lease).await;
            if matches!(&written, Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404) {
                let lease = self.api.get_opt(&self.candidate.name).await?;
                self.candidate.observe(lease, Instant::now());
            }
            written?;
            fence.extend(before + self.timing.renew);
        }
        Ok(())
    }

    async fn write(&mut self, lease: &Lease) -> Result<(), kube::Error> {
        let params = PostParams::default();
        let written = match lease.resource_version() {
            None => self.api.create(&params, lease).await?,
            Some(_) => self.api.replace(&self.candidate.name, &params, lease).await?,
        };
        self.candidate.observe(Some(written), Instant::now());
        Ok(())
    }

    /// Waits until `end`, which moves with every sign of life, or until the Lease is free.
    async fn wait<S>(&mut self, mut end: Instant, changes: &mut S)
    where
        S: Stream<Item = watcher::Result<watcher::Event<Lease>>> + Unpin,
    {
        loop {
            let event = tokio::select! {
                () = sleep_until(end) => return,
                Some(event) = changes.next() => event,
            };
            match event {
                Ok(watcher::Event::Apply(lease) | watcher::Event::InitApply(lease)) => {
                    // A late event is not a sign of life.
                    if self.is_news(&lease) {
                        self.candidate.observe(Some(lease), Instant::now());
                    }
                }
                Ok(watcher::Event::Delete(_)) => return,
                Ok(watcher::Event::Init | watcher::Event::InitDone) => {}
                Err(error) => {
                    tracing::debug!(lease = self.candidate.name, %error, "the watch broke");
                }
            }
            match self.candidate.step(Instant::now(), self.clock.now()) {
                Move::Take(_) => return,
                Move::Wait(later) => end = later,
            }
        }
    }

    /// Whether this is a later version than the known one.
    fn is_news(&self, lease: &Lease) -> bool {
        let version = |lease: &Lease| lease.resource_version().and_then(|text| text.parse::<u64>().ok());
        let known = self.candidate.seen.as_ref().and_then(|seen| version(&seen.lease));
        version(lease) > known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn lease(holder: &str, renewed: i64, version: &str) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some("stateward".into()),
                resource_version: Some(version.into()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.into()),
                lease_duration_seconds: Some(15),
                lease_transitions: Some(3),
                renew_time: Some(MicroTime(time(renewed))),
                acquire_time: Some(MicroTime(time(0))),
                ..LeaseSpec::default()
            }),
        }
    }

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn candidate() -> Candidate {
        Candidate::new("stateward", "us", LEASE)
    }

    fn taken(step: Move) -> LeaseSpec {
        match step {
            Move::Take(lease) => lease.spec.unwrap(),
            Move::Wait(_) => panic!("waits"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn where_there_is_no_lease_one_is_made() {
        let spec = taken(candidate().step(Instant::now(), time(7)));
        assert_eq!(spec.holder_identity.as_deref(), Some("us"));
        assert_eq!(
            (spec.lease_duration_seconds, spec.lease_transitions),
            (Some(15), Some(0))
        );
        assert_eq!(spec.acquire_time, Some(MicroTime(time(7))));
    }

    #[tokio::test(start_paused = true)]
    async fn expiry_counts_from_what_we_saw_and_not_from_what_the_holder_wrote() {
        let (mut us, start) = (candidate(), Instant::now());
        // Renewed half a century ago by its own clock, but possibly alive.
        us.observe(Some(lease("them", 0, "1")), start);
        assert_eq!(us.step(start, time(1_700_000_000)), Move::Wait(start + LEASE));

        let later = start + Duration::from_secs(14);
        us.observe(Some(lease("them", 2, "2")), later);
        assert_eq!(us.step(later, time(0)), Move::Wait(later + LEASE));
        us.observe(Some(lease("them", 2, "3")), later + Duration::from_secs(5));
        let spec = taken(us.step(later + LEASE, time(9)));
        assert_eq!(
            (spec.lease_transitions, spec.acquire_time),
            (Some(4), Some(MicroTime(time(9))))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_ours_is_renewed_and_stays_the_same_term() {
        let (mut us, now) = (candidate(), Instant::now());
        us.observe(Some(lease("us", 0, "1")), now);
        let spec = taken(us.step(now, time(5)));
        assert_eq!(
            (spec.lease_transitions, spec.acquire_time, spec.renew_time),
            (Some(3), Some(MicroTime(time(0))), Some(MicroTime(time(5))))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_released_can_be_had_at_once() {
        let (mut us, mut them, now) = (
            candidate(),
            Candidate::new("stateward", "them", LEASE),
            Instant::now(),
        );
        us.observe(Some(lease("them", 0, "1")), now);
        them.observe(Some(lease("them", 0, "1")), now);
        assert_eq!(us.release(time(1)), None, "only the holder releases");
        us.observe(them.release(time(1)), now);
        assert!(matches!(us.step(now, time(1)), Move::Take(_)));
    }

    #[test]
    fn a_leader_gives_up_before_anybody_may_take_over() {
        let timing = Timing::of(LEASE);
        assert_eq!(
            (timing.renew, timing.retry),
            (Duration::from_secs(10), Duration::from_secs(2))
        );
    }
}
