//! One term as the leader, to its end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use stateward_analysis::http::{Http, Proxy};
use stateward_analysis::{AwsCredentials, Egress, KubeSecrets, Providers};
use stateward_controller::fence::guard;
use stateward_controller::{AnalysisJobs, Fence, Metrics, Operator, Options};

use super::refusals::Watch;

/// What a term needs.
pub(super) struct Term {
    pub(super) client: Client,
    pub(super) options: Options,
    pub(super) metrics: Metrics,
    /// Where metrics are asked for.
    pub(super) egress: Egress,
    /// Keeps up to date where not.
    pub(super) refusals: Watch,
    /// Through which proxy, if any.
    pub(super) proxy: Option<Proxy>,
    /// Whose metrics may be signed with the operator's keys for AWS.
    pub(super) aws_namespaces: Vec<String>,
    /// Whom to ask where a metric does not say.
    pub(super) prometheus: Option<String>,
    /// What the Jobs of analyses may ask for.
    pub(super) jobs: AnalysisJobs,
}

/// Why a term ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Somebody else may lead now.
    Lost,
    /// It was told to stop, and nothing is on its way any more.
    Stopped,
    /// The operator ended though nobody asked it to.
    Broken,
}

/// How long a request on its way is waited for. Shorter than what is left of a lease that is renewed as it should be.
const LAST_REQUEST: Duration = Duration::from_secs(5);

impl Term {
    fn providers(&self, client: &Client) -> Providers {
        let aws = AwsCredentials::from_variables(|name| std::env::var(name).ok());
        let http = Http::new(self.egress.clone()).proxy(self.proxy.clone());
        Providers::new(http, KubeSecrets(client.clone()))
            .default_prometheus(self.prometheus.clone())
            .aws(aws, self.aws_namespaces.clone())
    }

    /// Works behind `fence` until `lost` or told to `stop`. What was decided and not yet sent is dropped: the next leader
    /// decides for itself.
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
