//! While no rollout is in progress: keeps every pod on its version (rules 1, 6 and 9).

use super::gate::unready;
use super::{Decider, Outcome, invalid, report};
use crate::memory::{Activity, Cause, Rejection};
use crate::plan::Share;
use crate::workload::{Claim, Workload};
use crate::world::{Action, Phase, Reason, Report};

impl Decider<'_> {
    /// Revokes releases beyond the recorded share even if the workload's controller has not observed the workload yet: the
    /// controller acts on the current partition and replaces pods in the meantime. Nothing else is decided on such a state.
    pub(super) fn take_back_unobserved(&self, workload: &Workload) -> Option<Action> {
        let managed = self.may_manage() && !self.world.suspended && self.memory.stable.is_some();
        if !managed || !matches!(workload.claim, Claim::Ours | Claim::Free) {
            return None;
        }
        let allowed = self.released_on_record(workload)?;
        let exceeded = workload.released > i64::from(allowed);
        exceeded.then_some(Action::Release(match allowed {
            0 => Share::NONE,
            some => Share::Pods(some),
        }))
    }

    /// How many pods may be released according to the record. `None` if that depends on state that the workload's controller has
    /// not observed yet.
    fn released_on_record(&self, workload: &Workload) -> Option<u32> {
        match (&self.memory.activity, &self.world.plan) {
            (Activity::Idle, _) => Some(0),
            (Activity::RollingBack(_), _) => {
                let stable = self.memory.stable.as_ref()?;
                (workload.current == stable.revision && workload.template != stable.template).then_some(0)
            }
            (Activity::Rolling(attempt), _) if workload.current == attempt.target => None,
            (Activity::Rolling(attempt), Ok(plan)) => self.released_by(attempt, plan, workload),
            (Activity::Rolling(attempt), Err(_)) => Some(super::released_without_plan(attempt, workload)),
        }
    }

    /// One decision without a rollout.
    pub(super) fn idle(&mut self, workload: &Workload) -> Outcome {
        let invalid = match &self.world.plan {
            Ok(_) => None,
            Err(problems) => Some(self.invalid_at_rest(workload, problems)),
        };
        let stable = match self.memory.stable.clone() {
            Some(stable) if self.may_manage() => stable,
            _ => {
                return Outcome {
                    action: None,
                    report: invalid,
                };
            }
        };
        let turned_down = self.was_rejected(workload);
        let forgotten = turned_down && workload.current != stable.revision;
        let astray = workload
            .members()
            .any(|pod| pod.revision.is_some() && !pod.runs(&stable.revision));
        let settled_here = workload.update == stable.revision || turned_down;
        if settled_here && (forgotten || astray) {
            let cause = if turned_down {
                Cause::Aborted
            } else {
                Cause::TemplateReverted
            };
            self.start_rollback(workload.update.clone(), cause);
            return self.roll_back(workload);
        }
        let report = invalid.unwrap_or_else(|| self.describe_idle(workload, turned_down));
        if workload.released != 0 || workload.claim != Claim::Ours {
            return Outcome::act(Action::Release(Share::NONE), report);
        }
        // Rolls back a version that another client has released while there is no valid plan.
        let action = match self.world.plan.is_err() && workload.same_pods() {
            true => self.next_to_remove(workload, None, 0),
            false => None,
        };
        Outcome {
            action,
            report: Some(report),
        }
    }

    fn describe_idle(&self, workload: &Workload, turned_down: bool) -> Report {
        if turned_down && let Some(rejected) = &self.memory.rejected {
            let Rejection { revision, reason, .. } = rejected;
            let message = if rejected.replaced {
                format!(
                    "{revision} was rejected ({reason}), the stable template was put in its place and every pod is back on \
                     it; go on with another version"
                )
            } else {
                format!(
                    "{revision} was rejected ({reason}) and every pod is back on the stable version; change the template, \
                     or: {}",
                    self.command_for(revision, "retry")
                )
            };
            return report(Phase::Failed, Reason::Rejected, message);
        }
        if self.memory.withdrawn.as_ref() == Some(&workload.update) {
            return report(
                Phase::Progressing,
                Reason::TemplateReverted,
                format!(
                    "scaled to zero: {} gives way to the stable version when every pod is gone",
                    workload.update
                ),
            );
        }
        // An existing pod that is unready says more than one that waits for it.
        let there = (0..workload.replicas)
            .rev()
            .filter_map(|index| workload.at(index));
        let missing = (0..workload.replicas).find(|index| workload.at(*index).is_none());
        let unwell = there
            .filter(|pod| !pod.ready())
            .max_by_key(|pod| pod.trouble.is_some())
            .map(unready)
            .or_else(|| missing.map(|index| format!("waiting for pod {index} to be created")));
        match unwell {
            Some(what) => report(Phase::Progressing, Reason::NotReady, what),
            // Until then a change of the template would update pods.
            None if workload.released > 0 || workload.claim != Claim::Ours => report(
                Phase::Progressing,
                Reason::Guarding,
                "adopting the workload, so that no pod is updated before a step releases it".into(),
            ),
            None => report(Phase::Successful, Reason::Stable, self.describe_rest(workload)),
        }
    }

    /// Says that all is well, and what users should know anyway.
    fn describe_rest(&self, workload: &Workload) -> String {
        let mut sentences = vec![if workload.replicas == 0 {
            format!("scaled to zero: pods will run {}", workload.update)
        } else {
            format!("every pod runs {}", workload.update)
        }];
        sentences.extend(self.memory.withdrawn.as_ref().map(|withdrawn| {
            format!(
                "{withdrawn} was taken out of the template, because Kubernetes would have given it to every pod unasked: \
                 {}apply it again to roll it out",
                if workload.replicas == 0 { "scale up, then " } else { "" }
            )
        }));
        if self.world.paused {
            sentences.push(format!(
                "paused by spec.paused: the next rollout will stand at its start until: {}",
                self.command("resume")
            ));
        }
        sentences.join("; ")
    }

    /// Ends the rollback. That is recorded first; only the guard is left to do afterwards.
    pub(super) fn finish_rollback(&mut self, workload: &Workload) -> Outcome {
        self.memory.activity = Activity::Idle;
        Outcome::wait(match &self.world.plan {
            Ok(_) => self.describe_idle(workload, self.was_rejected(workload)),
            Err(problems) => self.invalid_at_rest(workload, problems),
        })
    }

    /// An invalid spec does not hide the result of the last rollout.
    pub(super) fn invalid_at_rest(&self, workload: &Workload, problems: &[String]) -> Report {
        let mut report = invalid(problems);
        if self.may_manage() {
            report.message += "; no pod is released until it is fixed";
        } else if workload.claim != Claim::Ours {
            report.message += &if workload.released >= i64::from(workload.replicas) {
                "; until it is fixed the workload is not guarded: a change of the template goes to every pod at once".to_owned()
            } else {
                let held = i64::from(workload.replicas) - workload.released.max(0);
                format!(
                    "; until it is fixed the partition is not managed; as it is, it holds back {held} pods"
                )
            };
        }
        let rejected = self.memory.rejected.as_ref();
        if let Some(rejected) = rejected.filter(|_| self.was_rejected(workload)) {
            let Rejection { revision, reason, .. } = rejected;
            report.message = format!("{}; {revision} was rejected ({reason})", report.message);
        }
        report
    }
}
