//! Metrics as a scenario says they are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use stateward_analysis::{Ask, AskError, Egress, Question};
use stateward_core::analysis::{Data, Reply};

/// Answers the queries of a scenario: `cluster.metrics().says("errors", [0.01])`. Of a query that nobody spoke of there is no
/// data. What another provider is asked, it cannot be.
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
    /// From now on the answer to this query is that.
    pub fn says(&self, query: &str, numbers: impl IntoIterator<Item = f64>) {
        let numbers = Said::Numbers(numbers.into_iter().collect());
        self.lock().says.insert(query.to_owned(), numbers);
    }

    /// From now on nobody answers this query.
    pub fn is_silent_about(&self, query: &str) {
        self.lock().says.insert(query.to_owned(), Said::Nothing);
    }

    /// How often this query was asked.
    pub fn asked(&self, query: &str) -> usize {
        self.lock().asked.get(query).copied().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Ask for Oracle {
    fn refusal(&self, address: &str) -> Option<String> {
        Egress::default()
            .refusal(address)
            .map(|refusal| refusal.to_string())
    }

    async fn ask(&self, question: &Question<'_>) -> Result<Reply, AskError> {
        let prometheus = question.metric.provider.prometheus.clone().unwrap_or_default();
        let mut state = self.lock();
        *state.asked.entry(prometheus.query.clone()).or_default() += 1;
        let numbers = match state.says.get(&prometheus.query) {
            Some(Said::Numbers(numbers)) => numbers.clone(),
            None => Vec::new(),
            Some(Said::Nothing) => {
                return Err(AskError::ConnectionRefused {
                    origin: "http://prometheus:9090".into(),
                });
            }
        };
        Ok(Reply {
            data: Data::Numbers(numbers),
            newest: Some(question.now),
            series: None,
            notes: [("ResolvedPrometheusQuery".to_owned(), prometheus.query)].into(),
        })
    }
}
