//! Checks whether this machine has a Go that can build the test bed.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::Command;

/// Why the test bed cannot be built here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// There is no `go` in PATH.
    Missing,
    /// The installed Go is not suitable; the text says why.
    Unusable(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no Go in PATH"),
            Self::Unusable(why) => f.write_str(why),
        }
    }
}

impl Problem {
    /// The message for the user, with both solutions.
    pub(crate) fn advice(&self, oldest: &str) -> String {
        format!(
            "{self}; to have a real control plane, install Go {oldest} or newer (https://go.dev/dl), \
             or set KUBECONFIG to the kubeconfig of a test cluster (kind, k3d, any)"
        )
    }
}

/// Checks the Go that would build `testbed`, which may be a toolchain that Go downloads.
pub(crate) fn check(testbed: &Path, oldest: &str) -> Result<(), Problem> {
    let output = match Command::new("go")
        .args(["env", "GOVERSION"])
        .current_dir(testbed)
        .output()
    {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Problem::Missing),
        Err(error) => return Err(Problem::Unusable(format!("cannot run go: {error}"))),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Problem::Unusable(format!(
            "the Go in PATH cannot build testbed ({})",
            said.trim()
        )));
    }
    let version = String::from_utf8_lossy(&output.stdout);
    judge(version.trim(), oldest)
}

fn judge(version: &str, oldest: &str) -> Result<(), Problem> {
    // A development version ("devel go1.27-…") has no number to compare, and is accepted.
    match (numbers(version.trim_start_matches("go")), numbers(oldest)) {
        (Some(have), Some(need)) if have < need => Err(Problem::Unusable(format!(
            "the Go in PATH is {version}, older than testbed/go.mod asks for"
        ))),
        _ => Ok(()),
    }
}

fn numbers(version: &str) -> Option<Vec<u32>> {
    let release = version.split(|c: char| c != '.' && !c.is_ascii_digit()).next()?;
    release.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_go_is_refused_and_a_newer_one_accepted() {
        for (version, fits) in [
            ("go1.26.0", true),
            ("go1.26.8", true),
            ("go1.27rc1", true),
            ("go2.0", true),
            ("devel go1.28-abc", true),
            ("go1.25.9", false),
            ("go1.9", false),
        ] {
            assert_eq!(judge(version, "1.26.0").is_ok(), fits, "{version}");
        }
    }

    #[test]
    fn the_advice_names_both_ways_to_a_control_plane() {
        let advice = Problem::Missing.advice("1.26.0");
        assert!(
            advice.contains("Go 1.26.0") && advice.contains("KUBECONFIG"),
            "{advice}"
        );
    }
}
