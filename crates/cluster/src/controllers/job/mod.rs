//! Jobs: pods that run to completion, as many times as requested.
//!
//! One sync reads the Job and its pods, counts ([`count`]), decides whether the Job is finished ([`verdict`]), creates or deletes pods
//! ([`manage`]), and records the result ([`track`]). Only the last two and [`claim`] write; the rest is pure.

mod backoff;
mod claim;
mod count;
mod failure_policy;
mod indexes;
mod manage;
mod new_pod;
pub(crate) mod orphan;
mod spec;
mod status;
mod success_policy;
#[cfg(test)]
mod tests;
mod track;
mod tracked_pod;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use crate::json::Value;

use self::backoff::Backoffs;
use self::count::{Count, size};
use self::manage::Manager;
use self::spec::{JobSpec, is_managed_elsewhere};
use self::status::JobStatus;
pub(crate) use self::status::finished;
use self::track::Tracker;
use self::verdict::{Verdict, is_complete, success, verdict};
use super::pod::PODS;
use super::{Changed, Controller, Next, moment, owner};
use crate::access::{Access, EventKind};
use crate::object;
use crate::selector::label_selector_matches;
use crate::status::Status;
use crate::store::Key;

pub(crate) const JOBS: &str = "jobs.batch";
const API_VERSION: &str = "batch/v1";
const KIND: &str = "Job";

/// Changes of pods and statuses are batched for this long.
const BATCH: Duration = Duration::from_secs(1);

/// Runs pods to completion.
#[derive(Default)]
pub(crate) struct JobController {
    backoffs: Backoffs,
}

impl Controller for JobController {
    fn name(&self) -> &'static str {
        "job-controller"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[JOBS, PODS]
    }

    fn concerned(&self, change: &Changed, access: &dyn Access) -> Vec<Key> {
        let Changed {
            resource,
            before,
            after,
        } = change;
        if &**resource == PODS {
            return concerned_by_pod(before.as_deref(), after.as_deref(), access);
        }
        let Some(job) = after.as_ref().or(before.as_ref()) else {
            return Vec::new();
        };
        let key = Key::new(object::namespace(job), object::name(job));
        if after.is_none() {
            self.backoffs.forget(&key);
        }
        let is_over = before.is_some() && after.as_ref().is_some_and(|job| finished(job).is_some());
        if is_over { Vec::new() } else { vec![key] }
    }

    fn delay(&self, change: &Changed) -> Duration {
        match change {
            Changed {
                before: Some(before),
                after: Some(after),
                ..
            } if &*change.resource == JOBS => {
                if object::generation(before) == object::generation(after) {
                    BATCH
                } else {
                    Duration::ZERO
                }
            }
            Changed { resource, .. } => {
                if &**resource == PODS {
                    BATCH
                } else {
                    Duration::ZERO
                }
            }
        }
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        let job = access.get(JOBS, &key.namespace, &key.name);
        let Some(job) = job.filter(|job| finished(job).is_none()) else {
            self.backoffs.forget(key);
            return Ok(Next::Wait);
        };
        if is_managed_elsewhere(&job) {
            return Ok(Next::Wait);
        }
        let Some(spec) = JobSpec::read(&job) else {
            let message = "Skipped Job sync because completion mode is unknown";
            access.event(&job, EventKind::Warning, "UnknownCompletionMode", message);
            return Ok(Next::Wait);
        };
        self.reconcile(key, job, &spec, access)
    }
}

impl JobController {
    fn reconcile(
        &self,
        key: &Key,
        job: Arc<Value>,
        spec: &JobSpec,
        access: &dyn Access,
    ) -> Result<Next, Status> {
        let now = access.now();
        let mut status = JobStatus::read(&job);
        let before = (status.active, status.ready, status.terminating);
        let count = Count::of(spec, &status, claim::claim(&job, access)?);
        if !spec.suspended {
            status.start_time.get_or_insert(moment::whole_second(now));
        }
        let backoff = self
            .backoffs
            .of(key)
            .after(&count.new_succeeded, &count.new_failed);
        let Verdict { mut end, deadline_in } = verdict(spec, &status, &count, now);

        let manager = Manager {
            access,
            job: &job,
            spec,
            count: &count,
            backoff,
            now,
        };
        let mut changed = false;
        let managed = if end.is_some() {
            let managed = manager.end();
            // Only once every pod is at least being deleted.
            end = end.filter(|_| managed.deleted == size(count.active.len()));
            managed
        } else {
            let is_going = object::is_terminating(&job);
            let managed = if is_going {
                manage::Managed::default()
            } else {
                manager.run()
            };
            if is_complete(spec, &count, size(count.active.len()) + managed.active) {
                end = Some(success());
            } else if !is_going {
                changed = suspend_or_resume(&mut status, spec, &job, access);
            }
            managed
        };
        status.active = size(count.active.len()) + managed.active;
        status.ready = Some(count.ready - managed.deleted_ready);
        status.terminating = Some(count.terminating + managed.deleted);
        changed |= before != (status.active, status.ready, status.terminating);

        let backoffs = &self.backoffs;
        Tracker {
            access,
            key,
            spec,
            count: &count,
            backoffs,
            backoff,
            now,
            job,
            status,
            end,
            changed,
        }
        .run()?;
        match managed.error {
            Some(status) => Err(status),
            None => Ok(deadline_in
                .into_iter()
                .chain(managed.wait)
                .min()
                .map_or(Next::Wait, Next::After)),
        }
    }
}

/// Records that the Job was suspended or resumed; suspended time does not count towards its deadline.
fn suspend_or_resume(status: &mut JobStatus, spec: &JobSpec, job: &Value, access: &dyn Access) -> bool {
    let now = access.now();
    let (reason, message) = if spec.suspended {
        ("JobSuspended", "Job suspended")
    } else {
        ("JobResumed", "Job resumed")
    };
    let changed = status.set("Suspended", spec.suspended, reason, message, now);
    if changed {
        let event = if spec.suspended { "Suspended" } else { "Resumed" };
        access.event(job, EventKind::Normal, event, message);
        status.start_time = (!spec.suspended).then(|| moment::whole_second(now));
    }
    changed
}

/// The Job that controls a pod, if it is still the same one.
fn job_of(pod: &Value, access: &dyn Access) -> Option<Arc<Value>> {
    let controller = owner::controller_of(pod).filter(|controller| controller["kind"] == KIND)?;
    let job = access.get(JOBS, object::namespace(pod), controller["name"].as_str()?)?;
    (controller["uid"] == object::uid(&job)).then_some(job)
}

fn concerned_by_pod(before: Option<&Value>, after: Option<&Value>, access: &dyn Access) -> Vec<Key> {
    let key = |job: Arc<Value>| Key::new(object::namespace(&job), object::name(&job));
    let mut keys: Vec<_> = [before, after]
        .into_iter()
        .flatten()
        .filter_map(|pod| job_of(pod, access))
        .map(key)
        .collect();
    keys.dedup();
    match after {
        // A Job may adopt an orphan.
        Some(pod) if owner::controller_of(pod).is_none() && !object::is_terminating(pod) => {
            let jobs = access.list(JOBS, object::namespace(pod)).into_iter();
            let matching = jobs
                .filter(|job| label_selector_matches(&job["spec"]["selector"], &pod["metadata"]["labels"]));
            keys.extend(matching.map(key));
        }
        _ => {}
    }
    keys
}
