//! `cargo xtask mutants`: shows that the tests notice when something is wrong.
//!
//! Each mutant is one small mistake, put into a copy of the sources. The copy is built and tested; a mutant that no test
//! notices fails the command. Those of the embedded cluster meet the recorded traces, and their table on stdout belongs
//! into `docs/design/fidelity.md`. Those of the engine meet the unit tests, then the scenarios, then the simulation, and
//! their table belongs into `docs/design/invariants.md`.

mod around;
mod cluster;
mod engine;

use std::env;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::layout::Layout;
use crate::process::{Running, die_with_us};

/// `cargo xtask mutants …`
#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// Mutants of the embedded cluster
    Cluster {
        /// Only those whose name contains one of these
        names: Vec<String>,
    },
    /// Mutants of the engine, its plugin and its shell
    Engine {
        /// Only those whose name contains one of these
        names: Vec<String>,
    },
}

/// A line of the sources, and what stands there instead.
struct Mutant {
    name: &'static str,
    file: &'static str,
    truth: &'static str,
    lie: &'static str,
}

impl Mutant {
    /// The text with the mistake in it.
    fn spoil(&self, text: &str) -> Result<String> {
        let Self {
            name,
            file,
            truth,
            lie,
        } = self;
        let found = text.matches(truth).count();
        if found != 1 {
            bail!("mutant {name}: its line is in {file} {found} times, and must be there once: {truth}");
        }
        Ok(text.replace(truth, lie))
    }
}

/// Tests that are run together.
struct Suite {
    name: &'static str,
    /// After `cargo test`.
    which: &'static [&'static str],
    /// After `--`.
    filter: &'static [&'static str],
}

/// A name that is a sentence says more than a seed, and most mutants need no more.
const TRACES: [Suite; 2] = [
    Suite {
        name: "recorded",
        which: &[
            "--package",
            "stateward-scenarios",
            "--test",
            "differential",
            "--test",
            "requests",
        ],
        filter: &["recorded::", "--skip", "seed_"],
    },
    Suite {
        name: "recorded seed",
        which: &[
            "--package",
            "stateward-scenarios",
            "--test",
            "differential",
            "--test",
            "requests",
        ],
        filter: &["recorded::seed_"],
    },
];

/// From the quickest to the slowest.
const BEHAVIOUR: [Suite; 6] = [
    Suite {
        name: "unit",
        which: &["--package", "stateward-core", "--tests"],
        filter: &[],
    },
    Suite {
        name: "unit",
        which: &["--package", "stateward-plugin", "--tests"],
        filter: &[],
    },
    Suite {
        name: "unit",
        which: &["--package", "stateward-controller", "--tests"],
        filter: &[],
    },
    Suite {
        name: "scenario",
        which: &["--package", "stateward-scenarios", "--test", "scenarios"],
        filter: &["embedded::rolloutplugin"],
    },
    Suite {
        name: "scenario",
        which: &["--package", "stateward-scenarios", "--test", "scenarios"],
        filter: &["embedded::phasedrollout"],
    },
    Suite {
        name: "simulation",
        which: &["--package", "stateward-scenarios", "--test", "simulation"],
        filter: &[],
    },
];

/// Mutants, and the directory that their files are named from.
const CLUSTER: (&str, &[&[Mutant]]) = ("crates/cluster/src", &[cluster::MUTANTS]);
const ENGINE: (&str, &[&[Mutant]]) = ("crates", &[engine::MUTANTS, around::MUTANTS]);

/// Longer than any suite takes, with its build: a mutant that goes round in circles is noticed too.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

/// Tries every mutant; the exit code is 1 when one survives.
pub(crate) fn run(layout: &Layout, action: &Action) -> Result<u8> {
    let (names, (below, mutants), suites): (_, _, &[Suite]) = match action {
        Action::Cluster { names } => (names, CLUSTER, &TRACES),
        Action::Engine { names } => (names, ENGINE, &BEHAVIOUR),
    };
    let copy = Copy::make(layout)?;
    let wanted = |mutant: &&Mutant| names.is_empty() || names.iter().any(|name| mutant.name.contains(name));
    let mut tried: Vec<(&Mutant, Option<String>)> = mutants
        .iter()
        .copied()
        .flatten()
        .filter(wanted)
        .map(|mutant| (mutant, None))
        .collect();
    // One suite after the other, so that each is built for as few mutants as possible.
    for suite in suites {
        if tried.iter().all(|(_, noticed)| noticed.is_some()) {
            break;
        }
        if let Some(first) = copy.test(suite)?.first() {
            bail!("{first} fails without any mutant; mend that first");
        }
        for (mutant, noticed) in tried.iter_mut().filter(|(_, noticed)| noticed.is_none()) {
            let spoiled = copy.mutate(mutant, &copy.root.join(below).join(mutant.file))?;
            let failed = copy.test(suite)?;
            drop(spoiled);
            let answer = failed.first().map_or("not noticed", String::as_str);
            eprintln!("{}, {}: {answer}", suite.name, mutant.name);
            *noticed = failed.first().map(|first| {
                let (name, more) = (suite.name, failed.len() - 1);
                format!("{name}: `{first}` | {more}")
            });
        }
    }
    print_row("mutant", "of", "noticed by | and so many more");
    print_row("---", "---", "--- | ---");
    for (mutant, noticed) in &tried {
        let noticed = noticed.as_deref().unwrap_or("SURVIVED | ");
        print_row(mutant.name, &format!("`{}`", mutant.file), noticed);
    }
    let survived = tried.iter().any(|(_, noticed)| noticed.is_none());
    Ok(u8::from(survived))
}

#[allow(clippy::print_stdout)]
fn print_row(name: &str, file: &str, noticed: &str) {
    println!("| {name} | {file} | {noticed} |");
}

/// A copy of the sources that may be spoiled.
struct Copy {
    root: PathBuf,
    target: PathBuf,
}

/// A file with a mistake in it, until it is dropped.
struct Spoiled {
    path: PathBuf,
    original: String,
}

impl Drop for Spoiled {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.path, &self.original) {
            eprintln!("cannot take the mutant back: {error}");
        }
    }
}

impl Copy {
    fn make(layout: &Layout) -> Result<Self> {
        let root = layout.target.join("mutants");
        if root.exists() {
            fs::remove_dir_all(&root).context("cannot remove the last copy")?;
        }
        copy(&layout.root.join("crates"), &root.join("crates"))?;
        copy(&layout.root.join("xtask"), &root.join("xtask"))?;
        // Scenarios read manifests that are there for users.
        copy(&layout.root.join("test"), &root.join("test"))?;
        for file in ["Cargo.toml", "Cargo.lock", "clippy.toml"] {
            fs::copy(layout.root.join(file), root.join(file))
                .with_context(|| format!("cannot copy {file}"))?;
        }
        Ok(Self {
            root,
            // Cargo takes a copy of a workspace for the workspace itself: they must not share their builds.
            target: layout.target.join("mutants-build"),
        })
    }

    /// Puts the mutant in.
    fn mutate(&self, mutant: &Mutant, path: &Path) -> Result<Spoiled> {
        let file = mutant.file;
        let original = fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
        let spoiled = mutant.spoil(&original)?;
        fs::write(path, spoiled).with_context(|| format!("cannot write {file}"))?;
        Ok(Spoiled {
            path: path.to_owned(),
            original,
        })
    }

    fn cargo_test(&self, suite: &Suite) -> Command {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["test", "--quiet", "--no-fail-fast"])
            .args(suite.which)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env_remove("STATEWARD_TEST_KUBECONFIG")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        die_with_us(&mut command, Signal::KILL);
        command
    }

    /// The tests of a suite that fail.
    fn test(&self, suite: &Suite) -> Result<Vec<String>> {
        let built = self.cargo_test(suite).arg("--no-run").status();
        if !built.context("cannot run cargo test")?.success() {
            bail!(
                "the mutant does not build: cd {} && cargo test",
                self.root.display()
            );
        }
        let said = self.root.join("said");
        let mut command = self.cargo_test(suite);
        command
            .args(["--", "--color", "never", "--format", "pretty"])
            .args(suite.filter)
            .stdout(File::create(&said).context("cannot write what the tests say")?);
        let mut tests = Running::spawn(&mut command, "cargo test")?;
        if !tests.ends_within(PATIENCE)? {
            tests.kill_group();
            return Ok(vec![format!("no end after {} minutes", PATIENCE.as_secs() / 60)]);
        }
        let passed = tests.wait()?.success();
        let text = fs::read_to_string(&said).context("cannot read what the tests say")?;
        let mut failed: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("test ")?.strip_suffix("FAILED"))
            .filter_map(|line| Some(line.split_once(" ...")?.0.trim().to_owned()))
            .collect();
        failed.sort();
        if failed.is_empty() && !passed {
            failed.push("the tests break off".into());
        }
        Ok(failed)
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let doing = || format!("cannot copy {}", from.display());
    fs::create_dir_all(to).with_context(doing)?;
    for entry in fs::read_dir(from).with_context(doing)? {
        let entry = entry.with_context(doing)?;
        let target = to.join(entry.file_name());
        if entry.file_type().with_context(doing)?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target).with_context(doing)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_finds_its_line() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut lost = Vec::new();
        for (below, mutants) in [CLUSTER, ENGINE] {
            for mutant in mutants.iter().copied().flatten() {
                let text = fs::read_to_string(root.join(below).join(mutant.file)).unwrap();
                lost.extend(mutant.spoil(&text).err().map(|error| error.to_string()));
            }
        }
        assert!(lost.is_empty(), "{}", lost.join("\n"));
    }
}
