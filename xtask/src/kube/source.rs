//! Selects the control plane of a command: our own, or the one of KUBECONFIG if ours cannot be built.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use anyhow::{Result, anyhow};

use super::build::{Binary, Recipe};
use super::go;
use crate::layout::Layout;

/// A control plane.
pub(crate) enum Source {
    /// Our own, already built or buildable here.
    Ours,
    /// The user's cluster.
    Theirs(Theirs),
}

/// The cluster of KUBECONFIG.
pub(crate) struct Theirs {
    /// The value of KUBECONFIG.
    pub(crate) kubeconfig: OsString,
    /// Why our own plane is not used.
    pub(crate) why: String,
}

impl Source {
    /// Prefers our own plane; the error says what to install or set.
    pub(crate) fn choose(layout: &Layout) -> Result<Self> {
        let recipe = Recipe::read(layout)?;
        if Binary::find(layout, &recipe).is_some() {
            return Ok(Self::Ours);
        }
        let Err(problem) = go::check(&layout.testbed, recipe.oldest_go()) else {
            return Ok(Self::Ours);
        };
        match env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) {
            Some(kubeconfig) => Ok(Self::Theirs(Theirs {
                kubeconfig,
                why: problem.to_string(),
            })),
            None => Err(anyhow!(problem.advice(recipe.oldest_go()))),
        }
    }
}

impl Theirs {
    /// Announces which cluster will be used.
    pub(crate) fn announce(&self) {
        eprintln!("note: {}", self.why);
        eprintln!(
            "note: KUBECONFIG is set, so this runs on the cluster it names, NOT on a control plane of ours:"
        );
        for file in env::split_paths(&self.kubeconfig) {
            eprintln!("note:   file {}", file.display());
            for line in named_clusters(&file) {
                eprintln!("note:     {line}");
            }
        }
    }
}

/// The lines of a kubeconfig that identify the cluster to a user.
fn named_clusters(file: &PathBuf) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let telling = |line: &&str| line.starts_with("current-context:") || line.starts_with("server:");
    text.lines()
        .map(|line| line.trim_start_matches([' ', '-']))
        .filter(telling)
        .map(str::to_owned)
        .collect()
}
