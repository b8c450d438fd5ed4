//! A metric: its query, its interval, and how to judge its values.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Provider;

/// One metric.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metric {
    /// The name of the metric, unique within the run.
    pub name: String,
    /// The time between two measurements, such as `30s`. Without it there is one measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// The delay from the start of the run to the first measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_delay: Option<String>,
    /// The number of measurements. Default: 1, or unlimited if `interval` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub count: Option<IntOrString>,
    /// The expression that makes a measurement successful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_condition: Option<String>,
    /// The expression that makes a measurement failed. If both conditions are set and neither holds, the measurement is inconclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_condition: Option<String>,
    /// How many measurements may fail. Default: 0. -1 means any number, and requires `consecutiveSuccessLimit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub failure_limit: Option<IntOrString>,
    /// How many measurements may be inconclusive. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub inconclusive_limit: Option<IntOrString>,
    /// How many consecutive measurements may end in an error. Default: 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub consecutive_error_limit: Option<IntOrString>,
    /// How many consecutive successful measurements make the metric successful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub consecutive_success_limit: Option<IntOrString>,
    /// The metric provider and the query.
    pub provider: Provider,
    /// How to judge answers without a usable value. A Stateward extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<AnswerPolicy>,
}

/// How to judge answers without a usable value. By default such an answer goes to the conditions if one of them tests for this case
/// (`len`, `isNil`, `default`, `??` for empty ones, `isNaN` and `isInf` for such numbers), and is an error if the condition that would
/// make it successful does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerPolicy {
    /// No series or no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<Reading>,
    /// NaN, such as the result of dividing zero by zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nan: Option<Reading>,
    /// An infinite number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infinite: Option<Reading>,
    /// Values that are at least five minutes old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<Reading>,
    /// No answer within the timeout. Default: Error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Unanswered>,
    /// No answer for any other reason: connection refused, an error response or an invalid body. Default: Error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Unanswered>,
}

/// How to judge an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Reading {
    /// An error, counted against `consecutiveErrorLimit`.
    Error,
    /// A failed measurement.
    Failed,
    /// An inconclusive measurement.
    Inconclusive,
    /// A successful measurement.
    Successful,
    /// Evaluate the conditions.
    Judge,
}

/// How to judge a query without an answer. Never successful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Unanswered {
    /// An error, counted against `consecutiveErrorLimit`.
    Error,
    /// A failed measurement.
    Failed,
    /// An inconclusive measurement.
    Inconclusive,
}
