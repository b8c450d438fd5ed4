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

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};

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
    let scene = scene::Scene::open(speed, None).await?;
    // Whoever records or reads along in a pipe gets lines and nothing else.
    let live = std::io::stdout().is_terminal() && std::env::var_os("CI").is_none();
    story::tell(scenario, scene, program, patience, teller::Out::new(out, live)).await
}
