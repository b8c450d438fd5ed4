//! The way to the API server, and the wait for what has to be there.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::http::HeaderValue;
use axum::http::header::USER_AGENT;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use stateward_api::rolloutplugin::RolloutPlugin;
use tokio::time::{Instant, sleep, timeout};

use super::probes::{Readiness, State};

/// The API server did not answer.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach the API server at {server}: {cause}; check --kubeconfig, --context and the network")]
pub(crate) struct Unreachable {
    server: String,
    cause: String,
}

/// How long the API server may take to answer for the first time: it may be starting too.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long one request may take meanwhile.
const ONE_REQUEST: Duration = Duration::from_secs(10);
/// How often to look again.
const GLANCE: Duration = Duration::from_secs(2);

/// The configuration that was asked for, or the one that kubectl or a pod would use.
pub(super) async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Config> {
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let mut config = match (kubeconfig, context) {
        (Some(path), _) => {
            let kubeconfig =
                Kubeconfig::read_from(path).with_context(|| format!("cannot use {}", path.display()))?;
            Config::from_custom_kubeconfig(kubeconfig, &options)
                .await
                .with_context(|| format!("cannot use {}", path.display()))?
        }
        (None, Some(context)) => Config::from_kubeconfig(&options)
            .await
            .with_context(|| format!("cannot use context {context}"))?,
        (None, None) => Config::infer()
            .await
            .context("found neither a kubeconfig nor a service account; name one with --kubeconfig")?,
    };
    // An eviction that a disruption budget refuses is a 429, and has to come back at once: when to try again is decided
    // elsewhere.
    config.default_retry = false;
    config.connect_timeout = Some(ONE_REQUEST);
    // Who reads an audit log sees at once whose writes these are.
    let agent = HeaderValue::from_static(concat!("stateward-operator/", env!("CARGO_PKG_VERSION")));
    config.headers.push((USER_AGENT, agent));
    Ok(config)
}

/// Waits until the server knows RolloutPlugins and lets us list them.
pub(super) async fn wait_for_definition(
    client: &Client,
    server: &str,
    namespaces: &[String],
    readiness: &Readiness,
) -> Result<()> {
    let api: Api<RolloutPlugin> = match namespaces.first() {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let one = ListParams::default().limit(1);
    let url = api.resource_url();
    let (mut answered, mut told) = (Instant::now(), false);
    loop {
        let request = kube::core::Request::new(url).list_metadata(&one)?;
        // What is listed does not matter, and could be anything.
        let cause = match timeout(ONE_REQUEST, client.request_text(request)).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(kube::Error::Api(status))) => {
                match status.code {
                    401 => bail!("the API server at {server} does not know us: {}", status.message),
                    403 => bail!(
                        "{}; grant it with: stateward install --rbac | kubectl apply -f -",
                        status.message
                    ),
                    404 => {
                        answered = Instant::now();
                        readiness.set(State::NoDefinition);
                        if !told {
                            told = true;
                            tracing::warn!(
                                "the cluster does not know RolloutPlugins yet, waiting; apply the definition with: stateward install --crds | kubectl apply -f -"
                            );
                        }
                    }
                    _ => {}
                }
                status.message.clone()
            }
            Ok(Err(error)) => causes(&error),
            Err(_) => "no answer".to_owned(),
        };
        if answered.elapsed() > PATIENCE {
            let server = server.to_owned();
            return Err(Unreachable { server, cause }.into());
        }
        if !told {
            tracing::warn!(server, cause, "the API server is not ready; will try again");
        }
        sleep(GLANCE).await;
    }
}

/// An error with what lies beneath: the outermost alone says little.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}
