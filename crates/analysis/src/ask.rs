//! Asking a provider.

use std::fmt;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use stateward_api::analysis::Metric;
use stateward_core::analysis::Reply;

use crate::{AskError, Veil};

/// Whoever can be asked.
#[async_trait]
pub trait Ask: Send + Sync {
    /// Asks once. Whoever calls decides about trying again.
    async fn ask(&self, question: &Question<'_>) -> Result<Reply, AskError>;

    /// Why nothing can ever be asked at an address, as far as that is known without resolving its host, and before its args have
    /// values.
    fn refusal(&self, _address: &str) -> Option<String> {
        None
    }
}

/// What is asked.
#[derive(Clone, Copy)]
pub struct Question<'q> {
    /// The metric, with its args filled in.
    pub metric: &'q Metric,
    /// The namespace of the run. Secrets are read here and nowhere else.
    pub namespace: &'q str,
    /// The time.
    pub now: Timestamp,
    /// What the expressions of `rangeQuery` came to. Their language lives elsewhere.
    pub range: Option<Range>,
    /// Takes what must not be shown of the answer.
    pub veil: &'q Veil,
}

/// A range of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// From when.
    pub start: Timestamp,
    /// To when.
    pub end: Timestamp,
    /// The distance of two values.
    pub step: SignedDuration,
}

/// Without the provider, whose fields may hold secrets by now.
impl fmt::Debug for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("metric", &self.metric.name)
            .field("namespace", &self.namespace)
            .field("now", &self.now)
            .field("range", &self.range)
            .finish()
    }
}
