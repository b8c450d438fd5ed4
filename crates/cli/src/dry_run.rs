//! `--dry-run`: see what would come of a command, and change nothing.

use kube::api::PatchParams;

/// What `--dry-run` may say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DryRun {
    /// Do it
    #[default]
    None,
    /// Only say what would be asked for
    Client,
    /// Let the server check it, and keep nothing
    Server,
}

/// kubectl's flag.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct DryRunFlag {
    /// Change nothing: only look and say what would be done, or let the server check that too
    #[arg(
        long, value_enum, value_name = "none|client|server", default_value = "none", default_missing_value = "client",
        num_args = 0..=1, require_equals = true, hide_possible_values = true, hide_default_value = true
    )]
    pub(crate) dry_run: DryRun,
}

impl DryRun {
    /// For what is asked of the server.
    pub(crate) fn params(self) -> PatchParams {
        PatchParams {
            dry_run: self == Self::Server,
            field_manager: Some("stateward-cli".into()),
            ..PatchParams::default()
        }
    }

    /// What will come of it, or would.
    pub(crate) fn effect(self, effect: &str) -> String {
        match self {
            Self::None => effect.to_owned(),
            Self::Client | Self::Server => format!("dry run: {effect}"),
        }
    }

    /// Behind what was done, as kubectl has it.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Client => " (dry run)",
            Self::Server => " (server dry run)",
        }
    }
}
