//! `lint`: manifests checked without a cluster, by what the server and the operator would say.
//!
//! `yaml` reads what is written with its lines, `schema` and `meta` are what the server checks by itself, `object` adds what the operator says,
//! `neighbours` looks at what the objects of the files mean to each other. No cluster is asked.

mod meta;
mod neighbours;
mod object;
mod schema;
mod yaml;

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stateward_api::analysis::{AnalysisTemplate, ClusterAnalysisTemplate};

use crate::error::Error;
use crate::exit::Exit;
use crate::manifest;
use crate::output::to_json;
use crate::session::write_line;
use crate::style::Style;

use self::yaml::{Data, Node, Unreadable};

/// `lint …`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
RolloutPlugins, PhasedRollouts, AnalysisTemplates, ClusterAnalysisTemplates and AnalysisRuns are checked as the API server and the \
operator check them; StatefulSets for what keeps them from being rolled, names, labels and selectors of all of these too. Everything else is passed over. Notes tell what could not \
be looked at, and warnings what may be meant otherwise.

Exit codes:
  0  nothing is wrong
  1  something is, or a file cannot be read")]
pub struct Args {
    /// Manifests, or directories of them; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "filename")]
    files: Vec<PathBuf>,
    /// The same, as kubectl has it
    #[arg(short = 'f', long, value_name = "FILE")]
    filename: Vec<PathBuf>,
    /// Look into the directories of directories too
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Another form: json
    #[arg(short, long, value_parser = ["json"], hide_possible_values = true, value_name = "json")]
    output: Option<String>,
}

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Error,
    Warning,
    Note,
}

/// Something to tell.
#[derive(Clone, Debug)]
struct Finding {
    file: String,
    line: u64,
    severity: Severity,
    field: String,
    message: String,
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
        f.write_str(&self.message)
    }
}

impl Unreadable {
    fn finding(self, file: &Path) -> Finding {
        Finding {
            file: file.display().to_string(),
            line: self.line,
            severity: Severity::Error,
            field: String::new(),
            message: self.why,
        }
    }
}

/// An object of a file.
struct Document {
    file: String,
    node: Node,
    value: Value,
}

impl Document {
    fn text(&self, pointer: &str) -> &str {
        self.value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn finding(&self, severity: Severity, field: &str, message: impl Into<String>) -> Finding {
        Finding {
            file: self.file.clone(),
            line: self.node.line_of(field),
            severity,
            field: field.to_owned(),
            message: message.into(),
        }
    }
}

/// What is wrong with manifests that were read from these files, each mistake with its file, its line and its field.
pub fn mistakes(read: &[(PathBuf, String)]) -> Vec<String> {
    let (mut findings, mut documents) = (Vec::new(), Vec::new());
    for (file, text) in read {
        take(file, text, &mut documents, &mut findings);
    }
    check(&documents, &mut findings);
    sort(&mut findings, read.iter().map(|(file, _)| file));
    let wrong = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    let line = |finding: &Finding| stateward_terminal::plain(&finding.to_string()).into_owned();
    wrong.map(line).collect()
}

pub(crate) fn run(args: &Args, out: &mut dyn Write, talk: &mut dyn Write) -> Result<Exit, Error> {
    let (mut findings, mut documents, mut files) = (Vec::new(), Vec::new(), Vec::new());
    // One that cannot be read is no reason to be silent about the others.
    let mut unread = Vec::new();
    for path in args.files.iter().chain(&args.filename) {
        let there = manifests(path, args.recursive, &mut unread).unwrap_or_else(|error| {
            unread.push(error);
            Vec::new()
        });
        for file in there {
            match manifest::read(&file) {
                Ok(text) => {
                    take(&file, &text, &mut documents, &mut findings);
                    files.push(file);
                }
                Err(error) => unread.push(error),
            }
        }
    }
    if files.is_empty()
        && let Some(error) = unread.pop()
    {
        tell(&unread, talk);
        return Err(error);
    }
    let checked = check(&documents, &mut findings);
    sort(&mut findings, &files);
    let style = Style::of_the_terminal();
    let wrong = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .count();
    if args.output.is_some() {
        writeln!(out, "{}", to_json(&for_machines(&findings))?).map_err(Error::Output)?;
    } else {
        for finding in &findings {
            write_line(out, &finding.to_string(), style)?;
        }
    }
    let _ = match (checked, wrong) {
        (0, 0) => writeln!(talk, "nothing to check in {}", count(files.len(), "file")),
        (checked, 0) => writeln!(talk, "nothing is wrong with {}", count(checked, "object")),
        (checked, wrong) => writeln!(
            talk,
            "{} in {}",
            count(wrong, "mistake"),
            count(checked, "object")
        ),
    };
    tell(&unread, talk);
    Ok(if wrong == 0 && unread.is_empty() {
        Exit::Done
    } else {
        Exit::Error
    })
}

/// That nobody listens is no failure.
fn tell(errors: &[Error], talk: &mut dyn Write) {
    for error in errors {
        let _ = write_line(talk, &error.to_string(), Style::of_the_terminal());
    }
}

/// The manifests that are there; a place without any is a mistake.
fn manifests(path: &Path, recursive: bool, unread: &mut Vec<Error>) -> Result<Vec<PathBuf>, Error> {
    let there = manifest::walk(path, recursive, unread)?;
    if there.is_empty() && unread.is_empty() {
        let deeper = if recursive {
            ""
        } else {
            "; -R looks into its directories too"
        };
        return Err(Error::Refused(format!(
            "{} has no manifests in it: no file that ends in .yaml, .yml or .json{deeper}",
            path.display()
        )));
    }
    Ok(there)
}

/// What can be read of a file, and what cannot.
fn take(file: &Path, text: &str, documents: &mut Vec<Document>, findings: &mut Vec<Finding>) {
    let (nodes, unreadable) = yaml::documents(text);
    documents.extend(nodes.into_iter().flat_map(|node| objects(file, node)));
    findings.extend(unreadable.into_iter().map(|unreadable| unreadable.finding(file)));
}

/// File by file as they were read, and from the first line on.
fn sort<'f>(findings: &mut [Finding], files: impl IntoIterator<Item = &'f PathBuf>) {
    let files: Vec<_> = files.into_iter().map(|file| file.display().to_string()).collect();
    findings.sort_by_key(|finding| {
        let place = files.iter().position(|file| *file == finding.file);
        (place, finding.line)
    });
}

fn count(number: usize, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}

/// The objects of a document: itself, or the items of a list.
fn objects(file: &Path, node: Node) -> Vec<Document> {
    let value = node.value();
    let items = node.field("items").map(|items| items.value.clone());
    match (value["kind"].as_str(), items) {
        (
            Some("List"),
            Some(Node {
                data: Data::List(items),
                ..
            }),
        ) => items.into_iter().flat_map(|item| objects(file, item)).collect(),
        _ => vec![Document {
            file: file.display().to_string(),
            node,
            value,
        }],
    }
}

/// Checks all of them; how many were looked at.
fn check(documents: &[Document], findings: &mut Vec<Finding>) -> usize {
    let mut known = object::Known::new();
    for document in documents {
        let value = || document.value.clone();
        let name = document.text("/metadata/name").to_owned();
        match document.text("/kind") {
            "AnalysisTemplate" => {
                let parsed = serde_json::from_value::<AnalysisTemplate>(value());
                known.extend(parsed.map(|template| ((false, name), template.spec)));
            }
            "ClusterAnalysisTemplate" => {
                let parsed = serde_json::from_value::<ClusterAnalysisTemplate>(value());
                known.extend(parsed.map(|template| ((true, name), template.spec.0)));
            }
            _ => {}
        }
    }
    let mut checked = 0;
    for document in documents {
        let mut told = Vec::new();
        let finding = |problem: &stateward_api::Problem| {
            document.finding(Severity::Error, &problem.field, problem.message.clone())
        };
        let set = document.text("/kind") == "StatefulSet";
        if let Some(definition) = object::definition(document.text("/kind")) {
            checked += 1;
            let problems = object::problems(&definition, &document.value, &known);
            told.extend(problems.iter().map(finding));
            told.extend(meta::problems(&document.value).iter().map(finding));
            told.extend(refused_jobs(document));
        } else if let Some(problem) = object::misspelt(&document.value) {
            checked += 1;
            told.push(finding(&problem));
        } else if set {
            checked += 1;
            told.extend(meta::problems(&document.value).iter().map(finding));
        } else if document.text("/kind").is_empty() && !document.value.is_null() {
            let none = "no object of Kubernetes, which has a kind; it was passed over";
            told.push(document.finding(Severity::Note, "", none));
        }
        told.extend(neighbours::findings(document, documents, &known));
        told.sort_by_key(|finding| finding.line);
        findings.extend(told);
    }
    checked
}

/// What the Jobs of an analysis ask for that an operator refuses unless it is told otherwise.
fn refused_jobs(document: &Document) -> Vec<Finding> {
    let metrics = document.value.pointer("/spec/metrics").and_then(Value::as_array);
    let refused = |(index, metric): (usize, &Value)| {
        let template = metric.pointer("/provider/job/spec/template");
        let path = format!("spec.metrics[{index}].provider.job.spec.template");
        template.map_or_else(Vec::new, |template| {
            stateward_pod_security::violations(template, &path)
        })
    };
    let refused = metrics.into_iter().flatten().enumerate().flat_map(refused);
    // What args come to is not known here.
    let refused = refused.filter(|violation| !violation.value.contains("{{"));
    let finding = |violation: stateward_pod_security::Violation| {
        let message = format!(
            "{} is refused, unless the operator runs with --analysis-jobs=any; {}",
            violation.value, violation.allowed
        );
        document.finding(Severity::Warning, &violation.path, message)
    };
    refused.map(finding).collect()
}

fn for_machines(findings: &[Finding]) -> Value {
    let item = |finding: &Finding| {
        json!({
            "file": finding.file, "line": finding.line, "field": finding.field, "message": finding.message,
            "severity": format!("{:?}", finding.severity).to_lowercase(),
        })
    };
    findings.iter().map(item).collect()
}
