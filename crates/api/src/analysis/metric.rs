//! One metric: what to ask, how often, and what the answers mean.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Provider;

/// One metric.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metric {
    /// Its name, which no other metric of the run has.
    pub name: String,
    /// The time from one measurement to the next, such as `30s`. Without it there is one measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// How long after the beginning of the run the first measurement is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_delay: Option<String>,
    /// How many measurements are made. Without it: one, or with an interval as many as there is time for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub count: Option<IntOrString>,
    /// Makes a measurement successful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_condition: Option<String>,
    /// Makes a measurement failed. Where both conditions are given and neither holds, it is inconclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_condition: Option<String>,
    /// How many measurements may fail; 0 unless given. -1: any number, where `consecutiveSuccessLimit` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub failure_limit: Option<IntOrString>,
    /// How many measurements may be inconclusive; 0 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub inconclusive_limit: Option<IntOrString>,
    /// How many measurements in a row may end in an error; 4 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub consecutive_error_limit: Option<IntOrString>,
    /// How many successful measurements in a row are enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string")]
    pub consecutive_success_limit: Option<IntOrString>,
    /// Whom to ask, and what.
    pub provider: Provider,
    /// What an answer counts as that has nothing to judge. Stateward's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<AnswerPolicy>,
}

/// What an answer counts as that has nothing to judge. Without a word here, it goes to the conditions if one of them asks about
/// just that (`len`, `isNil`, `default`, `??` for empty ones, `isNaN` and `isInf` for such numbers), and is an error if the one
/// that would make it good does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerPolicy {
    /// No series, no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<Reading>,
    /// A number that is none, as a division of nothing by nothing gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nan: Option<Reading>,
    /// A number without bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infinite: Option<Reading>,
    /// Values that are five minutes old or older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<Reading>,
    /// No answer in time. An error unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Unanswered>,
    /// No answer for any other reason: nobody there, a refusal, nonsense. An error unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Unanswered>,
}

/// What an answer counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Reading {
    /// An error, of which `consecutiveErrorLimit` allows some.
    Error,
    /// A failed measurement.
    Failed,
    /// An inconclusive measurement.
    Inconclusive,
    /// A successful measurement.
    Successful,
    /// What the conditions say.
    Judge,
}

/// What a question counts as that was not answered. Never a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Unanswered {
    /// An error, of which `consecutiveErrorLimit` allows some.
    Error,
    /// A failed measurement.
    Failed,
    /// An inconclusive measurement.
    Inconclusive,
}
