//! What the template asks for: the stable version, the one being rolled out, or a new one (rules 6, 7 and 8).

use super::Decider;
use super::step::begin;
use crate::event::EventReason;
use crate::memory::{Activity, Cause, Rollback, Stable};
use crate::revision::RevisionName;
use crate::workload::Workload;

impl Decider<'_> {
    /// Follows the template.
    pub(super) fn retarget(&mut self, workload: &Workload) {
        self.complete_unseen(workload);
        self.forget_rejection(workload);
        let Some(stable) = self.memory.stable.clone() else {
            return;
        };
        let update = &workload.update;
        let here = *update == stable.revision;
        match self.memory.activity.clone() {
            Activity::Rolling(attempt) if attempt.target == *update => {
                if workload.replicas == 0 && workload.current != stable.revision {
                    self.withdraw(update, &stable.revision);
                }
            }
            // A version that was gated stays gated, even if it is applied again.
            Activity::Idle if workload.replicas == 0 && self.memory.withdrawn.as_ref() == Some(update) => {
                // Kubernetes keeps the current revision until the last pod is gone.
                if workload.current != stable.revision {
                    self.withdraw(update, &stable.revision);
                }
            }
            Activity::Rolling(attempt) if here => {
                self.notice(
                    EventReason::TemplateReverted,
                    format!(
                        "the template is {} again: returning every pod to it",
                        stable.revision
                    ),
                );
                self.start_rollback(attempt.target, Cause::TemplateReverted);
            }
            // The rollback of an abort may restore the template itself.
            Activity::RollingBack(_) if here || workload.template == stable.template => {}
            Activity::RollingBack(back) if back.from == *update => {}
            Activity::Idle if here => {}
            Activity::Idle if !self.is_rejected(workload) && rolled_out_externally(workload) => {
                self.notice(
                    EventReason::ExternalRolloutDetected,
                    format!(
                        "another client has rolled {update} out to every pod: it is the stable version now"
                    ),
                );
                self.memory.withdrawn = None;
                self.memory.stable = Some(Stable {
                    revision: update.clone(),
                    template: workload.template.clone(),
                });
            }
            Activity::Idle | Activity::Rolling(_) | Activity::RollingBack(_) => {
                if !self.is_rejected(workload) {
                    self.start_attempt(workload);
                }
            }
        }
    }

    /// Removes a version from the template of a workload without pods: all new pods would start on it.
    fn withdraw(&mut self, update: &RevisionName, stable: &RevisionName) {
        self.notice(
            EventReason::ScaledToZero,
            format!(
                "scaled to zero while {update} was being rolled out, which Kubernetes takes for its end: {stable} stays the stable \
                 version and its template is restored; scale up, then apply {update} again to roll it out"
            ),
        );
        self.memory.withdrawn = Some(update.clone());
        self.start_rollback(update.clone(), Cause::ScaledToZero);
    }

    /// Completes a rollout that had finished when the template was changed again before the operator observed it: its version is
    /// the stable one, and the one to roll back to.
    fn complete_unseen(&mut self, workload: &Workload) {
        let (Activity::Rolling(attempt), Ok(plan)) = (&self.memory.activity, &self.world.plan) else {
            return;
        };
        let at_the_end = attempt.steps == plan.fingerprint() && attempt.step == plan.end();
        let replaced = attempt.target == workload.current && attempt.target != workload.update;
        if let Some(template) = &workload.current_template
            && at_the_end
            && replaced
            && self.unmeasured(attempt, plan).is_none()
        {
            self.completed(attempt.target.clone(), template.clone());
        }
    }

    /// Whether an attempt is about to begin, or a workload to be adopted.
    pub(super) fn is_to_begin(&self, workload: &Workload) -> bool {
        let update = &workload.update;
        let Some(stable) = &self.memory.stable else {
            // The stable version is determined from the pods.
            return workload.replicas > 0;
        };
        if self.world.plan.is_err() {
            return false;
        }
        if self.is_rejected(workload) {
            return self.world.commands.retry;
        }
        let on_its_way = match &self.memory.activity {
            Activity::Idle => false,
            Activity::Rolling(attempt) => attempt.target == *update,
            Activity::RollingBack(back) => back.from == *update || workload.template == stable.template,
        };
        *update != stable.revision && !on_its_way
    }

    /// Forgets the rejected version when a user has restored the stable one, so that it can be requested again.
    fn forget_rejection(&mut self, workload: &Workload) {
        let (Some(stable), Some(rejected)) = (&self.memory.stable, &mut self.memory.rejected) else {
            return;
        };
        if self.memory.activity != Activity::Idle {
            return;
        }
        if rejected.revision == workload.update {
            // A user has applied it again, so whoever removes it next is not the operator.
            rejected.replaced = false;
        } else if stable.revision == workload.update && !rejected.replaced {
            self.memory.rejected = None;
        }
    }

    /// Whether the last requested version was rejected: it is in the template, or the operator replaced it.
    pub(super) fn was_rejected(&self, workload: &Workload) -> bool {
        let replaced = self
            .memory
            .rejected
            .as_ref()
            .is_some_and(|rejected| rejected.replaced);
        let stable = self.memory.stable.as_ref();
        let here = stable.is_some_and(|stable| stable.revision == workload.update);
        self.is_rejected(workload) || (replaced && here)
    }

    /// Whether the template is rejected.
    pub(super) fn is_rejected(&self, workload: &Workload) -> bool {
        let rejected = self.memory.rejected.as_ref();
        rejected.is_some_and(|rejected| rejected.revision == workload.update)
    }

    /// Begins at the first step, towards the template. The stable version stays.
    fn start_attempt(&mut self, workload: &Workload) {
        let Ok(plan) = &self.world.plan else {
            return;
        };
        self.memory.withdrawn = None;
        if workload.replicas == 0 && self.memory.activity == Activity::Idle {
            // No pod runs the old version, and none runs the new one before the workload is scaled up.
            self.notice(
                EventReason::AdoptedWithoutChecks,
                format!(
                    "{} was applied while there are no pods: it is the stable version now, and pods that come run it without steps \
                     or checks",
                    workload.update
                ),
            );
            self.memory.stable = None;
            self.adopt(workload);
            return;
        }
        let superseded = match &self.memory.activity {
            Activity::Rolling(attempt) => Some(attempt.target.clone()),
            Activity::Idle | Activity::RollingBack(_) => None,
        };
        let mut attempt = begin(plan, workload, self.world.now);
        // The guard was up, so if the attempt begins paused, pods on the new version were released by another client.
        attempt.stopped_at = Some(0);
        self.notice(
            EventReason::RolloutStarted,
            match superseded {
                Some(old) => format!(
                    "{} takes the place of {old}: beginning at the first step",
                    attempt.target
                ),
                None => format!("rolling out {}", attempt.target),
            },
        );
        self.memory.rejected = None;
        self.memory.retries = 0;
        self.memory.retried_at = None;
        self.memory.activity = Activity::Rolling(attempt);
    }

    /// Starts a rollback.
    pub(super) fn start_rollback(&mut self, from: RevisionName, cause: Cause) {
        self.memory.activity = Activity::RollingBack(Rollback {
            from,
            cause,
            since: self.world.now,
        });
    }
}

/// Whether every pod runs the template's revision and is Ready although the operator did not roll it out: undoing that would
/// surprise users more than it would protect them.
fn rolled_out_externally(workload: &Workload) -> bool {
    let new = |index: u32| {
        let pod = workload.at(index);
        pod.is_some_and(|pod| pod.runs(&workload.update) && pod.ready())
    };
    workload.replicas > 0
        && workload.current == workload.update
        && workload.counters_agree()
        && (0..workload.replicas).all(new)
}
