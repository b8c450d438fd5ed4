//! Creates a simulated volume for each waiting claim, as a provisioner does, and deletes it with the claim.
//!
//! The cluster's volume controller binds the two: it marks a claim Lost if the claim names a volume that the controller has not observed
//! yet, and no other client knows what it has observed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use stateward_clock::Clock;
use tokio::sync::{mpsc, watch};
use tracing::debug;

use crate::api::{Key, Refusal, Scope, backoff, watch};
use crate::behaviour::ClaimBehaviour;
use crate::life::after;
use crate::rules::Rules;
use crate::volume::{Claim, delete_volume, provision, sweep, volume_name};

/// How many claims are handled concurrently.
const AT_ONCE: usize = 16;
/// The wait after a failed deletion.
const SWEEP_AGAIN: Duration = Duration::from_secs(1);

/// What the scheduler must know about claims.
#[derive(Debug)]
pub(crate) enum ClaimNews {
    /// All existing claims, and whether they are bound.
    AllListed(BTreeMap<Key, bool>),
    /// A claim is bound or not, or was deleted.
    Changed(Key, Option<bool>),
}

struct Task {
    claim: Claim,
    since: Timestamp,
    under_way: bool,
    provisioned: bool,
    failures: u32,
    timer: Option<Timestamp>,
}

pub(crate) struct Claims {
    client: Client,
    clock: Clock,
    scope: Scope,
    rules: watch::Receiver<Rules>,
    tell: mpsc::UnboundedSender<ClaimNews>,

    tasks: BTreeMap<Key, Task>,
    listed: bool,
    timers: BTreeSet<(Timestamp, Key)>,
    under_way: FuturesUnordered<BoxFuture<'static, Done>>,
}

enum Done {
    Provisioned(Key, String, Result<(), Refusal>),
    Swept(Result<(), Refusal>),
}

impl Claims {
    pub(crate) fn new(
        client: Client,
        clock: Clock,
        scope: Scope,
        rules: watch::Receiver<Rules>,
        tell: mpsc::UnboundedSender<ClaimNews>,
    ) -> Self {
        Self {
            client,
            clock,
            scope,
            rules,
            tell,
            tasks: BTreeMap::new(),
            listed: false,
            timers: BTreeSet::new(),
            under_way: FuturesUnordered::new(),
        }
    }

    /// Runs forever.
    pub(crate) async fn run(mut self) {
        let claims = self.scope.api::<PersistentVolumeClaim>(self.client.clone());
        let mut events = watch(claims, self.clock.clone()).boxed();
        let mut listed = BTreeSet::new();
        loop {
            self.provision_due();
            let next = self.timers.first().map_or(Timestamp::MAX, |(time, _)| *time);
            let room = self.under_way.len() < AT_ONCE;
            tokio::select! {
                biased;
                Some(done) = self.under_way.next() => self.finish(done),
                Some(event) = events.next() => self.hear(event, &mut listed),
                Ok(()) = self.rules.changed() => self.plan_all(),
                () = self.clock.sleep_until(next), if room && !self.timers.is_empty() => {}
                else => return,
            }
        }
    }

    fn hear(&mut self, event: Event<PersistentVolumeClaim>, listed: &mut BTreeSet<Key>) {
        match event {
            Event::Apply(object) => self.see(&object),
            Event::Delete(object) => self.forget(&Key::of(&object)),
            Event::Init => listed.clear(),
            Event::InitApply(object) => {
                listed.insert(Key::of(&object));
                self.see(&object);
            }
            Event::InitDone => {
                let lost: Vec<_> = self
                    .tasks
                    .keys()
                    .filter(|key| !listed.contains(key))
                    .cloned()
                    .collect();
                lost.iter().for_each(|key| self.forget(key));
                listed.clear();
                self.listed = true;
                let all = self
                    .tasks
                    .iter()
                    .map(|(key, task)| (key.clone(), task.claim.bound))
                    .collect();
                self.send(ClaimNews::AllListed(all));
                self.sweep(Duration::ZERO);
            }
        }
    }

    fn see(&mut self, object: &PersistentVolumeClaim) {
        let (key, claim) = (Key::of(object), Claim::of(object));
        let bound = claim.bound;
        match self.tasks.get_mut(&key) {
            Some(task) if task.claim.uid == claim.uid => {
                if task.claim.version < claim.version {
                    task.claim = claim;
                }
            }
            _ => {
                let task = Task {
                    claim,
                    since: self.clock.now(),
                    under_way: false,
                    provisioned: false,
                    failures: 0,
                    timer: None,
                };
                self.set_timer(&key, None);
                self.tasks.insert(key.clone(), task);
            }
        }
        self.plan(&key);
        self.take_back(&key);
        if self.listed {
            self.send(ClaimNews::Changed(key, Some(bound)));
        }
    }

    /// Deletes our volume if another one was bound first.
    fn take_back(&mut self, key: &Key) {
        let task = self.tasks.get_mut(key);
        if let Some(task) = task.filter(|task| task.provisioned && task.claim.has_another()) {
            task.provisioned = false;
            let name = task.claim.volume_name();
            self.delete(name);
        }
    }

    fn delete(&mut self, volume: String) {
        let volumes = Api::all(self.client.clone());
        self.under_way
            .push(async move { Done::Swept(delete_volume(&volumes, &volume).await) }.boxed());
    }

    fn forget(&mut self, key: &Key) {
        self.set_timer(key, None);
        let Some(task) = self.tasks.remove(key) else {
            return;
        };
        if self.listed {
            self.send(ClaimNews::Changed(key.clone(), None));
        }
        self.delete(task.claim.volume_name());
    }

    fn send(&self, news: ClaimNews) {
        // The driver ends only together with this task.
        let _ = self.tell.send(news);
    }

    fn plan_all(&mut self) {
        let keys: Vec<_> = self.tasks.keys().cloned().collect();
        keys.iter().for_each(|key| self.plan(key));
    }

    /// Sets the time at which the claim gets its volume, if it does.
    fn plan(&mut self, key: &Key) {
        let Some(task) = self.tasks.get(key) else { return };
        let time = match self.rules.borrow().claims {
            ClaimBehaviour::ProvisionAfter(delay) if task.claim.is_waiting() && !task.under_way => {
                Some(after(task.since, delay))
            }
            ClaimBehaviour::ProvisionAfter(_) | ClaimBehaviour::NeverProvision => None,
        };
        self.set_timer(key, time);
    }

    fn set_timer(&mut self, key: &Key, time: Option<Timestamp>) {
        let Some(task) = self.tasks.get_mut(key) else {
            return;
        };
        if let Some(old) = std::mem::replace(&mut task.timer, time) {
            self.timers.remove(&(old, key.clone()));
        }
        self.timers.extend(time.map(|time| (time, key.clone())));
    }

    fn provision_due(&mut self) {
        let now = self.clock.now();
        while self.under_way.len() < AT_ONCE && self.timers.first().is_some_and(|(time, _)| *time <= now) {
            let Some((_, key)) = self.timers.pop_first() else {
                break;
            };
            let Some(task) = self.tasks.get_mut(&key) else {
                continue;
            };
            task.timer = None;
            task.under_way = true;
            let (client, claim) = (self.client.clone(), task.claim.clone());
            let provision = async move {
                let provisioned = provision(client, &key, &claim).await;
                Done::Provisioned(key, claim.uid, provisioned)
            };
            self.under_way.push(provision.boxed());
        }
    }

    fn finish(&mut self, done: Done) {
        let (key, uid, provisioned) = match done {
            Done::Provisioned(key, uid, provisioned) => (key, uid, provisioned),
            Done::Swept(Ok(())) => return,
            Done::Swept(Err(refusal)) => {
                debug!("{refusal}");
                return self.sweep(SWEEP_AGAIN);
            }
        };
        let Some(task) = self.tasks.get_mut(&key).filter(|task| task.claim.uid == uid) else {
            // Its claim was deleted during the creation.
            return self.delete(volume_name(&uid));
        };
        task.under_way = false;
        match provisioned {
            // The watch will show it bound.
            Ok(()) => {
                task.failures = 0;
                task.provisioned = true;
                self.take_back(&key);
            }
            Err(refusal) => {
                debug!("{refusal}");
                task.failures += 1;
                let time = after(
                    self.clock.now(),
                    backoff(task.failures).max(refusal.retry_after()),
                );
                if task.claim.is_waiting() {
                    self.set_timer(&key, Some(time));
                }
            }
        }
    }

    /// Deletes our volumes whose claim was deleted unobserved.
    fn sweep(&mut self, delay: Duration) {
        let (client, clock, scope) = (self.client.clone(), self.clock.clone(), self.scope.clone());
        let sweep = async move {
            clock.sleep(delay).await;
            Done::Swept(sweep(client, &scope).await)
        };
        self.under_way.push(sweep.boxed());
    }
}
