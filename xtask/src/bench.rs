//! `cargo xtask bench`: measures the performance budgets. Prints numbers and does not judge them.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::kube::{self, Options};
use crate::layout::Layout;
use crate::process::exit_code;

/// `cargo xtask bench …`
#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// The embedded cluster: a rolling update, many StatefulSets, watch latency, start-up
    Cluster {
        /// Arguments for the benchmark, such as the number of StatefulSets
        #[arg(last = true)]
        arguments: Vec<OsString>,
    },
    /// The command line: verbs, the live view, a plan, the binary
    Cli,
    /// The operator: steps, many rollouts, ten thousand StatefulSets; on a real control plane and on the embedded cluster
    Operator {
        /// Arguments for the benchmark, such as the number of StatefulSets
        #[arg(last = true)]
        arguments: Vec<OsString>,
    },
}

/// Runs a benchmark and returns its exit code.
pub(crate) fn run(layout: &Layout, action: &Action) -> Result<u8> {
    match action {
        Action::Cluster { arguments } => cluster(layout, arguments),
        Action::Cli => cli(layout),
        Action::Operator { arguments } => operator(layout, arguments),
    }
}

fn cluster(layout: &Layout, arguments: &[OsString]) -> Result<u8> {
    let mut bench = Command::new("cargo");
    bench.args([
        "bench",
        "--quiet",
        "--package",
        "stateward-cluster",
        "--bench",
        "cluster",
        "--",
    ]);
    let status = bench
        .args(arguments)
        .current_dir(&layout.root)
        .status()
        .context("cannot run cargo bench")?;
    if !status.success() {
        return Ok(exit_code(status));
    }
    let start = start_up(layout)?;
    writeln!(
        std::io::stdout(),
        "{:<58} {:>14} {:>12}",
        "start of stateward cluster",
        format!("{:.0} ms", start.as_secs_f64() * 1e3),
        "300 ms"
    )?;
    Ok(0)
}

fn cli(layout: &Layout) -> Result<u8> {
    let status = Command::new("cargo")
        .args(["bench", "--quiet", "--package", "stateward", "--bench", "cli"])
        .current_dir(&layout.root)
        .status()
        .context("cannot run cargo bench")?;
    Ok(exit_code(status))
}

/// Builds first: a compiler would compete with the plane for the CPU.
fn operator(layout: &Layout, arguments: &[OsString]) -> Result<u8> {
    let bench = [
        "bench",
        "--quiet",
        "--package",
        "stateward",
        "--bench",
        "operator",
    ];
    let built = Command::new("cargo")
        .args(bench)
        .arg("--no-run")
        .current_dir(&layout.root)
        .status()
        .context("cannot run cargo bench")?;
    if !built.success() {
        return Ok(exit_code(built));
    }
    kube::build(layout)?;
    let command = ["cargo"].iter().chain(&bench).chain(&["--"]).map(OsString::from);
    let command: Vec<_> = command.chain(arguments.iter().cloned()).collect();
    kube::on_a_plane_of_its_own(layout, &Options::default(), false, &command)
}

/// The time from the start of the release binary until it serves: the best of several.
fn start_up(layout: &Layout) -> Result<Duration> {
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "stateward"])
        .current_dir(&layout.root)
        .status()
        .context("cannot run cargo build")?;
    if !built.success() {
        bail!("stateward does not build");
    }
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let kubeconfig = layout.target.join("bench.kubeconfig");
        let began = Instant::now();
        let mut cluster = Command::new(layout.target.join("release/stateward"))
            .arg("cluster")
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start stateward cluster")?;
        let said = cluster
            .stderr
            .take()
            .map(BufReader::new)
            .and_then(|said| said.lines().next());
        let took = began.elapsed();
        kill_process(Pid::from_child(&cluster), Signal::INT).context("cannot stop stateward cluster")?;
        cluster.wait().context("cannot wait for stateward cluster")?;
        match said {
            Some(Ok(line)) if line.contains("serves on") => best = best.min(took),
            other => bail!("stateward cluster said {other:?}"),
        }
    }
    Ok(best)
}
