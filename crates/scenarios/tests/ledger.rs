//! The fidelity ledger may only name tests that exist.

#![allow(clippy::unwrap_used, reason = "a file that cannot be read fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_test_that_the_ledger_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ledger = fs::read_to_string(root.join("docs/design/fidelity.md")).unwrap();
    let known = functions(&root.join("crates"));
    let rows = ledger
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| item"));
    let mut checked = 0;
    for row in rows {
        let shown_by = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        for name in shown_by.split('`').skip(1).step_by(2) {
            checked += 1;
            let there = match name.strip_suffix(".txt") {
                Some(transcript) => root
                    .join(format!("crates/scenarios/transcripts/{transcript}.txt"))
                    .exists(),
                None => known.contains(name),
            };
            assert!(there, "the ledger names {name}, which is no test: {row}");
        }
    }
    assert!(
        checked > 40,
        "only {checked} names found: has the ledger's form changed?"
    );
}

/// The names of all functions below a directory, and of the cases that are data: `"a_name_like_this"`.
fn functions(dir: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut dirs: Vec<PathBuf> = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(path).unwrap();
                let functions = text.split("fn ").skip(1);
                let functions = functions.map(|rest| rest.split(['(', '<']).next().unwrap_or_default());
                let is_name = |text: &&str| {
                    text.contains('_') && !text.contains(|c: char| !c.is_alphanumeric() && c != '_')
                };
                let cases = text.split('"').filter(is_name);
                names.extend(functions.chain(cases).map(str::to_owned));
            }
        }
    }
    names
}
