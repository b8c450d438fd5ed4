//! The version of Kubernetes, from the `require` line of `testbed/go.mod`, the only place that defines it.

use std::fmt;

use anyhow::{Context, Result};

const MODULE: &str = "k8s.io/kubernetes";

/// A release of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Version {
    /// Parses the version in the text of a `go.mod`.
    pub(crate) fn from_go_mod(text: &str) -> Result<Self> {
        let required = required(text, MODULE).with_context(|| {
            format!("testbed/go.mod: no require line for {MODULE}, as in: {MODULE} v1.36.3")
        })?;
        Self::parse(required)
            .with_context(|| format!("testbed/go.mod: {MODULE} {required} is not a version like v1.36.3"))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix('v')?.split('.').map(|part| part.parse().ok());
        let version = Self {
            major: parts.next()??,
            minor: parts.next()??,
            patch: parts.next()??,
        };
        parts.next().is_none().then_some(version)
    }

    /// The linker flags that set the version of kubectl and the API server.
    pub(crate) fn linker_flags(&self) -> String {
        let base = "k8s.io/component-base/version";
        let Self {
            major,
            minor,
            patch: _,
        } = self;
        format!(
            "-s -w -X {base}.gitVersion={self} -X {base}.gitMajor={major} -X {base}.gitMinor={minor} \
             -X k8s.io/client-go/pkg/version.gitVersion={self}"
        )
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, minor, patch } = self;
        write!(f, "v{major}.{minor}.{patch}")
    }
}

/// The version of `module` that `go.mod` requires.
fn required<'a>(go_mod: &'a str, module: &str) -> Option<&'a str> {
    go_mod.lines().find_map(|line| {
        let line = line.trim();
        let mut words = line.strip_prefix("require ").unwrap_or(line).split_whitespace();
        (words.next() == Some(module))
            .then(|| words.next())
            .flatten()
            .filter(|word| *word != "=>")
    })
}

/// The minimum Go version of `go.mod`, from its `go` line.
pub(crate) fn oldest_go(go_mod: &str) -> Option<&str> {
    go_mod
        .lines()
        .find_map(|line| line.strip_prefix("go "))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GO_MOD: &str = include_str!("../../../testbed/go.mod");

    #[test]
    fn the_version_is_the_one_that_go_mod_requires() {
        let go_mod = "module m\n\nrequire (\n\tk8s.io/kubectl v0.1.2\n\tk8s.io/kubernetes v1.36.3\n)\n";
        let version = Version::from_go_mod(go_mod).unwrap();
        assert_eq!(
            version,
            Version {
                major: 1,
                minor: 36,
                patch: 3
            }
        );
        assert_eq!(version.to_string(), "v1.36.3");
    }

    #[test]
    fn a_go_mod_without_a_usable_version_is_refused_with_its_name() {
        for go_mod in [
            "module m\n",
            "require k8s.io/kubernetes v1.36\n",
            "require k8s.io/kubernetes v1.36.3-rc.0\n",
        ] {
            let error = Version::from_go_mod(go_mod).unwrap_err().to_string();
            assert!(error.contains("testbed/go.mod"), "{error}");
        }
    }

    #[test]
    fn the_linker_flags_carry_the_version() {
        let flags = Version {
            major: 1,
            minor: 36,
            patch: 3,
        }
        .linker_flags();
        for flag in [
            "-X k8s.io/component-base/version.gitVersion=v1.36.3",
            "-X k8s.io/component-base/version.gitMajor=1",
            "-X k8s.io/component-base/version.gitMinor=36",
            "-X k8s.io/client-go/pkg/version.gitVersion=v1.36.3",
        ] {
            assert!(flags.contains(flag), "{flags}");
        }
    }

    #[test]
    fn every_staging_module_is_pinned_to_the_release_of_kubernetes() {
        let Version { minor, patch, .. } = Version::from_go_mod(GO_MOD).unwrap();
        let staging = format!("v0.{minor}.{patch}");
        let pins: Vec<_> = GO_MOD
            .lines()
            .filter_map(|line| line.split_once(" => "))
            .collect();
        assert!(pins.len() > 30, "only {} replace lines", pins.len());
        for (module, pin) in pins {
            let module = module.trim();
            assert_eq!(pin, format!("{module} {staging}"), "replace line of {module}");
        }
        for module in ["k8s.io/kubectl", "k8s.io/component-base"] {
            assert_eq!(
                required(GO_MOD, module),
                Some(staging.as_str()),
                "require line of {module}"
            );
        }
    }

    #[test]
    fn go_mod_names_the_oldest_go() {
        assert_eq!(oldest_go("module m\n\ngo 1.26.0\n"), Some("1.26.0"));
        assert!(oldest_go(GO_MOD).is_some());
    }
}
