//! The clusters that transcripts run on: the embedded one on loopback, and the real one.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Config};
use serde_json::json;
use stateward_clock::Clock;
use stateward_cluster as embedded;
use stateward_kubelet::{Kubelet, Running};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::play::kubeconfig;

/// A namespace of its own, with a node, on some cluster that kubectl can reach.
pub(super) struct Place {
    /// Holds the kubeconfig; removed with the place.
    home: TempDir,
    client: Client,
    namespace: String,
    node: String,
    kubelet: Running,
    /// The embedded cluster and its server task, if it is embedded.
    served: Option<(embedded::Cluster, JoinHandle<()>)>,
}

/// How long the deletion of an earlier run's namespace may take.
const PATIENCE: Duration = Duration::from_secs(60);

impl Place {
    /// Starts an embedded cluster, in real time.
    pub(super) async fn embedded(namespace: &str) -> Result<Self> {
        let clock = Clock::wall();
        let cluster = embedded::Cluster::start(embedded::Options::at(clock.clone()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen on loopback")?;
        let port = listener
            .local_addr()
            .context("a listener without address")?
            .port();
        let router = cluster.router();
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "cannot serve any more");
            }
        });
        let home = home()?;
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
            "users": [{"name": "me", "user": {}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me", "namespace": namespace}}],
        });
        std::fs::write(kubeconfig(home.path()), config.to_string()).context("cannot write a kubeconfig")?;
        let client = cluster.client("system:admin");
        let mut place = Self::open(home, client, clock, namespace).await?;
        place.served = Some((cluster, server));
        Ok(place)
    }

    /// The real control plane of `admin`, a kubeconfig.
    pub(super) async fn real(admin: &Path, namespace: &str) -> Result<Self> {
        let mut config = Kubeconfig::read_from(admin)?;
        for context in &mut config.contexts {
            if let Some(context) = &mut context.context {
                context.namespace = Some(namespace.to_owned());
            }
        }
        let home = home()?;
        // Read the file that kubectl will read: if it works here, it works there.
        let text = serde_json::to_string(&config).context("cannot write a kubeconfig")?;
        std::fs::write(kubeconfig(home.path()), text).context("cannot write a kubeconfig")?;
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        Self::open(home, Client::try_from(config)?, Clock::wall(), namespace).await
    }

    async fn open(home: TempDir, client: Client, clock: Clock, namespace: &str) -> Result<Self> {
        let namespaces = Api::<Namespace>::all(client.clone());
        gone(&namespaces, namespace).await?;
        let made = serde_json::from_value(json!({"metadata": {"name": namespace}}))?;
        namespaces
            .create(&PostParams::default(), &made)
            .await
            .with_context(|| format!("cannot create namespace {namespace}"))?;
        // One node, since pods with generated names would otherwise get a different node in every run.
        let node = format!("{namespace}-a");
        let kubelet = Kubelet::new(client.clone(), clock)
            .namespace(namespace)
            .nodes([node.clone()])
            .spawn();
        let nodes = Api::<Node>::all(client.clone());
        await_condition(nodes, &node, |node: Option<&Node>| {
            let conditions = node.and_then(|node| node.status.as_ref()?.conditions.as_ref());
            conditions
                .into_iter()
                .flatten()
                .any(|one| one.type_ == "Ready" && one.status == "True")
        })
        .await
        .with_context(|| format!("node {node} did not get ready"))?;
        Ok(Self {
            home,
            client,
            namespace: namespace.to_owned(),
            node,
            kubelet,
            served: None,
        })
    }

    /// The directory of its kubeconfig.
    pub(super) fn home(&self) -> PathBuf {
        self.home.path().to_owned()
    }

    /// Deletes what it created.
    pub(super) async fn close(self) -> Result<()> {
        let Self {
            client,
            namespace,
            node,
            kubelet,
            served,
            home,
        } = self;
        if let Some((cluster, server)) = served {
            kubelet.stop().await;
            server.abort();
            drop(cluster);
        } else {
            // Keep the kubelet until its pods are gone: nothing else would delete them.
            gone(&Api::all(client.clone()), &namespace).await?;
            kubelet.stop().await;
            let nodes = Api::<Node>::all(client);
            nodes
                .delete(&node, &DeleteParams::default())
                .await
                .with_context(|| format!("cannot delete node {node}"))?;
        }
        home.close().context("cannot remove a temporary directory")
    }
}

/// Deletes a namespace and waits until it is gone.
async fn gone(namespaces: &Api<Namespace>, name: &str) -> Result<()> {
    let Some(there) = namespaces
        .get_opt(name)
        .await
        .with_context(|| format!("cannot look for namespace {name}"))?
    else {
        return Ok(());
    };
    if there.metadata.deletion_timestamp.is_none() {
        let deleted = namespaces.delete(name, &DeleteParams::background()).await;
        deleted.with_context(|| format!("cannot delete namespace {name}"))?;
    }
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let changes = watcher(namespaces.clone(), config)
        .default_backoff()
        .try_filter_map(|event| async move {
            Ok(match event {
                watcher::Event::Delete(_) => Some(()),
                _ => None,
            })
        });
    let waited = async {
        // It may have gone before the watch began.
        let mut changes = std::pin::pin!(changes);
        while namespaces.get_opt(name).await?.is_some() {
            let pause = tokio::time::timeout(Duration::from_secs(2), changes.try_next()).await;
            if let Ok(changed) = pause {
                changed?;
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, waited)
        .await
        .with_context(|| format!("namespace {name} is still there after {PATIENCE:?}"))?
}

fn home() -> Result<TempDir> {
    tempfile::tempdir().context("cannot make a temporary directory")
}

/// What the environment offers.
pub(super) struct Offered {
    /// The directory of a kubectl.
    pub(super) programs: Option<PathBuf>,
    /// The kubeconfig of a real control plane that tests may use freely.
    pub(super) admin: Option<PathBuf>,
}

impl Offered {
    pub(super) fn from_env() -> Self {
        let path = |name: &str| {
            std::env::var_os(name)
                .filter(|value: &OsString| !value.is_empty())
                .map(PathBuf::from)
        };
        let programs = path("STATEWARD_TEST_KUBE").and_then(|kube| kube.parent().map(Path::to_owned));
        Self {
            programs,
            admin: path("STATEWARD_TEST_KUBECONFIG"),
        }
    }
}
