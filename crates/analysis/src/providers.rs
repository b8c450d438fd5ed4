//! All providers behind one trait: the field that is given says who is asked.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use stateward_api::analysis::Provider;
use stateward_core::analysis::Reply;

use crate::address::Address;
use crate::auth::{Aws, AwsCredentials, Doors, Tokens};
use crate::http::{Http, Request, Response};
use crate::{
    Ask, AskError, Question, Secrets, Workers, datadog, graphite, influxdb, new_relic, prometheus,
    skywalking, wavefront, web,
};

/// Asks whichever provider a metric names.
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
    /// Over this client, with the keys from these Secrets.
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

    /// Asks the Prometheus at `address` where a metric gives none.
    pub fn default_prometheus(mut self, address: Option<String>) -> Self {
        self.default_prometheus = address.filter(|address| !address.trim().is_empty());
        self
    }

    /// Signs queries to Amazon Managed Service for Prometheus with these keys, for runs in these namespaces. The keys are the
    /// operator's: a namespace that is not listed has no use of them.
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

    /// Sends a request and has `read` make a reply of a good answer.
    pub(crate) async fn send(
        &self,
        question: &Question<'_>,
        request: Request,
        read: impl FnOnce(&str, &[u8]) -> Result<Reply, AskError> + Send + 'static,
    ) -> Result<Reply, AskError> {
        let response = self.http.send(question.namespace, request).await?.ok()?;
        self.read(question, response, move |response| {
            read(&response.origin, &response.body)
        })
        .await
    }

    /// Has `read` make a reply of an answer, away from the async workers.
    pub(crate) async fn read(
        &self,
        question: &Question<'_>,
        response: Response,
        read: impl FnOnce(&Response) -> Result<Reply, AskError> + Send + 'static,
    ) -> Result<Reply, AskError> {
        let work = move || read(&response);
        self.workers.run(question.namespace, work).await
    }

    pub(crate) fn doors<'d>(&'d self, question: &Question<'d>) -> Doors<'d> {
        Doors {
            http: &self.http,
            tokens: &self.tokens,
            aws: self.aws_for(question.namespace),
            namespace: question.namespace,
            now: question.now,
            veil: question.veil,
        }
    }
}

#[async_trait]
impl Ask for Providers {
    fn refusal(&self, address: &str) -> Option<String> {
        match Address::parse("", address) {
            // The operator's own.
            _ if address.is_empty() => None,
            Err(AskError::BadField { problem, .. }) if !address.contains("{{") => Some(problem),
            Ok(_) | Err(_) => self.http.refusal(address),
        }
    }

    async fn ask(&self, question: &Question<'_>) -> Result<Reply, AskError> {
        let not_served = |provider, why| Err(AskError::NotServed { provider, why });
        const NOBODY: &str = "is not served";
        match &question.metric.provider {
            Provider {
                prometheus: Some(metric),
                ..
            } => prometheus::ask(self, metric, question).await,
            Provider {
                web: Some(metric), ..
            } => web::ask(self, metric, question).await,
            Provider {
                datadog: Some(metric),
                ..
            } => datadog::ask(self, metric, question).await,
            Provider {
                new_relic: Some(metric),
                ..
            } => new_relic::ask(self, metric, question).await,
            Provider {
                graphite: Some(metric),
                ..
            } => graphite::ask(self, metric, question).await,
            Provider {
                influxdb: Some(metric),
                ..
            } => influxdb::ask(self, metric, question).await,
            Provider {
                wavefront: Some(metric),
                ..
            } => wavefront::ask(self, metric, question).await,
            Provider {
                skywalking: Some(metric),
                ..
            } => skywalking::ask(self, metric, question).await,
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
            } => Err(AskError::bad_field("provider", "names nobody to ask")),
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
