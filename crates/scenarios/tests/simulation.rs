//! Every RolloutPlugin scenario with the operator under faults. `cargo xtask simulate` tries all of them.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    stateward_scenarios::simulation::run(stateward_scenarios::rolloutplugin::all())
}
