//! The durable state of a rollout: everything that decisions remember, all of it stored in the object's status.
//!
//! A restart loses everything that is not in it.

use jiff::{SignedDuration, Timestamp};

use crate::plan::{Fingerprint, StepIndex};
use crate::revision::RevisionName;

/// The durable state of one rollout object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The UID of the workload that this state is about. Nothing carries over to a workload with another UID.
    pub workload: Option<String>,
    /// The workload's update setting before it was adopted.
    pub setting: Option<String>,
    /// The version to roll back to.
    pub stable: Option<Stable>,
    /// The current activity.
    pub activity: Activity,
    /// The rejected version. It stays rejected until the template changes or a user retries it.
    pub rejected: Option<Rejection>,
    /// The version that was being rolled out when the workload was scaled to zero, and was removed from the template. If it
    /// appears in the template again, a user has requested it.
    pub withdrawn: Option<RevisionName>,
    /// How often the current revision was retried.
    pub retries: u32,
    /// When it was last retried.
    pub retried_at: Option<Timestamp>,
}

/// The stable version. Kubernetes forgets it as soon as all pods are updated, so it is recorded here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stable {
    /// Its revision.
    pub revision: RevisionName,
    /// The fingerprint of its template; the whole template is stored separately.
    pub template: Fingerprint,
}

/// The current activity of a rollout.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Activity {
    /// No rollout in progress; the guard keeps pods on the stable version.
    #[default]
    Idle,
    /// Rolling out a new version, step by step.
    Rolling(Attempt),
    /// Rolling back to the stable version.
    RollingBack(Rollback),
}

/// One rollout of a version through the steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// The revision that it rolls out.
    pub target: RevisionName,
    /// The current step.
    pub step: StepIndex,
    /// The steps that `step` counts in.
    pub steps: Fingerprint,
    /// The replicas that its share was computed for.
    pub counted: Option<u32>,
    /// When it entered the current step.
    pub entered: Timestamp,
    /// When it last made progress.
    pub progressed: Timestamp,
    /// The most updated pods that were available so far. Only exceeding it is progress; a pod that flaps is not.
    pub max_available: u32,
    /// The most old pods that were replaced so far, with partition by pod. Exceeding it is progress.
    pub max_replaced: u32,
    /// The number of pods that stay released at every step, because they were released when the steps began or were changed.
    pub min_updated: u32,
    /// Sorted indices of pods that stay on the new version although the guard was raised above them when the workload was scaled
    /// up.
    pub kept: Vec<u32>,
    /// The most pods to release before the next step with a share, because the workload was scaled up at a step without one.
    pub limit: Option<u32>,
    /// The pods, from the last one down, that were released when it was stopped by a user, an inconclusive analysis or an invalid
    /// plan. Pods updated while it is stopped are rolled back.
    pub stopped_at: Option<u32>,
    /// Stable pods that were not Ready before it began: steps do not wait for them.
    pub ignored_pods: Vec<u32>,
    /// A user has set `paused`.
    pub paused_by_user: bool,
    /// The current step is an unfinished pause, or an analysis that failed or was inconclusive and waits for a user.
    pub paused_at_step: bool,
    /// A user has skipped the remaining steps: pods are released without waiting for the previous ones.
    pub fully_promoted: bool,
    /// The background analysis.
    pub background: BackgroundRun,
    /// The commands that were executed, oldest first.
    pub commands: Vec<TakenCommand>,
}

/// A command that was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenCommand {
    /// The command.
    pub command: Command,
    /// The attempt's step before the command.
    pub from: StepIndex,
    /// The attempt's step after the command.
    pub to: StepIndex,
    /// The user, if known.
    pub by: Option<String>,
    /// When it was executed.
    pub at: Timestamp,
}

/// A recorded command.
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
    /// All commands.
    pub const ALL: [Self; 5] = [
        Self::Promote,
        Self::Skip,
        Self::PromoteFull,
        Self::ForcePromoteFull,
        Self::Retry,
    ];

    /// Whether it skips steps that have not passed.
    pub fn skips(self) -> bool {
        match self {
            Self::Skip | Self::PromoteFull | Self::ForcePromoteFull => true,
            Self::Promote | Self::Retry => false,
        }
    }

    /// The command as a user types it.
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

/// How many commands are kept.
const MOST_COMMANDS: usize = 100;

/// The state of the background analysis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackgroundRun {
    /// Not started.
    #[default]
    NotYet,
    /// Running or complete.
    Since(Timestamp),
    /// Inconclusive: a user has to decide.
    InDoubt(Timestamp),
    /// Inconclusive, and a user chose to continue.
    Waived,
}

impl Attempt {
    /// Records a command.
    pub fn record(&mut self, command: TakenCommand) {
        self.commands.push(command);
        if self.commands.len() > MOST_COMMANDS {
            // Commands that skipped steps are worth more than commands that ended a wait.
            let ended = |taken: &TakenCommand| matches!(taken.command, Command::Promote | Command::Retry);
            let oldest = self.commands.iter().position(ended).unwrap_or(0);
            self.commands.remove(oldest);
        }
    }

    /// Whether it continues although pods of the new version are broken.
    pub fn is_forced(&self) -> bool {
        let full = |taken: &&TakenCommand| match taken.command {
            Command::PromoteFull | Command::ForcePromoteFull => true,
            Command::Promote | Command::Skip | Command::Retry => false,
        };
        let last = self.commands.iter().rev().find(full);
        self.fully_promoted && last.is_some_and(|taken| taken.command == Command::ForcePromoteFull)
    }

    /// Forgets which steps were skipped, because the steps were edited.
    pub fn forget_skipped(&mut self) {
        for taken in &mut self.commands {
            taken.to = taken.from;
        }
    }

    /// Renumbers the steps in the recorded commands: `old` becomes `new`.
    pub fn renumber(&mut self, old: StepIndex, new: StepIndex) {
        let shifted = |step: StepIndex| StepIndex(step.0.saturating_add(new.0).saturating_sub(old.0));
        for taken in &mut self.commands {
            (taken.from, taken.to) = (shifted(taken.from), shifted(taken.to));
        }
    }

    /// With partition by pod: the index of the `number`th pod, from 1, of `replicas` to run the new version.
    pub fn pod_number(&self, number: u32, replicas: u32) -> Option<u32> {
        pod_number(&self.kept, number, replicas)
    }

    /// Whether it is paused until a user promotes it or the pause ends.
    pub fn awaits_a_word(&self) -> bool {
        self.paused_at_step || matches!(self.background, BackgroundRun::InDoubt(_))
    }

    /// From when on users will want to see what it is waiting for.
    pub fn stands_still_from(&self) -> Timestamp {
        const A_MOMENT: SignedDuration = SignedDuration::from_secs(10);
        let last = self.entered.max(self.progressed);
        last.saturating_add(A_MOMENT).unwrap_or(last)
    }

    /// Whether it has made no progress for a moment.
    pub fn stands_still(&self, now: Timestamp) -> bool {
        self.stands_still_from() <= now
    }
}

/// The index of the `number`th pod, from 1: first those that were `kept` when the workload was scaled up, then the others, each
/// from the last one down.
pub fn pod_number(kept: &[u32], number: u32, replicas: u32) -> Option<u32> {
    let kept = &kept[..kept.partition_point(|index| *index < replicas)];
    if number == 0 || number > replicas {
        return None;
    }
    if let Some(at) = kept.len().checked_sub(number as usize) {
        return Some(kept[at]);
    }
    let others = number - kept.len() as u32;
    // Each kept pod above it shifts the others down by one.
    let passed = |index: u32, kept: &u32| if *kept >= index { index - 1 } else { index };
    Some(kept.iter().rev().fold(replicas - others, passed))
}

/// A rollback.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollback {
    /// The revision that is rolled back.
    pub from: RevisionName,
    /// Why.
    pub cause: Cause,
    /// When it began.
    pub since: Timestamp,
}

/// Why pods are rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The rollout was aborted, by a user or by its own rules.
    Aborted,
    /// A user restored the stable template.
    TemplateReverted,
    /// The workload was scaled to zero, and Kubernetes took that for the end of the rollout.
    ScaledToZero,
}

/// A rejected version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Its revision.
    pub revision: RevisionName,
    /// When it was rejected.
    pub at: Timestamp,
    /// Why it was rejected.
    pub reason: String,
    /// The operator replaced its template with the stable one.
    pub replaced: bool,
}
