//! What people ask for: once, for the attempt they saw, and answered (rule 10).

use super::Turn;
use super::gate::Ahead;
use super::step::{begin, enter};
use crate::memory::{Activity, Attempt, Beside, Cause, Rejection};
use crate::plan::{OnFailure, Plan, Step};
use crate::workload::Workload;
use crate::world::Commands;

/// Carries one command out, or says why not.
type Obey<T> = fn(&mut T, &Workload);

impl<'w> Turn<'w> {
    /// Carries out what was asked, or says why not. Either way it is done with: whoever writes the memory down takes the
    /// commands away in the same write.
    pub(super) fn obey(&mut self, workload: &Workload) {
        let Commands {
            promote,
            promote_full,
            abort,
            retry,
        } = self.world.commands;
        let asked: [(bool, &str, Obey<Self>); 4] = [
            (abort, "abort", Self::abort),
            (retry, "retry", Self::retry),
            (promote_full, "promote --full", Self::promote_full),
            (promote, "promote", Self::promote),
        ];
        let before = self.memory.clone();
        for (_, command, obey) in asked.into_iter().filter(|(asked, ..)| *asked) {
            if self.memory == before {
                obey(self, workload);
            } else {
                // An abort beside anything else is an abort.
                self.refuse(
                    command,
                    "another command was given at the same time and came first",
                );
            }
        }
    }

    /// Answers every command with no.
    pub(super) fn refuse_commands(&mut self, why: &str) {
        let Commands {
            promote,
            promote_full,
            abort,
            retry,
        } = self.world.commands;
        let asked = [
            (promote, "promote"),
            (promote_full, "promote --full"),
            (abort, "abort"),
            (retry, "retry"),
        ];
        for (_, command) in asked.into_iter().filter(|(asked, _)| *asked) {
            self.refuse(command, why);
        }
    }

    fn refuse(&mut self, command: &str, why: &str) {
        self.warn("CommandRefused", format!("{command}: {why}"));
    }

    /// Whether the attempt that a command was given for is still the one the template asks for.
    fn overtaken(&mut self, command: &str, workload: &Workload) -> bool {
        let Activity::Rolling(attempt) = &self.memory.activity else {
            return false;
        };
        let overtaken = attempt.target != workload.update;
        if overtaken {
            let why = format!(
                "it was meant for {}, the template is {} now",
                attempt.target, workload.update
            );
            self.refuse(command, &why);
        }
        overtaken
    }

    fn abort(&mut self, workload: &Workload) {
        if self.overtaken("abort", workload) {
            return;
        }
        match self.memory.activity {
            Activity::Rolling(_) => self.reject("aborted by a user".into()),
            Activity::Returning(_) => {
                self.refuse("abort", "pods are already returning to the stable version")
            }
            Activity::Idle => self.refuse("abort", "no rollout is in progress"),
        }
    }

    /// Turns the version down that is being rolled, and turns round.
    pub(super) fn reject(&mut self, reason: String) {
        let Activity::Rolling(attempt) = &self.memory.activity else {
            return;
        };
        let revision = attempt.target.clone();
        self.warn(
            "RolloutAborted",
            format!("{revision}: {reason}; returning every pod to the stable version"),
        );
        self.memory.rejected = Some(Rejection {
            revision: revision.clone(),
            at: self.world.now,
            reason,
            replaced: false,
        });
        self.go_back(revision, Cause::Aborted);
    }

    fn retry(&mut self, workload: &Workload) {
        if self.check_again(workload) {
            return;
        }
        let aborted = !matches!(self.memory.activity, Activity::Rolling(_)) && self.is_rejected(workload);
        match &self.world.plan {
            _ if !aborted => self.refuse("retry", "there is no aborted revision in the template"),
            Err(_) => self.refuse("retry", "the spec is not valid"),
            Ok(plan) => {
                self.memory.rejected = None;
                self.memory.retries += 1;
                self.memory.retried_at = Some(self.world.now);
                self.memory.activity = Activity::Rolling(begin(plan, workload, self.world.now));
                self.notice("RolloutRetried", format!("trying {} again", workload.update));
            }
        }
    }

    /// Begins a gate anew that failed checks hold. Whether there is one.
    fn check_again(&mut self, workload: &Workload) -> bool {
        let (Activity::Rolling(attempt), Ok(plan)) = (&self.memory.activity, &self.world.plan) else {
            return false;
        };
        let held = attempt.pausing && matches!(plan.step(attempt.step), Some(Step::Analysis(_)));
        if !held || plan.on_failed_check != OnFailure::Hold {
            return false;
        }
        if !self.overtaken("retry", workload)
            && let Activity::Rolling(attempt) = &self.memory.activity
        {
            let attempt = enter(attempt.clone(), attempt.step, plan, self.world.now);
            self.notice(
                "ChecksRestarted",
                format!("{}: a user has the checks made again", attempt.target),
            );
            self.memory.activity = Activity::Rolling(attempt);
        }
        true
    }

    /// The attempt and its plan, or why there is none to promote.
    fn under_way(&self) -> Result<(Attempt, &'w Plan), &'static str> {
        let Activity::Rolling(attempt) = &self.memory.activity else {
            return Err("no rollout is in progress");
        };
        match &self.world.plan {
            Ok(plan) => Ok((attempt.clone(), plan)),
            Err(_) => Err("the spec is not valid"),
        }
    }

    fn promote_full(&mut self, workload: &Workload) {
        if self.overtaken("promote --full", workload) {
            return;
        }
        let (attempt, plan) = match self.under_way() {
            Ok(under_way) => under_way,
            Err(why) => return self.refuse("promote --full", why),
        };
        if self.world.paused {
            return self.refuse("promote --full", "spec.paused is true; resume first");
        }
        if attempt.step == plan.end() {
            return self.refuse("promote --full", "all steps are already done");
        }
        let mut attempt = enter(attempt, plan.end(), plan, self.world.now);
        attempt.fully_promoted = true;
        // Kubernetes may wait for them, and give the new version to none before they are well.
        let unwell = workload.members().filter(|pod| !pod.ready());
        attempt.excused.extend(unwell.map(|pod| pod.index));
        attempt.excused.sort_unstable();
        attempt.excused.dedup();
        if let Beside::InDoubt(_) = attempt.beside {
            attempt.beside = Beside::Waived;
        }
        self.notice(
            "RolloutPromoted",
            format!("{}: the remaining steps are skipped", attempt.target),
        );
        self.memory.activity = Activity::Rolling(attempt);
    }

    fn promote(&mut self, workload: &Workload) {
        if self.overtaken("promote", workload) {
            return;
        }
        let (attempt, plan) = match self.under_way() {
            Ok(under_way) => under_way,
            Err(why) => return self.refuse("promote", why),
        };
        if let Beside::InDoubt(_) = attempt.beside {
            let attempt = Attempt {
                beside: Beside::Waived,
                pausing: matches!(plan.step(attempt.step), Some(Step::Pause(_))),
                progressed: self.world.now,
                ..attempt
            };
            self.notice(
                "RolloutResumed",
                format!(
                    "{}: a user goes on without a verdict of the analysis beside the steps",
                    attempt.target
                ),
            );
            self.memory.activity = Activity::Rolling(attempt);
            return;
        }
        if plan.by_pod {
            return self.pass_gate(&attempt, plan, workload);
        }
        if !attempt.pausing {
            return self.refuse("promote", "the rollout does not stand at a pause");
        }
        let next = attempt.step.next();
        let attempt = enter(attempt, next, plan, self.world.now);
        self.notice(
            "RolloutResumed",
            format!("{}: the pause was ended by a user", attempt.target),
        );
        self.memory.activity = Activity::Rolling(attempt);
    }

    /// One pod after the other: goes on without the rest of the checks of the gate that stands, and of no other. Only checks can be
    /// skipped: every pod has to be available all the same, or the gate would only begin anew.
    fn pass_gate(&mut self, attempt: &Attempt, plan: &Plan, workload: &Workload) {
        let at_gate = matches!(plan.step(attempt.step), Some(Step::Analysis(_)));
        // What nobody has seen yet nobody can mean.
        let seen =
            self.memory.activity == self.world.memory.activity && attempt.counted == Some(workload.replicas);
        if self.world.paused {
            return self.refuse("promote", "spec.paused is true; resume first");
        }
        if !at_gate || !seen {
            return self.refuse("promote", "the rollout does not stand at a gate");
        }
        if let Ahead::Waiting { what, .. } = self.gate_of_step(workload, attempt, plan) {
            return self.refuse("promote", &format!("only checks can be skipped: {what}"));
        }
        let next = enter(attempt.clone(), attempt.step.next(), plan, self.world.now);
        let what = if attempt.pausing {
            "a user goes on although the checks have failed"
        } else {
            "a user goes on without the rest of the checks of this gate"
        };
        self.notice("RolloutResumed", format!("{}: {what}", attempt.target));
        self.memory.activity = Activity::Rolling(next);
    }
}
