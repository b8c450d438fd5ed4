//! The ledgers of `docs/design` may only name tests that exist.

#![allow(clippy::unwrap_used, reason = "a file that cannot be read fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rstest::rstest;

#[rstest]
#[case::fidelity("fidelity.md", 40)]
#[case::coverage("coverage.md", 90)]
fn every_test_that_a_ledger_names_exists(#[case] ledger: &str, #[case] at_least: usize) {
    let tests = Tests::of(&root());
    let mut checked = 0;
    for row in rows(ledger) {
        for name in names(&row) {
            checked += 1;
            assert!(tests.know(name), "{ledger} names {name}, which is no test: {row}");
        }
    }
    assert!(
        checked >= at_least,
        "only {checked} names found: has the form of {ledger} changed?"
    );
}

#[test]
fn every_failure_is_shown_not_to_be_ours_or_cannot_be() {
    for row in rows("coverage.md").filter(|row| !row.starts_with("| # ")) {
        let excused = last_cell(&row).starts_with("does not apply, because ");
        assert!(excused || names(&row).next().is_some(), "nothing shows: {row}");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of the tables of a ledger.
fn rows(ledger: &str) -> impl Iterator<Item = String> {
    let text = fs::read_to_string(root().join("docs/design").join(ledger)).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| "));
    rows.map(str::to_owned).collect::<Vec<_>>().into_iter()
}

fn last_cell(row: &str) -> &str {
    let cells = row.trim_end_matches('|');
    cells.rsplit('|').next().unwrap_or_default().trim()
}

/// The names in backticks in the last cell of a row.
fn names(row: &str) -> impl Iterator<Item = &str> {
    last_cell(row).split('`').skip(1).step_by(2)
}

/// The tests that a ledger may name.
struct Tests {
    /// Functions, and cases that are data, `"a_name_like_this"`, by the files they are in.
    functions: BTreeMap<String, BTreeSet<PathBuf>>,
    transcripts: PathBuf,
    /// `invariant 18`
    invariants: BTreeSet<String>,
}

impl Tests {
    fn of(root: &Path) -> Self {
        let first_cell = |row: String| row.split('|').nth(1).unwrap_or_default().trim().to_owned();
        Self {
            functions: functions(&root.join("crates")),
            transcripts: root.join("crates/scenarios/transcripts"),
            invariants: rows("invariants.md")
                .map(|row| format!("invariant {}", first_cell(row)))
                .collect(),
        }
    }

    /// Whether a test `name` exists in the file that its path names: `steps::name` is in a file `steps.rs`.
    fn know(&self, name: &str) -> bool {
        if name.ends_with(".txt") {
            return self.transcripts.join(name).exists();
        }
        let (path, name) = name.rsplit_once("::").unwrap_or(("", name));
        let path: PathBuf = path.split("::").collect();
        let here = |file: &PathBuf| file.ends_with(&path);
        self.functions
            .get(name)
            .is_some_and(|files| files.iter().any(here))
            || self.invariants.contains(name)
    }
}

/// The names of all functions below a directory, with the files they are in, without extension.
fn functions(dir: &Path) -> BTreeMap<String, BTreeSet<PathBuf>> {
    let mut found: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    let mut dirs: Vec<PathBuf> = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let functions = text.split("fn ").skip(1);
                let functions = functions.map(|rest| rest.split(['(', '<']).next().unwrap_or_default());
                let is_name = |text: &&str| {
                    text.contains('_') && !text.contains(|c: char| !c.is_alphanumeric() && c != '_')
                };
                let cases = text.split('"').filter(is_name);
                for name in functions.chain(cases) {
                    let files = found.entry(name.to_owned()).or_default();
                    files.insert(path.with_extension(""));
                }
            }
        }
    }
    found
}
