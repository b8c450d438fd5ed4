//! `--dry-run`: reports the effect of a command without changing anything.

use kube::api::PatchParams;

/// The values of `--dry-run`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DryRun {
    /// Run the command
    #[default]
    None,
    /// Only print what would be done
    Client,
    /// Let the server validate the request without persisting it
    Server,
}

/// kubectl's `--dry-run` flag.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct DryRunFlag {
    /// Change nothing: only print what would be done, or let the server validate it too
    #[arg(
        long, value_enum, value_name = "none|client|server", default_value = "none", default_missing_value = "client",
        num_args = 0..=1, require_equals = true, hide_possible_values = true, hide_default_value = true
    )]
    pub(crate) dry_run: DryRun,
}

impl DryRun {
    /// The parameters of the request.
    pub(crate) fn params(self) -> PatchParams {
        PatchParams {
            dry_run: self == Self::Server,
            field_manager: Some("stateward-cli".into()),
            ..PatchParams::default()
        }
    }

    /// The effect, in the indicative or the conditional.
    pub(crate) fn effect(self, effect: &str) -> String {
        match self {
            Self::None => effect.to_owned(),
            Self::Client | Self::Server => format!("dry run: {effect}"),
        }
    }

    /// The suffix of the result line, as with kubectl.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Client => " (dry run)",
            Self::Server => " (server dry run)",
        }
    }
}
