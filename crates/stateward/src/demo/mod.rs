//! `stateward demo`: a database and its versions, told as it happens.
//!
//! The cluster is embedded and its pods are played; the operator and the commands are the real ones. Every line follows from
//! what a watch has shown, and what does not go as told ends the demo with an error.
//!
//! - `scene`: the cluster, the kubelet and the operator, and what a user does to them.
//! - `sight`: what the watches have shown.
//! - `teller`: lines with the time before them, and on a terminal the rollout below them as it stands.
//! - `story`: what is told.
//! - `interactive`: the same stage for the user's own kubectl.

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
    /// What to show
    #[arg(long, value_enum, default_value_t = Scenario::Versions)]
    scenario: Scenario,
    /// How many times faster than the wall clock the demo's time runs; 10 unless given, 1 with --interactive
    #[arg(long)]
    speed: Option<f64>,
    /// Tell nothing: set the stage, keep it on a local port for your own kubectl, and end with Ctrl-C
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

/// What can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Scenario {
    /// A good version through its steps and a pause, then one that crashes, which is caught and returned
    Versions,
    /// One pod at a time, with Prometheus asked before each; an alert holds it up
    Phased,
    /// Somebody scales the set while it waits in a pause
    Scale,
    /// The operator is killed in the middle, and nothing is lost
    OperatorKilled,
}

/// The fastest the demo's time may run: past this, the moments that the operator itself needs become minutes.
const FASTEST: f64 = 100.0;

/// How long to wait for what does not come, at wall clock.
const PATIENCE: Duration = Duration::from_secs(45);

/// Plays the demo on a cluster of its own. `program` is what to type to call us again.
pub(crate) async fn run(args: Args, program: &str, out: &mut (dyn Write + Send)) -> Result<()> {
    let Args {
        scenario,
        speed,
        interactive,
        kubeconfig,
    } = args;
    // Whoever asks with their own kubectl expects ages to be those of everybody's clock.
    let speed = speed.unwrap_or(if interactive { 1.0 } else { 10.0 });
    if !(speed > 0.0 && speed <= FASTEST) {
        bail!("--speed: {speed} must be more than 0 and at most {FASTEST}");
    }
    if interactive {
        return interactive::run(speed, &kubeconfig, program).await;
    }
    // Slow motion takes longer, and is not stuck.
    let patience = PATIENCE.max(PATIENCE.div_f64((speed / 10.0).min(1.0)));
    let mut signals = Signals::listen()?;
    let told = async {
        let scene = scene::Scene::open(speed, None).await?;
        // Whoever records or reads along in a pipe gets lines and nothing else.
        let live = Style::has_a_screen() && std::env::var_os("CI").is_none();
        story::tell(scenario, scene, program, patience, teller::Out::new(out, live)).await
    };
    // A story that is dropped in the middle gives the terminal back.
    tokio::select! {
        told = told => told.or_else(|error| if is_nobody_listening(&error) { Ok(()) } else { Err(error) }),
        interrupted = signals.next() => Err(interrupted.into()),
    }
}

/// `… | head` has seen enough.
fn is_nobody_listening(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// It was told to end by this signal.
#[derive(Debug, thiserror::Error)]
#[error("interrupted by signal {0}")]
pub(crate) struct Interrupted(pub(crate) u8);

/// The one place that listens: a command of the story listens for itself, and then nobody else is told of anything.
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
