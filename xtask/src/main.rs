//! The workshop: `cargo xtask kube` runs real control planes, `cargo xtask test` is the one test command.
//!
//! Arguments come in here, actions live in the modules, and every error becomes an exit code here and
//! nowhere else. Data goes to stdout, talk to stderr.

mod bench;
mod diff;
mod generate;
mod kube;
mod layout;
mod mutants;
mod process;
mod progress;
mod recording;
mod signals;
mod simulate;
mod test;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::layout::Layout;
use crate::signals::Interrupted;

#[cfg(not(target_os = "linux"))]
compile_error!("xtask needs pidfds and parent-death signals, which only Linux has: use a Linux container");

/// The workshop of Stateward
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build, start and stop real Kubernetes control planes
    #[command(subcommand)]
    Kube(kube::Action),
    /// Measure against the budgets
    #[command(subcommand)]
    Bench(bench::Action),
    /// Play random sequences on the embedded and a real control plane and compare
    Diff(diff::Args),
    /// Play the RolloutPlugin scenarios with an operator that things go wrong for
    Simulate(simulate::Args),
    /// Show that the tests notice deliberate mistakes
    #[command(subcommand)]
    Mutants(mutants::Action),
    /// Make the generated files again
    #[command(subcommand)]
    Generate(generate::Action),
    /// Check format and lints and run every test, on a real control plane when there is one
    Test(test::Args),
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            if let Some(Interrupted(signal)) = error.downcast_ref() {
                eprintln!("xtask: interrupted, the control plane is stopped");
                return ExitCode::from(process::code_of_signal(signal.as_raw()));
            }
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<u8> {
    let layout = Layout::find()?;
    match cli.action {
        Action::Kube(action) => kube::run(&layout, action),
        Action::Bench(action) => bench::run(&layout, &action),
        Action::Diff(args) => diff::run(&layout, &args),
        Action::Simulate(args) => simulate::run(&layout, &args),
        Action::Mutants(action) => mutants::run(&layout, &action),
        Action::Generate(action) => generate::run(&layout, &action),
        Action::Test(args) => test::run(&layout, &args),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Cli::command().debug_assert();
    }
}
