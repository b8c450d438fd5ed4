//! Real Kubernetes on this machine: etcd, kube-apiserver and kube-controller-manager from `testbed/`.
//!
//! The input is the Go module and the options of a plane; the output is a running plane, a kubeconfig per user and an audit log. [`build`]
//! builds the binary, [`plane`] starts its components, [`dir`] manages the state of each plane, and [`up`], [`exec`] and [`down`] are the
//! verbs. Nothing here depends on what is tested on a plane.
//!
//! The process that starts a plane owns it: `exec` itself, or the supervisor that `up` starts. The components die with their owner
//! (parent-death signal), and all of them hold the lock of the plane's directory. So if the lock can be acquired, nothing of the plane is
//! running.

mod build;
mod component;
mod dir;
mod down;
mod exec;
mod go;
mod guard;
mod plane;
mod source;
mod up;
mod users;
mod version;

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::layout::Layout;

pub(crate) use build::build;
pub(crate) use exec::{on_a_plane_of_its_own, under_guard};
pub(crate) use source::{Source, Theirs};

/// `cargo xtask kube …`
#[derive(Subcommand)]
pub(crate) enum Action {
    /// Build the control plane and print the path of its binary
    Build,
    /// Start a plane that outlives this command and print the path of its kubeconfig
    Up(up::Args),
    /// Stop planes and remove their data
    Down(down::Args),
    /// List planes: name, state, kubeconfig
    List,
    /// Start a plane, run a command against it, stop the plane, and exit with the command's exit code
    Exec(exec::Args),
    /// Run a command whose descendants die with this process
    #[command(hide = true)]
    Guard {
        /// The command and its arguments
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

/// The options of a plane.
#[derive(Args, Clone, Default)]
pub(crate) struct Options {
    /// Feature gates for kube-apiserver and kube-controller-manager, as in MaxUnavailableStatefulSet=true
    #[arg(long, value_name = "GATE=BOOL", value_delimiter = ',')]
    pub(crate) feature_gates: Vec<String>,
    /// An extra argument for etcd, as in --etcd-arg=--log-level=debug
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) etcd_arg: Vec<String>,
    /// An extra argument for kube-apiserver
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) apiserver_arg: Vec<String>,
    /// An extra argument for kube-controller-manager
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) controller_manager_arg: Vec<String>,
}

impl Options {
    /// Whether any option is set.
    fn is_set(&self) -> bool {
        let Self {
            feature_gates,
            etcd_arg,
            apiserver_arg,
            controller_manager_arg,
        } = self;
        [feature_gates, etcd_arg, apiserver_arg, controller_manager_arg]
            .iter()
            .any(|asked| !asked.is_empty())
    }
}

/// Runs `action`; returns the exit code of its command, or zero.
pub(crate) fn run(layout: &Layout, action: Action) -> Result<u8> {
    match action {
        Action::Build => {
            print_data(&build(layout)?.path());
            Ok(0)
        }
        Action::Up(args) => up::run(layout, &args),
        Action::Down(args) => down::run(layout, &args),
        Action::List => down::list(layout),
        Action::Exec(args) => exec::run(layout, &args),
        Action::Guard { command } => guard::run(&command),
    }
}

/// Data for scripts, the only output on stdout.
#[allow(clippy::print_stdout)]
fn print_data(path: &Path) {
    println!("{}", path.display());
}
