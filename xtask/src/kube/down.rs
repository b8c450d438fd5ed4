//! `kube down` and `kube list`: the planes that `up` started, and what is left of others.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::dir::{self, Known, PlaneDir};
use super::users::User;
use crate::layout::Layout;

/// How long an owner may take to stop its components before it is killed, which kills them too.
const PATIENCE: Duration = Duration::from_secs(10);

/// `cargo xtask kube down …`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Name of the plane
    #[arg(long, default_value = "dev")]
    name: String,
    /// Every plane except those of running commands
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

/// Stops one plane or all of them and removes their directories.
pub(crate) fn run(layout: &Layout, args: &Args) -> Result<u8> {
    let mut planes = dir::known(layout)?;
    if args.all {
        planes.retain(|plane| plane.owner.is_none() || !dir::is_of_one_run(&plane.name));
    } else {
        planes.retain(|plane| plane.name == args.name);
        if planes.is_empty() {
            bail!("no plane {}; see: cargo xtask kube list", args.name);
        }
    }
    for plane in planes {
        stop(layout, &plane)?;
    }
    Ok(0)
}

/// Lists planes on stdout.
#[allow(clippy::print_stdout)]
pub(crate) fn list(layout: &Layout) -> Result<u8> {
    for Known { name, path, owner } in dir::known(layout)? {
        let state = if owner.is_some() { "running" } else { "dead" };
        println!(
            "{name}\t{state}\t{}",
            path.join(User::Admin.kubeconfig()).display()
        );
    }
    Ok(0)
}

fn stop(layout: &Layout, plane: &Known) -> Result<()> {
    let Known { name, path, owner } = plane;
    if let Some(owner) = owner {
        end(*owner).with_context(|| format!("cannot stop plane {name}"))?;
        wait_for_components(path).with_context(|| format!("cannot wait for the end of plane {name}"))?;
    }
    // The owner of a command's plane removes the directory itself.
    if path.exists()
        && let Some(dir) = PlaneDir::claim(layout, name)?
    {
        dir.remove()?;
    }
    eprintln!(
        "{} plane {name}",
        if owner.is_some() {
            "stopped"
        } else {
            "removed dead"
        }
    );
    Ok(())
}

/// Stops the owner, by force if necessary.
fn end(owner: Pid) -> Result<()> {
    let Ok(pidfd) = pidfd_open(owner, PidfdFlags::empty()) else {
        return Ok(());
    };
    pidfd_send_signal(&pidfd, Signal::TERM)?;
    let timeout = Timespec::try_from(PATIENCE).context("timeout out of range")?;
    if poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout))? == 0 {
        pidfd_send_signal(&pidfd, Signal::KILL)?;
    }
    Ok(())
}

/// The lock is released by the last process that holds it.
fn wait_for_components(plane: &Path) -> std::io::Result<()> {
    match OpenOptions::new().write(true).open(plane.join("lock")) {
        Ok(lock) => lock.lock(),
        Err(_) => Ok(()),
    }
}
