//! What is logged, where and how.

use std::io::{self, IsTerminal};

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For machines: an object a line
    Json,
}

/// Logs what passes `filter` to stderr.
pub(crate) fn init(filter: EnvFilter, format: Format) {
    let log = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_env_filter(filter)
        // Told on stderr too: when nobody reads that any more, the complaint is a panic.
        .log_internal_errors(false);
    match format {
        Format::Text => log.init(),
        Format::Json => log.json().flatten_event(true).with_span_list(false).init(),
    }
}

/// Logs what RUST_LOG asks for, which is nothing unless it is set: whoever types a command is told what went wrong, and a screen
/// is not written over.
pub(crate) fn init_from_env() {
    let quiet = EnvFilter::builder().with_default_directive(LevelFilter::OFF.into());
    init(quiet.from_env_lossy(), Format::Text);
}

/// What libraries log and the operator does not want in its own lines: whole answers that cannot be read, with whatever stands in them;
/// errors of requests, which the operator reports itself; and a span that names the object a second time.
const LIBRARIES: &str = "kube_client::client=off,kube_runtime::controller=warn";

/// Reads a filter: a level, or what RUST_LOG takes.
pub(crate) fn filter(text: &str) -> Result<EnvFilter> {
    EnvFilter::try_new(format!("{LIBRARIES},{text}"))
        .with_context(|| format!("--log-level: {text} is not a level (error, warn, info, debug, trace)"))
}
