//! `RolloutPlugin`: steps of weights, pauses and analysis for a workload that a resource plugin supports.

mod crd;
mod validate;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::crd::definition;
use crate::rollout::RolloutStatus;

/// The default time a rollout may go without progress.
pub const DEFAULT_DEADLINE_SECONDS: i32 = 600;

/// RolloutPlugin rolls out a new version of a workload in steps.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "argoproj.io",
    version = "v1alpha1",
    kind = "RolloutPlugin",
    plural = "rolloutplugins",
    shortname = "rp",
    namespaced,
    status = "RolloutStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct RolloutPluginSpec {
    /// The workload to roll out, in the same namespace.
    pub workload_ref: WorkloadRef,
    /// The resource plugin for the kind of the workload.
    pub plugin: PluginRef,
    /// How to roll out the workload.
    #[serde(default)]
    pub strategy: Strategy,
    /// Stops the rollout at the current point: no further pods are released until it is false again. Abort still works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Seconds without progress after which a rollout counts as failed. Paused time does not count. Default: 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub progress_deadline_seconds: Option<i32>,
    /// Abort a failed rollout and roll every pod back to the stable version, instead of holding the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_deadline_abort: Option<bool>,
    /// What to do when a new pod keeps crashing, cannot pull its image, runs out of memory or cannot be started: `Abort` and roll every
    /// pod back to the stable version, `Hold` the rollout, or `Wait` for the deadline. Default: `Abort` if progressDeadlineAbort is true,
    /// otherwise `Hold`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_pods: Option<BrokenPods>,
    /// How many analysis runs to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<AnalysisHistory>,
}

/// What to do with a rollout whose new pod is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum BrokenPods {
    /// Roll every pod back to the stable version.
    Abort,
    /// Hold the rollout and report the broken pod.
    Hold,
    /// Wait until the deadline for the pod to recover.
    Wait,
}

/// A reference to a workload.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRef {
    /// `apps/v1`
    pub api_version: String,
    /// `StatefulSet`
    pub kind: String,
    /// The name of the workload.
    pub name: String,
    /// If set, must be the namespace of this object: workloads of other namespaces are not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A resource plugin and its configuration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct PluginRef {
    /// `statefulset`, also called `statefulset-plugin` and `argoproj/statefulset`.
    pub name: String,
    /// Settings of the plugin. `timeoutSeconds` and `timeoutAbort` are aliases of `progressDeadlineSeconds` and
    /// `progressDeadlineAbort`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::anything")]
    pub config: Option<Map<String, Value>>,
}

/// The rollout strategy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Strategy {
    /// Update a few pods at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
}

/// Update a few pods at a time.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Canary {
    /// The steps, in order. After the last step the remaining pods follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub steps: Vec<Step>,
    /// Background analysis: runs during the steps and aborts the rollout if it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<BackgroundAnalysis>,
}

/// A step. Exactly one field must be set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The percentage of pods to update to the new version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub set_weight: Option<i32>,
    /// Wait for a duration, or until a user promotes the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// Run an analysis, and continue if it succeeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
}

/// A pause.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Pause {
    /// Seconds, or a duration such as `5m`. Without it the pause lasts until a user promotes the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub duration: Option<IntOrString>,
}

/// The analysis of a step.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Analysis {
    /// The templates with the metrics to measure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<TemplateRef>,
    /// Values for the templates' args.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Argument>,
    /// Metrics that are measured but do not affect the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dry_run: Vec<MetricRef>,
    /// How many measurements to keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measurement_retention: Vec<Retention>,
    /// Labels and annotations for the analysis run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis_run_metadata: Option<RunMetadata>,
}

/// Analysis that runs in the background during the steps.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundAnalysis {
    /// The templates and their args.
    #[serde(flatten)]
    pub analysis: Analysis,
    /// The index of the step at which the background analysis starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub starting_step: Option<i32>,
}

/// A reference to an AnalysisTemplate or ClusterAnalysisTemplate.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateRef {
    /// The name of the template.
    pub template_name: String,
    /// Whether the template is a ClusterAnalysisTemplate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cluster_scope: bool,
}

/// A value for a template.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Argument {
    /// The name of the arg.
    pub name: String,
    /// The value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where to read the value from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ArgumentSource>,
}

/// The source of a value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArgumentSource {
    /// A field of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<FieldRef>,
    /// The revision to use as the value: `Stable` or `Latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_hash_value: Option<String>,
}

/// A reference to a field, by path.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldRef {
    /// `metadata.name`
    pub field_path: String,
}

/// A reference to metrics, by name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricRef {
    /// The name of the metric; a regular expression.
    pub metric_name: String,
}

/// How many measurements of a metric to keep.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// The name of the metric; a regular expression.
    pub metric_name: String,
    /// The number of measurements to keep.
    pub limit: i32,
}

/// Labels and annotations for an analysis run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct RunMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub labels: std::collections::BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub annotations: std::collections::BTreeMap<String, String>,
}

/// How many finished analysis runs to keep.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalysisHistory {
    /// Number of successful runs to keep. Default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub successful_run_history_limit: Option<i32>,
    /// Number of all other runs to keep. Default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub unsuccessful_run_history_limit: Option<i32>,
}

impl RolloutPluginSpec {
    /// Seconds without progress after which a rollout counts as failed, from the field or its alias.
    pub fn deadline_seconds(&self) -> i64 {
        let config = self
            .plugin
            .config
            .as_ref()
            .and_then(|config| config.get("timeoutSeconds"));
        self.progress_deadline_seconds
            .map(i64::from)
            .or_else(|| config?.as_i64())
            .unwrap_or(DEFAULT_DEADLINE_SECONDS.into())
    }

    /// Whether a failed rollout is aborted, from the field or its alias.
    pub fn aborts_on_failure(&self) -> bool {
        let config = self
            .plugin
            .config
            .as_ref()
            .and_then(|config| config.get("timeoutAbort"));
        self.progress_deadline_abort
            .or_else(|| config?.as_bool())
            .unwrap_or(false)
    }
}
