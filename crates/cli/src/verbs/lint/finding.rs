//! The findings in manifests, and their output.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::Document;
use super::kinds::Class;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Severity {
    Error,
    Warning,
    Note,
}

/// A problem of a manifest, or a note.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) file: String,
    /// The chart file that the document was rendered from.
    pub(super) source: Option<String>,
    pub(super) line: u64,
    pub(super) severity: Severity,
    pub(super) field: String,
    pub(super) message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        match self.severity {
            Severity::Error => {}
            Severity::Warning => f.write_str("warning: ")?,
            Severity::Note => f.write_str("note: ")?,
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, " [{source}]"),
            None => Ok(()),
        }
    }
}

/// Sorts by file, in reading order, then by line.
pub(super) fn sort<'f>(findings: &mut [Finding], files: impl IntoIterator<Item = &'f PathBuf>) {
    let files: Vec<_> = files.into_iter().map(|file| file.display().to_string()).collect();
    findings.sort_by_key(|finding| {
        let place = files.iter().position(|file| *file == finding.file);
        (place, finding.line)
    });
}

/// The findings, for tools.
pub(super) fn for_machines(findings: &[Finding]) -> Value {
    let item = |finding: &Finding| {
        let mut item = json!({
            "file": finding.file, "line": finding.line, "field": finding.field, "message": finding.message,
            "severity": format!("{:?}", finding.severity).to_lowercase(),
        });
        if let Some(source) = &finding.source {
            item["source"] = source.as_str().into();
        }
        item
    };
    findings.iter().map(item).collect()
}

/// The numbers of checked documents, findings and unchecked documents.
pub(super) fn summary(documents: &[Document], findings: &[Finding], files: usize) -> String {
    let is_checked = |document: &&Document| matches!(document.class, Class::Ours(_) | Class::BuiltIn(_));
    let checked = documents.iter().filter(is_checked).count();
    let foreign = documents
        .iter()
        .filter(|document| matches!(document.class, Class::Foreign));
    let foreign: BTreeSet<_> = foreign.map(|document| document.text("/kind")).collect();
    let foreign: Vec<_> = foreign.into_iter().filter(|kind| !kind.is_empty()).collect();
    let mut found = Vec::new();
    for (severity, name) in [
        (Severity::Error, "error"),
        (Severity::Warning, "warning"),
        (Severity::Note, "note"),
    ] {
        let of_it = findings.iter().filter(|finding| finding.severity == severity);
        match of_it.count() {
            0 if severity == Severity::Error => found.push("no errors".to_owned()),
            0 => {}
            number => found.push(count(number, name)),
        }
    }
    let mut summary = if checked == 0 && findings.is_empty() {
        format!("nothing to check in {}", count(files, "file"))
    } else {
        format!("{} checked: {}", count(checked, "object"), found.join(", "))
    };
    if !foreign.is_empty() {
        summary.push_str(&format!("; not checked, no schema: {}", foreign.join(", ")));
    }
    summary
}

fn count(number: usize, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}
