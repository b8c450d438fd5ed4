//! What a rollout remembers between two decisions: all of it, and all of it in the object's status.
//!
//! A crash loses nothing that is not here, so nothing else may matter.

use jiff::{SignedDuration, Timestamp};

use crate::plan::{Fingerprint, StepIndex};
use crate::revision::RevisionName;

/// The durable state of one rollout object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The workload this memory is about. Another UID is another workload, and nothing carries over.
    pub workload: Option<String>,
    /// How the workload was set before we took hold of it.
    pub setting: Option<String>,
    /// The version to go back to.
    pub stable: Option<Stable>,
    /// What is going on.
    pub activity: Activity,
    /// The version that was turned down, and stays so until the template changes or somebody says retry.
    pub rejected: Option<Rejection>,
    /// The version that was on its way when the workload was scaled to nothing. We took it out of the template; whoever asks for it
    /// again means it.
    pub withdrawn: Option<RevisionName>,
    /// How often the present revision was tried again, and when last.
    pub retries: u32,
    /// When it was last tried again.
    pub retried_at: Option<Timestamp>,
}

/// The version that was good. Kubernetes forgets it as soon as all pods are new, so we do not rely on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stable {
    /// Its revision.
    pub revision: RevisionName,
    /// Its template, which is kept whole beside this memory.
    pub template: Fingerprint,
}

/// What is going on.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Activity {
    /// Nothing: the guard is up.
    #[default]
    Idle,
    /// Steps are taken towards a new version.
    Rolling(Attempt),
    /// Pods go back to the stable version.
    Returning(Return),
}

/// One way through the steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Where it leads.
    pub target: RevisionName,
    /// Where it is.
    pub step: StepIndex,
    /// The steps it was counted in.
    pub steps: Fingerprint,
    /// The replicas that its share was counted for.
    pub counted: Option<u32>,
    /// When it came to this step.
    pub entered: Timestamp,
    /// When it last got on.
    pub progressed: Timestamp,
    /// The most pods that were new and well so far. Only more than that is progress; one that comes and goes is not.
    pub reached: u32,
    /// The most places that old pods have left to new ones, where they go one after the other. That one has gone at last is
    /// progress, once.
    pub exposed: u32,
    /// Pods that stay released whatever the step says, because they were when the steps began or were changed.
    pub floor: u32,
    /// Indices of pods that stay on the new version although the guard was raised above them when the workload was scaled up. Sorted.
    pub kept: Vec<u32>,
    /// The most pods that are released before the next step that has a share, because the workload was scaled up at a step without one.
    pub limit: Option<u32>,
    /// The pods, from the last one down, that were released when it was stopped, by a user, a doubt or an invalid plan. One that is
    /// updated while it is stopped goes back.
    pub stopped_at: Option<u32>,
    /// Stable pods that were not Ready before it began: they do not have to be well for a step to pass.
    pub excused: Vec<u32>,
    /// Somebody has set `paused`.
    pub held: bool,
    /// The step is a pause, or an analysis that came to no verdict or to one that holds it, and nobody has ended it.
    pub pausing: bool,
    /// A user has skipped the remaining steps: further pods are released without waiting for those that are.
    pub fully_promoted: bool,
    /// The analysis beside the steps.
    pub beside: Beside,
    /// The commands that it has carried out, oldest first.
    pub commands: Vec<TakenCommand>,
}

/// A command that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenCommand {
    /// Which.
    pub command: Command,
    /// The step that the attempt was at.
    pub from: StepIndex,
    /// The step that it went to.
    pub to: StepIndex,
    /// Who gave it, as far as that is known.
    pub by: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// A command that is on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says itself")]
pub enum Command {
    Promote,
    Skip,
    PromoteFull,
    ForcePromoteFull,
    Retry,
}

impl Command {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Promote,
        Self::Skip,
        Self::PromoteFull,
        Self::ForcePromoteFull,
        Self::Retry,
    ];

    /// Whether the steps that it leaves behind were not passed.
    pub fn skips(self) -> bool {
        match self {
            Self::Skip | Self::PromoteFull | Self::ForcePromoteFull => true,
            Self::Promote | Self::Retry => false,
        }
    }

    /// As it is typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Promote => "promote",
            Self::Skip => "skip",
            Self::PromoteFull => "promote --full",
            Self::ForcePromoteFull => "promote --full --force",
            Self::Retry => "retry",
        }
    }
}

/// How many commands are kept on record.
const MOST_COMMANDS: usize = 100;

/// The analysis beside the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beside {
    /// It has not begun.
    #[default]
    NotYet,
    /// It runs, or has run.
    Since(Timestamp),
    /// It came to no verdict, and somebody has to say what to make of that.
    InDoubt(Timestamp),
    /// It came to none, and somebody has said go on.
    Waived,
}

impl Attempt {
    /// Puts a command on record.
    pub fn record(&mut self, command: TakenCommand) {
        self.commands.push(command);
        if self.commands.len() > MOST_COMMANDS {
            // What was skipped is worth more than what was waited for and ended.
            let ended = |taken: &TakenCommand| matches!(taken.command, Command::Promote | Command::Retry);
            let oldest = self.commands.iter().position(ended).unwrap_or(0);
            self.commands.remove(oldest);
        }
    }

    /// Whether it goes on although pods of the new version are broken.
    pub fn is_forced(&self) -> bool {
        let full = |taken: &&TakenCommand| match taken.command {
            Command::PromoteFull | Command::ForcePromoteFull => true,
            Command::Promote | Command::Skip | Command::Retry => false,
        };
        let last = self.commands.iter().rev().find(full);
        self.fully_promoted && last.is_some_and(|taken| taken.command == Command::ForcePromoteFull)
    }

    /// Its steps were edited: which ones were skipped says nothing about these.
    pub fn forget_skipped(&mut self) {
        for taken in &mut self.commands {
            taken.to = taken.from;
        }
    }

    /// Its steps have other numbers: what was `old` is `new`.
    pub fn renumber(&mut self, old: StepIndex, new: StepIndex) {
        let shifted = |step: StepIndex| StepIndex(step.0.saturating_add(new.0).saturating_sub(old.0));
        for taken in &mut self.commands {
            (taken.from, taken.to) = (shifted(taken.from), shifted(taken.to));
        }
    }

    /// The index of the pod that is the `number`th, from 1, of `replicas` to run the new version where they go one after the other.
    pub fn pod_number(&self, number: u32, replicas: u32) -> Option<u32> {
        pod_number(&self.kept, number, replicas)
    }

    /// Whether it stands still until somebody says go on, or until a pause is over.
    pub fn awaits_a_word(&self) -> bool {
        self.pausing || matches!(self.beside, Beside::InDoubt(_))
    }

    /// When it has not got on for so long that people will look what it is waiting for.
    pub fn stands_still_from(&self) -> Timestamp {
        const A_MOMENT: SignedDuration = SignedDuration::from_secs(10);
        let last = self.entered.max(self.progressed);
        last.saturating_add(A_MOMENT).unwrap_or(last)
    }

    /// Whether it has not got on for a moment.
    pub fn stands_still(&self, now: Timestamp) -> bool {
        self.stands_still_from() <= now
    }
}

/// The index of the `number`th pod, from 1: first come those that were `kept` when the workload was scaled up, and then the others,
/// each from the last one down.
pub fn pod_number(kept: &[u32], number: u32, replicas: u32) -> Option<u32> {
    let kept = &kept[..kept.partition_point(|index| *index < replicas)];
    if number == 0 || number > replicas {
        return None;
    }
    if let Some(at) = kept.len().checked_sub(number as usize) {
        return Some(kept[at]);
    }
    let others = number - kept.len() as u32;
    // Each that was kept above it leaves its place to the next.
    let passed = |index: u32, kept: &u32| if *kept >= index { index - 1 } else { index };
    Some(kept.iter().rev().fold(replicas - others, passed))
}

/// A way back.
#[derive(Clone, Debug, PartialEq)]
pub struct Return {
    /// Where it comes from.
    pub from: RevisionName,
    /// Why.
    pub cause: Cause,
    /// Since when.
    pub since: Timestamp,
}

/// Why pods go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The rollout was aborted, by a person or by its own rules.
    Aborted,
    /// The template was put back.
    PutBack,
    /// The workload was scaled to nothing, and Kubernetes took that for the end of the rollout.
    ScaledToZero,
}

/// A version that was turned down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Its revision.
    pub revision: RevisionName,
    /// When.
    pub at: Timestamp,
    /// What for, in words.
    pub reason: String,
    /// Its template was replaced by the stable one, by us.
    pub replaced: bool,
}
