//! `AnalysisTemplate`, `ClusterAnalysisTemplate` and `AnalysisRun`: what to measure, and what was measured.
//!
//! The fields are Argo Rollouts', so that templates written for it apply as they are. What is ours on top (`answers` and
//! `caCertificate`) says so. An AnalysisRun has no status subresource because Argo's has none: either operator can work with
//! either one's definition.

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

/// The label by which operators share a cluster: each takes only the runs that carry its name. Argo Rollouts leaves alone
/// whatever carries one that is not its own.
pub const INSTANCE_LABEL: &str = "argo-rollouts.argoproj.io/controller-instance-id";

/// Our name in [`INSTANCE_LABEL`].
pub const INSTANCE: &str = "stateward";

/// What to measure.
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
    /// What the metrics need to be told, as `{{args.name}}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Arg>,
    /// Metrics that are measured without a say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dry_run: Vec<MetricRef>,
    /// How many measurements are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measurement_retention: Vec<Retention>,
    /// Templates whose metrics and args are taken in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<TemplateRef>,
}

/// What to measure, for every namespace.
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

/// A value that a template asks for, or that a run was given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arg {
    /// Its name.
    pub name: String,
    /// The value itself. In a template: the value unless another one is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ArgSource>,
}

/// Where a value comes from.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArgSource {
    /// A key of a Secret in the run's namespace. It is read when it is needed, and written down nowhere.
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
    /// The key in it.
    pub key: String,
}
