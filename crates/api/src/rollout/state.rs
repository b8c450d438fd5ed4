//! What the operator remembers of a rollout between two decisions.

use k8s_openapi::jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TakenCommand, is_zero};

/// Everything that a decision depends on and that cannot be observed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutState {
    /// The UID of the workload that this state is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_uid: Option<String>,
    /// The workload's partition before the operator adopted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_partition: Option<String>,
    /// The version to roll back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable: Option<StableState>,
    /// Copies of former stable templates still have to be deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub former_template_copies: bool,
    /// The rollout in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<AttemptState>,
    /// The rollback in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback: Option<RollbackState>,
    /// The last rejected version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<RejectionState>,
    /// The revision that was removed from the template because Kubernetes would have rolled it out to every pod without any check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn_revision: Option<String>,
    /// How many times the revision was retried.
    #[serde(skip_serializing_if = "is_zero")]
    pub restart_count: i32,
    /// When the revision was last retried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarted_at: Option<Timestamp>,
}

impl RolloutState {
    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The version to roll back to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StableState {
    /// Its revision.
    pub revision: String,
    /// A hash that identifies its template.
    pub template_hash: String,
    /// The ControllerRevision with a copy of its template, because Kubernetes may delete the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_copy: Option<String>,
}

/// A rollout in progress.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptState {
    /// The revision that is rolled out.
    pub revision: String,
    /// The index of the current step, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub step_index: i32,
    /// A hash of the steps, to detect edits.
    pub steps_hash: String,
    /// The replica count that the step's share of pods was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_replicas: Option<i32>,
    /// When the current step started.
    pub step_started_at: Timestamp,
    /// When the rollout last made progress.
    pub progressed_at: Timestamp,
    /// The largest number of updated pods that were available at the same time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_available: i32,
    /// The largest number of old pods that were replaced, where pods are replaced one after the other.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_replaced: i32,
    /// The number of pods that stay on the new version regardless of the step.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub min_updated: i32,
    /// Indexes of pods, from 0, that stay on the new version although a later scale-up put the partition above them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_pods: Vec<i32>,
    /// The most pods that may run the new version until the next step that sets a share, because the workload was scaled up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_limit: Option<i32>,
    /// The number of pods that were released when the rollout was stopped by `spec.paused`, by an inconclusive analysis or by an invalid
    /// spec. A pod that is updated while the rollout is stopped is rolled back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_replicas: Option<i32>,
    /// Indexes of pods, from 0, that were not Ready when the rollout started and are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_pods: Vec<i32>,
    /// The operator has observed `spec.paused`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused_by_user: bool,
    /// The current step is a pause, or an analysis that failed or was inconclusive and waits for a user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused_at_step: bool,
    /// A user skipped the remaining steps with `promote --full`: further pods are released without waiting for the released ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fully_promoted: bool,
    /// When the background analysis started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_started_at: Option<Timestamp>,
    /// The background analysis was inconclusive, and the rollout waits for a user's decision.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background_inconclusive: bool,
    /// A user resumed the rollout without a verdict of the background analysis.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background_waived: bool,
    /// The commands that the rollout carried out, oldest first; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_commands: Vec<TakenCommand>,
}

/// A rollback in progress.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollbackState {
    /// The revision that pods are rolled back from.
    pub from_revision: String,
    /// Why they are rolled back.
    pub cause: RollbackCause,
    /// When the rollback started.
    pub started_at: Timestamp,
}

/// Why pods are rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum RollbackCause {
    /// The rollout was aborted, by a user or by its own rules.
    Aborted,
    /// A user restored the stable template.
    TemplateReverted,
    /// The workload was scaled to zero, which Kubernetes takes for the end of the rollout.
    ScaledToZero,
    /// A cause of a later version.
    #[serde(other)]
    Unknown,
}

/// A rejected version.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectionState {
    /// Its revision.
    pub revision: String,
    /// When it was rejected.
    pub rejected_at: Timestamp,
    /// Why it was rejected.
    #[serde(default)]
    pub message: String,
    /// The operator replaced its template by the stable one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub template_replaced: bool,
}
