//! The status of a set.

use crate::json::{Map, Value};
use jiff::Timestamp;

use crate::access::Access;
use crate::controllers::Next;
use crate::status::Status;

use super::error::{DEFAULT_RETRY, retry_on_conflict};
use super::object::{Metadata, Pod, SETS, Set, number, text};
use super::revisions::Chosen;

/// The counters, from the pods at the beginning of the sync: pods that it creates or deletes are not included, except those that an update
/// counts down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) replicas: i64,
    pub(super) ready: i64,
    pub(super) available: i64,
    pub(super) current: i64,
    pub(super) updated: i64,
}

impl Tally {
    pub(super) fn of<'p>(
        set: &Set,
        chosen: &Chosen,
        now: Timestamp,
        pods: impl Iterator<Item = &'p Pod>,
    ) -> Self {
        let mut tally = Self::default();
        let (min_ready, current, update) = (set.min_ready(), chosen.current.name(), chosen.update.name());
        for pod in pods {
            let (ready, created, revision) = (pod.is_running_and_ready(), pod.is_created(), pod.revision());
            let counted = created && !pod.is_terminating();
            tally.replicas += i64::from(created);
            tally.ready += i64::from(ready);
            tally.available += i64::from(ready && pod.is_available(min_ready, now));
            tally.current += i64::from(counted && revision == current);
            tally.updated += i64::from(counted && revision == update);
        }
        tally
    }
}

/// A whole new status. Conditions and other fields are not carried over.
#[derive(Debug)]
pub(super) struct Report {
    observed_generation: i64,
    pub(super) tally: Tally,
    current_revision: String,
    update_revision: String,
    collisions: i32,
}

impl Report {
    /// An update is complete if as many pods as wanted exist, updated and Ready. They need not be available; and zero wanted and zero
    /// existing is complete as well: a scale to zero ends every canary (k/k#121534).
    pub(super) fn new(set: &Set, chosen: &Chosen, mut tally: Tally) -> Self {
        let wanted = i64::try_from(set.replicas()).unwrap_or(i64::MAX);
        let complete =
            [tally.updated, tally.ready, tally.replicas] == [wanted; 3] && set.updates_by_rolling();
        if complete {
            tally.current = tally.updated;
        }
        let current = if complete { &chosen.update } else { &chosen.current };
        Self {
            observed_generation: set.generation(),
            tally,
            current_revision: current.name().to_owned(),
            update_revision: chosen.update.name().to_owned(),
            collisions: chosen.collisions,
        }
    }

    /// Writes the status if it changed; a new collision count alone is not a change.
    pub(super) fn write(&self, access: &dyn Access, set: &Set) -> Result<(), Status> {
        if !self.differs_from(set.status()) {
            return Ok(());
        }
        let (namespace, name) = (set.namespace(), set.name());
        let mut latest = set.clone();
        let written = retry_on_conflict(DEFAULT_RETRY, || {
            access
                .replace_status(SETS, latest.shared(), self.to_value())
                .inspect_err(|_| {
                    if let Some(now) = access.get(SETS, namespace, name) {
                        latest = Set::new(now);
                    }
                })
        });
        written.map(drop)
    }

    fn differs_from(&self, status: &Value) -> bool {
        let seen = Tally {
            replicas: number(&status["replicas"]),
            ready: number(&status["readyReplicas"]),
            available: number(&status["availableReplicas"]),
            current: number(&status["currentReplicas"]),
            updated: number(&status["updatedReplicas"]),
        };
        self.observed_generation > number(&status["observedGeneration"])
            || self.tally != seen
            || self.current_revision != text(&status["currentRevision"])
            || self.update_revision != text(&status["updateRevision"])
    }

    /// Encodes like Go: `replicas`, `availableReplicas` and the collision count always, the rest only if not empty.
    fn to_value(&self) -> Value {
        let Self {
            observed_generation,
            tally,
            current_revision,
            update_revision,
            collisions,
        } = self;
        let Tally {
            replicas,
            ready,
            available,
            current,
            updated,
        } = *tally;
        let optional = [
            ("observedGeneration", *observed_generation),
            ("readyReplicas", ready),
            ("currentReplicas", current),
            ("updatedReplicas", updated),
        ];
        let names = [
            ("currentRevision", current_revision),
            ("updateRevision", update_revision),
        ];
        let mut status = Map::new();
        status.insert("replicas".into(), replicas.into());
        status.insert("availableReplicas".into(), available.into());
        status.insert("collisionCount".into(), (*collisions).into());
        status.extend(
            optional
                .into_iter()
                .filter(|(_, n)| *n != 0)
                .map(|(field, n)| (field.into(), n.into())),
        );
        status.extend(
            names
                .into_iter()
                .filter(|(_, name)| !name.is_empty())
                .map(|(field, name)| (field.into(), name.as_str().into())),
        );
        status.into()
    }

    /// When to sync again: as soon as the first Ready pod has been Ready for long enough.
    pub(super) fn next(&self, set: &Set, pods: &[Pod], now: Timestamp) -> Next {
        let min_ready = set.min_ready();
        if !min_ready.is_positive() || self.tally.ready == self.tally.available {
            return Next::Wait;
        }
        let waits = pods
            .iter()
            .filter_map(|pod| pod.available_from(min_ready))
            .filter(|from| *from > now);
        let wait = waits.min().map_or(min_ready, |from| now.duration_until(from));
        Next::After(wait.unsigned_abs())
    }
}
