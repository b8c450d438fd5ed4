//! Every scenario on every back end. `cargo xtask test` provides the real control plane.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    stateward_scenarios::harness::run(stateward_scenarios::kubernetes::all())
}
