//! The components of a plane and their arguments.

use std::fmt;
use std::fs;
use std::net::TcpListener;
use std::path::Path;

use anyhow::{Context, Result};

use super::Options;
use super::dir::PlaneDir;
use super::users::User;

/// Logs every write with its request body, the metadata of the operator's reads, and nothing else. Tests filter by user.
fn audit_policy() -> String {
    format!(
        "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Request
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
  users: [{:?}]
- level: None
",
        User::Operator.name()
    )
}

/// One process of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Component {
    /// etcd.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb())
    }
}

impl Component {
    /// The component's name, as the first argument of the multi-call binary.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "apiserver",
            Self::ControllerManager => "controller-manager",
        }
    }

    /// The file name of its log.
    pub(crate) fn log(self) -> String {
        format!("{self}.log")
    }

    /// The arguments of a component; those of the user come last and take precedence.
    pub(crate) fn arguments(self, dir: &PlaneDir, ports: &Ports, options: &Options) -> Vec<String> {
        let (mut arguments, extra) = match self {
            Self::Etcd => (etcd(dir, ports), &options.etcd_arg),
            Self::ApiServer => (apiserver(dir, ports), &options.apiserver_arg),
            Self::ControllerManager => (controller_manager(dir), &options.controller_manager_arg),
        };
        if self != Self::Etcd && !options.feature_gates.is_empty() {
            arguments.push(format!("--feature-gates={}", options.feature_gates.join(",")));
        }
        arguments.extend(extra.iter().cloned());
        arguments
    }
}

/// Loopback ports of a plane.
pub(crate) struct Ports {
    etcd: u16,
    peer: u16,
    apiserver: u16,
}

impl Ports {
    /// Three free ports; another process may still take one first.
    pub(crate) fn free() -> Result<Self> {
        // All are bound at the same time, so that they differ.
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0"));
        let mut ports = [0; 3];
        for (port, listener) in ports.iter_mut().zip(&listeners) {
            let listener = listener
                .as_ref()
                .map_err(|error| anyhow::anyhow!("no free loopback port: {error}"))?;
            *port = listener
                .local_addr()
                .context("a listener without address")?
                .port();
        }
        let [etcd, peer, apiserver] = ports;
        Ok(Self {
            etcd,
            peer,
            apiserver,
        })
    }

    /// The address of the API server.
    pub(crate) fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.apiserver)
    }
}

/// Writes the files that the components only read.
pub(crate) fn write_files(dir: &PlaneDir) -> Result<()> {
    fs::write(dir.join("audit-policy.yaml"), audit_policy()).context("cannot write the audit policy")
}

fn etcd(dir: &PlaneDir, ports: &Ports) -> Vec<String> {
    let (client, peer) = (
        format!("http://127.0.0.1:{}", ports.etcd),
        format!("http://127.0.0.1:{}", ports.peer),
    );
    vec![
        flag("data-dir", dir.join("etcd")),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--unsafe-no-fsync".to_owned(),
    ]
}

fn apiserver(dir: &PlaneDir, ports: &Ports) -> Vec<String> {
    vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.apiserver),
        // By default it is derived from the default route, which an offline machine does not have.
        "--advertise-address=192.0.2.1".to_owned(),
        flag("cert-dir", dir.join("certs")),
        flag("tls-cert-file", dir.join("server.crt")),
        flag("tls-private-key-file", dir.join("server.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        flag("service-account-key-file", dir.join("sa.key")),
        flag("service-account-signing-key-file", dir.join("sa.key")),
        flag("token-auth-file", dir.join("tokens.csv")),
        "--authorization-mode=RBAC".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        flag("audit-policy-file", dir.join("audit-policy.yaml")),
        flag("audit-log-path", dir.audit_log()),
        // In MB. Tests read the log to its end, and would miss what is rotated during a run.
        "--audit-log-maxsize=4096".to_owned(),
    ]
}

fn controller_manager(dir: &PlaneDir) -> Vec<String> {
    let mut arguments = vec![
        flag("kubeconfig", dir.kubeconfig(User::ControllerManager)),
        flag("service-account-private-key-file", dir.join("sa.key")),
        flag("root-ca-file", dir.join("ca.crt")),
    ];
    let fixed = [
        "--leader-elect=false",
        "--use-service-account-credentials=false",
        // No health and metrics server: one port and one certificate less.
        "--secure-port=0",
        // Many scenarios share one plane; the default limit of 20 requests per second would slow them down.
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        // The nodes are simulated and send no heartbeat; they fail only when a test says so.
        "--node-monitor-grace-period=24h",
    ];
    arguments.extend(fixed.map(str::to_owned));
    arguments
}

fn flag(name: &str, value: impl AsRef<Path>) -> String {
    format!("--{name}={}", value.as_ref().display())
}
