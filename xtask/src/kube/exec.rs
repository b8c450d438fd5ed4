//! `kube exec`: a plane for one command.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Result, bail};

use super::Options;
use super::build;
use super::dir::PlaneDir;
use super::guard::PARENT_DIED;
use super::plane::Plane;
use super::source::Source;
use crate::layout::Layout;
use crate::process::{Running, die_with_us, exit_code};
use crate::signals::{Signals, Woke, typed_at_the_terminal};

/// `cargo xtask kube exec …`
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,
    /// Keep the plane's directory (logs, audit log, etcd data) after the command
    #[arg(long)]
    keep: bool,
    /// The command and its arguments; it runs with KUBECONFIG set and the real kubectl first in PATH
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the command on its own plane, or on the cluster of KUBECONFIG if no plane can be built.
pub(crate) fn run(layout: &Layout, args: &Args) -> Result<u8> {
    let Args {
        options,
        keep,
        command,
    } = args;
    match Source::choose(layout)? {
        Source::Ours => on_a_plane_of_its_own(layout, options, *keep, command),
        Source::Theirs(theirs) => {
            if options.is_set() {
                bail!(
                    "feature gates and component arguments need a control plane of ours: {}",
                    theirs.why
                );
            }
            theirs.announce();
            under_guard(command, &[])
        }
    }
}

/// Runs `command` so that none of its processes outlives this one, and returns its exit code.
pub(crate) fn under_guard(command: &[OsString], environment: &[(&str, OsString)]) -> Result<u8> {
    supervise(command, environment, &Signals::catch()?, None)
}

/// Builds the control plane if necessary, starts a plane, runs `command`, stops the plane and returns the command's exit code.
pub(crate) fn on_a_plane_of_its_own(
    layout: &Layout,
    options: &Options,
    keep: bool,
    command: &[OsString],
) -> Result<u8> {
    let binary = build::build(layout)?;
    let signals = Signals::catch()?;
    let dir = PlaneDir::claim_for_one_run(layout, keep)?;
    let mut plane = Plane::start(dir, binary, options, &signals)?;
    let environment = plane.environment()?;
    let code = supervise(command, &environment, &signals, Some(&mut plane));
    let dir = plane.stop();
    if keep {
        eprintln!("kept {}", dir.join("").display());
    } else {
        dir.remove()?;
    }
    code
}

/// Runs `command` under a guard, forwards signals to it and reports components that end early.
fn supervise(
    command: &[OsString],
    environment: &[(&str, OsString)],
    signals: &Signals,
    mut plane: Option<&mut Plane>,
) -> Result<u8> {
    // This same program, even if a new build replaces its file meanwhile.
    let mut guard = Command::new("/proc/self/exe");
    guard.arg0("xtask").args(["kube", "guard", "--"]).args(command);
    guard.envs(environment.iter().map(|(name, value)| (name, value)));
    die_with_us(&mut guard, PARENT_DIED);
    let mut running = Running::spawn(&mut guard, "the guard of the command")?;
    loop {
        let mut watched = vec![running.ended()];
        watched.extend(plane.iter().flat_map(|plane| plane.ends()));
        match signals.wait(&watched, None)? {
            Woke::Ready(0) => return Ok(exit_code(running.wait()?)),
            Woke::Ready(index) => {
                if let Some(plane) = plane.as_deref_mut() {
                    eprintln!("xtask: {}", plane.bury(index - 1)?);
                }
            }
            Woke::Signal(signal) if typed_at_the_terminal(signal) => {}
            Woke::Signal(signal) => running.signal(signal),
            Woke::Timeout => {}
        }
    }
}
