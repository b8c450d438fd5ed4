//! `cargo xtask simulate`: the operator under fault injection, with as many faults as requested.

use std::env;
use std::process::Command;

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::layout::Layout;
use crate::process::die_with_us;

/// `cargo xtask simulate …`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Inject random faults, with this many seeds for every scenario
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "exhaustive",
        required_unless_present = "exhaustive"
    )]
    seeds: Option<u64>,
    /// The first seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Inject one fault of every kind at every call of every scenario
    #[arg(long)]
    exhaustive: bool,
    /// Only scenarios whose name contains this
    scenario: Option<String>,
}

/// Runs in this process, without a control plane; the exit code is 1 if a scenario failed.
pub(crate) fn run(layout: &Layout, args: &Args) -> Result<u8> {
    let Args {
        seeds,
        seed,
        exhaustive,
        scenario,
    } = args;
    let budget = match seeds {
        Some(seeds) if !exhaustive => seeds.to_string(),
        _ => "all".to_owned(),
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(&layout.root)
        .args([
            "test",
            "--profile",
            "fast",
            "--package",
            "stateward-scenarios",
            "--test",
            "simulation",
            "--",
        ])
        .args(scenario)
        .env("STATEWARD_SIMULATE", budget)
        .env("STATEWARD_SIMULATE_FIRST_SEED", seed.to_string());
    die_with_us(&mut command, Signal::KILL);
    let status = command.status().context("cannot start cargo")?;
    Ok(u8::from(!status.success()))
}
