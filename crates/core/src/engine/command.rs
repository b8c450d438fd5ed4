//! User commands: each is executed once, for the attempt that the user saw, and answered with an event (rule 10).

use super::Decider;
use super::gate::{GateStatus, released_pods, unready};
use super::step::{begin, enter};
use crate::event::EventReason;
use crate::memory::{Activity, Attempt, BackgroundRun, Cause, Command, Rejection, TakenCommand};
use crate::plan::{OnFailure, Plan, Step, StepIndex};
use crate::workload::{Pod, Workload};

/// Executes one command, or reports why not.
type Handler<T> = fn(&mut T, &Workload);

impl<'w> Decider<'w> {
    /// Executes the commands, or reports why not. Either way they are done: they are removed in the same write that records the
    /// state.
    pub(super) fn handle_commands(&mut self, workload: &Workload) {
        let commands = &self.world.commands;
        let asked: [(bool, &str, Handler<Self>); 5] = [
            (commands.abort, "abort", Self::abort),
            (commands.retry, "retry", Self::retry),
            (commands.promote_full, "promote --full", Self::promote_full),
            (commands.skip, "skip", Self::skip),
            (commands.promote, "promote", Self::promote),
        ];
        let before = self.memory.clone();
        for (_, command, handle) in asked.into_iter().filter(|(asked, ..)| *asked) {
            if self.memory == before {
                handle(self, workload);
            } else {
                // An abort together with another command is an abort.
                self.refuse(
                    command,
                    "another command was given at the same time and came first",
                );
            }
        }
    }

    /// Refuses every command.
    pub(super) fn refuse_commands(&mut self, why: &str) {
        let commands = &self.world.commands;
        let asked = [
            (commands.promote, "promote"),
            (commands.skip, "skip"),
            (commands.promote_full, "promote --full"),
            (commands.abort, "abort"),
            (commands.retry, "retry"),
        ];
        for (_, command) in asked.into_iter().filter(|(asked, _)| *asked) {
            self.refuse(command, why);
        }
    }

    fn refuse(&mut self, command: &str, why: &str) {
        self.notice(EventReason::CommandRefused, format!("{command}: {why}"));
    }

    /// The user who gave the command, if known.
    fn user(&self) -> &'w str {
        self.world.commands.by.as_deref().unwrap_or("a user")
    }

    /// A command that moves the attempt from one step to another, for the record.
    fn taken(&self, command: Command, from: StepIndex, to: StepIndex) -> TakenCommand {
        TakenCommand {
            command,
            from,
            to,
            by: self.world.commands.by.clone(),
            at: self.world.now,
        }
    }

    /// The attempt after a command that moves it to another step.
    fn moved_by(&self, command: Command, attempt: Attempt, to: StepIndex, plan: &Plan) -> Attempt {
        let taken = self.taken(command, attempt.step, to);
        let mut attempt = enter(attempt, to, plan, self.world.now);
        attempt.record(taken);
        attempt
    }

    /// Whether the template no longer asks for the attempt that a command was given for.
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
            Activity::Rolling(_) => self.reject(format!("aborted by {}", self.user())),
            Activity::RollingBack(_) => {
                self.refuse("abort", "pods are already returning to the stable version")
            }
            Activity::Idle => self.refuse("abort", "no rollout is in progress"),
        }
    }

    /// Rejects the version that is being rolled out, and rolls back.
    pub(super) fn reject(&mut self, reason: String) {
        let Activity::Rolling(attempt) = &self.memory.activity else {
            return;
        };
        let revision = attempt.target.clone();
        self.notice(
            EventReason::RolloutAborted,
            format!("{revision}: {reason}; returning every pod to the stable version"),
        );
        self.memory.rejected = Some(Rejection {
            revision: revision.clone(),
            at: self.world.now,
            reason,
            replaced: false,
        });
        self.start_rollback(revision, Cause::Aborted);
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
                let mut attempt = begin(plan, workload, self.world.now);
                attempt.record(self.taken(Command::Retry, attempt.step, attempt.step));
                self.memory.activity = Activity::Rolling(attempt);
                let by = self.world.commands.by.as_ref();
                let by = by.map_or_else(String::new, |by| format!(", as {by} asks"));
                self.notice(
                    EventReason::RolloutRetried,
                    format!("trying {} again{by}", workload.update),
                );
            }
        }
    }

    /// Restarts a gate that failed checks hold. Whether there was one.
    fn check_again(&mut self, workload: &Workload) -> bool {
        let (Activity::Rolling(attempt), Ok(plan)) = (&self.memory.activity, &self.world.plan) else {
            return false;
        };
        let held = attempt.paused_at_step && matches!(plan.step(attempt.step), Some(Step::Analysis(_)));
        if !held || plan.on_failed_check != OnFailure::Hold {
            return false;
        }
        if !self.overtaken("retry", workload)
            && let Activity::Rolling(attempt) = &self.memory.activity
        {
            let attempt = self.moved_by(Command::Retry, attempt.clone(), attempt.step, plan);
            self.notice(
                EventReason::ChecksRestarted,
                format!("{}: {} repeats the checks", attempt.target, self.user()),
            );
            self.memory.activity = Activity::Rolling(attempt);
        }
        true
    }

    /// The attempt and its plan, or why there is nothing to promote.
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
        let force = self.world.commands.force;
        if !force && let Some(broken) = self.broken_release(&attempt, plan, workload) {
            let why = format!(
                "{broken}; go back with: {}, or skip the remaining steps all the same with: {} (status.force together with \
                 status.promoteFull)",
                self.command_for(&attempt.target, "abort"),
                self.command_for(&attempt.target, "promote --full --force"),
            );
            return self.refuse("promote --full", &why);
        }
        let command = if force {
            Command::ForcePromoteFull
        } else {
            Command::PromoteFull
        };
        let skipped = steps(attempt.step, plan.end(), plan);
        let mut attempt = self.moved_by(command, attempt, plan.end(), plan);
        attempt.fully_promoted = true;
        // Kubernetes may wait for them before it updates any pod.
        let unwell = workload.members().filter(|pod| !pod.ready());
        attempt.ignored_pods.extend(unwell.map(|pod| pod.index));
        attempt.ignored_pods.sort_unstable();
        attempt.ignored_pods.dedup();
        if let BackgroundRun::InDoubt(_) = attempt.background {
            attempt.background = BackgroundRun::Waived;
        }
        self.notice(
            EventReason::RolloutPromoted,
            format!("{}: {} skips {skipped}", attempt.target, self.user()),
        );
        self.memory.activity = Activity::Rolling(attempt);
    }

    /// A broken pod of the new version: its containers cannot start, or crash repeatedly, even if it is Ready in between; or it is
    /// not Ready at the deadline.
    fn broken_release(&self, attempt: &Attempt, plan: &Plan, workload: &Workload) -> Option<String> {
        let now = self.world.now;
        let available = |at: Option<jiff::Timestamp>| at.is_some_and(|at| at <= now);
        let new = || {
            let pods = workload.members();
            pods.filter(|pod| pod.runs(&attempt.target) && !pod.terminating)
        };
        let overdue = self.deadline(attempt, plan, workload).is_some_and(|at| at <= now);
        // The kubelet reports ImagePullBackOff only after the second failure.
        let fails = |pod: &&Pod| {
            let unready = pod.unready.as_ref();
            !pod.ready() && (overdue || unready.is_some_and(|unready| unready.reason == "ErrImagePull"))
        };
        let crashes =
            |pod: &&Pod| pod.has_crashed_lately(now) && !available(pod.available_at(workload.min_ready));
        self.broken(attempt, workload)
            .or_else(|| new().find(fails).map(unready))
            .or_else(|| {
                Some(format!(
                    "{}, and it has crashed lately",
                    unready(new().find(crashes)?)
                ))
            })
    }

    /// Leaves the current step, whatever it waits for. The next step does not release pods past an unavailable one.
    fn skip(&mut self, workload: &Workload) {
        if self.overtaken("skip", workload) {
            return;
        }
        let (attempt, plan) = match self.under_way() {
            Ok(under_way) => under_way,
            Err(why) => return self.refuse("skip", why),
        };
        if self.world.paused {
            return self.refuse("skip", "spec.paused is true; resume first");
        }
        if attempt.step >= plan.end() {
            return self.refuse("skip", "all steps are already done");
        }
        if let BackgroundRun::InDoubt(_) = attempt.background {
            return self.refuse(
                "skip",
                "the background analysis came to no verdict, which is not a step; promote goes on without one",
            );
        }
        if plan.by_pod {
            return match plan.step(attempt.step) {
                Some(Step::Analysis(_)) => self.pass_gate(Command::Skip, &attempt, plan, workload),
                _ => self.refuse(
                    "skip",
                    "the next gate waits for the same pod, so there is nothing to skip",
                ),
            };
        }
        let next = attempt.step.next();
        let due = plan.share_at(next).of(workload.replicas).max(attempt.min_updated);
        let exposes = i64::from(due.min(workload.replicas)) > workload.released;
        if exposes && let GateStatus::Waiting { what, .. } = released_pods(workload, &attempt, self.world.now)
        {
            let why = format!("what follows would release further pods: {what}");
            return self.refuse("skip", &why);
        }
        let skipped = steps(attempt.step, next, plan);
        let attempt = self.moved_by(Command::Skip, attempt, next, plan);
        self.notice(
            EventReason::StepSkipped,
            format!("{}: {} skips {skipped}", attempt.target, self.user()),
        );
        self.entered(&attempt, plan);
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
        if let BackgroundRun::InDoubt(_) = attempt.background {
            let taken = self.taken(Command::Promote, attempt.step, attempt.step);
            let mut attempt = Attempt {
                background: BackgroundRun::Waived,
                paused_at_step: matches!(plan.step(attempt.step), Some(Step::Pause(_))),
                progressed: self.world.now,
                ..attempt
            };
            attempt.record(taken);
            self.notice(
                EventReason::RolloutResumed,
                format!(
                    "{}: {} goes on without a verdict of the background analysis",
                    attempt.target,
                    self.user()
                ),
            );
            self.memory.activity = Activity::Rolling(attempt);
            return;
        }
        if plan.by_pod {
            return self.pass_gate(Command::Promote, &attempt, plan, workload);
        }
        if !attempt.paused_at_step {
            return self.refuse("promote", "the rollout does not stand at a pause");
        }
        let next = attempt.step.next();
        let attempt = self.moved_by(Command::Promote, attempt, next, plan);
        self.notice(
            EventReason::RolloutResumed,
            format!("{}: the pause was ended by {}", attempt.target, self.user()),
        );
        self.memory.activity = Activity::Rolling(attempt);
    }

    /// Partition by pod: skips the remaining checks of the current gate, and of no other. Only checks can be skipped: every pod
    /// must be available, or the gate would just restart.
    fn pass_gate(&mut self, command: Command, attempt: &Attempt, plan: &Plan, workload: &Workload) {
        let at_gate = matches!(plan.step(attempt.step), Some(Step::Analysis(_)));
        // A user can only mean a gate that is already in the status.
        let seen =
            self.memory.activity == self.world.memory.activity && attempt.counted == Some(workload.replicas);
        if self.world.paused {
            return self.refuse(command.as_str(), "spec.paused is true; resume first");
        }
        if !at_gate || !seen {
            return self.refuse(command.as_str(), "the rollout does not stand at a gate");
        }
        if let GateStatus::Waiting { what, .. } = self.gate_of_step(workload, attempt, plan) {
            return self.refuse(command.as_str(), &format!("only checks can be skipped: {what}"));
        }
        let next = self.moved_by(command, attempt.clone(), attempt.step.next(), plan);
        let what = if attempt.paused_at_step {
            "goes on although the checks have failed"
        } else {
            "goes on without the rest of the checks of this gate"
        };
        self.notice(
            EventReason::RolloutResumed,
            format!("{}: {} {what}", attempt.target, self.user()),
        );
        self.memory.activity = Activity::Rolling(next);
    }
}

/// Says that an attempt has passed every step, and which ones were skipped: `all steps are done`, `steps 2 to 4 of 4 were skipped`.
pub(super) fn steps_behind(attempt: &Attempt, plan: &Plan) -> String {
    let last = attempt.commands.last();
    match last.filter(|taken| taken.command.skips() && taken.to == plan.end() && taken.from < taken.to) {
        Some(taken) if taken.from.next() == taken.to && !plan.by_pod => {
            format!("step {0} of {0} was skipped", taken.to.0)
        }
        Some(taken) => format!("{} were skipped", steps(taken.from, taken.to, plan)),
        None => "all steps are done".into(),
    }
}

/// `step 2 of 4 (pause until promoted)`, `steps 2 to 4 of 4`, or `the checks from pod 2 of 3 on`.
fn steps(from: StepIndex, to: StepIndex, plan: &Plan) -> String {
    let skipped = plan.steps.skipped(from, to);
    match plan.step(from) {
        Some(step) if from.next() == to && !plan.by_pod => format!("{skipped} ({step})"),
        _ => skipped,
    }
}
