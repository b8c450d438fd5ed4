//! Logging.

use std::io::{self, IsTerminal};

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The format of log lines.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Format {
    /// Plain text, for people
    Text,
    /// For tools: one JSON object per line
    Json,
}

/// Logs what passes `filter` to stderr.
pub(crate) fn init(filter: EnvFilter, format: Format) {
    let log = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_env_filter(filter)
        // They go to stderr too, and would panic if it is closed.
        .log_internal_errors(false);
    match format {
        Format::Text => log.init(),
        Format::Json => log.json().flatten_event(true).with_span_list(false).init(),
    }
}

/// Logs what RUST_LOG selects, by default nothing: a command reports its own errors, and log lines would corrupt a screen.
pub(crate) fn init_from_env() {
    let quiet = EnvFilter::builder().with_default_directive(LevelFilter::OFF.into());
    init(quiet.from_env_lossy(), Format::Text);
}

/// Library logs that the operator suppresses: responses that fail to parse, which are logged with their content; request errors, which the
/// operator reports itself; and a span that repeats the object.
const LIBRARIES: &str = "kube_client::client=off,kube_runtime::controller=warn";

/// Parses a filter: a level, or a RUST_LOG filter.
pub(crate) fn filter(text: &str) -> Result<EnvFilter> {
    EnvFilter::try_new(format!("{LIBRARIES},{text}"))
        .with_context(|| format!("--log-level: {text} is not a level (error, warn, info, debug, trace)"))
}
