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
    /// The same in everybody's time, for what other programs have a part in.
    EmbeddedLive,
    /// The embedded cluster with an operator that things go wrong for and invariants that are checked.
    Simulated(Arc<Chaos>),
    /// etcd, kube-apiserver and kube-controller-manager.
    Real {
        /// A client with all rights.
        client: Client,
        /// The operator's: with its own rights where the plane is ours, and known to the audit log.
        operator: Box<Client>,
        /// Where it logs its writes, when it is ours.
        audit: Option<AuditLog>,
    },
}

/// Names the kubeconfig of the control plane that tests may use as they like. `cargo xtask test` sets it; a plain
/// `KUBECONFIG` is not enough, because that may well be production.
const TEST_KUBECONFIG: &str = "STATEWARD_TEST_KUBECONFIG";

/// Names the kubeconfig of the operator there: what it may do is what its role says.
const OPERATOR_KUBECONFIG: &str = "STATEWARD_TEST_OPERATOR_KUBECONFIG";

/// When embedded scenarios begin. Any day will do, as long as it is always the same.
const EMBEDDED_EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0);

impl Backend {
    /// The real control plane the environment offers, or why there is none.
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

    /// What the scenarios of this back end are called in test output.
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
                // Where time is virtual a deadline costs nothing; and nobody there listens for heartbeats.
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
                // Many scenarios share two cores; a deadline is for what never comes, not for what comes late.
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

/// The kubeconfig with the operator's own rights, where the plane is ours.
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
    // As the operator has it: an eviction that a disruption budget refuses is a 429, which it wants to see.
    config.default_retry = false;
    Client::try_from(config)
}
