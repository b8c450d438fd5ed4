//! One analysis: the metrics as they are measured, and what came of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arg, Metric, MetricRef, Retention};

/// An analysis that runs, or ran.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "argoproj.io",
    version = "v1alpha1",
    kind = "AnalysisRun",
    plural = "analysisruns",
    shortname = "ar",
    namespaced,
    status = "AnalysisRunStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct AnalysisRunSpec {
    /// The metrics to measure.
    #[serde(default)]
    pub metrics: Vec<Metric>,
    /// Values for the metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Arg>,
    /// Ends the run before its time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminate: bool,
    /// Metrics that are measured without a say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dry_run: Vec<MetricRef>,
    /// How many measurements are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measurement_retention: Vec<Retention>,
    /// How long the run is kept when it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_strategy: Option<TtlStrategy>,
}

/// How long a run is kept when it is over. What is said of its outcome goes before what is said of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TtlStrategy {
    /// However it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_after_completion: Option<i32>,
    /// When it was not successful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_after_failure: Option<i32>,
    /// When it was successful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_after_success: Option<i32>,
}

/// Where a run, a metric or a measurement stands.
///
/// In the order in which the worst is the last.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
pub enum Phase {
    /// It went well.
    Successful,
    /// Something is being measured, or will be.
    Running,
    /// Nothing was measured yet.
    #[default]
    Pending,
    /// It cannot be told.
    Inconclusive,
    /// It could not be measured.
    Error,
    /// It went wrong.
    Failed,
}

impl Phase {
    /// Whether it is over.
    pub fn is_over(self) -> bool {
        match self {
            Self::Successful | Self::Inconclusive | Self::Error | Self::Failed => true,
            Self::Running | Self::Pending => false,
        }
    }
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalysisRunStatus {
    /// Where it stands.
    #[serde(default)]
    pub phase: Phase,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Each metric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metric_results: Vec<MetricResult>,
    /// How many metrics ended how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_summary: Option<Summary>,
    /// The same of those without a say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run_summary: Option<Summary>,
}

/// How many metrics ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Summary {
    /// All of them, also those that have not ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count: i32,
    /// Successful ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub successful: i32,
    /// Failed ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: i32,
    /// Inconclusive ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inconclusive: i32,
    /// Those that could not be measured.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error: i32,
}

/// What came of a metric.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricResult {
    /// The metric.
    pub name: String,
    /// Where it stands.
    #[serde(default)]
    pub phase: Phase,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The last measurements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measurements: Vec<Measurement>,
    /// Measurements that were no errors.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count: i32,
    /// Successful ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub successful: i32,
    /// Failed ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: i32,
    /// Inconclusive ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inconclusive: i32,
    /// Errors.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error: i32,
    /// Errors since the last answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub consecutive_error: i32,
    /// Successful ones since the last that was not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub consecutive_success: i32,
    /// It has no say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// What the provider notes, such as the query with its args filled in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// One measurement.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    /// Where it stands.
    #[serde(default)]
    pub phase: Phase,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// What the provider notes, such as the name of its Job.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// When to look after it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_at: Option<Timestamp>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}
