//! The embedded cluster against a real one. `cargo xtask test` provides the latter.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    stateward_scenarios::differential::run()
}
