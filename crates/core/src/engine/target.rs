//! Where the template points: to the stable version, to the one that is rolled, or somewhere new (rules 6, 7 and 8).

use super::Turn;
use super::step::begin;
use crate::event::EventReason;
use crate::memory::{Activity, Cause, Return, Stable};
use crate::revision::RevisionName;
use crate::workload::Workload;

impl Turn<'_> {
    /// Follows the template.
    pub(super) fn aim(&mut self, workload: &Workload) {
        self.complete_unseen(workload);
        self.forgive(workload);
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
            // What was behind gates stays behind them, whoever applies it again.
            Activity::Idle if workload.replicas == 0 && self.memory.withdrawn.as_ref() == Some(update) => {
                // Until the last pod is gone Kubernetes gives nothing up.
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
                self.go_back(attempt.target, Cause::PutBack);
            }
            // The way back of an abort may put the template back itself.
            Activity::Returning(_) if here || workload.template == stable.template => {}
            Activity::Returning(back) if back.from == *update => {}
            Activity::Idle if here => {}
            Activity::Idle if !self.is_rejected(workload) && rolled_by_hand(workload) => {
                self.notice(
                    EventReason::ExternalRolloutDetected,
                    format!(
                        "somebody else has rolled {update} out to every pod: it is the stable version now"
                    ),
                );
                self.memory.withdrawn = None;
                self.memory.stable = Some(Stable {
                    revision: update.clone(),
                    template: workload.template.clone(),
                });
            }
            Activity::Idle | Activity::Rolling(_) | Activity::Returning(_) => {
                if !self.is_rejected(workload) {
                    self.set_out(workload);
                }
            }
        }
    }

    /// Takes a version out of the template of a workload without pods: they would all begin on it.
    fn withdraw(&mut self, update: &RevisionName, stable: &RevisionName) {
        self.notice(
            EventReason::ScaledToZero,
            format!(
                "scaled to zero while {update} was being rolled out, which Kubernetes takes for its end: {stable} stays the stable \
                 version and its template is put back; scale up, then apply {update} again to roll it out"
            ),
        );
        self.memory.withdrawn = Some(update.clone());
        self.go_back(update.clone(), Cause::ScaledToZero);
    }

    /// A rollout that had come to its end, only that the template was changed again before anybody looked: what it rolled
    /// out is the stable version, and what to go back to from here.
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

    /// Whether an attempt is about to begin, or a workload to be taken on.
    pub(super) fn is_to_begin(&self, workload: &Workload) -> bool {
        let update = &workload.update;
        let Some(stable) = &self.memory.stable else {
            // Which version is the good one is seen from the pods.
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
            Activity::Returning(back) => back.from == *update || workload.template == stable.template,
        };
        *update != stable.revision && !on_its_way
    }

    /// Forgets what was turned down when somebody has put the stable version back in its place: should it be asked for
    /// again, that is meant.
    fn forgive(&mut self, workload: &Workload) {
        let (Some(stable), Some(rejected)) = (&self.memory.stable, &mut self.memory.rejected) else {
            return;
        };
        if self.memory.activity != Activity::Idle {
            return;
        }
        if rejected.revision == workload.update {
            // It is back. Whoever takes it out now is not us.
            rejected.replaced = false;
        } else if stable.revision == workload.update && !rejected.replaced {
            self.memory.rejected = None;
        }
    }

    /// Whether what was asked for last was turned down: it is in the template, or we took it out.
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

    /// Whether the template is one that was turned down.
    pub(super) fn is_rejected(&self, workload: &Workload) -> bool {
        let rejected = self.memory.rejected.as_ref();
        rejected.is_some_and(|rejected| rejected.revision == workload.update)
    }

    /// Begins at the first step, towards the template. The stable version stays what it was.
    fn set_out(&mut self, workload: &Workload) {
        let Ok(plan) = &self.world.plan else {
            return;
        };
        self.memory.withdrawn = None;
        if workload.replicas == 0 && self.memory.activity == Activity::Idle {
            // No pod runs the old version and none will run the new one before it is asked for.
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
            Activity::Idle | Activity::Returning(_) => None,
        };
        let mut attempt = begin(plan, workload, self.world.now);
        // The guard was up, so where it begins paused, what runs the new version was released by another client.
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

    /// Turns round.
    pub(super) fn go_back(&mut self, from: RevisionName, cause: Cause) {
        self.memory.activity = Activity::Returning(Return {
            from,
            cause,
            since: self.world.now,
        });
    }
}

/// Whether every pod runs the template and is Ready, though we have begun nothing: to undo that would surprise people more
/// than it would protect them.
fn rolled_by_hand(workload: &Workload) -> bool {
    let new = |index: u32| {
        let pod = workload.at(index);
        pod.is_some_and(|pod| pod.runs(&workload.update) && pod.ready())
    };
    workload.replicas > 0
        && workload.current == workload.update
        && workload.counters_agree()
        && (0..workload.replicas).all(new)
}
