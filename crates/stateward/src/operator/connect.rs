//! Connects to the API server, and waits for what the operator needs.

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
use crate::install::manifests;

/// The API server did not answer.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach the API server at {server}: {cause}; check --kubeconfig, --context and the network")]
pub(crate) struct Unreachable {
    server: String,
    cause: String,
}

/// The timeout of the first contact with the API server, which may be starting too.
const PATIENCE: Duration = Duration::from_secs(30);
/// The timeout of one request meanwhile.
const ONE_REQUEST: Duration = Duration::from_secs(10);
/// The time between two attempts.
const GLANCE: Duration = Duration::from_secs(2);

/// The given kubeconfig, or the default configuration of kubectl or of a pod.
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
    // The API answers 429 if a disruption budget forbids an eviction. Return it at once: the retry is scheduled elsewhere.
    config.default_retry = false;
    config.connect_timeout = Some(ONE_REQUEST);
    // Identifies the operator's writes in an audit log.
    let agent = HeaderValue::from_static(concat!("stateward-operator/", env!("CARGO_PKG_VERSION")));
    config.headers.push((USER_AGENT, agent));
    Ok(config)
}

/// Waits until the API server serves RolloutPlugins and allows listing them.
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
        // The content of the list does not matter and may be invalid.
        let cause = match timeout(ONE_REQUEST, client.request_text(request)).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(kube::Error::Api(status))) => {
                match status.code {
                    401 => bail!("the API server at {server} does not know us: {}", status.message),
                    403 => {
                        let user = stateward_client::whoami(client).await;
                        bail!(
                            "{}; an administrator grants it with: {}",
                            status.message,
                            grant(user.as_deref())
                        )
                    }
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

/// How to grant the operator's permissions to its user: the manifests' service account, or the user of a kubeconfig.
fn grant(user: Option<&str>) -> String {
    let account = user.and_then(|user| user.strip_prefix("system:serviceaccount:"));
    let arguments = match (user, account.and_then(|account| account.split_once(':'))) {
        (_, Some((manifests::OWN_NAMESPACE, manifests::NAME))) => String::new(),
        (_, Some((namespace, manifests::NAME))) => format!(" -n {}", stateward_cli::quoted(namespace)),
        (Some(user), _) => format!(" --user {}", stateward_cli::quoted(user)),
        (None, _) => " --user USER".into(),
    };
    format!("stateward install --rbac{arguments} | kubectl apply -f -")
}

/// An error with its sources: the outermost message alone says little.
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

#[cfg(test)]
mod tests {
    use super::*;
    use kube::client::Body;
    use rstest::rstest;
    use serde_json::json;

    /// An API server that forbids everything and reports the user.
    fn refusing(user: Option<&'static str>) -> Client {
        let service = tower::service_fn(move |request: http::Request<Body>| async move {
            let review = request.uri().path().ends_with("/selfsubjectreviews");
            let (code, body) = match user.filter(|_| review) {
                Some(user) => (201, json!({"status": {"userInfo": {"username": user}}})),
                None => (
                    403,
                    json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "you may not"}),
                ),
            };
            let body = Body::from(body.to_string().into_bytes());
            http::Response::builder().status(code).body(body)
        });
        Client::new(service, "default")
    }

    #[rstest]
    #[case::a_person(
        Some("alice@example.com"),
        "stateward install --rbac --user alice@example.com | kubectl apply -f -"
    )]
    #[case::quoted(
        Some("alice's"),
        r"stateward install --rbac --user 'alice'\''s' | kubectl apply -f -"
    )]
    #[case::another_account(
        Some("system:serviceaccount:ci:runner"),
        "stateward install --rbac --user system:serviceaccount:ci:runner | kubectl apply -f -"
    )]
    #[case::our_account(
        Some("system:serviceaccount:stateward-system:stateward"),
        "stateward install --rbac | kubectl apply -f -"
    )]
    #[case::our_account_elsewhere(
        Some("system:serviceaccount:ops:stateward"),
        "stateward install --rbac -n ops | kubectl apply -f -"
    )]
    #[case::not_known(None, "stateward install --rbac --user USER | kubectl apply -f -")]
    #[tokio::test]
    async fn a_missing_right_is_granted_to_whoever_lacks_it(
        #[case] user: Option<&'static str>,
        #[case] command: &str,
    ) {
        let refused = wait_for_definition(&refusing(user), "https://k", &[], &Readiness::default()).await;
        assert_eq!(
            refused.unwrap_err().to_string(),
            format!("you may not; an administrator grants it with: {command}")
        );
    }
}
