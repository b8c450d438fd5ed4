//! The interface of metric providers.

use std::fmt;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use stateward_api::analysis::Metric;
use stateward_core::analysis::Reply;

use crate::{ProviderError, Redactor};

/// A metric provider.
#[async_trait]
pub trait MetricProvider: Send + Sync {
    /// Queries once. The caller decides about retries.
    async fn query(&self, query: &MetricQuery<'_>) -> Result<Reply, ProviderError>;

    /// Why an address can never be queried, as far as known without resolving its host, and before its args have values.
    fn refusal(&self, _address: &str) -> Option<String> {
        None
    }
}

/// A query.
#[derive(Clone, Copy)]
pub struct MetricQuery<'q> {
    /// The metric, with its args filled in.
    pub metric: &'q Metric,
    /// The namespace of the run. Secrets are read here and nowhere else.
    pub namespace: &'q str,
    /// The time.
    pub now: Timestamp,
    /// The evaluated expressions of `rangeQuery`. Their language is implemented elsewhere.
    pub range: Option<Range>,
    /// Redacts secrets from the answer.
    pub redactor: &'q Redactor,
}

/// A range of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The start.
    pub start: Timestamp,
    /// The end.
    pub end: Timestamp,
    /// The time between two values.
    pub step: SignedDuration,
}

/// Omits the provider, whose fields may contain secrets.
impl fmt::Debug for MetricQuery<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("metric", &self.metric.name)
            .field("namespace", &self.namespace)
            .field("now", &self.now)
            .field("range", &self.range)
            .finish()
    }
}
