//! Every scenario of the operator under faults. `cargo xtask simulate` runs all of them.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    use stateward_scenarios::{phasedrollout, rolloutplugin};
    stateward_scenarios::simulation::run([phasedrollout::all(), rolloutplugin::all()].concat())
}
