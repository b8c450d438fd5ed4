//! When to stop believing: no progress for too long, or a new pod that will not get well (rules 11 and 12).
//!
//! The verdict is not remembered. It follows from when the attempt last got on and from the pods as they are, so a longer
//! deadline in the spec or a pod that recovers takes it back.

use jiff::Timestamp;

use super::gate::Ahead;
use super::{Turn, report};
use crate::memory::Attempt;
use crate::plan::{OnBrokenPod, OnFailure, Plan, Step};
use crate::workload::Workload;
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
                let why = self.overdue(attempt, plan, ahead)?;
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

    /// Until when the attempt has to get on.
    fn deadline(&self, attempt: &Attempt, plan: &Plan) -> Option<Timestamp> {
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
        since.saturating_add(plan.deadline).ok()
    }

    /// Gives an attempt its time anew whose share is not released yet: the operator was away, or its request is refused. That
    /// is told, and no fault of the version's.
    pub(super) fn excuse(&self, attempt: &mut Attempt, plan: &Plan) {
        let late = self
            .deadline(attempt, plan)
            .is_some_and(|at| at <= self.world.now);
        if late {
            attempt.progressed = self.world.now;
        }
    }

    fn overdue(&mut self, attempt: &Attempt, plan: &Plan, ahead: &Ahead) -> Option<String> {
        let at = self.deadline(attempt, plan)?;
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
