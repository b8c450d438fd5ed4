//! `stateward demo`: a database, a good version and a bad one, told as it happens.
//!
//! The cluster is embedded and its pods are played; the operator and the commands are the real ones. Every line follows from
//! what a watch has shown, and what does not go as told ends the demo with an error.
//!
//! - `scene`: the cluster, the kubelet and the operator, and what a user does to them.
//! - `sight`: what the watches have shown.
//! - `teller`: lines with the time before them.
//! - `story`: what is told.

mod scene;
mod sight;
mod story;
mod teller;

use std::io::Write;
use std::time::Duration;

use anyhow::{Result, bail};

/// `stateward demo …`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many times faster than the wall clock the demo's time runs
    #[arg(long, default_value_t = 10.0)]
    speed: f64,
}

/// The fastest the demo's time may run: past this, the moments that the operator itself needs become minutes.
const FASTEST: f64 = 100.0;

/// How long to wait for what does not come, at wall clock.
const PATIENCE: Duration = Duration::from_secs(45);

/// Plays the demo on a cluster of its own. `program` is how the user calls us.
pub(crate) async fn run(args: Args, program: &str, out: &mut (dyn Write + Send)) -> Result<()> {
    let Args { speed } = args;
    if !(speed > 0.0 && speed <= FASTEST) {
        bail!("--speed: {speed} is not between 0 and {FASTEST}");
    }
    // Slow motion takes longer, and is not stuck.
    let patience = PATIENCE.max(PATIENCE.div_f64((speed / 10.0).min(1.0)));
    let scene = scene::Scene::open(speed).await?;
    story::tell(scene, program, patience, out).await
}
