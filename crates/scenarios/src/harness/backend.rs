//! Where scenarios run.

use std::ffi::OsString;
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
use crate::simulation::chaos::Chaos;

/// A control plane that scenarios run on.
#[derive(Clone)]
#[allow(private_interfaces, reason = "only the simulation makes that one")]
pub enum Backend {
    /// The embedded cluster, in this process and in virtual time.
    Embedded,
    /// The same, with an operator that things go wrong for and invariants that are checked.
    Simulated(Arc<Chaos>),
    /// etcd, kube-apiserver and kube-controller-manager.
    Real {
        /// A client with all rights.
        client: Client,
        /// One that says it is the operator's.
        operator: Box<Client>,
        /// Where it logs its writes, when it is ours.
        audit: Option<AuditLog>,
    },
}

/// Names the kubeconfig of the control plane that tests may use as they like. `cargo xtask test` sets it; a plain
/// `KUBECONFIG` is not enough, because that may well be production.
const TEST_KUBECONFIG: &str = "STATEWARD_TEST_KUBECONFIG";

/// When embedded scenarios begin. Any day will do, as long as it is always the same.
const EMBEDDED_EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0);

impl Backend {
    /// The real control plane the environment offers, or why there is none.
    pub async fn real() -> anyhow::Result<Option<Self>> {
        let Some(path) = test_kubeconfig() else {
            return Ok(None);
        };
        let kubeconfig = Kubeconfig::read_from(path)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let mut operator = config.clone();
        operator
            .headers
            .push((http::header::USER_AGENT, http::HeaderValue::from_static(OPERATOR)));
        Ok(Some(Self::Real {
            client: Client::try_from(config)?,
            operator: Box::new(Client::try_from(operator)?),
            audit: AuditLog::from_env(),
        }))
    }

    /// What the scenarios of this back end are called in test output.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Embedded | Self::Simulated(_) => "embedded",
            Self::Real { .. } => "real",
        }
    }

    pub(crate) async fn cluster(&self, scenario: &str) -> Outcome<Cluster> {
        match self {
            Self::Embedded | Self::Simulated(_) => {
                let clock = Clock::starting_at(EMBEDDED_EPOCH, 1.0);
                let cluster = Arc::new(embedded::Cluster::start(embedded::Options::at(clock.clone())));
                // Time is virtual: a deadline costs nothing, and nobody there listens for heartbeats.
                let settings = Settings {
                    patience: Duration::from_secs(3600),
                    audit: Some(AuditLog::Embedded(cluster.clone())),
                    operator: cluster.client(OPERATOR),
                    heartbeat: None,
                    simulation: match self {
                        Self::Simulated(chaos) => Some(Simulation::of(cluster.clone(), chaos.clone())),
                        Self::Embedded | Self::Real { .. } => None,
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
    std::env::var_os(TEST_KUBECONFIG)
        .filter(|path: &OsString| !path.is_empty())
        .map(PathBuf::from)
}
