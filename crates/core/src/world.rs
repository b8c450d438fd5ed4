//! Everything that a decision may look at, and everything that it may return.

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
    /// The current time.
    pub now: Timestamp,
    /// The plan, or why the spec has none.
    pub plan: Result<Plan, Vec<String>>,
    /// The spec references a workload that this object may manage, whether or not its plan is valid.
    pub reference_valid: bool,
    /// `spec.paused`
    pub paused: bool,
    /// The workload is left to Kubernetes for now.
    pub suspended: bool,
    /// The object is being deleted.
    pub deleting: bool,
    /// The stable template can be restored from its copy.
    pub can_restore: bool,
    /// The commands that users gave.
    pub commands: Commands,
    /// The durable state.
    pub memory: Memory,
    /// The workload, or why there is none to decide on.
    pub workload: Result<Workload, NoWorkload>,
    /// The object's AnalysisRuns, oldest first.
    pub runs: Vec<Run>,
    /// Why the last request failed, if it was refused repeatedly.
    pub last_error: Option<String>,
    /// The other client that keeps changing the workload's settings, if there is one.
    pub contested: Option<String>,
    /// The name of the object.
    pub object: String,
    /// How users address the object in a command: `my-rollout -n prod`.
    pub name: String,
}

/// An AnalysisRun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its name.
    pub name: String,
    /// How users know it: `analysis db-7c9f-2-3fa9c1`.
    pub title: String,
    /// Its UID.
    pub uid: String,
    /// Its phase.
    pub phase: analysis::Phase,
    /// Why it is in that phase.
    pub message: String,
    /// Every metric that counts was measured at least once.
    pub measured: bool,
    /// When its measurements began, if they do not cover pods that were unavailable since.
    pub began: Option<Timestamp>,
    /// It was asked to terminate.
    pub ending: bool,
    /// When it ended.
    pub ended: Option<Timestamp>,
}

/// Which analysis of a plan a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFor {
    /// The analysis of a step.
    Step(StepIndex),
    /// The background analysis.
    Background,
}

/// Why there is no workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoWorkload {
    /// It does not exist, or is being deleted. The text names it.
    Missing(String),
    /// It exists and cannot be rolled out: the text names the field that prevents it.
    Unfit(String),
}

/// One-shot commands. They apply to the attempt in the status that they were given for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// End the current pause or gate.
    pub promote: bool,
    /// Skip the current step.
    pub skip: bool,
    /// Skip all steps.
    pub promote_full: bool,
    /// Skip all steps, even while a pod of the new version is broken.
    pub force: bool,
    /// Roll back.
    pub abort: bool,
    /// Retry the rejected revision.
    pub retry: bool,
    /// The user who gave them, if known.
    pub by: Option<String>,
}

/// The result of a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The new durable state. When it differs from the old one, it is written and nothing else is done: the next decision acts on
    /// the recorded state.
    pub memory: Memory,
    /// The one request to make.
    pub action: Option<Action>,
    /// What to show in the status; `None` when there is nothing new yet.
    pub report: Option<Report>,
    /// What happened, for events.
    pub notices: Vec<Notice>,
    /// When to decide again even if nothing happens.
    pub look_again: Option<Timestamp>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Release this share, and claim the workload.
    Release(Share),
    /// Delete one pod, so that it is recreated on the stable version (or, inside the share, on the new one).
    Remove {
        /// Its name.
        pod: String,
        /// Its UID: no other pod of that name.
        uid: String,
        /// It may serve clients: evict it, which respects disruption budgets.
        serving: bool,
    },
    /// Restore the stable template and release it to this share of the pods.
    Restore(Share),
    /// Release the workload.
    ReleaseClaim(LeftAs),
    /// Create an AnalysisRun under this name. An existing one is the right one.
    StartRun {
        /// Its name.
        name: String,
        /// Which analysis it is for.
        run_for: RunFor,
    },
    /// Terminate a run early.
    EndRun {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
    },
    /// Delete a completed run.
    DropRun {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
    },
}

/// For log lines.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release(share) => write!(f, "release {share}"),
            Self::Remove {
                pod, serving: true, ..
            } => write!(f, "evict pod {pod}"),
            Self::Remove { pod, .. } => write!(f, "delete pod {pod}"),
            Self::Restore(_) => f.write_str("restore the stable template"),
            Self::ReleaseClaim(_) => f.write_str("release the claim of the workload"),
            Self::StartRun { name, .. } => write!(f, "start analysis run {name}"),
            Self::EndRun { name, .. } => write!(f, "end analysis run {name}"),
            Self::DropRun { name, .. } => write!(f, "delete analysis run {name}"),
        }
    }
}

/// How a workload is released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftAs {
    /// At rest: with the setting that it had before it was adopted.
    BeforeAdoption(String),
    /// In the middle of a rollout: unchanged. The setting from before it was adopted is recorded for the next object that adopts
    /// it.
    Frozen(String),
}

/// The phase of a rollout, in the names of seed 000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Pods are being replaced, or the rollout waits for something.
    Progressing,
    /// Paused.
    Paused,
    /// Every pod runs the stable version.
    Successful,
    /// Rejected, stuck, or unable to begin.
    Failed,
}

/// Why it is in that phase: the `reason` of its conditions.
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
    /// All reasons.
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

    /// Whether a user has to act soon: the rollout is held, usually with pods on a failed version, until a user decides. A
    /// rolled-back version needs a fix, but not at night; a rollout that cannot begin exposes no pod.
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

/// What to show in the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The phase.
    pub phase: Phase,
    /// Why it is in that phase.
    pub reason: Reason,
    /// What the rollout waits for, and which command ends that.
    pub message: String,
}

impl Decision {
    /// The share whose step passes with this decision, if one does.
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
