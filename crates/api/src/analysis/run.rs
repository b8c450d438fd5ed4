//! An analysis run: its metrics and their results.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arg, Metric, MetricRef, Retention};

/// An analysis run.
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
    /// Values for the metrics' args.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Arg>,
    /// Ends the run early.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminate: bool,
    /// Metrics that are measured but do not affect the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dry_run: Vec<MetricRef>,
    /// How many measurements to keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measurement_retention: Vec<Retention>,
    /// How long to keep a finished run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_strategy: Option<TtlStrategy>,
}

/// How long to keep a finished run. The limit for its outcome takes precedence over the limit for any outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TtlStrategy {
    /// Seconds after the run finished, for any outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_after_completion: Option<i32>,
    /// Seconds after the run finished without success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_after_failure: Option<i32>,
    /// Seconds after the run finished successfully.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_after_success: Option<i32>,
}

/// The phase of a run, a metric or a measurement.
///
/// Ordered from best to worst.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
pub enum Phase {
    /// The result is good.
    Successful,
    /// Measurements are running or scheduled.
    Running,
    /// Nothing has been measured yet.
    #[default]
    Pending,
    /// The result is neither good nor bad.
    Inconclusive,
    /// The measurement failed with an error.
    Error,
    /// The result is bad.
    Failed,
}

impl Phase {
    /// Whether the phase is final.
    pub fn is_over(self) -> bool {
        match self {
            Self::Successful | Self::Inconclusive | Self::Error | Self::Failed => true,
            Self::Running | Self::Pending => false,
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalysisRunStatus {
    /// The phase of the run.
    #[serde(default)]
    pub phase: Phase,
    /// A human-readable explanation of the phase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When the run started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the run completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// The results of each metric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metric_results: Vec<MetricResult>,
    /// The number of metrics by phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_summary: Option<Summary>,
    /// The number of dry-run metrics by phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run_summary: Option<Summary>,
}

/// The number of metrics by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Summary {
    /// All metrics, including those that have not finished.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count: i32,
    /// Successful metrics.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub successful: i32,
    /// Failed metrics.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: i32,
    /// Inconclusive metrics.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inconclusive: i32,
    /// Metrics that ended in an error.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error: i32,
}

/// The result of a metric.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricResult {
    /// The name of the metric.
    pub name: String,
    /// The phase of the metric.
    #[serde(default)]
    pub phase: Phase,
    /// A human-readable explanation of the phase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The most recent measurements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measurements: Vec<Measurement>,
    /// Measurements that did not end in an error.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count: i32,
    /// Successful measurements.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub successful: i32,
    /// Failed measurements.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: i32,
    /// Inconclusive measurements.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inconclusive: i32,
    /// Measurements that ended in an error.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error: i32,
    /// Consecutive errors up to the last measurement.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub consecutive_error: i32,
    /// Consecutive successful measurements up to the last one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub consecutive_success: i32,
    /// The metric does not affect the result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Notes of the metric provider, such as the query with its args filled in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// One measurement.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    /// The phase of the measurement.
    #[serde(default)]
    pub phase: Phase,
    /// A human-readable explanation of the phase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When the measurement started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the measurement finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The measured value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Notes of the metric provider, such as the name of its Job.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// When to check the measurement again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_at: Option<Timestamp>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}
