//! The StatefulSet controller of Kubernetes 1.36, bug for bug.
//!
//! In flows a set's name; one list of its pods at the start is the snapshot that the whole sync acts on. Out flow writes to revisions,
//! claims, pods and the set's status, in upstream's order. The steps of a sync:
//!
//! | step | file |
//! |---|---|
//! | adopt orphaned revisions and pods, release pods that no longer match | [`revisions`], [`claim`] |
//! | find or create the revision of the template | [`revisions`] |
//! | create, replace and scale down pods and their claims | [`replicas`], [`round`], [`pod`], [`claims`], [`retention`] |
//! | delete outdated pods | [`update`] |
//! | count and report | [`status`] |
//! | delete old revisions | [`revisions`] |
//!
//! Upstream reads from caches, and since 1.36 waits until they have seen its own writes (KEP-5647). Our reads are never older than our
//! writes, so there is nothing to wait for.

mod claim;
mod claims;
mod error;
mod memory;
mod object;
mod ordinal;
mod pod;
mod replicas;
mod retention;
mod revisions;
mod round;
mod status;
mod update;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::json::Value;

use crate::access::Access;
use crate::controllers::pod::PODS;
use crate::selector::LabelSelector;
use crate::status::Status;
use crate::store::Key;

use self::memory::Memory;
use self::object::{Metadata, Pod, SETS, Set, text};
use self::replicas::Replicas;
use self::revisions::Chosen;
use self::round::Round;
use self::status::{Report, Tally};
pub use self::update::MaxUnavailable;
use super::{Changed, Controller, Next};

/// The differences between versions and their feature gates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gates {
    pub(crate) max_unavailable: MaxUnavailable,
}

/// The controller.
#[derive(Debug, Default)]
pub(crate) struct StatefulSets {
    gates: Gates,
    memory: Memory,
}

impl StatefulSets {
    pub(crate) fn new(gates: Gates) -> Self {
        Self {
            gates,
            memory: Memory::default(),
        }
    }

    /// Applies the set's spec and writes its status. The status is written even if the work failed half-way, and the work's error is
    /// returned.
    fn work(&self, access: &dyn Access, set: &Set, pods: &[Pod], chosen: &Chosen) -> Result<Next, Status> {
        let now = access.now();
        let round = Round {
            access,
            set,
            chosen,
            current: revisions::template(set, &chosen.current)?,
            update: revisions::template(set, &chosen.update)?,
            gates: self.gates,
            now,
        };
        let (tally, done) = if set.is_terminating() {
            // The garbage collector deletes its pods.
            (Tally::of(set, chosen, now, pods.iter()), Ok(()))
        } else {
            let replicas = Replicas::sort(&round, pods);
            let mut tally = Tally::of(set, chosen, now, replicas.all());
            let done = round.run(&replicas, &mut tally);
            (tally, done)
        };
        let report = Report::new(set, chosen, tally);
        let written = report.write(access, set);
        done.and(written).map(|()| report.next(set, pods, now))
    }
}

impl Controller for StatefulSets {
    fn name(&self) -> &'static str {
        "statefulset-controller"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[SETS, PODS]
    }

    /// A set affects itself. A pod affects the set that controls it, and the one that did; an orphan affects every set that might adopt it.
    /// Claims and revisions affect no set.
    fn concerned(&self, change: &Changed, access: &dyn Access) -> Vec<Key> {
        let Changed {
            resource,
            before,
            after,
        } = change;
        let mut keys = match &**resource {
            SETS => after
                .as_ref()
                .or(before.as_ref())
                .map(|set| Key::new(set.namespace(), set.name()))
                .into_iter()
                .collect(),
            PODS => concerned_by_pod(before.as_ref(), after.as_ref(), access),
            _ => Vec::new(),
        };
        keys.dedup();
        keys
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        let Some(set) = access.get(SETS, &key.namespace, &key.name).map(Set::new) else {
            return Ok(Next::Wait);
        };
        let seen = self.memory.recall(&set);
        let selector = match &seen.selector {
            Some(known) => known.clone(),
            None => match LabelSelector::of(set.selector()) {
                Ok(selector) => Arc::new(selector),
                // A retry would not make the selector valid.
                Err(_) => return Ok(Next::Wait),
            },
        };
        let mut history = revisions::list(access, &set, &selector, &seen);
        let adopted = revisions::adopt_orphans(access, &set, &history.revisions)?;
        let pods = claim::pods(access, &set, &selector, &seen)?;
        if adopted {
            history = revisions::list(access, &set, &selector, &seen);
        }
        let chosen = revisions::choose(access, &set, &mut history);
        let (chosen, done) = match chosen {
            Ok(chosen) => {
                let done = self.work(access, &set, &pods, &chosen);
                (Some(chosen), done)
            }
            Err(status) => (None, Err(status)),
        };
        let truncated = revisions::truncate(access, &set, &pods, &history.revisions, chosen.as_ref());
        self.memory.keep(&set, selector, history, pods);
        let next = done.as_ref().copied().unwrap_or(Next::Wait);
        error::all_of([done.err(), truncated.err()].into_iter().flatten().collect()).map(|()| next)
    }
}

fn concerned_by_pod(
    before: Option<&Arc<Value>>,
    after: Option<&Arc<Value>>,
    access: &dyn Access,
) -> Vec<Key> {
    let controller = |pod: Option<&Arc<Value>>| pod.and_then(|pod| set_of(pod, access));
    // The first event of a pod may show it terminating: handle it as a deletion.
    let going = |pod: &Arc<Value>| before.is_none() && pod.is_terminating();
    let Some(pod) = after.filter(|pod| !going(pod)) else {
        return controller(after.or(before)).into_iter().collect();
    };

    let owner_changed = before.is_some_and(|before| before.controller() != pod.controller());
    let mut keys: Vec<_> = controller(before.filter(|_| owner_changed)).into_iter().collect();
    if pod.controller().is_some() {
        keys.extend(controller(Some(pod)));
    } else if before.is_none_or(|before| owner_changed || before.labels() != pod.labels()) {
        keys.extend(sets_that_select(pod, access));
    }
    keys
}

/// The set that controls a pod, by name and UID: a new set of the same name is a different one.
fn set_of(pod: &Value, access: &dyn Access) -> Option<Key> {
    let owner = pod.controller().filter(|owner| owner["kind"] == "StatefulSet")?;
    let set = access.get(SETS, pod.namespace(), text(&owner["name"]))?;
    (owner["uid"] == set.uid()).then(|| Key::new(set.namespace(), set.name()))
}

fn sets_that_select(pod: &Value, access: &dyn Access) -> Vec<Key> {
    let labelled = pod.labels().as_object().is_some_and(|labels| !labels.is_empty());
    let sets = labelled
        .then(|| access.list(SETS, pod.namespace()))
        .into_iter()
        .flatten()
        .map(Set::new);
    let selects = |set: &Set| {
        LabelSelector::of(set.selector())
            .is_ok_and(|selector| !selector.is_empty() && selector.matches(pod.labels()))
    };
    sets.filter(selects)
        .map(|set| Key::new(set.namespace(), set.name()))
        .collect()
}
