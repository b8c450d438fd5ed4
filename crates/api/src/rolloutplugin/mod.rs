//! `RolloutPlugin`: steps of weights, pauses and analysis over a workload that a resource plugin knows.

mod crd;
mod validate;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::crd::definition;
use crate::rollout::RolloutStatus;

/// How long a rollout may go without progress, unless it says otherwise.
pub const DEFAULT_DEADLINE_SECONDS: i32 = 600;

/// RolloutPlugin rolls a workload to a new version in steps.
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
    /// The workload to roll. It is in the same namespace.
    pub workload_ref: WorkloadRef,
    /// The resource plugin that knows the workload.
    pub plugin: PluginRef,
    /// How to roll it.
    #[serde(default)]
    pub strategy: Strategy,
    /// Stops the rollout where it is: no further pod is released until it is false again. Abort works all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Seconds without progress after which a rollout counts as failed. Paused time does not count. 600 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub progress_deadline_seconds: Option<i32>,
    /// Abort a failed rollout and return every pod to the stable version, instead of holding it where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_deadline_abort: Option<bool>,
    /// What becomes of the rollout when a new pod crashes again and again, cannot get its image, runs out of memory or cannot be
    /// started: `Abort` and return every pod to the stable version, `Hold` it where it is, or `Wait` for the deadline. As
    /// progressDeadlineAbort says unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_pods: Option<BrokenPods>,
    /// How many analysis runs are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<AnalysisHistory>,
}

/// What becomes of a rollout whose new pod is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum BrokenPods {
    /// Every pod returns to the stable version.
    Abort,
    /// It stays where it is and says so.
    Hold,
    /// It may get well until the deadline.
    Wait,
}

/// A workload, by name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRef {
    /// `apps/v1`
    pub api_version: String,
    /// `StatefulSet`
    pub kind: String,
    /// The name of the workload.
    pub name: String,
    /// The namespace of this object, if given at all: workloads of other namespaces are not touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A resource plugin, and what to tell it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct PluginRef {
    /// `statefulset`, also called `statefulset-plugin` and `argoproj/statefulset`.
    pub name: String,
    /// For the plugin. `timeoutSeconds` and `timeoutAbort` are other names of `progressDeadlineSeconds` and
    /// `progressDeadlineAbort`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::anything")]
    pub config: Option<Map<String, Value>>,
}

/// How to roll.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Strategy {
    /// A few pods at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
}

/// A few pods at a time.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Canary {
    /// In this order. After the last one the remaining pods follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub steps: Vec<Step>,
    /// Runs beside the steps and aborts the rollout when it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<BackgroundAnalysis>,
}

/// One step: exactly one of its fields.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The percentage of pods to have on the new version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub set_weight: Option<i32>,
    /// Wait, for a while or until somebody promotes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// Ask, and go on when the answers are good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
}

/// A wait.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Pause {
    /// Seconds, or a duration such as `5m`. Without it the pause lasts until somebody promotes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub duration: Option<IntOrString>,
}

/// Analysis in a step.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Analysis {
    /// What to measure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<TemplateRef>,
    /// Values for the templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Argument>,
    /// Metrics that are measured without a say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dry_run: Vec<MetricRef>,
    /// How many measurements are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measurement_retention: Vec<Retention>,
    /// Labels and annotations of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis_run_metadata: Option<RunMetadata>,
}

/// Analysis beside the steps.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundAnalysis {
    /// What to measure, and how.
    #[serde(flatten)]
    pub analysis: Analysis,
    /// The step with which it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub starting_step: Option<i32>,
}

/// An AnalysisTemplate or ClusterAnalysisTemplate.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateRef {
    /// Its name.
    pub template_name: String,
    /// It is a ClusterAnalysisTemplate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cluster_scope: bool,
}

/// A value for a template.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// The value itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ArgumentSource>,
}

/// Where a value comes from.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArgumentSource {
    /// A field of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<FieldRef>,
    /// `Stable` or `Latest`: the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_hash_value: Option<String>,
}

/// A field, by path.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldRef {
    /// `metadata.name`
    pub field_path: String,
}

/// A metric, by name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricRef {
    /// Its name; a regular expression.
    pub metric_name: String,
}

/// How many measurements of a metric are kept.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// Its name; a regular expression.
    pub metric_name: String,
    /// How many.
    pub limit: i32,
}

/// Labels and annotations of an analysis run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct RunMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub labels: std::collections::BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub annotations: std::collections::BTreeMap<String, String>,
}

/// How many finished analysis runs are kept.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalysisHistory {
    /// Successful ones. 5 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub successful_run_history_limit: Option<i32>,
    /// All others. 5 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub unsuccessful_run_history_limit: Option<i32>,
}

impl RolloutPluginSpec {
    /// Seconds without progress after which a rollout counts as failed, under either of its names.
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

    /// Whether a failed rollout is aborted, under either of its names.
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
