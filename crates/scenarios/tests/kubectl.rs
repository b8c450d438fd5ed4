//! Every kubectl transcript on every place. `cargo xtask test` provides kubectl and the real control plane.

use std::path::Path;
use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    stateward_scenarios::kubectl::run(&Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts"))
}
