//! Where scenarios run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use stateward_clock::Clock;
use stateward_cluster as embedded;

use super::audit::AuditLog;
use super::cluster::{Cluster, OPERATOR, Settings, Simulation};
use super::failure::Outcome;
use super::rbac;
use crate::simulation::chaos::Chaos;

/// A control plane that scenarios run on.
#[derive(Clone)]
#[allow(private_interfaces, reason = "only the simulation makes that one")]
pub enum Backend {
    /// The embedded cluster, in this process and in virtual time.
    Embedded,
    /// The embedded cluster in real time, for scenarios that involve other programs.
    EmbeddedLive,
    /// The embedded cluster with faults injected into the operator and with invariant checks.
    Simulated(Arc<Chaos>),
    /// etcd, kube-apiserver and kube-controller-manager.
    Real {
        /// A client with all rights.
        client: Client,
        /// The operator's client: with the operator's own rights if `cargo xtask test` started the control plane, and identifiable in the
        /// audit log.
        operator: Box<Client>,
        /// The audit log, if `cargo xtask test` started the control plane.
        audit: Option<AuditLog>,
    },
}

/// Names the kubeconfig of the control plane that tests may use freely. `cargo xtask test` sets it. The tests do not use a plain
/// `KUBECONFIG`, because it may point to production.
const TEST_KUBECONFIG: &str = "STATEWARD_TEST_KUBECONFIG";

/// Names the operator's kubeconfig on that control plane: the operator's role decides what it may do.
const OPERATOR_KUBECONFIG: &str = "STATEWARD_TEST_OPERATOR_KUBECONFIG";

/// When embedded scenarios begin. Any fixed time works.
const EMBEDDED_EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0);

impl Backend {
    /// The real control plane that the environment names, or `None`.
    pub async fn real() -> anyhow::Result<Option<Self>> {
        let Some(path) = test_kubeconfig() else {
            return Ok(None);
        };
        let config = config(path).await?;
        let client = Client::try_from(config.clone())?;
        let operator = match operator_kubeconfig() {
            Some(path) => {
                let operator = operators(self::config(path).await?)?;
                rbac::grant(&client, &operator).await?;
                operator
            }
            None => operators(config)?,
        };
        Ok(Some(Self::Real {
            client,
            operator: Box::new(operator),
            audit: AuditLog::from_env(),
        }))
    }

    /// The prefix of this back end's scenarios in test output.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Embedded | Self::EmbeddedLive | Self::Simulated(_) => "embedded",
            Self::Real { .. } => "real",
        }
    }

    /// A cluster for one scenario of this name.
    pub async fn cluster(&self, scenario: &str) -> Outcome<Cluster> {
        match self {
            Self::Embedded | Self::EmbeddedLive | Self::Simulated(_) => {
                let live = matches!(self, Self::EmbeddedLive);
                let clock = if live {
                    Clock::wall()
                } else {
                    Clock::starting_at(EMBEDDED_EPOCH, 1.0)
                };
                let cluster = Arc::new(embedded::Cluster::start(embedded::Options::at(clock.clone())));
                // In virtual time a long deadline costs nothing, and no controller watches for heartbeats.
                let settings = Settings {
                    patience: Duration::from_secs(if live { 120 } else { 3600 }),
                    audit: Some(AuditLog::Embedded(cluster.clone())),
                    operator: cluster.client(OPERATOR),
                    kubelet: cluster.lean_client("system:admin"),
                    heartbeat: None,
                    simulation: match self {
                        Self::Simulated(chaos) => Some(Simulation::of(cluster.clone(), chaos.clone())),
                        Self::Embedded | Self::EmbeddedLive | Self::Real { .. } => None,
                    },
                    kubeconfig: None,
                };
                Cluster::open(cluster.client("system:admin"), clock, scenario, settings).await
            }
            Self::Real {
                client,
                operator,
                audit,
            } => {
                // Many scenarios share two cores; the deadline is for what never happens, not for what happens late.
                let settings = Settings {
                    patience: Duration::from_secs(120),
                    audit: audit.clone(),
                    operator: *operator.clone(),
                    kubelet: client.clone(),
                    heartbeat: Some(Duration::from_secs(10)),
                    simulation: None,
                    kubeconfig: test_kubeconfig(),
                };
                Cluster::open(client.clone(), Clock::wall(), scenario, settings).await
            }
        }
    }
}

fn test_kubeconfig() -> Option<PathBuf> {
    path_in(TEST_KUBECONFIG)
}

/// The kubeconfig with the operator's own rights, if `cargo xtask test` started the control plane.
pub fn operator_kubeconfig() -> Option<PathBuf> {
    path_in(OPERATOR_KUBECONFIG)
}

fn path_in(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}

async fn config(kubeconfig: PathBuf) -> anyhow::Result<Config> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

fn operators(mut config: Config) -> kube::Result<Client> {
    let agent = http::HeaderValue::from_static(OPERATOR);
    config.headers.push((http::header::USER_AGENT, agent));
    // As in the operator: it must see the 429 of an eviction that a PodDisruptionBudget rejects.
    config.default_retry = false;
    Client::try_from(config)
}
