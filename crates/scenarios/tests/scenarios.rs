//! Every scenario on every back end. `cargo xtask test` provides the real control plane.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    // Quiet unless asked: RUST_LOG=debug
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    use stateward_scenarios::{kubernetes, phasedrollout, preview, rolloutplugin};
    stateward_scenarios::harness::run_and_check_rights(
        [
            kubernetes::all(),
            phasedrollout::all(),
            phasedrollout::live(),
            preview::all(),
            rolloutplugin::all(),
            rolloutplugin::hostile(),
            rolloutplugin::momentary(),
            rolloutplugin::live(),
        ]
        .concat(),
    )
}
