//! Paths: the repository, its test bed, and the directory under `target/` for built files.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The directories that commands use.
pub(crate) struct Layout {
    /// The root of the repository.
    pub(crate) root: PathBuf,
    /// The Go module with the control plane.
    pub(crate) testbed: PathBuf,
    /// The target directory of cargo.
    pub(crate) target: PathBuf,
    /// Built control planes and the state of running ones.
    pub(crate) kube: PathBuf,
}

impl Layout {
    /// Finds the repository that this xtask was built from.
    pub(crate) fn find() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask has no directory above it")?
            .to_path_buf();
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => std::path::absolute(dir).context("CARGO_TARGET_DIR is not a usable path")?,
            None => root.join("target"),
        };
        Ok(Self {
            testbed: root.join("testbed"),
            kube: target.join("kube"),
            target,
            root,
        })
    }
}
