//! The reference pages of the book: one per verb, from clap's definitions, and those of spec and status, from the CRDs. Generate them
//! with `cargo xtask generate reference`; a stale page fails the test.
//!
//! - `verbs`: a page for every verb, and their index.
//! - `fields`: a schema as tables.
//! - `resources`: the pages of spec and status.

mod fields;
mod resources;
mod verbs;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

/// The first line of every generated page.
const MADE: &str = "<!-- made by cargo xtask generate reference -->\n\n";

/// Set to write the pages rather than to compare them.
const WRITE: &str = "STATEWARD_WRITE_REFERENCE";

/// Pages by their path below `docs/reference`.
type Pages = BTreeMap<String, String>;

fn pages() -> Pages {
    let mut pages = verbs::pages(&crate::Cli::command());
    pages.insert("status.md".into(), resources::status());
    pages.insert("spec.md".into(), resources::spec());
    pages
        .into_iter()
        .map(|(path, text)| (path, format!("{MADE}{}\n", text.trim_end())))
        .collect()
}

/// Escapes text for a table cell.
fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "\\|").replace('<', "&lt;")
}

/// The generated pages that are checked in.
fn committed(dir: &Path, below: &Path) -> Pages {
    let mut found = Pages::new();
    for entry in fs::read_dir(dir.join(below)).into_iter().flatten() {
        let entry = entry.unwrap();
        let path = below.join(entry.file_name());
        if entry.path().is_dir() {
            found.append(&mut committed(dir, &path));
        } else {
            let text = fs::read_to_string(entry.path()).unwrap();
            found.insert(path.to_str().unwrap().to_owned(), text);
        }
    }
    found
}

fn write(dir: &Path, pages: &Pages) {
    let _ = fs::remove_dir_all(dir);
    for (path, text) in pages {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn the_committed_reference_is_what_the_code_says() {
    let dir: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../docs/reference"]
        .iter()
        .collect();
    let pages = pages();
    if std::env::var_os(WRITE).is_some() {
        write(&dir, &pages);
    }
    let committed = committed(&dir, Path::new(""));
    let known: BTreeSet<_> = pages.keys().chain(committed.keys()).collect();
    let stale: Vec<_> = known
        .into_iter()
        .filter(|path| pages.get(*path) != committed.get(*path))
        .collect();
    assert!(
        stale.is_empty(),
        "stale under docs/reference: {stale:?}; make them again with: cargo xtask generate reference"
    );
}

#[test]
fn a_cell_stays_in_its_cell() {
    assert_eq!(cell("a|b\n <c>"), "a\\|b &lt;c>");
}
