//! The status that all rollout kinds share, including everything the operator remembers.

use k8s_openapi::jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The status of a rollout, including everything the operator remembers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStatus {
    /// The generation of the spec that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Progressing`, `Paused`, `Successful` or `Failed`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// A one-word reason, the same as in the conditions. It distinguishes a revision that was rolled back from a broken one that is held.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What the rollout waits for, and which command moves it on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The index of the current step, from 0. Equal to the number of steps when all steps are done and while no rollout is in progress; 0
    /// after an abort. Absent before the workload is managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_step_index: Option<i32>,
    /// The current step in readable form: `2/4` is the second of four steps, and `4/4` also means that all are done. A PhasedRollout
    /// counts pods instead. Absent after an abort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// A hash of the steps, to detect edits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_step_hash: Option<String>,
    /// The replica count that the step's share of pods was computed from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_replicas: Option<i32>,
    /// When the current step started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_step_started_at: Option<Timestamp>,
    /// When the rollout last made progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressed_at: Option<Timestamp>,
    /// The largest number of updated and available pods that this rollout has reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached_replicas: Option<i32>,
    /// The largest number of old pods that this rollout has replaced, where pods are replaced one after the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposed_replicas: Option<i32>,
    /// The number of pods that stay on the new version regardless of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_replicas: Option<i32>,
    /// Ordinals of pods, from 0, that stay on the new version although a later scale-up put the partition above them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept_pods: Vec<i32>,
    /// The most pods that may run the new version until the next step that sets a share, because the workload was scaled up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_limit: Option<i32>,
    /// The number of pods that were released when the rollout was stopped by `spec.paused`, by an inconclusive analysis or by an invalid
    /// spec. A pod that is updated while the rollout is stopped is rolled back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_replicas: Option<i32>,
    /// Ordinals of pods, from 0, that were not Ready when the rollout started and are ignored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excused_pods: Vec<i32>,
    /// Why the rollout is paused. Set to null to resume.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pause_conditions: Vec<PauseCondition>,
    /// The operator paused the rollout. With empty pauseConditions, it means that a user resumed it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub controller_pause: bool,
    /// The operator has observed `spec.paused`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub manual_pause: bool,
    /// A user skipped the remaining steps with `promote --full`: further pods are released without waiting for the released ones.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fully_promoted: bool,
    /// The commands that this rollout carried out, oldest first; at most 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_commands: Vec<TakenCommand>,

    /// Set to true to abort the rollout.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub abort: bool,
    /// Set to true to resume a waiting rollout: the same as emptying pauseConditions, and it also passes a gate whose checks are still
    /// running.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub promote: bool,
    /// Set to true to skip the remaining steps. Refused while a pod of the new version is broken, unless `force` is true too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub promote_full: bool,
    /// Set to true to skip the current step: a weight, a pause or an analysis. Refused if the next step would release more pods while a
    /// released pod is not available.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skip_current_step: bool,
    /// Used with `promoteFull`: skip the remaining steps even while a pod of the new version is broken.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// The user who issued the command, as reported by the command line, for events and the history. Anyone who may write the status can
    /// write any name here; the API server's audit log has the authenticated user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// Set to true to retry an aborted revision.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restart: bool,

    /// The requested revision was rejected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aborted: bool,
    /// When the revision was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborted_at: Option<Timestamp>,
    /// The rejected revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborted_revision: Option<String>,
    /// Why the revision was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborted_reason: Option<String>,
    /// The rejected template was replaced by the stable one, because Kubernetes no longer had the rejected revision.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aborted_template_replaced: bool,
    /// The revision that Kubernetes would have rolled out to every pod without any check, because the workload was scaled to zero during
    /// its rollout, or was deleted and recreated around its pods. The stable template was restored; apply the new template again, while
    /// the workload has pods, to roll it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn_revision: Option<String>,
    /// Why pods are rolled back to the stable version: `Aborted`, `PutBack` or `ScaledToZero`. Absent if there is no rollback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returning: Option<String>,
    /// The revision that pods are rolled back from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returning_from: Option<String>,
    /// When the rollback started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returning_since: Option<Timestamp>,
    /// How many times this revision was retried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_count: Option<i32>,
    /// When this revision was last retried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarted_at: Option<Timestamp>,

    /// The UID of the workload that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_uid: Option<String>,
    /// The workload's update strategy before the operator adopted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_setting: Option<String>,
    /// The revision of pods outside the released share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_revision: Option<String>,
    /// The revision of the workload's template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_revision: Option<String>,
    /// The revision to roll back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_revision: Option<String>,
    /// A hash that identifies the stable template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_template_hash: Option<String>,
    /// The ControllerRevision with a copy of the stable template, because Kubernetes may delete the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_template_copy: Option<String>,
    /// Copies of former stable templates still have to be deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub former_template_copies: bool,

    /// The desired number of pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The number of pods on the template's revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_replicas: Option<i32>,
    /// The number of Ready pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// The number of pods that have been Ready for at least minReadySeconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Pods that are not Ready or on a different revision than the others; at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<PodStatus>,
    /// The outcome of past revisions, newest first; at most 10.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<PastRollout>,
    /// When the background analysis started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_started_at: Option<Timestamp>,
    /// The background analysis was inconclusive, and the rollout waits for a user's decision.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub background_paused: bool,
    /// A user resumed the rollout without a verdict of the background analysis.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub background_waived: bool,
    /// The analysis runs of the rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryStatus>,
    /// The conditions, for tools to read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// An active pause.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseCondition {
    /// `CanaryPauseStep`
    pub reason: String,
    /// When the pause started.
    pub start_time: Timestamp,
}

/// A command that a rollout carried out.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TakenCommand {
    /// `promote`, `skip`, `promote --full`, `promote --full --force` or `retry`.
    pub command: String,
    /// The index of the step that the rollout was at, from 0.
    pub from_step: i32,
    /// The index of the step that the rollout went to; the number of steps if all remaining steps were skipped.
    pub to_step: i32,
    /// The user who issued the command, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it was carried out.
    pub at: Timestamp,
}

/// The outcome of a revision.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastRollout {
    /// The name of the revision.
    pub revision: String,
    /// How the rollout of the revision ended.
    pub outcome: RolloutEnd,
    /// Why it ended that way, if there is a reason to report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The commands that the rollout carried out, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_commands: Vec<TakenCommand>,
}

/// How a rollout ended. Values of later versions are read as [`RolloutEnd::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum RolloutEnd {
    /// Every pod ran the revision.
    Successful,
    /// The revision was running when the operator adopted the workload, or something else rolled it out.
    TakenOn,
    /// The revision was rejected, and every pod was rolled back.
    Aborted,
    /// Another revision replaced it during the rollout.
    Replaced,
    /// The stable template was restored during the rollout.
    PutBack,
    /// The workload was scaled to zero during the rollout.
    ScaledToZero,
    /// The rollout was left to Kubernetes before it ended.
    LeftToKubernetes,
    /// Any other outcome.
    #[serde(other)]
    Unknown,
}

/// A pod that is not Ready or on a different revision than the others.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodStatus {
    /// The name of the pod.
    pub name: String,
    /// The revision that the pod runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Whether the pod is Ready.
    pub ready: bool,
    /// How many times its containers have restarted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: i32,
    /// Why the pod is not Ready, in one word: `ImagePullBackOff`, `Unschedulable`, `ReadinessProbe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// The analysis runs of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryStatus {
    /// The analysis run of the current step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_step_analysis_run_status: Option<AnalysisRunReference>,
    /// The background analysis run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_background_analysis_run_status: Option<AnalysisRunReference>,
}

/// An analysis run and its state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct AnalysisRunReference {
    /// The name of the run.
    pub name: String,
    /// The phase of the run.
    #[serde(default)]
    pub status: String,
    /// The message of the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A condition, as in the Kubernetes API conventions.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The type of the condition.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// A one-word reason.
    pub reason: String,
    /// A human-readable explanation.
    pub message: String,
    /// When the status last changed.
    pub last_transition_time: Timestamp,
    /// The generation of the spec that the condition describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// A list map with one entry per condition type, for server-side apply.
fn conditions(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": generator.subschema_for::<Condition>(),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
