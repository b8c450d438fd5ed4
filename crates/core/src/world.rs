//! Everything a decision may look at, and everything it may say.

use std::fmt;

use jiff::Timestamp;
use stateward_api::analysis;

use crate::engine::to_release;
use crate::event::Notice;
use crate::memory::{Activity, Memory};
use crate::plan::{Plan, Share, Step, StepIndex};
use crate::workload::Workload;

/// An immutable snapshot to decide on.
#[derive(Clone, Debug)]
pub struct World {
    /// The time.
    pub now: Timestamp,
    /// What to do, or why the spec does not say.
    pub plan: Result<Plan, Vec<String>>,
    /// The spec names a workload that this object may manage, whether or not its plan is valid.
    pub reference_valid: bool,
    /// `spec.paused`
    pub paused: bool,
    /// The workload is left to Kubernetes for the time being.
    pub suspended: bool,
    /// The object is being deleted.
    pub deleting: bool,
    /// The stable template can be restored from its copy.
    pub can_restore: bool,
    /// What was asked for by people.
    pub commands: Commands,
    /// What was remembered.
    pub memory: Memory,
    /// What it is all about; `Err` says why there is none to decide on.
    pub workload: Result<Workload, NoWorkload>,
    /// The runs of analysis that belong to the object, the oldest first.
    pub runs: Vec<Run>,
    /// What kept the last request from being carried out, if it was refused again and again.
    pub hindrance: Option<String>,
    /// Who keeps changing what is set in the workload, if another client does.
    pub contested: Option<String>,
    /// The name of the object.
    pub object: String,
    /// How people address this object in a command: `my-rollout -n prod`.
    pub name: String,
}

/// A run of analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its name.
    pub name: String,
    /// What people know it by: `analysis db-7c9f-2-3fa9c1`.
    pub title: String,
    /// Its identity.
    pub uid: String,
    /// Where it stands.
    pub phase: analysis::Phase,
    /// Why.
    pub message: String,
    /// Everything that has a say in it was measured at least once.
    pub measured: bool,
    /// When its measurements began, where those say nothing about pods that were unwell since.
    pub began: Option<Timestamp>,
    /// It was told to end.
    pub ending: bool,
    /// When it ended.
    pub ended: Option<Timestamp>,
}

/// Which analysis of a plan a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// That of a step.
    By(StepIndex),
    /// The one beside the steps.
    Beside,
}

/// Why there is no workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoWorkload {
    /// It is not there, or is on its way out. The text names it.
    Missing(String),
    /// It is there and cannot be rolled: it says which field stands in the way.
    Unfit(String),
}

/// One-shot commands. They belong to the attempt that stood in the status they were written to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// End the pause that stands, or the gate.
    pub promote: bool,
    /// Skip the current step.
    pub skip: bool,
    /// Skip all steps.
    pub promote_full: bool,
    /// Skip all steps, also while a pod of the new version is broken.
    pub force: bool,
    /// Go back.
    pub abort: bool,
    /// Try the rejected revision again.
    pub retry: bool,
    /// Who says so, as far as that is known.
    pub by: Option<String>,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What to remember. When it differs from what was remembered, it is written down and nothing else is done:
    /// the next decision acts on what then is on record.
    pub memory: Memory,
    /// The one request to make of the workload.
    pub action: Option<Action>,
    /// What to tell people; `None` when there is nothing new to say yet.
    pub report: Option<Report>,
    /// What happened, for the event log.
    pub notices: Vec<Notice>,
    /// When to look again even if nothing happens.
    pub look_again: Option<Timestamp>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Release this share, and claim the workload with it.
    Release(Share),
    /// Make one pod go, so that it comes back on the stable version (or, inside the share, on the new one).
    Remove {
        /// Its name.
        pod: String,
        /// Its identity: no other pod of that name.
        uid: String,
        /// It serves somebody: ask the disruption budgets.
        serving: bool,
    },
    /// Put the stable template back and let this share of the pods follow.
    Restore(Share),
    /// Let go of the workload.
    LetGo(Leave),
    /// Begin a run of analysis under this name. One that is there already is the one that was meant.
    StartRun {
        /// Its name.
        name: String,
        /// What it is for.
        asked: Asked,
    },
    /// Have a run end before its time.
    EndRun {
        /// Its name.
        name: String,
        /// Its identity.
        uid: String,
    },
    /// Delete a run that is over.
    DropRun {
        /// Its name.
        name: String,
        /// Its identity.
        uid: String,
    },
}

/// For a line of a log.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release(share) => write!(f, "release {share}"),
            Self::Remove {
                pod, serving: true, ..
            } => write!(f, "evict pod {pod}"),
            Self::Remove { pod, .. } => write!(f, "delete pod {pod}"),
            Self::Restore(_) => f.write_str("restore the stable template"),
            Self::LetGo(_) => f.write_str("release the claim of the workload"),
            Self::StartRun { name, .. } => write!(f, "start analysis run {name}"),
            Self::EndRun { name, .. } => write!(f, "end analysis run {name}"),
            Self::DropRun { name, .. } => write!(f, "delete analysis run {name}"),
        }
    }
}

/// How a workload is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leave {
    /// At rest: with the setting that it had before us.
    AsItWas(String),
    /// In the middle: as it is. The setting that it had before us is for whoever takes it on next.
    AsItIs(String),
}

/// Where a rollout stands, in one word. Seed 000's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Pods are on their way, or something is waited for.
    Progressing,
    /// A pause stands.
    Paused,
    /// Every pod runs the stable version.
    Successful,
    /// It was turned down, is stuck, or cannot begin.
    Failed,
}

/// Why it stands there: the `reason` of its conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says itself")]
pub enum Reason {
    InvalidSpec,
    WorkloadMissing,
    WorkloadUnfit,
    WorkloadClaimed,
    Stable,
    NotReady,
    Guarding,
    Rejected,
    Stepping,
    StepPaused,
    ManuallyPaused,
    Analysing,
    Inconclusive,
    ChecksFailed,
    Converging,
    DeadlineExceeded,
    PodBroken,
    Aborting,
    TemplateReverted,
    Releasing,
    Suspended,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::InvalidSpec,
        Self::WorkloadMissing,
        Self::WorkloadUnfit,
        Self::WorkloadClaimed,
        Self::Stable,
        Self::NotReady,
        Self::Guarding,
        Self::Rejected,
        Self::Stepping,
        Self::StepPaused,
        Self::ManuallyPaused,
        Self::Analysing,
        Self::Inconclusive,
        Self::ChecksFailed,
        Self::Converging,
        Self::DeadlineExceeded,
        Self::PodBroken,
        Self::Aborting,
        Self::TemplateReverted,
        Self::Releasing,
        Self::Suspended,
    ];

    /// Whether a person has to act soon: the rollout is held, most often with pods on a version that has failed, and stays so until
    /// a person decides. What is rolled back needs another version, but not at night; what cannot begin exposes no pod.
    pub fn is_urgent(self) -> bool {
        match self {
            Self::PodBroken | Self::DeadlineExceeded | Self::ChecksFailed => true,
            Self::InvalidSpec
            | Self::WorkloadMissing
            | Self::WorkloadUnfit
            | Self::WorkloadClaimed
            | Self::Stable
            | Self::NotReady
            | Self::Guarding
            | Self::Rejected
            | Self::Stepping
            | Self::StepPaused
            | Self::ManuallyPaused
            | Self::Analysing
            | Self::Inconclusive
            | Self::Converging
            | Self::Aborting
            | Self::TemplateReverted
            | Self::Releasing
            | Self::Suspended => false,
        }
    }
}

/// What to tell people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// In one word.
    pub phase: Phase,
    /// Why.
    pub reason: Reason,
    /// What is waited for and which command moves it.
    pub message: String,
}

impl Decision {
    /// The share whose step this decision takes for passed, if it does.
    pub fn passed_share(&self, before: &World) -> Option<Share> {
        let plan = before.plan.as_ref().ok()?;
        match (&before.memory.activity, &self.memory.activity) {
            (Activity::Rolling(old), Activity::Rolling(new))
                if new.step == old.step.next() && new.steps == old.steps =>
            {
                match (plan.step(old.step), before.workload.as_ref()) {
                    (Some(Step::Share(share)), Ok(workload)) if !old.kept.is_empty() => {
                        let released = to_release(old, plan, workload.replicas);
                        Some(Share::Pods(released.min(share.of(workload.replicas))))
                    }
                    (Some(Step::Share(share)), _) => Some(share),
                    (Some(Step::Pause(_) | Step::Analysis(_)) | None, _) => None,
                }
            }
            _ => None,
        }
    }
}
