//! One term as the leader.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use stateward_analysis::http::{Http, Proxy};
use stateward_analysis::{AwsCredentials, Egress, KubeSecrets, Providers};
use stateward_controller::fence::guard;
use stateward_controller::{AnalysisJobs, Fence, Metrics, Operator, Options};

use super::refusals::Watch;

/// The dependencies of a term.
pub(super) struct Term {
    pub(super) client: Client,
    pub(super) options: Options,
    pub(super) metrics: Metrics,
    /// Where metrics may be queried from.
    pub(super) egress: Egress,
    /// Keeps the refused addresses up to date.
    pub(super) refusals: Watch,
    /// The proxy for metrics, if any.
    pub(super) proxy: Option<Proxy>,
    /// The namespaces whose metrics may be signed with the operator's AWS keys.
    pub(super) aws_namespaces: Vec<String>,
    /// The Prometheus address for metrics without one.
    pub(super) prometheus: Option<String>,
    /// What the Jobs of analyses may use.
    pub(super) jobs: AnalysisJobs,
}

/// Why a term ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Another operator may lead now.
    Lost,
    /// The operator was stopped, and no request is in flight.
    Stopped,
    /// The operator ended without being stopped.
    Broken,
}

/// How long to wait for requests in flight. Shorter than what remains of a Lease that is renewed on time.
const LAST_REQUEST: Duration = Duration::from_secs(5);

impl Term {
    fn providers(&self, client: &Client) -> Providers {
        let aws = AwsCredentials::from_variables(|name| std::env::var(name).ok());
        let http = Http::new(self.egress.clone()).proxy(self.proxy.clone());
        Providers::new(http, KubeSecrets(client.clone()))
            .default_prometheus(self.prometheus.clone())
            .aws(aws, self.aws_namespaces.clone())
    }

    /// Works behind `fence` until `lost` or `stop`. Decisions that were not sent yet are dropped: the next leader makes its own.
    pub(super) async fn serve(
        &self,
        fence: Fence,
        lost: impl Future<Output = ()>,
        stop: impl Future<Output = ()>,
    ) -> Ended {
        let client = guard(self.client.clone(), fence.clone(), self.metrics.clone());
        let providers = self.providers(&client);
        let operator = Operator::new(client, self.options.clone())
            .contain_panics()
            .metrics(self.metrics.clone())
            .analysis_jobs(self.jobs)
            .providers(Arc::new(providers));
        let mut operator = pin!(operator.run());
        self.metrics.leads(true);
        let ended = tokio::select! {
            () = &mut operator => Ended::Broken,
            () = self.refusals.keep_looking() => Ended::Broken,
            () = lost => Ended::Lost,
            () = stop => {
                fence.close();
                tokio::select! {
                    () = fence.idle() => {}
                    () = &mut operator => {}
                    () = tokio::time::sleep(LAST_REQUEST) => {}
                }
                Ended::Stopped
            }
        };
        fence.shut();
        self.metrics.leads(false);
        ended
    }
}
