//! The users of a plane: a token and a kubeconfig for each.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;

use anyhow::{Context, Result};

use super::dir::PlaneDir;

/// A user of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// The admin, with all permissions.
    Admin,
    /// The operator's service account, with only the permissions of the applied RBAC manifests.
    Operator,
    /// A user without permissions.
    Plain,
    /// The identity of kube-controller-manager, so that its writes can be identified in the audit log.
    ControllerManager,
}

impl User {
    /// All users of a plane.
    pub(crate) const ALL: [Self; 4] = [Self::Admin, Self::Operator, Self::Plain, Self::ControllerManager];

    /// The file name of the user's kubeconfig.
    pub(crate) fn kubeconfig(self) -> &'static str {
        match self {
            Self::Admin => "admin.kubeconfig",
            Self::Operator => "operator.kubeconfig",
            Self::Plain => "user.kubeconfig",
            Self::ControllerManager => "controller-manager.kubeconfig",
        }
    }

    /// The user's name at the API server.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "system:serviceaccount:stateward-system:stateward",
            Self::Plain => "alice",
            Self::ControllerManager => "system:kube-controller-manager",
        }
    }

    fn groups(self) -> &'static str {
        match self {
            Self::Operator => "system:serviceaccounts,system:serviceaccounts:stateward-system",
            Self::Plain => "",
            // Its controllers share one identity here, and the built-in role expects one per controller.
            Self::Admin | Self::ControllerManager => "system:masters",
        }
    }
}

/// Writes the API server's token file and the kubeconfig of every user, for the server at `server`.
pub(crate) fn write(dir: &PlaneDir, server: &str) -> Result<()> {
    let mut tokens = String::new();
    for user in User::ALL {
        let token = random_token()?;
        let (name, groups) = (user.name(), user.groups());
        writeln!(tokens, "{token},{name},{name},\"{groups}\"")?;
        let path = dir.kubeconfig(user);
        fs::write(&path, kubeconfig(dir, server, name, &token))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    fs::write(dir.join("tokens.csv"), tokens).context("cannot write the tokens of the plane's users")
}

fn kubeconfig(dir: &PlaneDir, server: &str, user: &str, token: &str) -> String {
    // Debug quoting is valid YAML double quoting for all realistic paths.
    let (name, authority) = (format!("stateward-{}", dir.name()), dir.join("ca.crt"));
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {server}
    certificate-authority: {authority:?}
users:
- name: {user:?}
  user:
    token: {token}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: {user:?}
current-context: {name}
"
    )
}

fn random_token() -> Result<String> {
    let mut bytes = [0_u8; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot read /dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
