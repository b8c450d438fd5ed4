//! When to stop believing: no progress for too long, or a new pod that will not get well (rules 11 and 12).
//!
//! The verdict is not remembered. It follows from when the attempt last got on and from the pods as they are, so a longer
//! deadline in the spec or a pod that recovers takes it back.

use jiff::Timestamp;

use super::gate::Ahead;
use super::{Turn, report};
use crate::memory::Attempt;
use crate::plan::{OnBrokenPod, OnFailure, Plan, Step};
use crate::workload::{Pod, Workload};
use crate::world::{Phase, Reason, Report};

/// A failed attempt.
pub(super) struct Verdict {
    pub(super) abort: bool,
    pub(super) why: String,
    pub(super) report: Report,
}

impl Turn<'_> {
    pub(super) fn failure(
        &mut self,
        attempt: &Attempt,
        plan: &Plan,
        workload: &Workload,
        ahead: &Ahead,
    ) -> Option<Verdict> {
        if attempt.held {
            return None;
        }
        let broken = match plan.on_broken_pod {
            OnBrokenPod::Fail(policy) => self.broken(attempt, workload).map(|why| (policy, why)),
            OnBrokenPod::Wait => None,
        };
        let (reason, policy, why) = match broken {
            Some((policy, why)) => (Reason::PodBroken, policy, why),
            None => {
                let why = self.overdue(attempt, plan, workload, ahead)?;
                (Reason::DeadlineExceeded, plan.on_failure, why)
            }
        };
        Some(Verdict {
            abort: policy == OnFailure::Abort,
            report: report(
                Phase::Failed,
                reason,
                format!("{why}; go back with: {}", self.command("abort")),
            ),
            why,
        })
    }

    fn broken(&self, attempt: &Attempt, workload: &Workload) -> Option<String> {
        let new = workload
            .members()
            .filter(|pod| pod.runs(&attempt.target) && !pod.terminating);
        new.filter(|pod| pod.ready_since.is_none())
            .find_map(|pod| Some((pod, pod.trouble.as_ref()?)))
            .map(|(pod, trouble)| {
                let message = match trouble.message.as_str() {
                    "" => String::new(),
                    message => format!(": {message}"),
                };
                format!(
                    "pod {} is broken on {}: {}{message}",
                    pod.name, attempt.target, trouble.reason
                )
            })
    }

    /// Excuses old pods that are not well for as long as the attempt has stood before its first pod. It is not the new version's
    /// fault, and may be what it cures.
    pub(super) fn excuse_stuck(&mut self, attempt: &mut Attempt, plan: &Plan, workload: &Workload) {
        let overdue = self.deadline(attempt, plan, workload);
        // A gate that has begun anew may have stood for hours, and its pod be unwell for a moment.
        let waited = self.world.now.duration_since(attempt.entered) >= plan.deadline;
        if attempt.held || !waited || overdue.is_none_or(|at| at > self.world.now) {
            return;
        }
        let unwell = |pod: &&Pod| !pod.ready() && !attempt.excused.contains(&pod.index);
        let stuck: Vec<_> = workload.members().filter(unwell).collect();
        if stuck.is_empty() {
            return;
        }
        let names: Vec<_> = stuck.iter().map(|pod| pod.name.as_str()).collect();
        self.warn(
            "PodsExcused",
            format!(
                "{}: not waiting any longer for {}, which ran the old version and did not get Ready within {:#}",
                attempt.target,
                names.join(", "),
                plan.deadline
            ),
        );
        let indices: Vec<_> = stuck.iter().map(|pod| pod.index).collect();
        attempt.excused.extend(indices);
        attempt.excused.sort_unstable();
        attempt.progressed = self.world.now;
    }

    /// When the last pod outside the share came back to the old version, or will count as back, while others have yet to.
    fn last_returned(&self, attempt: &Attempt, plan: &Plan, workload: &Workload) -> Option<Timestamp> {
        let stable = self.memory.stable.as_ref().map(|stable| &stable.revision)?;
        let due = plan.share_at(attempt.step).of(workload.replicas);
        let first_released = workload.first_released(due.max(attempt.floor));
        let outside = || workload.members().filter(|pod| pod.index < first_released);
        let astray = outside().any(|pod| pod.revision.is_some() && !pod.runs(stable));
        let back = outside().filter(|pod| pod.runs(stable));
        let back = back.filter_map(|pod| pod.available_at(workload.min_ready));
        back.max().filter(|_| astray)
    }

    /// Until when the attempt has to get on.
    fn deadline(&self, attempt: &Attempt, plan: &Plan, workload: &Workload) -> Option<Timestamp> {
        let since = match plan.step(attempt.step) {
            // Only what is waited for after the pause counts.
            Some(Step::Pause(duration)) => {
                let over = attempt.entered.saturating_add((*duration)?).ok()?;
                over.max(attempt.progressed)
            }
            // How long measuring takes is the metrics' own affair.
            Some(Step::Analysis(_)) => match self.run_of_step(attempt) {
                Some(run) => run.ended?.max(attempt.progressed),
                None => attempt.progressed,
            },
            Some(Step::Share(_)) | None => attempt.progressed,
        };
        // Pods that go where they belong get on, too.
        let since = since.max(self.last_returned(attempt, plan, workload).unwrap_or(since));
        since.saturating_add(plan.deadline).ok()
    }

    /// Gives an attempt its time anew whose share is not released yet: the operator was away, or its request is refused. That
    /// is told, and no fault of the version's.
    pub(super) fn excuse(&self, attempt: &mut Attempt, plan: &Plan, workload: &Workload) {
        let late = self
            .deadline(attempt, plan, workload)
            .is_some_and(|at| at <= self.world.now);
        if late {
            attempt.progressed = self.world.now;
        }
    }

    fn overdue(
        &mut self,
        attempt: &Attempt,
        plan: &Plan,
        workload: &Workload,
        ahead: &Ahead,
    ) -> Option<String> {
        let at = self.deadline(attempt, plan, workload)?;
        if at <= self.world.now {
            return Some(format!(
                "no progress for {:#} at step {} of {}{}",
                plan.deadline,
                (attempt.step.0 + 1).min(plan.end().0),
                plan.end().0,
                ahead.clause()
            ));
        }
        self.wake(at);
        None
    }
}
