//! `stateward demo`: shows rollouts of a database as they happen.
//!
//! The cluster is embedded and its pods are simulated; the operator and the commands are real. Every line is based on what a watch has
//! shown, and an unexpected course ends the demo with an error.
//!
//! - `scene`: the cluster, the kubelet and the operator, and what a user does to them.
//! - `sight`: what the watches have shown.
//! - `teller`: timestamped lines, and on a terminal the current state of the rollout below them.
//! - `story`: the scenarios.
//! - `interactive`: the same cluster for the user's own kubectl.

mod interactive;
mod scene;
mod sight;
mod story;
mod teller;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use futures::future::select_all;
use stateward_cli::Style;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// `stateward demo …`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The scenario to show
    #[arg(long, value_enum, default_value_t = Scenario::Versions)]
    scenario: Scenario,
    /// How many times faster than the wall clock the demo runs; default: 10, or 1 with --interactive
    #[arg(long)]
    speed: Option<f64>,
    /// Only set up the cluster, serve it on a local port for your own kubectl, and end with Ctrl-C
    #[arg(long, conflicts_with = "scenario")]
    interactive: bool,
    /// Where to write the kubeconfig
    #[arg(
        long,
        value_name = "FILE",
        default_value = "stateward.kubeconfig",
        requires = "interactive"
    )]
    kubeconfig: PathBuf,
}

/// The scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Scenario {
    /// A good version through its steps and a pause, then one that crashes and is rolled back
    Versions,
    /// One pod at a time, with a Prometheus query before each; an alert stops the rollout
    Phased,
    /// The StatefulSet is scaled while the rollout is paused
    Scale,
    /// The operator is killed during a rollout, and no state is lost
    OperatorKilled,
}

/// The maximum speed: beyond it, the time that the operator needs for its work becomes minutes.
const FASTEST: f64 = 100.0;

/// How long to wait for an expected event, by the wall clock.
const PATIENCE: Duration = Duration::from_secs(45);

/// Runs the demo on its own cluster. `program` is the invocation to suggest.
pub(crate) async fn run(args: Args, program: &str, out: &mut (dyn Write + Send)) -> Result<()> {
    let Args {
        scenario,
        speed,
        interactive,
        kubeconfig,
    } = args;
    // With the user's own kubectl, ages should match the wall clock.
    let speed = speed.unwrap_or(if interactive { 1.0 } else { 10.0 });
    if !(speed > 0.0 && speed <= FASTEST) {
        bail!("--speed: {speed} must be more than 0 and at most {FASTEST}");
    }
    if interactive {
        return interactive::run(speed, &kubeconfig, program).await;
    }
    // At a low speed events take longer.
    let patience = PATIENCE.max(PATIENCE.div_f64((speed / 10.0).min(1.0)));
    let mut signals = Signals::listen()?;
    let told = async {
        let scene = scene::Scene::open(speed, None).await?;
        // A recording or a pipe gets plain lines only.
        let live = Style::has_a_screen() && std::env::var_os("CI").is_none();
        story::tell(scenario, scene, program, patience, teller::Out::new(out, live)).await
    };
    // A story that is cancelled restores the terminal.
    tokio::select! {
        told = told => told.or_else(|error| if is_nobody_listening(&error) { Ok(()) } else { Err(error) }),
        interrupted = signals.next() => Err(interrupted.into()),
    }
}

/// Whether the reader closed the pipe, as in `… | head`.
fn is_nobody_listening(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// The demo was ended by this signal.
#[derive(Debug, thiserror::Error)]
#[error("interrupted by signal {0}")]
pub(crate) struct Interrupted(pub(crate) u8);

/// All signals of the demo. A command of the story installs its own handlers, after which the default action of a signal is lost.
struct Signals(Vec<(u8, Signal)>);

impl Signals {
    fn listen() -> Result<Self> {
        let all = [
            (2, SignalKind::interrupt()),
            (15, SignalKind::terminate()),
            (1, SignalKind::hangup()),
            (3, SignalKind::quit()),
        ];
        let listened = all.map(|(number, kind)| Ok((number, signal(kind)?)));
        Ok(Self(listened.into_iter().collect::<Result<_>>()?))
    }

    async fn next(&mut self) -> Interrupted {
        let any = self.0.iter_mut().map(|(number, signal)| {
            let number = *number;
            Box::pin(async move {
                signal.recv().await;
                Interrupted(number)
            })
        });
        select_all(any).await.0
    }
}
