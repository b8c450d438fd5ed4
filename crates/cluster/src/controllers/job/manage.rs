//! Creates a Job's missing pods and deletes surplus ones.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use crate::json::Value;
use jiff::Timestamp;

use super::backoff::{Backoff, remaining_for_index};
use super::claim::untrack;
use super::count::{Count, size};
use super::new_pod::new_pod;
use super::spec::JobSpec;
use super::tracked_pod::{IndexFailures, completion_index};
use crate::access::{Access, EventKind};
use crate::controllers::pod::{self, PODS};
use crate::object;
use crate::status::Status;

/// The maximum number of creations or deletions per sync.
const LIMIT: usize = 500;

/// A sync that waits for a back-off waits at least this long.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// The result of creating and deleting pods.
#[derive(Default)]
pub(super) struct Managed {
    /// The change in the number of active pods.
    pub(super) active: i64,
    pub(super) deleted: i64,
    pub(super) deleted_ready: i64,
    /// The first error; the sync still writes the status and then fails with it.
    pub(super) error: Option<Status>,
    pub(super) wait: Option<Duration>,
}

pub(super) struct Manager<'a> {
    pub(super) access: &'a dyn Access,
    pub(super) job: &'a Value,
    pub(super) spec: &'a JobSpec,
    pub(super) count: &'a Count,
    pub(super) backoff: Backoff,
    pub(super) now: Timestamp,
}

impl Manager<'_> {
    /// One step towards the wanted number of pods: deletions first, creations in a later sync.
    pub(super) fn run(&self) -> Managed {
        let Self { spec, count, .. } = self;
        let active = size(count.active.len());
        if spec.suspended {
            return self.delete(&self.surplus(active));
        }
        let wanted = self.wanted();
        let mut surplus = self.surplus(active.saturating_sub(wanted).max(0));
        surplus.truncate(LIMIT);
        if !surplus.is_empty() {
            return self.delete(&surplus);
        }
        let stopping = if spec.waits_for_failure {
            count.terminating
        } else {
            0
        };
        let lacking = wanted.saturating_sub(stopping + active);
        if lacking > 0 {
            self.fill(lacking)
        } else {
            Managed::default()
        }
    }

    /// Deletes the pods of a finished Job; they keep their finalizer until they are counted.
    pub(super) fn end(&self) -> Managed {
        let mut managed = Managed::default();
        for pod in &self.count.active {
            managed.note(self.delete_pod(pod), pod);
        }
        managed
    }

    fn wanted(&self) -> i64 {
        let Self { spec, count, .. } = self;
        match spec.completions {
            Some(completions) => completions
                .saturating_sub(count.succeeded)
                .min(spec.parallelism)
                .max(0),
            // After a success no new pod starts, and running pods may finish.
            None if count.succeeded > 0 => size(count.active.len()),
            None => spec.parallelism,
        }
    }

    /// At least this many of the active pods, the least valuable first; in an indexed Job all duplicates and invalid ones.
    fn surplus(&self, at_least: i64) -> Vec<Arc<Value>> {
        let (mut surplus, mut rest) = (Vec::new(), self.count.active.clone());
        if let Some(indexed) = &self.spec.indexed {
            rest.sort_by(|one, other| by_index(one, other).then_with(|| pod::by_loss(other, one)));
            let mut kept = None;
            let (keep, doubled) = rest.into_iter().partition(|pod| {
                let index = completion_index(pod).filter(|index| *index < indexed.completions);
                let first = index.is_some() && index != kept;
                kept = index.or(kept);
                first
            });
            (surplus, rest) = (doubled, keep);
        }
        let missing = usize::try_from(at_least)
            .unwrap_or(0)
            .saturating_sub(surplus.len());
        rest.sort_by(|one, other| pod::by_loss(one, other));
        surplus.extend(rest.into_iter().take(missing));
        surplus
    }

    /// Deletes pods that need not be counted.
    fn delete(&self, pods: &[Arc<Value>]) -> Managed {
        let mut managed = Managed::default();
        for pod in pods {
            match untrack(pod, self.access) {
                Ok(()) => managed.note(self.delete_pod(pod), pod),
                Err(status) => managed.refused(status),
            }
        }
        managed
    }

    fn delete_pod(&self, pod: &Value) -> Result<(), Status> {
        let (namespace, name) = (object::namespace(pod), object::name(pod));
        match self.access.delete(PODS, namespace, name, crate::json::json!({})) {
            Ok(()) => {
                self.event(
                    EventKind::Normal,
                    "SuccessfulDelete",
                    &format!("Deleted pod: {name}"),
                );
                Ok(())
            }
            Err(status) if status.is_not_found() => Ok(()),
            Err(status) => {
                self.event(
                    EventKind::Warning,
                    "FailedDelete",
                    &format!("Error deleting: {status}"),
                );
                Err(status)
            }
        }
    }

    fn fill(&self, lacking: i64) -> Managed {
        let Self {
            spec,
            count,
            backoff,
            now,
            ..
        } = self;
        let per_index = spec.backoff_limit_per_index().is_some();
        let wait = if per_index {
            Duration::ZERO
        } else {
            backoff.remaining(*now)
        };
        if !wait.is_zero() {
            return Managed::waiting(wait);
        }
        let lacking = lacking.min(size(LIMIT));
        let Some(indexed) = &spec.indexed else {
            return self.create(vec![None; usize::try_from(lacking).unwrap_or(0)]);
        };
        let mut indexes = count.occupied_indexes(spec).gaps(lacking, indexed.completions);
        if per_index {
            let waits: Vec<_> = indexes.iter().map(|index| self.index_wait(*index)).collect();
            if let Some(shortest) = waits.iter().min().filter(|shortest| !shortest.is_zero()) {
                return Managed::waiting(*shortest);
            }
            let mut waits = waits.into_iter();
            indexes.retain(|_| waits.next().is_some_and(|wait| wait.is_zero()));
        }
        self.create(indexes.into_iter().map(Some).collect())
    }

    fn index_wait(&self, index: i64) -> Duration {
        self.count
            .awaiting_replacement(index)
            .map_or(Duration::ZERO, |failed| {
                remaining_for_index(failed, IndexFailures::before(failed).all(), self.now)
            })
    }

    /// Creates pods in batches of 1, 2, 4, …, and stops after the first batch with an error: the rest would fail too.
    fn create(&self, mut indexes: Vec<Option<i64>>) -> Managed {
        let mut managed = Managed::default();
        let mut batch = 1;
        while !indexes.is_empty() && managed.error.is_none() {
            for index in indexes.drain(..batch.min(indexes.len())) {
                match self.create_pod(index) {
                    Ok(()) => managed.active += 1,
                    // The real controller counts these as created, too: the namespace is being deleted.
                    Err(status) if status.is_about_terminating_namespace() => managed.active += 1,
                    Err(status) => managed.refused(status),
                }
            }
            batch *= 2;
        }
        managed
    }

    fn create_pod(&self, index: Option<i64>) -> Result<(), Status> {
        let failures = index
            .filter(|_| self.spec.backoff_limit_per_index().is_some())
            .map(|index| {
                let replaced = self.count.awaiting_replacement(index);
                replaced.map_or_else(IndexFailures::default, |pod| IndexFailures::after(pod, self.spec))
            });
        let pod = new_pod(self.job, index, failures);
        if pod["metadata"]["labels"]
            .as_object()
            .is_none_or(crate::json::Map::is_empty)
        {
            // No selector could ever match it.
            return Err(Status::internal("unable to create pods, no labels"));
        }
        match self.access.create(PODS, object::namespace(self.job), pod) {
            Ok(pod) => {
                self.event(
                    EventKind::Normal,
                    "SuccessfulCreate",
                    &format!("Created pod: {}", object::name(&pod)),
                );
                Ok(())
            }
            Err(status) => {
                if !status.is_about_terminating_namespace() {
                    self.event(
                        EventKind::Warning,
                        "FailedCreate",
                        &format!("Error creating: {status}"),
                    );
                }
                Err(status)
            }
        }
    }

    fn event(&self, kind: EventKind, reason: &str, message: &str) {
        self.access.event(self.job, kind, reason, message);
    }
}

impl Managed {
    fn waiting(wait: Duration) -> Self {
        Self {
            wait: Some(wait.max(SHORTEST_WAIT)),
            ..Self::default()
        }
    }

    fn note(&mut self, deletion: Result<(), Status>, pod: &Value) {
        match deletion {
            Ok(()) => {
                self.deleted += 1;
                self.active -= 1;
            }
            Err(status) => self.refused(status),
        }
        self.deleted_ready += i64::from(pod::is_ready(pod));
    }

    fn refused(&mut self, status: Status) {
        self.error.get_or_insert(status);
    }
}

/// Pods without an index first.
fn by_index(one: &Value, other: &Value) -> Ordering {
    completion_index(one).cmp(&completion_index(other))
}
