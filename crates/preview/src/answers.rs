//! What metrics say in a preview: that all is well, unless something else is supposed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use stateward_analysis::{Ask, AskError, Question};
use stateward_api::phasedrollout::SuccessOn;
use stateward_core::analysis::{Data, Reply};

use crate::subject::Rollout;
use crate::what_if::{Verdict, What, WhatIf};

/// Answers every question. Cheap to clone; clones speak of the same step.
#[derive(Clone)]
pub(crate) struct Answers {
    suppositions: Arc<[WhatIf]>,
    /// For checks of a PhasedRollout, which ask for data or for none.
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

    /// The rollout is at this step now.
    pub(crate) fn come_to(&self, step: usize) {
        self.step.store(step, Ordering::Relaxed);
    }

    /// What a metric says now. The most specific supposition holds, whatever the order.
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
impl Ask for Answers {
    async fn ask(&self, question: &Question<'_>) -> Result<Reply, AskError> {
        // Time moves on when everybody is done with this moment: whoever tells us of the step has done so then.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let verdict = self.verdict(Some(&question.metric.name));
        let numbers = match (verdict, self.success_on) {
            (Verdict::Silent, _) => {
                return Err(AskError::ConnectionRefused {
                    origin: "the preview".into(),
                });
            }
            // As the conditions of a tamed template read it.
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
            newest: Some(question.now),
            series: None,
            notes: Default::default(),
        })
    }
}
