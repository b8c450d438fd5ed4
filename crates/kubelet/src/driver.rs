//! Turns watch events into the next request for each pod.
//!
//! One loop owns all pods. It visits a pod when the pod changed or a timer is due; the visit is pure ([`Life`],
//! [`scheduler`](crate::scheduler)) and produces at most one request. A pod never has two requests in flight.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use stateward_clock::Clock;
use tokio::sync::{mpsc, watch};
use tracing::debug;

use crate::api::{Key, Refusal, Scope, backoff, version, watch};
use crate::claim::ClaimNews;
use crate::life::after;
use crate::node::Nodes;
use crate::object::Object;
use crate::pod::{Place, Pod};
use crate::request::{Answer, Request, send};
use crate::rules::Rules;
use crate::task::{Surroundings, Task};

/// The maximum number of requests in flight. More would only queue in the client.
const AT_ONCE: usize = 64;

pub(crate) struct Driver {
    client: Client,
    clock: Clock,
    scope: Scope,
    nodes: watch::Receiver<Nodes>,
    rules: watch::Receiver<Rules>,
    schedulers: Vec<String>,
    seed: u64,

    tasks: BTreeMap<Key, Task>,
    /// Pods to visit, in the order of their names.
    due: BTreeSet<Key>,
    timers: BTreeSet<(Timestamp, Key)>,
    /// Whether each claim is bound; `None` before the first complete list of claims.
    claims: Option<BTreeMap<Key, bool>>,
    /// Pods by the claim they wait for.
    waiting: BTreeMap<Key, BTreeSet<Key>>,
    under_way: FuturesUnordered<BoxFuture<'static, Done>>,
    /// The API handles of the namespaces written to so far.
    apis: BTreeMap<String, Api<Object>>,
}

/// The response for the pod with this key and uid.
struct Done {
    key: Key,
    uid: String,
    answer: Result<Answer, Refusal>,
}

impl Driver {
    pub(crate) fn new(
        client: Client,
        clock: Clock,
        scope: Scope,
        nodes: watch::Receiver<Nodes>,
        rules: watch::Receiver<Rules>,
        schedulers: Vec<String>,
        seed: u64,
    ) -> Self {
        Self {
            client,
            clock,
            scope,
            nodes,
            rules,
            schedulers,
            seed,
            tasks: BTreeMap::new(),
            due: BTreeSet::new(),
            timers: BTreeSet::new(),
            claims: None,
            waiting: BTreeMap::new(),
            under_way: FuturesUnordered::new(),
            apis: BTreeMap::new(),
        }
    }

    /// Runs forever.
    pub(crate) async fn run(mut self, mut claims: mpsc::UnboundedReceiver<ClaimNews>) {
        let mut pods = watch(self.scope.api::<Object>(self.client.clone()), self.clock.clone()).boxed();
        let mut listed = BTreeSet::new();
        loop {
            self.look();
            let next = self.timers.first().map_or(Timestamp::MAX, |(time, _)| *time);
            tokio::select! {
                biased;
                Some(done) = self.under_way.next() => self.finish(done),
                Some(event) = pods.next() => self.hear(event, &mut listed),
                Some(news) = claims.recv() => self.hear_of_claim(news),
                Ok(()) = self.rules.changed() => self.look_at_all(),
                Ok(()) = self.nodes.changed() => self.look_at_all(),
                () = self.clock.sleep_until(next), if !self.timers.is_empty() => self.ring(),
                else => return,
            }
        }
    }

    fn hear(&mut self, event: Event<Object>, listed: &mut BTreeSet<Key>) {
        match event {
            Event::Apply(pod) => self.see(&pod),
            Event::Delete(pod) => self.forget(&Key::of(&pod), pod.metadata.uid.as_deref()),
            Event::Init => listed.clear(),
            Event::InitApply(pod) => {
                listed.insert(Key::of(&pod));
                self.see(&pod);
            }
            Event::InitDone => {
                let lost: Vec<_> = self
                    .tasks
                    .keys()
                    .filter(|key| !listed.contains(key))
                    .cloned()
                    .collect();
                lost.iter().for_each(|key| self.forget(key, None));
                listed.clear();
            }
        }
    }

    /// Records the current state of a pod; older versions than the known one are ignored.
    fn see(&mut self, object: &Object) {
        let (key, version) = (Key::of(object), version(object));
        if let Some(task) = self.tasks.get(&key) {
            let is_known = task.pod.version == version && version > 0;
            // The watch repeats what was read directly.
            if is_known && object.metadata.uid.as_deref() == Some(task.pod.uid.as_str()) {
                return;
            }
            if task.pod.version > version {
                return;
            }
        }
        let pod = Pod::of(object);
        let ours = self.is_ours(&pod);
        match self.tasks.get_mut(&key) {
            Some(task) if ours && task.pod.uid == pod.uid => task.see(pod),
            _ => {
                self.forget(&key, None);
                if !ours {
                    return;
                }
                self.tasks
                    .insert(key.clone(), Task::new(object, pod, self.clock.now()));
            }
        }
        self.due.insert(key);
    }

    /// Whether the pod is unassigned and names one of our schedulers, or is on one of our nodes. All other pods are ignored.
    fn is_ours(&self, pod: &Pod) -> bool {
        let placed_with_us = match &pod.place {
            Place::On(node) => self.nodes.borrow().contains_key(node),
            Place::Wanted(wanted) => self.schedulers.contains(&wanted.scheduler),
        };
        placed_with_us && !pod.containers.is_empty()
    }

    fn forget(&mut self, key: &Key, uid: Option<&str>) {
        if self
            .tasks
            .get(key)
            .is_some_and(|task| uid.is_none_or(|uid| uid == task.pod.uid))
        {
            self.set_timer(key, None);
            self.tasks.remove(key);
            self.due.remove(key);
        }
    }

    fn hear_of_claim(&mut self, news: ClaimNews) {
        match news {
            ClaimNews::AllListed(claims) => {
                self.claims = Some(claims);
                self.waiting.clear();
                self.look_at_all();
            }
            ClaimNews::Changed(claim, bound) => {
                let known = self.claims.get_or_insert_default();
                match bound {
                    Some(bound) => known.insert(claim.clone(), bound),
                    None => known.remove(&claim),
                };
                self.due.extend(self.waiting.remove(&claim).unwrap_or_default());
            }
        }
    }

    fn look_at_all(&mut self) {
        self.due.extend(self.tasks.keys().cloned());
    }

    /// Visits the pods whose timer is due.
    fn ring(&mut self) {
        let now = self.clock.now();
        while let Some((time, key)) = self.timers.pop_first() {
            if time > now {
                self.timers.insert((time, key));
                break;
            }
            if let Some(task) = self.tasks.get_mut(&key) {
                task.timer = None;
            }
            self.due.insert(key);
        }
    }

    fn set_timer(&mut self, key: &Key, time: Option<Timestamp>) {
        let Some(task) = self.tasks.get_mut(key) else {
            return;
        };
        if task.timer == time {
            return;
        }
        if let Some(old) = std::mem::replace(&mut task.timer, time) {
            self.timers.remove(&(old, key.clone()));
        }
        self.timers.extend(time.map(|time| (time, key.clone())));
    }

    /// Decides for every pod that is due, as long as more requests may be sent.
    fn look(&mut self) {
        let now = self.clock.now();
        while self.under_way.len() < AT_ONCE {
            let Some(key) = self.due.pop_first() else { break };
            let Some(task) = self.tasks.get_mut(&key) else {
                continue;
            };
            let (next, wake) = {
                let nodes = self.nodes.borrow();
                let rules = self.rules.borrow();
                let around = Surroundings {
                    nodes: &nodes,
                    rules: &rules,
                    claims: self.claims.as_ref(),
                    seed: self.seed,
                };
                task.next(&around, now)
            };
            if let Some(claim) = task.waits_for.take() {
                self.waiting.entry(claim).or_default().insert(key.clone());
            }
            if let Some(request) = next {
                self.start(&key, request);
            }
            self.set_timer(&key, wake);
        }
    }

    fn start(&mut self, key: &Key, request: Request) {
        let Some(task) = self.tasks.get(key) else { return };
        let (key, uid) = (key.clone(), task.pod.uid.clone());
        let pods = match self.apis.get(&key.namespace) {
            Some(pods) => pods.clone(),
            None => {
                let pods: Api<Object> = Api::namespaced(self.client.clone(), &key.namespace);
                self.apis.insert(key.namespace.clone(), pods.clone());
                pods
            }
        };
        let request = send(pods, key.clone(), uid.clone(), request);
        self.under_way
            .push(request.map(|answer| Done { key, uid, answer }).boxed());
    }

    fn finish(&mut self, Done { key, uid, answer }: Done) {
        let now = self.clock.now();
        let Some(task) = self.tasks.get_mut(&key).filter(|task| task.pod.uid == uid) else {
            return;
        };
        match answer {
            Ok(answer) => {
                if answer.is_progress() {
                    task.succeeded();
                } else {
                    task.failed(after(now, backoff(task.failures() + 1)));
                }
                match answer {
                    Answer::Written(version) => task.answered(version),
                    Answer::Reread(pod) => self.see(&pod),
                    Answer::Bound(node) => task.bound_to = Some(node),
                    Answer::Deleted => task.deleted = true,
                    Answer::Gone => return self.forget(&key, Some(&uid)),
                }
            }
            Err(refusal) => {
                debug!("{refusal}");
                task.failed(after(
                    now,
                    backoff(task.failures() + 1).max(refusal.retry_after()),
                ));
            }
        }
        self.due.insert(key);
    }
}
