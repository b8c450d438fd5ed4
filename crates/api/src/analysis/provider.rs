//! Metric providers. The fields are those of Argo Rollouts.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The metric provider to query. Exactly one field must be set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    /// Prometheus, or a server with the same API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<Prometheus>,
    /// An HTTP endpoint that returns JSON or text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<Web>,
    /// A Job, which succeeds or fails.
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
    /// Kayenta. Preserved, but not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::anything")]
    pub kayenta: Option<Value>,
    /// SkyWalking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skywalking: Option<SkyWalking>,
    /// Metric plugins. Preserved, but not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::anything")]
    pub plugin: Option<Value>,
}

/// A query to Prometheus.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prometheus {
    /// The URL of Prometheus. Default: the operator's own default address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The query, in PromQL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// How to authenticate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
    /// Seconds to wait for the answer. Default: 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
    /// Do not verify the server's certificate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// Headers of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    /// Run a range query instead of an instant query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_query: Option<RangeQuery>,
    /// The certificate authority to trust, in PEM format. A Stateward extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
}

/// The time range of a query.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RangeQuery {
    /// The start, as an expression such as `now() - duration("5m")`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub start: String,
    /// The end, as an expression such as `now()`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub end: String,
    /// The time between two values, such as `1m`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub step: String,
}

/// How to authenticate: one of these.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authentication {
    /// Sign requests with AWS Signature Version 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigv4: Option<Sigv4>,
    /// Request an OAuth2 token with client credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2>,
    /// A user name and a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
}

/// AWS Signature Version 4.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sigv4 {
    /// The AWS region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// The profile in the credentials file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// The role to assume.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role_arn: String,
}

/// OAuth2 client credentials.
#[derive(Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OAuth2 {
    /// The URL of the token endpoint.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub token_url: String,
    /// The client ID.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client_id: String,
    /// The client secret.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client_secret: String,
    /// The scopes to request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// Omits the client secret.
impl fmt::Debug for OAuth2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth2")
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// A user name and a password.
#[derive(Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct BasicAuth {
    /// The user name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// The password.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub password: String,
}

/// Omits the password.
impl fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BasicAuth")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// An HTTP header.
#[derive(Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Header {
    /// The name of the header.
    pub key: String,
    /// The value of the header.
    pub value: String,
}

/// Omits the value, which may be a token.
impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// An HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Web {
    /// The URL of the request.
    pub url: String,
    /// The method: GET, POST or PUT. Default: GET.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Headers of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    /// The body of a POST or PUT request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The body of a POST or PUT request, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::any_value")]
    pub json_body: Option<Value>,
    /// The JSONPath of the value to use, such as `{$.data.ok}`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub json_path: String,
    /// Seconds to wait for the answer. Default: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// Do not verify the server's certificate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// How to authenticate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
    /// The certificate authority to trust, in PEM format. A Stateward extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
}

/// A Job.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Job {
    /// Labels and annotations of the Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::anything")]
    pub metadata: Option<Value>,
    /// The spec of the Job.
    #[schemars(schema_with = "crate::schema::anything")]
    pub spec: Value,
}

/// A query to Datadog.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Datadog {
    /// The time range of the query, up to now. Default: 5m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// The query.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// Several queries, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queries: BTreeMap<String, String>,
    /// The formula that combines the queries.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub formula: String,
    /// The version of the Datadog API: v1 or v2. Default: v1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// How to aggregate the values to one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub aggregator: String,
    /// The Secret with the Datadog keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
    /// How long to wait for the answer. Default: 10s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_timeout: Option<String>,
}

/// A reference to a Secret.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct SecretRef {
    /// The name of the Secret.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The Secret is in the run's namespace. Other Secrets are never read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub namespaced: bool,
}

/// A query to New Relic.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct NewRelic {
    /// The Secret with the New Relic keys.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// The query, in NRQL.
    pub query: String,
    /// Seconds to wait for the answer. Default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
}

/// Queries to CloudWatch.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudWatch {
    /// The time range of the queries, up to now. Default: 5m.
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
    /// The ID of the query, unique within the list.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// An expression over the results of other queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// The label of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The statistic to query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric_stat: Option<CloudWatchStat>,
    /// The period in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub period: Option<IntOrString>,
    /// Whether the query returns data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_data: Option<bool>,
}

/// A statistic.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CloudWatchStat {
    /// The metric that the statistic is computed from.
    #[serde(default)]
    pub metric: CloudWatchMetric,
    /// The period in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub period: Option<IntOrString>,
    /// The name of the statistic.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stat: String,
    /// The unit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

/// A CloudWatch metric.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudWatchMetric {
    /// The dimensions that identify the metric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dimensions: Vec<CloudWatchDimension>,
    /// The name of the metric.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub metric_name: String,
    /// The CloudWatch namespace of the metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A dimension of a CloudWatch metric.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CloudWatchDimension {
    /// The name of the dimension.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The value of the dimension.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// A query to Graphite.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Graphite {
    /// The URL of Graphite.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The query.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
}

/// A query to InfluxDB.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct InfluxDb {
    /// The Secret with the InfluxDB keys.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// The query, in Flux.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
}

/// A query to Wavefront.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Wavefront {
    /// The host of Wavefront.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The query.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
}

/// A query to SkyWalking.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct SkyWalking {
    /// The URL of SkyWalking.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The query, in GraphQL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// The time range of the query, up to now. Default: 5m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
}
