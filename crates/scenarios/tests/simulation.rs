//! Every scenario of the operator's with the operator under faults. `cargo xtask simulate` tries all of them.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    use stateward_scenarios::{phasedrollout, rolloutplugin};
    stateward_scenarios::simulation::run([phasedrollout::all(), rolloutplugin::all()].concat())
}
