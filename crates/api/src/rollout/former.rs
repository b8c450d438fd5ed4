//! What versions before `status.state` remembered, in fields of the status itself: read once, moved to `status.state`, and removed.

use k8s_openapi::jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TakenCommand;

/// Fields that earlier versions kept in the status. The schema has to name them: the API server drops unknown fields.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FormerState {
    /// Moved to `state.rollout.stepReplicas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_replicas: Option<i32>,
    /// Moved to `state.rollout.progressedAt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressed_at: Option<Timestamp>,
    /// Moved to `state.rollout.maxAvailable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached_replicas: Option<i32>,
    /// Moved to `state.rollout.maxReplaced`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposed_replicas: Option<i32>,
    /// Moved to `state.rollout.minUpdated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_replicas: Option<i32>,
    /// Moved to `state.rollout.keptPods`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept_pods: Vec<i32>,
    /// Moved to `state.rollout.shareLimit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_limit: Option<i32>,
    /// Moved to `state.rollout.stoppedReplicas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_replicas: Option<i32>,
    /// Moved to `state.rollout.ignoredPods`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excused_pods: Vec<i32>,
    /// Moved to `state.rollout.pausedByUser`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub manual_pause: bool,
    /// Moved to `state.rollout.fullyPromoted`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fully_promoted: bool,
    /// Moved to `state.rollout.takenCommands`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_commands: Vec<TakenCommand>,
    /// Moved to `state.rollback.cause`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returning: Option<String>,
    /// Moved to `state.rollback.fromRevision`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returning_from: Option<String>,
    /// Moved to `state.rollback.startedAt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returning_since: Option<Timestamp>,
    /// Moved to `state.workloadUid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_uid: Option<String>,
    /// Moved to `state.originalPartition`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_setting: Option<String>,
    /// Moved to `state.stable.templateHash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_template_hash: Option<String>,
    /// Moved to `state.stable.templateCopy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_template_copy: Option<String>,
    /// Moved to `state.formerTemplateCopies`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub former_template_copies: bool,
    /// Moved to `state.rollout.backgroundStartedAt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_started_at: Option<Timestamp>,
    /// Moved to `state.rollout.backgroundInconclusive`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub background_paused: bool,
    /// Moved to `state.rollout.backgroundWaived`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub background_waived: bool,
}
