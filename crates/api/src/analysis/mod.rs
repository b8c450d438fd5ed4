//! `AnalysisTemplate`, `ClusterAnalysisTemplate` and `AnalysisRun`: what to measure, and the results.
//!
//! The fields are those of Argo Rollouts, so that templates written for it apply unchanged. Stateward extensions (`answers` and
//! `caCertificate`) are marked. An AnalysisRun has no status subresource because Argo's has none: each operator can work with the
//! other's definition.

pub mod address;
mod crd;
mod metric;
mod provider;
mod run;
pub mod validate;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::crd::definitions;
pub use self::metric::{AnswerPolicy, Metric, Reading, Unanswered};
pub use self::provider::{
    Authentication, BasicAuth, CloudWatch, CloudWatchDimension, CloudWatchMetric, CloudWatchQuery,
    CloudWatchStat, Datadog, Graphite, Header, InfluxDb, Job, NewRelic, OAuth2, Prometheus, Provider,
    RangeQuery, SecretRef, Sigv4, SkyWalking, Wavefront, Web,
};
pub use self::run::{
    AnalysisRun, AnalysisRunSpec, AnalysisRunStatus, Measurement, MetricResult, Phase, Summary, TtlStrategy,
};
pub use crate::rolloutplugin::{FieldRef, MetricRef, Retention, TemplateRef};

/// The label by which operators share a cluster: each manages only the runs with its own name. Argo Rollouts ignores objects labelled
/// with another name.
pub const INSTANCE_LABEL: &str = "argo-rollouts.argoproj.io/controller-instance-id";

/// The name of Stateward in [`INSTANCE_LABEL`].
pub const INSTANCE: &str = "stateward";

/// A template of metrics to measure.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "argoproj.io",
    version = "v1alpha1",
    kind = "AnalysisTemplate",
    plural = "analysistemplates",
    shortname = "at",
    namespaced,
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct AnalysisTemplateSpec {
    /// The metrics to measure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// The args of the metrics, used as `{{args.name}}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Arg>,
    /// Metrics that are measured but do not affect the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dry_run: Vec<MetricRef>,
    /// How many measurements to keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measurement_retention: Vec<Retention>,
    /// Templates whose metrics and args are included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<TemplateRef>,
}

/// A template of metrics to measure, for all namespaces.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "argoproj.io",
    version = "v1alpha1",
    kind = "ClusterAnalysisTemplate",
    plural = "clusteranalysistemplates",
    shortname = "cat",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(transparent)]
pub struct ClusterAnalysisTemplateSpec(pub AnalysisTemplateSpec);

/// An arg of a template, or its value in a run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arg {
    /// The name of the arg.
    pub name: String,
    /// The value. In a template: the default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where to read the value from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ArgSource>,
}

/// The source of a value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArgSource {
    /// A key of a Secret in the run's namespace. The value is read when needed and never stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKeyRef>,
    /// A field of the object that is rolled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<FieldRef>,
}

/// A key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct SecretKeyRef {
    /// The name of the Secret.
    pub name: String,
    /// The key in the Secret.
    pub key: String,
}
