//! Metric answers in a preview: successful, unless a what-if says otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use stateward_analysis::{MetricProvider, MetricQuery, ProviderError};
use stateward_api::phasedrollout::SuccessOn;
use stateward_core::analysis::{Data, Reply};

use crate::subject::Rollout;
use crate::what_if::{Verdict, What, WhatIf};

/// Answers every metric query. Cheap to clone; clones share the current step.
#[derive(Clone)]
pub(crate) struct Answers {
    suppositions: Arc<[WhatIf]>,
    /// For checks of a PhasedRollout, which require data or no data.
    success_on: Option<SuccessOn>,
    step: Arc<AtomicUsize>,
}

impl Answers {
    pub(crate) fn new(suppositions: &[WhatIf], rollout: &Rollout) -> Self {
        let mut suppositions = suppositions.to_vec();
        suppositions.sort_by_key(|supposed| {
            let named = matches!(&supposed.what, What::Metric { name: Some(_), .. });
            (named, supposed.step.is_some())
        });
        Self {
            suppositions: suppositions.into(),
            success_on: match rollout {
                Rollout::Plugin(_) => None,
                Rollout::Phased(rollout) => Some(rollout.success_on()),
            },
            step: Arc::default(),
        }
    }

    /// Sets the current step of the rollout.
    pub(crate) fn come_to(&self, step: usize) {
        self.step.store(step, Ordering::Relaxed);
    }

    /// The current verdict of a metric. The most specific what-if wins, whatever the order.
    pub(crate) fn verdict(&self, metric: Option<&str>) -> Verdict {
        let now = self.step.load(Ordering::Relaxed);
        let said = self.suppositions.iter().rev().find_map(|supposed| {
            let What::Metric { name, verdict } = &supposed.what else {
                return None;
            };
            let meant = name.is_none() || name.as_deref() == metric;
            (meant && supposed.step.is_none_or(|step| step == now)).then_some(*verdict)
        });
        said.unwrap_or(Verdict::Succeeds)
    }
}

#[async_trait]
impl MetricProvider for Answers {
    async fn query(&self, query: &MetricQuery<'_>) -> Result<Reply, ProviderError> {
        // Virtual time advances only once every task is idle: by then `come_to` has recorded the step.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let verdict = self.verdict(Some(&query.metric.name));
        let numbers = match (verdict, self.success_on) {
            (Verdict::Silent, _) => {
                return Err(ProviderError::ConnectionRefused {
                    origin: "the preview".into(),
                });
            }
            // The result that the conditions of a tamed template expect.
            (Verdict::Succeeds, None) => vec![1.0],
            (Verdict::Fails, None) => vec![0.0],
            (Verdict::Inconclusive, None) => vec![2.0],
            (Verdict::Succeeds, Some(SuccessOn::NoData)) => Vec::new(),
            (Verdict::Succeeds, Some(SuccessOn::Data)) => vec![1.0],
            (Verdict::Fails | Verdict::Inconclusive, Some(SuccessOn::NoData)) => vec![1.0],
            (Verdict::Fails | Verdict::Inconclusive, Some(SuccessOn::Data)) => Vec::new(),
        };
        Ok(Reply {
            data: Data::Numbers(numbers),
            newest: Some(query.now),
            series: None,
            notes: Default::default(),
        })
    }
}
