//! Development tasks: `cargo xtask kube` runs real control planes, `cargo xtask test` runs all tests.
//!
//! Parses arguments and turns errors into exit codes; actions are in the modules. Data goes to stdout, messages to stderr.

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

/// Development tasks of Stateward
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
    /// Measure the performance budgets
    #[command(subcommand)]
    Bench(bench::Action),
    /// Run random sequences on the embedded and a real control plane and compare
    Diff(diff::Args),
    /// Simulate the RolloutPlugin scenarios with fault injection in the operator
    Simulate(simulate::Args),
    /// Check that the tests detect deliberate mistakes
    #[command(subcommand)]
    Mutants(mutants::Action),
    /// Regenerate the generated files
    #[command(subcommand)]
    Generate(generate::Action),
    /// Check format and lints and run all tests, on a real control plane if there is one
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
