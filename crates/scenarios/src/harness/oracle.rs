//! Metric values that a scenario sets.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use stateward_analysis::{Egress, MetricProvider, MetricQuery, ProviderError};
use stateward_core::analysis::{Data, Reply};

/// Answers metric queries from values that the scenario sets: `cluster.metrics().says("errors", [0.01])`. A query without a value has no
/// data. Queries of other providers fail.
#[derive(Clone, Default)]
pub struct Oracle(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    says: BTreeMap<String, Said>,
    asked: BTreeMap<String, usize>,
}

#[derive(Clone)]
enum Said {
    Numbers(Vec<f64>),
    Nothing,
}

impl Oracle {
    /// Sets the answer to this query from now on.
    pub fn says(&self, query: &str, numbers: impl IntoIterator<Item = f64>) {
        let numbers = Said::Numbers(numbers.into_iter().collect());
        self.lock().says.insert(query.to_owned(), numbers);
    }

    /// From now on this query gets no answer.
    pub fn is_silent_about(&self, query: &str) {
        self.lock().says.insert(query.to_owned(), Said::Nothing);
    }

    /// How often this query was run.
    pub fn asked(&self, query: &str) -> usize {
        self.lock().asked.get(query).copied().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

#[async_trait]
impl MetricProvider for Oracle {
    fn refusal(&self, address: &str) -> Option<String> {
        Egress::default()
            .refusal(address)
            .map(|refusal| refusal.to_string())
    }

    async fn query(&self, query: &MetricQuery<'_>) -> Result<Reply, ProviderError> {
        let prometheus = query.metric.provider.prometheus.clone().unwrap_or_default();
        let mut state = self.lock();
        *state.asked.entry(prometheus.query.clone()).or_default() += 1;
        let numbers = match state.says.get(&prometheus.query) {
            Some(Said::Numbers(numbers)) => numbers.clone(),
            None => Vec::new(),
            Some(Said::Nothing) => {
                return Err(ProviderError::ConnectionRefused {
                    origin: "http://prometheus:9090".into(),
                });
            }
        };
        Ok(Reply {
            data: Data::Numbers(numbers),
            newest: Some(query.now),
            series: None,
            notes: [("ResolvedPrometheusQuery".to_owned(), prometheus.query)].into(),
        })
    }
}
