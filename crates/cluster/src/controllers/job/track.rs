//! Counts ended pods, each exactly once, and finishes the Job.
//!
//! The order makes it safe: record the pods in the status, then remove their finalizer, then count them. After any interruption, the next
//! sync finds a record or a finalizer to continue from.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::json::Value;
use jiff::Timestamp;

use super::JOBS;
use super::backoff::{Backoff, Backoffs};
use super::claim::untrack;
use super::count::Count;
use super::failure_policy::Meaning;
use super::indexes::Indexes;
use super::spec::JobSpec;
use super::status::{Condition, ConditionKind, JobStatus};
use super::tracked_pod::{completion_index, has_failed, has_succeeded, is_tracked, meaning, valid_index};
use crate::access::{Access, EventKind};
use crate::controllers::edit::with_status;
use crate::controllers::moment;
use crate::object;
use crate::status::Status;
use crate::store::Key;

/// The maximum number of pods recorded in the status at once.
const LIMIT: usize = 500;

pub(super) struct Tracker<'a> {
    pub(super) access: &'a dyn Access,
    pub(super) key: &'a Key,
    pub(super) spec: &'a JobSpec,
    pub(super) count: &'a Count,
    pub(super) backoffs: &'a Backoffs,
    pub(super) backoff: Backoff,
    pub(super) now: Timestamp,
    pub(super) job: Arc<Value>,
    pub(super) status: JobStatus,
    pub(super) end: Option<Condition>,
    /// Whether the status differs from the stored one.
    pub(super) changed: bool,
}

/// The pods that this sync releases.
struct Ended {
    pods: Vec<Arc<Value>>,
    /// Whether there are more, for the next sync.
    is_partial: bool,
}

impl Tracker<'_> {
    pub(super) fn run(mut self) -> Result<(), Status> {
        let tracked = self.count.pods.iter().filter(|pod| is_tracked(pod));
        let mut with_finalizer: BTreeSet<_> = tracked.map(|pod| object::uid(pod).to_owned()).collect();
        self.changed |= self.status.settle(&with_finalizer);
        let ended = self.note_ended();
        self.note_interim();

        if self.changed {
            self.write()?;
            self.backoffs.keep(self.key, self.backoff);
        }
        let mut refused = None;
        for pod in &ended.pods {
            match untrack(pod, self.access) {
                Ok(()) => {
                    with_finalizer.remove(object::uid(pod));
                }
                Err(status) => {
                    refused.get_or_insert(status);
                }
            }
        }
        self.changed |= self.status.settle(&with_finalizer);
        if let Some(status) = refused {
            if self.changed {
                self.write()?;
            }
            return Err(status);
        }

        let finished = !ended.is_partial && self.finish();
        if self.changed {
            self.write()?;
        }
        if finished {
            self.announce();
        }
        Ok(())
    }

    /// Records ended pods in the status.
    fn note_ended(&mut self) -> Ended {
        let mut pods = self.count.pods.clone();
        if self.spec.indexed.is_some() {
            pods.sort_by_key(|pod| completion_index(pod));
        }
        let noted = self.status.uncounted.clone();
        let mut ended = Ended {
            pods: Vec::new(),
            is_partial: false,
        };
        let mut new_indexes = Vec::new();
        for pod in pods.into_iter().filter(|pod| is_tracked(pod)) {
            if !self.may_go(&pod) {
                continue;
            }
            let uid = object::uid(&pod);
            if has_succeeded(&pod) && !noted.failed.iter().any(|one| one == uid) {
                self.note_success(&pod, &mut new_indexes);
            } else if (has_failed(&pod, self.spec) || self.fails_rest())
                && !noted.failed.iter().any(|one| one == uid)
                && self.has_valid_index(&pod)
                && meaning(&pod, self.spec) != Meaning::Ignored
            {
                self.changed = true;
                self.status.uncounted.failed.push(uid.to_owned());
            }
            ended.pods.push(pod);
            if new_indexes.len() + self.status.uncounted.len() >= LIMIT {
                ended.is_partial = true;
                break;
            }
        }
        self.note_indexes(new_indexes);
        ended
    }

    /// Whether a pod no longer needs its finalizer.
    fn may_go(&self, pod: &Value) -> bool {
        if object::is_terminating(&self.job) || self.end.is_some() || has_succeeded(pod) {
            return true;
        }
        let awaiting = completion_index(pod).and_then(|index| self.count.awaiting_replacement(index));
        has_failed(pod, self.spec) && awaiting.is_none_or(|kept| object::uid(kept) != object::uid(pod))
    }

    /// Pods that were running when the Job failed count as failed; those of a successful one do not count.
    fn fails_rest(&self) -> bool {
        self.end
            .as_ref()
            .is_some_and(|end| end.kind != ConditionKind::SuccessCriteriaMet)
    }

    fn has_valid_index(&self, pod: &Value) -> bool {
        self.spec
            .indexed
            .as_ref()
            .is_none_or(|indexed| valid_index(pod, indexed.completions).is_some())
    }

    /// In an indexed Job the index alone prevents counting twice.
    fn note_success(&mut self, pod: &Value, new_indexes: &mut Vec<i64>) {
        match (&self.spec.indexed, &self.count.indexes) {
            (Some(indexed), Some(indexes)) => {
                let index = valid_index(pod, indexed.completions);
                if let Some(index) = index.filter(|index| !indexes.succeeded_before.has(*index)) {
                    new_indexes.push(index);
                    self.changed = true;
                }
            }
            _ => {
                let uid = object::uid(pod);
                if !self.status.uncounted.succeeded.iter().any(|one| one == uid) {
                    self.status.uncounted.succeeded.push(uid.to_owned());
                    self.changed = true;
                }
            }
        }
    }

    fn note_indexes(&mut self, new_indexes: Vec<i64>) {
        let Some(indexes) = &self.count.indexes else {
            return;
        };
        let succeeded = indexes.succeeded.and(&Indexes::from_iter(new_indexes));
        let completed = succeeded.to_string();
        let failed = indexes.failed.as_ref().map(ToString::to_string);
        self.changed |= completed != self.status.completed_indexes || failed != self.status.failed_indexes;
        self.status.succeeded = succeeded.total();
        self.status.completed_indexes = completed;
        self.status.failed_indexes = failed;
    }

    /// The interim condition is written before any pod is deleted; from here on the final one is meant.
    fn note_interim(&mut self) {
        let Some(end) = self.end.take() else { return };
        let interim = matches!(
            end.kind,
            ConditionKind::FailureTarget | ConditionKind::SuccessCriteriaMet
        );
        if interim && self.status.holds(end.kind).is_none() {
            self.status.append(&end, self.now);
            self.changed = true;
        }
        self.end = Some(end.finally());
    }

    /// Writes the final condition once every pod is counted and none is terminating.
    fn finish(&mut self) -> bool {
        let Some(end) = &self.end else { return false };
        if self.status.uncounted.len() > 0 || self.status.terminating.is_some_and(|pods| pods > 0) {
            return false;
        }
        self.status
            .set(end.kind.name(), true, &end.reason, &end.message, self.now);
        if end.kind == ConditionKind::Complete {
            self.status.completion_time = Some(moment::whole_second(self.now));
        }
        self.changed = true;
        true
    }

    fn announce(&self) {
        let Some(end) = &self.end else { return };
        let event = |kind, reason: &str, message: &str| self.access.event(&self.job, kind, reason, message);
        if end.kind == ConditionKind::Complete {
            if self
                .spec
                .completions
                .is_some_and(|wanted| self.status.succeeded > wanted)
            {
                let message = "Too many succeeded pods running after completion count reached";
                event(EventKind::Warning, "TooManySucceededPods", message);
            }
            event(EventKind::Normal, "Completed", "Job completed");
        } else {
            event(EventKind::Warning, &end.reason, &end.message);
        }
    }

    fn write(&mut self) -> Result<(), Status> {
        let Key { namespace, name } = self.key;
        let object = with_status(&self.job, self.status.to_value());
        self.job = self.access.update_status(JOBS, namespace, name, object)?;
        self.changed = false;
        Ok(())
    }
}
