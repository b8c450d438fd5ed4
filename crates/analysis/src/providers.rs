//! All providers behind one trait: the provider field of a metric selects one.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use stateward_api::analysis::Provider;
use stateward_core::analysis::Reply;

use crate::address::Address;
use crate::auth::{AuthenticatedClient, Aws, AwsCredentials, Tokens};
use crate::http::{Http, Request, Response};
use crate::{
    MetricProvider, MetricQuery, ProviderError, Secrets, Workers, datadog, graphite, influxdb, new_relic,
    prometheus, skywalking, wavefront, web,
};

/// Queries the provider that a metric selects.
pub struct Providers {
    pub(crate) http: Http,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) default_prometheus: Option<String>,
    aws: Option<AwsCredentials>,
    aws_namespaces: Vec<String>,
    tokens: Tokens,
    workers: Workers,
}

impl Providers {
    /// With this client, and keys from these Secrets.
    pub fn new(http: Http, secrets: impl Secrets + 'static) -> Self {
        Self {
            http,
            secrets: Arc::new(secrets),
            default_prometheus: None,
            aws: None,
            aws_namespaces: Vec::new(),
            tokens: Tokens::default(),
            workers: Workers::default(),
        }
    }

    /// Sets the default Prometheus address.
    pub fn default_prometheus(mut self, address: Option<String>) -> Self {
        self.default_prometheus = address.filter(|address| !address.trim().is_empty());
        self
    }

    /// Signs queries to Amazon Managed Service for Prometheus with these keys, for runs in these namespaces. The keys are the operator's:
    /// other namespaces cannot use them.
    pub fn aws(mut self, keys: Option<AwsCredentials>, namespaces: Vec<String>) -> Self {
        self.aws = keys;
        self.aws_namespaces = namespaces;
        self
    }

    fn aws_for(&self, namespace: &str) -> Aws<'_> {
        match &self.aws {
            None => Aws::None,
            Some(keys) if self.aws_namespaces.iter().any(|listed| listed == namespace) => Aws::Keys(keys),
            Some(_) => Aws::Elsewhere,
        }
    }

    /// Sends a request and parses a successful response with `read`.
    pub(crate) async fn send(
        &self,
        query: &MetricQuery<'_>,
        request: Request,
        read: impl FnOnce(&str, &[u8]) -> Result<Reply, ProviderError> + Send + 'static,
    ) -> Result<Reply, ProviderError> {
        let response = self.http.send(query.namespace, request).await?.ok()?;
        self.read(query, response, move |response| {
            read(&response.origin, &response.body)
        })
        .await
    }

    /// Parses a response with `read`, outside the async workers.
    pub(crate) async fn read(
        &self,
        query: &MetricQuery<'_>,
        response: Response,
        read: impl FnOnce(&Response) -> Result<Reply, ProviderError> + Send + 'static,
    ) -> Result<Reply, ProviderError> {
        let work = move || read(&response);
        self.workers.run(query.namespace, work).await
    }

    pub(crate) fn authenticated<'d>(&'d self, query: &MetricQuery<'d>) -> AuthenticatedClient<'d> {
        AuthenticatedClient {
            http: &self.http,
            tokens: &self.tokens,
            aws: self.aws_for(query.namespace),
            namespace: query.namespace,
            now: query.now,
            redactor: query.redactor,
        }
    }
}

#[async_trait]
impl MetricProvider for Providers {
    fn refusal(&self, address: &str) -> Option<String> {
        match Address::parse("", address) {
            // The operator's own default applies.
            _ if address.is_empty() => None,
            Err(ProviderError::BadField { problem, .. }) if !address.contains("{{") => Some(problem),
            Ok(_) | Err(_) => self.http.refusal(address),
        }
    }

    async fn query(&self, query: &MetricQuery<'_>) -> Result<Reply, ProviderError> {
        let not_served = |provider, why| Err(ProviderError::NotServed { provider, why });
        const NOBODY: &str = "is not served";
        match &query.metric.provider {
            Provider {
                prometheus: Some(metric),
                ..
            } => prometheus::query(self, metric, query).await,
            Provider {
                web: Some(metric), ..
            } => web::query(self, metric, query).await,
            Provider {
                datadog: Some(metric),
                ..
            } => datadog::query(self, metric, query).await,
            Provider {
                new_relic: Some(metric),
                ..
            } => new_relic::query(self, metric, query).await,
            Provider {
                graphite: Some(metric),
                ..
            } => graphite::query(self, metric, query).await,
            Provider {
                influxdb: Some(metric),
                ..
            } => influxdb::query(self, metric, query).await,
            Provider {
                wavefront: Some(metric),
                ..
            } => wavefront::query(self, metric, query).await,
            Provider {
                skywalking: Some(metric),
                ..
            } => skywalking::query(self, metric, query).await,
            Provider { job: Some(_), .. } => {
                not_served("job", "is not asked over HTTP; its Job is run instead")
            }
            Provider {
                cloud_watch: Some(_), ..
            } => not_served("cloudWatch", NOBODY),
            Provider { kayenta: Some(_), .. } => not_served("kayenta", NOBODY),
            Provider { plugin: Some(_), .. } => not_served("plugin", NOBODY),
            Provider {
                prometheus: None,
                web: None,
                job: None,
                datadog: None,
                new_relic: None,
                cloud_watch: None,
                graphite: None,
                influxdb: None,
                wavefront: None,
                kayenta: None,
                skywalking: None,
                plugin: None,
            } => Err(ProviderError::bad_field("provider", "names no provider")),
        }
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Providers")
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}
