//! The embedded API server against a real one, request by request. `cargo xtask test` provides the latter.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    stateward_scenarios::requests::run()
}
