//! Whom a metric is asked of. The fields are Argo Rollouts'.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Whom to ask: exactly one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    /// A Prometheus, or whatever answers like one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<Prometheus>,
    /// An HTTP endpoint that answers in JSON or text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<Web>,
    /// A Job: it succeeds or it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
    /// Datadog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datadog: Option<Datadog>,
    /// New Relic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_relic: Option<NewRelic>,
    /// CloudWatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_watch: Option<CloudWatch>,
    /// Graphite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphite: Option<Graphite>,
    /// InfluxDB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub influxdb: Option<InfluxDb>,
    /// Wavefront.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wavefront: Option<Wavefront>,
    /// Kayenta. Kept as it is, and not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::anything")]
    pub kayenta: Option<Value>,
    /// SkyWalking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skywalking: Option<SkyWalking>,
    /// Metric plugins. Kept as they are, and not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::anything")]
    pub plugin: Option<Value>,
}

/// A query to Prometheus.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prometheus {
    /// Its URL. The operator's own default unless given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// In PromQL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// How to be let in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
    /// Seconds to wait for the answer; 30 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
    /// Do not check its certificate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// Sent along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    /// Ask for a range of time, not for an instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_query: Option<RangeQuery>,
    /// The certificate authority to trust, in PEM. Stateward's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
}

/// A range of time.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RangeQuery {
    /// An expression such as `now() - duration("5m")`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub start: String,
    /// An expression such as `now()`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub end: String,
    /// The distance of two values, such as `1m`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub step: String,
}

/// How to be let in: one of these.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authentication {
    /// Sign requests as AWS wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigv4: Option<Sigv4>,
    /// Ask for a token first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2>,
    /// A name and a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
}

/// Signing as AWS wants it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sigv4 {
    /// The region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// A profile of the credentials file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// A role to take on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role_arn: String,
}

/// Client credentials.
#[derive(Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OAuth2 {
    /// Where to ask for the token.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub token_url: String,
    /// Who asks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client_id: String,
    /// And the secret.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client_secret: String,
    /// For what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// Without the secret.
impl fmt::Debug for OAuth2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth2")
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// A name and a password.
#[derive(Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct BasicAuth {
    /// The name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// The password.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub password: String,
}

/// Without the password.
impl fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BasicAuth")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// A header.
#[derive(Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Header {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// Without the value, which may be a token.
impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Web {
    /// Where to.
    pub url: String,
    /// GET, POST or PUT; GET unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Sent along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    /// Sent with POST and PUT.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The same as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::any_value")]
    pub json_body: Option<Value>,
    /// The part of the answer that counts, such as `{$.data.ok}`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub json_path: String,
    /// Seconds to wait for the answer; 10 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// Do not check its certificate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// How to be let in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
    /// The certificate authority to trust, in PEM. Stateward's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
}

/// A Job.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Job {
    /// Its labels and annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::anything")]
    pub metadata: Option<Value>,
    /// What to run.
    #[schemars(schema_with = "crate::schema::anything")]
    pub spec: Value,
}

/// A query to Datadog.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Datadog {
    /// How far back; 5m unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// The query.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// Several, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queries: BTreeMap<String, String>,
    /// What to make of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub formula: String,
    /// v1 or v2; v1 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// How values become one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub aggregator: String,
    /// Where its keys are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
    /// How long to wait; 10s unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_timeout: Option<String>,
}

/// A Secret.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct SecretRef {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// It is in the run's namespace. Others are never read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub namespaced: bool,
}

/// A query to New Relic.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct NewRelic {
    /// The Secret with its keys.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// In NRQL.
    pub query: String,
    /// Seconds to wait for the answer; 5 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
}

/// Queries to CloudWatch.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudWatch {
    /// How far back; 5m unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// The queries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metric_data_queries: Vec<CloudWatchQuery>,
}

/// A query to CloudWatch.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudWatchQuery {
    /// Its name among the others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// What to make of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What to ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric_stat: Option<CloudWatchStat>,
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub period: Option<IntOrString>,
    /// Whether its values are answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_data: Option<bool>,
}

/// A statistic.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CloudWatchStat {
    /// Of which metric.
    #[serde(default)]
    pub metric: CloudWatchMetric,
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub period: Option<IntOrString>,
    /// Which one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stat: String,
    /// In which unit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

/// A metric of CloudWatch's.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudWatchMetric {
    /// What tells it from others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dimensions: Vec<CloudWatchDimension>,
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub metric_name: String,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// What tells a metric from others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CloudWatchDimension {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// A query to Graphite.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Graphite {
    /// Its URL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The query.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
}

/// A query to InfluxDB.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct InfluxDb {
    /// The Secret with its keys.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// In Flux.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
}

/// A query to Wavefront.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Wavefront {
    /// Its host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The query.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
}

/// A query to SkyWalking.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct SkyWalking {
    /// Its URL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// In GraphQL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// How far back; 5m unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
}
