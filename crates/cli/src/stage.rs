//! The position of a rollout in its steps, derived from the object.

use stateward_api::rollout::{PodStatus, RolloutEnd, RolloutStatus};
use stateward_core::memory::{Activity, BackgroundRun, Command, TakenCommand};
use stateward_core::plan::{Plan, Share, Step, StepIndex, Steps, pod_by_pod};
use stateward_core::record::{self, memory, taken_commands};
use stateward_core::world::Reason;

use crate::rollout::{Kind, Rollout};
use crate::views::style::Style;

/// A rollout, its plan and its status.
pub(crate) struct Stage<'o> {
    pub(crate) object: &'o Rollout,
    pub(crate) status: RolloutStatus,
    pub(crate) plan: Option<&'o Plan>,
    pub(crate) activity: Activity,
    /// The commands of the last rollout, if it was successful.
    past_commands: Vec<TakenCommand>,
}

impl<'o> Stage<'o> {
    pub(crate) fn of(object: &'o Rollout) -> Self {
        let status = object.status.clone().unwrap_or_default();
        Self {
            object,
            plan: object.plan.as_ref(),
            activity: memory(&status).activity,
            past_commands: match status.history.first() {
                Some(past) if past.outcome == RolloutEnd::Successful => taken_commands(&past.taken_commands),
                _ => Vec::new(),
            },
            status,
        }
    }

    /// The number of steps.
    pub(crate) fn steps(&self) -> usize {
        self.object.steps
    }

    /// The index of the current step during a rollout; the number of steps when all are done.
    pub(crate) fn step(&self) -> Option<usize> {
        match &self.activity {
            Activity::Rolling(attempt) => Some(attempt.step.0 as usize),
            Activity::Idle | Activity::RollingBack(_) => None,
        }
    }

    /// The position of a step: `step 2 of 4`, or `pod 2 of 5` for a PhasedRollout.
    pub(crate) fn place(&self, step: usize) -> String {
        let at = StepIndex(u32::try_from(step).unwrap_or(u32::MAX));
        match by_pod(self.object) {
            Some(steps) => steps.place(at).to_string(),
            None => format!("step {} of {}", step + 1, self.steps()),
        }
    }

    /// `step 2 of 4`
    pub(crate) fn progress_in_words(&self) -> Option<String> {
        let (step, steps) = (self.step()?, self.steps());
        let last = self.commands().last();
        let skipped = last.filter(|taken| taken.command.skips() && taken.to.0 as usize >= steps);
        Some(if let (Some(taken), true) = (skipped, step >= steps) {
            format!("{} skipped", steps_in_words(taken.from, taken.to, self.object))
        } else if step >= steps {
            "all steps are done".into()
        } else {
            self.place(step)
        })
    }

    /// The checks of the current gate: `the checks before pod 2 of 5`.
    pub(crate) fn checks_in_words(&self) -> Option<String> {
        match &self.activity {
            Activity::Rolling(attempt) if self.is_at_gate() => {
                Some(steps_in_words(attempt.step, attempt.step.next(), self.object))
            }
            _ => None,
        }
    }

    /// The share of pods that is released, or is to be.
    pub(crate) fn share(&self) -> Option<Share> {
        match (&self.activity, self.plan) {
            (Activity::Rolling(attempt), Some(plan)) => Some(plan.share_at(attempt.step)),
            (Activity::RollingBack(_), _) => Some(Share::NONE),
            _ => None,
        }
    }

    /// The commands that the rollout carried out, or the last successful one.
    fn commands(&self) -> &[TakenCommand] {
        match &self.activity {
            Activity::Rolling(attempt) => &attempt.commands,
            Activity::Idle => &self.past_commands,
            Activity::RollingBack(_) => &[],
        }
    }

    /// The command that skipped a step. Promoting a pause only ends it, but promoting an analysis skips its measurements.
    pub(crate) fn skipped(&self, index: usize) -> Option<&TakenCommand> {
        let step = self.plan.and_then(|plan| plan.steps.get(index));
        let measures = matches!(step, Some(Step::Analysis(_)));
        let left = |taken: &&TakenCommand| {
            let skips = taken.command.skips() || measures && taken.command == Command::Promote;
            skips && (taken.from.0 as usize..taken.to.0 as usize).contains(&index)
        };
        self.commands().iter().find(left)
    }

    /// Whether the operator reports a broken pod of the new version.
    pub(crate) fn is_broken(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|condition| condition.reason == "PodBroken")
    }

    /// `; Kubernetes waits for pod db-4 to be Ready (CrashLoopBackOff)`: it replaces no other pod until then.
    pub(crate) fn waits_for_unready(&self) -> String {
        let new = |pod: &&PodStatus| !pod.ready && pod.revision == self.status.updated_revision;
        let Some(pod) = self.status.pods.iter().find(new) else {
            return String::new();
        };
        let reason = pod.reason.as_ref();
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        format!("; Kubernetes waits for pod {} to be Ready{reason}", pod.name)
    }

    /// Whether the rollout goes pod by pod.
    pub(crate) fn is_by_pod(&self) -> bool {
        self.plan.is_some_and(|plan| plan.by_pod)
    }

    /// Whether the rollout is at a gate between two pods.
    pub(crate) fn is_at_gate(&self) -> bool {
        let step = self
            .plan
            .zip(self.step())
            .and_then(|(plan, step)| plan.steps.get(step));
        self.is_by_pod() && matches!(step, Some(Step::Analysis(_)))
    }

    /// Whether the background analysis was inconclusive.
    pub(crate) fn is_in_doubt(&self) -> bool {
        match &self.activity {
            Activity::Rolling(attempt) => matches!(attempt.background, BackgroundRun::InDoubt(_)),
            Activity::Idle | Activity::RollingBack(_) => false,
        }
    }

    /// The phase, even without a status.
    pub(crate) fn phase(&self) -> &str {
        match self.status.phase.as_str() {
            "" => "Progressing",
            phase => phase,
        }
    }

    /// The reason of the phase, if it adds to the phase.
    pub(crate) fn reason(&self) -> Option<&str> {
        let word = self.status.reason.as_str();
        match record::read_reason(word) {
            Some(
                Reason::Stable
                | Reason::Stepping
                | Reason::Converging
                | Reason::StepPaused
                | Reason::ManuallyPaused,
            ) => None,
            _ => Some(word).filter(|word| !word.is_empty()),
        }
    }

    /// `Failed (PodBroken)`: the phase, with the kind of a failure.
    pub(crate) fn phase_in_words(&self, phase: &str, style: Style) -> String {
        let reason = self.reason().filter(|_| phase == "Failed");
        let phase = style.state(phase);
        match reason {
            Some(reason) => format!("{phase} ({reason})"),
            None => phase,
        }
    }

    /// The message, even without a status.
    pub(crate) fn message(&self) -> &str {
        match self.status.message.as_str() {
            "" => "no operator has looked at it yet",
            message => message,
        }
    }
}

/// `step 2 of 4`, `steps 2 to 4 of 4`, or `the checks from pod 2 of 5 on`: the steps from one index to another.
pub(crate) fn steps_in_words(from: StepIndex, to: StepIndex, object: &Rollout) -> String {
    let all = object.steps;
    match by_pod(object) {
        Some(steps) => steps.skipped(from, to),
        None if from.0 + 1 >= to.0 => format!("step {} of {all}", from.0 + 1),
        None => format!("steps {} to {} of {all}", from.0 + 1, to.0),
    }
}

/// The steps if they are counted by pods, even if the spec is invalid.
pub(crate) fn by_pod(object: &Rollout) -> Option<Steps> {
    let pods = u32::try_from(object.steps / 2).unwrap_or(u32::MAX);
    (object.kind == Kind::PhasedRollout).then(|| pod_by_pod(pods))
}

/// `, skipped by alice`
pub(crate) fn skipped_in_words(taken: &TakenCommand) -> String {
    let by = taken.by.as_ref();
    by.map_or_else(|| ", skipped".into(), |by| format!(", skipped by {by}"))
}

/// `20%` or `2 pods`.
pub(crate) fn share(share: Share) -> String {
    match share {
        Share::Percent(weight) => format!("{}%", weight.percent()),
        Share::Pods(0) => "0%".into(),
        Share::Pods(1) => "1 pod".into(),
        Share::Pods(pods) => format!("{pods} pods"),
    }
}

/// A step as in a manifest: `setWeight 20`, `pause 5m`.
pub(crate) fn describe(step: &Step) -> String {
    match step {
        Step::Share(share) => match share {
            Share::Percent(weight) => format!("setWeight {}", weight.percent()),
            Share::Pods(pods) => format!("{pods} pods"),
        },
        Step::Analysis(_) => "analysis".into(),
        Step::Pause(None) => "pause until promoted".into(),
        Step::Pause(Some(duration)) => format!("pause {duration:#}"),
    }
}
