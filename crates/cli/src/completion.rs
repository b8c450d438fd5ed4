//! Completion of what is being typed, with the names that the cluster has.

use std::ffi::OsStr;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

/// Completes the names of rollouts.
pub fn rollout_names() -> ArgValueCompleter {
    ArgValueCompleter::new(names)
}

fn names(_current: &OsStr) -> Vec<CompletionCandidate> {
    Vec::new()
}
