//! What a rollout of any kind tells in its status, and all that it remembers.

use k8s_openapi::jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Where a rollout stands. Everything the operator remembers is here.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStatus {
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Progressing`, `Paused`, `Successful` or `Failed`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Why, in one word: the reason of the conditions. It tells a version that was rolled back from one that is broken and held.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What is waited for, and which command moves it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The step the rollout is at, from 0. The number of steps when all are done, and while nothing is rolled; 0 after an abort.
    /// Absent before the workload is managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_step_index: Option<i32>,
    /// The step for people to read: `2/4` is the second of four, and when all are done it is `4/4`. A PhasedRollout counts pods. Absent
    /// after an abort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Tells whether the steps were edited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_step_hash: Option<String>,
    /// The replicas that the share of the step was counted for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_replicas: Option<i32>,
    /// When the rollout came to this step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_step_started_at: Option<Timestamp>,
    /// When the rollout last got on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressed_at: Option<Timestamp>,
    /// The most pods of this rollout that were new and available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached_replicas: Option<i32>,
    /// The most places that old pods have left to new ones in this rollout, where they go one after the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposed_replicas: Option<i32>,
    /// Pods that stay on the new version whatever the step says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_replicas: Option<i32>,
    /// Pods, from 0, that stay on the new version although the workload was scaled up since and its partition is above them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept_pods: Vec<i32>,
    /// The most pods that run the new version until the next step that has a share, because the workload was scaled up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_limit: Option<i32>,
    /// The pods that were released when the rollout was stopped, by `spec.paused`, an analysis without a verdict or an invalid spec. One
    /// that is updated while it is stopped goes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_replicas: Option<i32>,
    /// Pods, from 0, that were not Ready when the rollout began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excused_pods: Vec<i32>,
    /// Why the rollout stands still. Set it to null to go on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pause_conditions: Vec<PauseCondition>,
    /// The operator has paused. Together with empty pauseConditions: a user has said go on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub controller_pause: bool,
    /// `spec.paused` has been taken note of.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub manual_pause: bool,
    /// A user has skipped the remaining steps with `promote --full`: further pods are released without waiting for those that are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fully_promoted: bool,
    /// The commands that this rollout has carried out, oldest first; at most 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_commands: Vec<TakenCommand>,

    /// Set to true to abort the rollout.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub abort: bool,
    /// Set to true to go on from where the rollout waits: the same as to empty pauseConditions, and also at a gate whose checks are
    /// under way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub promote: bool,
    /// Set to true to skip the remaining steps. Refused while a pod of the new version is broken, unless `force` is true too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub promote_full: bool,
    /// Set to true to skip the current step: a weight, a pause or an analysis. Refused where the next step would release further pods
    /// while a released one is not available.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skip_current_step: bool,
    /// Together with `promoteFull`: skip the remaining steps also while a pod of the new version is broken.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// The user who gave the command, as the command line knows it, for events and the history. Anyone who may write the status can
    /// write any name here; the audit log of the API server knows who it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// Set to true to try an aborted revision again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restart: bool,

    /// The revision that was asked for last was turned down.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aborted: bool,
    /// When it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborted_at: Option<Timestamp>,
    /// The revision that was turned down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborted_revision: Option<String>,
    /// What for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborted_reason: Option<String>,
    /// Its template was replaced by the stable one, because Kubernetes no longer knew that one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aborted_template_replaced: bool,
    /// The revision that Kubernetes would have given to every pod unasked, because the workload was scaled to zero in the middle of
    /// its rollout, or made anew around its pods. The stable template was put back; apply it again, to pods, to roll it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn_revision: Option<String>,
    /// Why pods return to the stable version: `Aborted`, `PutBack` or `ScaledToZero`. Absent when they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returning: Option<String>,
    /// The revision they return from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returning_from: Option<String>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returning_since: Option<Timestamp>,
    /// How often this revision was tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_count: Option<i32>,
    /// When last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarted_at: Option<Timestamp>,

    /// The workload this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_uid: Option<String>,
    /// How the workload was set before it was taken on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_setting: Option<String>,
    /// The revision that pods outside the released share get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_revision: Option<String>,
    /// The revision of the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_revision: Option<String>,
    /// The revision to return to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_revision: Option<String>,
    /// Tells the stable template from others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_template_hash: Option<String>,
    /// The ControllerRevision that keeps a copy of the stable template, because Kubernetes forgets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_template_copy: Option<String>,
    /// Copies of former stable templates are still to be deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub former_template_copies: bool,

    /// Pods asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Pods on the template's revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_replicas: Option<i32>,
    /// Ready pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Pods that have been Ready for long enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// The pods that are on another revision than the others or not Ready; at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<PodStatus>,
    /// What became of revisions, newest first; at most 10.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<PastRollout>,
    /// When the analysis beside the steps began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_started_at: Option<Timestamp>,
    /// It came to no verdict, and the rollout waits for somebody to say what to make of that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub background_paused: bool,
    /// Somebody has said go on without one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub background_waived: bool,
    /// Analysis of the rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryStatus>,
    /// In the form that tools read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// A pause that stands.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseCondition {
    /// `CanaryPauseStep`
    pub reason: String,
    /// Since when.
    pub start_time: Timestamp,
}

/// A command that a rollout has carried out.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TakenCommand {
    /// `promote`, `skip`, `promote --full`, `promote --full --force` or `retry`.
    pub command: String,
    /// The step that the rollout was at, from 0.
    pub from_step: i32,
    /// The step that it went to; the number of steps when all were left.
    pub to_step: i32,
    /// The user who gave it, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it was carried out.
    pub at: Timestamp,
}

/// What became of a revision.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastRollout {
    /// Its name.
    pub revision: String,
    /// How its rollout ended.
    pub outcome: RolloutEnd,
    /// Why, where there is a reason to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When.
    pub ended_at: Timestamp,
    /// The commands that it has carried out, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_commands: Vec<TakenCommand>,
}

/// How a rollout ended. What a later version writes is read as [`RolloutEnd::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum RolloutEnd {
    /// Every pod ran it.
    Successful,
    /// It was there when the workload was taken on, or somebody else has rolled it out.
    TakenOn,
    /// It was turned down, and every pod returned.
    Aborted,
    /// Another version took its place.
    Replaced,
    /// The stable template was put back in the middle.
    PutBack,
    /// The workload was scaled to zero in the middle.
    ScaledToZero,
    /// It was left to Kubernetes in the middle.
    LeftToKubernetes,
    /// Something else.
    #[serde(other)]
    Unknown,
}

/// A pod worth looking at.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodStatus {
    /// Its name.
    pub name: String,
    /// What it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Whether it is Ready.
    pub ready: bool,
    /// How often its containers have started again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: i32,
    /// Why it is not Ready, in one word: `ImagePullBackOff`, `Unschedulable`, `ReadinessProbe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// Analysis of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryStatus {
    /// The run of the present step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_step_analysis_run_status: Option<AnalysisRunReference>,
    /// The run beside the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_background_analysis_run_status: Option<AnalysisRunReference>,
}

/// An analysis run and how it goes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct AnalysisRunReference {
    /// Its name.
    pub name: String,
    /// Its phase.
    #[serde(default)]
    pub status: String,
    /// What it says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A condition, as Kubernetes' API conventions have it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Its name.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// When the status last changed.
    pub last_transition_time: Timestamp,
    /// The generation of the spec it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// A list in which every condition has its own entry, for whoever applies to it.
fn conditions(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": generator.subschema_for::<Condition>(),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
