//! `cargo xtask mutants cluster`: shows that the recorded traces notice when the embedded cluster is wrong.
//!
//! Each mutant is one small untruth, put into a copy of the sources. The copy is built and the traces are replayed on
//! it, those with a name first; a mutant that no trace catches fails the command. The table on stdout belongs into
//! `docs/design/fidelity.md`.

mod cluster;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use self::cluster::{MUTANTS, Mutant};
use crate::layout::Layout;
use crate::process::die_with_us;

/// `cargo xtask mutants …`
#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// Mutants of the embedded cluster
    Cluster {
        /// Only those whose name contains this
        filter: Option<String>,
    },
}

/// Tries every mutant; the exit code is 1 when one survives.
pub(crate) fn run(layout: &Layout, action: &Action) -> Result<u8> {
    let Action::Cluster { filter } = action;
    let copy = Copy::make(layout)?;
    for traces in [Traces::Named, Traces::Seeds] {
        if let Some(first) = copy.replay(traces)?.first() {
            bail!("{first} fails without any mutant; mend that first");
        }
    }
    let wanted = |mutant: &&Mutant| filter.as_ref().is_none_or(|filter| mutant.name.contains(filter));
    let mut survivors = 0;
    print_row("mutant", "caught by", "and so many more");
    print_row("---", "---", "---");
    for mutant in MUTANTS.iter().filter(wanted) {
        eprintln!("trying: {}", mutant.name);
        let original = copy.mutate(mutant)?;
        let verdict = match copy.replay(Traces::Named) {
            Ok(caught) if caught.is_empty() => copy.replay(Traces::Seeds),
            verdict => verdict,
        };
        fs::write(copy.path(mutant), original).context("cannot take the mutant back")?;
        match verdict?.as_slice() {
            [first, more @ ..] => print_row(mutant.name, &format!("`{first}`"), &more.len().to_string()),
            [] => {
                survivors += 1;
                print_row(mutant.name, "SURVIVED", "");
            }
        }
    }
    Ok(u8::from(survivors > 0))
}

#[allow(clippy::print_stdout)]
fn print_row(name: &str, caught: &str, count: &str) {
    println!("| {name} | {caught} | {count} |");
}

/// Which traces are replayed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Traces {
    /// A name that is a sentence says more than a seed, and most mutants need no more.
    Named,
    Seeds,
}

/// A copy of the sources that may be spoiled.
struct Copy {
    root: PathBuf,
    target: PathBuf,
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
        for file in ["Cargo.toml", "Cargo.lock"] {
            fs::copy(layout.root.join(file), root.join(file))
                .with_context(|| format!("cannot copy {file}"))?;
        }
        Ok(Self {
            root,
            // Cargo takes a copy of a workspace for the workspace itself: they must not share their builds.
            target: layout.target.join("mutants-build"),
        })
    }

    fn path(&self, mutant: &Mutant) -> PathBuf {
        self.root.join("crates/cluster/src").join(mutant.file)
    }

    /// Puts the mutant in and returns what the file was.
    fn mutate(&self, mutant: &Mutant) -> Result<String> {
        let Mutant {
            name,
            file,
            truth,
            lie,
        } = mutant;
        let path = self.path(mutant);
        let original = fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
        let found = original.matches(truth).count();
        if found != 1 {
            bail!("mutant {name}: its line is in {file} {found} times, and must be there once: {truth}");
        }
        fs::write(&path, original.replace(truth, lie)).with_context(|| format!("cannot write {file}"))?;
        Ok(original)
    }

    /// The traces that fail.
    fn replay(&self, traces: Traces) -> Result<Vec<String>> {
        let which: &[&str] = match traces {
            Traces::Named => &["recorded::", "--skip", "seed_"],
            Traces::Seeds => &["recorded::seed_"],
        };
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args([
                "test",
                "--quiet",
                "--package",
                "stateward-scenarios",
                "--no-fail-fast",
                "--test",
                "differential",
                "--test",
                "requests",
                "--",
            ])
            .args(["--color", "never", "--format", "pretty"])
            .args(which)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env_remove("STATEWARD_TEST_KUBECONFIG")
            .stderr(Stdio::null());
        die_with_us(&mut command, Signal::KILL);
        let output = command.output().context("cannot run cargo test")?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !text.contains("test result:") {
            bail!(
                "the mutant does not build: cd {} && cargo test",
                self.root.display()
            );
        }
        let mut failed: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("test ")?.strip_suffix("FAILED"))
            .filter_map(|line| Some(line.split_once(" ...")?.0.trim().to_owned()))
            .collect();
        failed.sort();
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
