//! `kube up`: a plane that outlives the command, owned by a supervisor in the background.
//!
//! The supervisor is the same program in its own session. Until the plane is ready it dies with the `up` that started it, so that a killed
//! `up` leaves nothing behind; from then on only `down` ends it.

use std::env;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write, stdout};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::build;
use super::dir::{PlaneDir, check_name};
use super::plane::Plane;
use super::users::User;
use super::{Options, print_data};
use crate::layout::Layout;
use crate::process::{die_with_us, exit_code, leave_our_terminal};
use crate::signals::{Signals, Woke};

/// `cargo xtask kube up …`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Name of the plane
    #[arg(long, default_value = "dev", value_parser = check_name)]
    name: String,
    #[command(flatten)]
    options: Options,
    /// Own the plane instead of starting a supervisor
    #[arg(long, hide = true)]
    supervise: bool,
}

/// Starts the plane and prints the path of its kubeconfig.
pub(crate) fn run(layout: &Layout, args: &Args) -> Result<u8> {
    let binary = build::build(layout)?;
    if args.supervise {
        let Some(dir) = PlaneDir::claim(layout, &args.name)? else {
            bail!(
                "plane {name} is running already; stop it with: cargo xtask kube down --name {name}",
                name = args.name
            );
        };
        let signals = Signals::catch()?;
        return supervise(Plane::start(dir, binary, &args.options, &signals)?, &signals);
    }

    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("xtask")
        .args(env::args_os().skip(1))
        .arg("--supervise");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    leave_our_terminal(&mut command);
    die_with_us(&mut command, Signal::KILL);
    let mut supervisor = command
        .spawn()
        .context("cannot start the supervisor of the plane")?;
    let mut kubeconfig = String::new();
    if let Some(stdout) = supervisor.stdout.take() {
        BufReader::new(stdout)
            .read_line(&mut kubeconfig)
            .context("cannot hear from the supervisor of the plane")?;
    }
    if kubeconfig.is_empty() {
        // It has printed the reason on the shared stderr.
        let status = supervisor
            .wait()
            .context("cannot wait for the supervisor of the plane")?;
        return Ok(exit_code(status).max(1));
    }
    eprintln!("stop it with: cargo xtask kube down --name {}", args.name);
    print_data(Path::new(kubeconfig.trim_end()));
    Ok(0)
}

/// Owns the plane until a signal arrives or one of its components ends.
fn supervise(mut plane: Plane, signals: &Signals) -> Result<u8> {
    set_parent_process_death_signal(None).context("cannot outlive the command")?;
    print_data(&plane.dir().kubeconfig(User::Admin));
    stdout().flush().context("nobody waits for the plane")?;
    // The caller of `up` may be waiting for the end of its output.
    let log = plane.dir().join("supervisor.log");
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&log)
        .context("cannot write the supervisor's log")?;
    rustix::stdio::dup2_stdout(&log).context("cannot release of stdout")?;
    rustix::stdio::dup2_stderr(&log).context("cannot release of stderr")?;

    let woke = signals.wait(&plane.ends(), None)?;
    match woke {
        Woke::Ready(index) => bail!("{}; the plane is stopped", plane.bury(index)?),
        Woke::Signal(_) | Woke::Timeout => Ok(0),
    }
}
