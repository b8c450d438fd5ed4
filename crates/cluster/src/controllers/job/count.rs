//! Counts the pods of a Job.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::json::Value;

use super::backoff::finished_at;
use super::failure_policy::Meaning;
use super::indexes::Indexes;
use super::spec::{Indexed, JobSpec};
use super::status::JobStatus;
use super::tracked_pod::{
    IndexFailures, completion_index, has_failed, has_succeeded, is_tracked, meaning, valid_index,
};
use crate::controllers::pod;
use crate::object;

/// The counts of a Job's pods at one moment.
pub(super) struct Count {
    pub(super) pods: Vec<Arc<Value>>,
    pub(super) active: Vec<Arc<Value>>,
    pub(super) ready: i64,
    /// Pods that are being deleted and may still run.
    pub(super) terminating: i64,
    /// Pods that ended and are not in the status yet.
    pub(super) new_succeeded: Vec<Arc<Value>>,
    pub(super) new_failed: Vec<Arc<Value>>,
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    pub(super) indexes: Option<IndexCount>,
}

/// The same by index.
pub(super) struct IndexCount {
    /// The indexes in the status.
    pub(super) succeeded_before: Indexes,
    pub(super) succeeded: Indexes,
    /// Only if every index has its own limit.
    pub(super) failed: Option<Indexes>,
    /// Failed pods that must stay until their replacement has taken over their failure count, by index.
    pub(super) awaiting_replacement: BTreeMap<i64, Arc<Value>>,
}

impl Count {
    pub(super) fn of(spec: &JobSpec, status: &JobStatus, pods: Vec<Arc<Value>>) -> Self {
        let active: Vec<_> = pods.iter().filter(|pod| pod::is_active(pod)).cloned().collect();
        let fresh = |noted: &[String], ended: &dyn Fn(&Value) -> bool| -> Vec<Arc<Value>> {
            let counts =
                |pod: &&Arc<Value>| countable(pod, spec) && !noted.iter().any(|uid| uid == object::uid(pod));
            pods.iter()
                .filter(counts)
                .filter(|pod| ended(pod))
                .cloned()
                .collect()
        };
        let new_succeeded = fresh(&status.uncounted.succeeded, &has_succeeded);
        let new_failed = fresh(&status.uncounted.failed, &|pod| has_failed(pod, spec));
        let counted = new_failed
            .iter()
            .filter(|pod| meaning(pod, spec) != Meaning::Ignored)
            .count();
        let indexes = spec
            .indexed
            .as_ref()
            .map(|indexed| IndexCount::of(spec, indexed, status, &pods, &active));
        let succeeded = status
            .succeeded
            .saturating_add(size(new_succeeded.len() + status.uncounted.succeeded.len()));
        Self {
            ready: size(active.iter().filter(|pod| pod::is_ready(pod)).count()),
            terminating: size(pods.iter().filter(|pod| pod::is_stopping(pod)).count()),
            succeeded: indexes
                .as_ref()
                .map_or(succeeded, |indexes| indexes.succeeded.total()),
            failed: status
                .failed
                .saturating_add(size(counted + status.uncounted.failed.len())),
            new_succeeded,
            new_failed,
            indexes,
            active,
            pods,
        }
    }

    /// The indexes that need no new pod.
    pub(super) fn occupied_indexes(&self, spec: &JobSpec) -> Indexes {
        let mut occupied: Indexes = self
            .active
            .iter()
            .filter_map(|pod| completion_index(pod))
            .collect();
        if spec.waits_for_failure {
            let stopping = self.pods.iter().filter(|pod| pod::is_stopping(pod));
            occupied = occupied.and(&stopping.filter_map(|pod| completion_index(pod)).collect());
        }
        if let Some(IndexCount {
            succeeded, failed, ..
        }) = &self.indexes
        {
            occupied = occupied
                .and(succeeded)
                .and(failed.as_ref().unwrap_or(&Indexes::default()));
        }
        occupied
    }

    /// The failed pod whose failure count the next pod of an index takes over.
    pub(super) fn awaiting_replacement(&self, index: i64) -> Option<&Arc<Value>> {
        self.indexes.as_ref()?.awaiting_replacement.get(&index)
    }
}

impl IndexCount {
    fn of(
        spec: &JobSpec,
        indexed: &Indexed,
        status: &JobStatus,
        pods: &[Arc<Value>],
        active: &[Arc<Value>],
    ) -> Self {
        let Indexed {
            completions,
            backoff_limit,
            ..
        } = indexed;
        let tracked = |ended: &dyn Fn(&Value) -> bool| -> Indexes {
            let ended = pods.iter().filter(|pod| is_tracked(pod) && ended(pod));
            ended.filter_map(|pod| valid_index(pod, *completions)).collect()
        };
        let succeeded_before = Indexes::read(&status.completed_indexes, *completions);
        let succeeded = succeeded_before.and(&tracked(&has_succeeded));
        let failed = backoff_limit.map(|limit| {
            let before = status.failed_indexes.as_deref().unwrap_or_default();
            Indexes::read(before, *completions).and(&tracked(&|pod| fails_index(pod, spec, limit)))
        });
        let awaiting_replacement = match &failed {
            Some(failed) => {
                let active: Indexes = active.iter().filter_map(|pod| completion_index(pod)).collect();
                last_failures(pods, spec, &succeeded.and(failed).and(&active))
            }
            None => BTreeMap::new(),
        };
        Self {
            succeeded_before,
            succeeded,
            failed,
            awaiting_replacement,
        }
    }
}

/// Whether this pod's failure exceeds the limit of its index.
fn fails_index(pod: &Value, spec: &JobSpec, limit: i64) -> bool {
    has_failed(pod, spec)
        && match meaning(pod, spec) {
            Meaning::FailsIndex => true,
            Meaning::Ignored => false,
            Meaning::Counts | Meaning::FailsJob(_) => IndexFailures::before(pod).counted >= limit,
        }
}

/// The last failed pod of every index that is not `settled`.
fn last_failures(pods: &[Arc<Value>], spec: &JobSpec, settled: &Indexes) -> BTreeMap<i64, Arc<Value>> {
    let mut last: BTreeMap<i64, Arc<Value>> = BTreeMap::new();
    for pod in pods
        .iter()
        .filter(|pod| countable(pod, spec) && has_failed(pod, spec))
    {
        let Some(index) = completion_index(pod).filter(|index| !settled.has(*index)) else {
            continue;
        };
        let newer = |before: &Arc<Value>| {
            IndexFailures::before(before).all() <= IndexFailures::before(pod).all()
                && finished_at(pod) >= finished_at(before)
        };
        if last.get(&index).is_none_or(newer) {
            last.insert(index, pod.clone());
        }
    }
    last
}

/// Whether a pod can still change the counters: it has the finalizer and, in an indexed Job, a valid index.
fn countable(pod: &Value, spec: &JobSpec) -> bool {
    is_tracked(pod)
        && spec
            .indexed
            .as_ref()
            .is_none_or(|indexed| valid_index(pod, indexed.completions).is_some())
}

pub(super) fn size(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
