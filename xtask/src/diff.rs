//! `cargo xtask diff`: random sequences on the embedded and a real control plane, for as long as requested.

use std::env;
use std::ffi::OsString;

use anyhow::Result;

use crate::kube::{self, Options};
use crate::layout::Layout;

/// `cargo xtask diff …`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run sequences for this long; without it, only the one of --seed
    #[arg(long, value_name = "N", required_unless_present = "seed")]
    minutes: Option<u64>,
    /// The first seed
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

/// Runs on its own plane; the exit code is 1 if the control planes differ.
pub(crate) fn run(layout: &Layout, args: &Args) -> Result<u8> {
    let Args { minutes, seed } = args;
    let budget = match minutes {
        Some(minutes) => format!("STATEWARD_DIFF_MINUTES={minutes}"),
        None => "STATEWARD_DIFF_SEEDS=1".to_owned(),
    };
    let first = format!("STATEWARD_DIFF_FIRST_SEED={}", seed.unwrap_or(1));
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let test = [
        "test",
        "--package",
        "stateward-scenarios",
        "--test",
        "differential",
        "--",
        "::seed_",
    ];
    let command: Vec<OsString> = ["env".into(), first.into(), budget.into(), cargo]
        .into_iter()
        .chain(test.map(OsString::from))
        .collect();
    kube::on_a_plane_of_its_own(layout, &Options::default(), false, &command)
}
