//! `lint`: checks manifests without a cluster, by the rules of the API server and the operator.
//!
//! `yaml` parses text with line numbers, `kinds` finds the kind, `schema` and `meta` are the API server's checks, `object` and `addresses`
//! add the operator's, `neighbours` checks references between the files' objects, `success_on` checks what a PhasedRollout leaves open;
//! each result is a `finding`. One pass reports all findings. No cluster is contacted.

mod addresses;
mod finding;
mod kinds;
mod meta;
mod near;
mod neighbours;
mod object;
mod schema;
mod success_on;
mod yaml;

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use stateward_api::Problem;
use stateward_egress::{Cidr, Egress};

use crate::error::Error;
use crate::exit::Exit;
use crate::input::manifest;
use crate::session::write_line;
use crate::views::output::to_json;
use crate::views::style::Style;

use self::finding::{Finding, Severity, for_machines, sort, summary};
use self::kinds::Class;
use self::schema::Checked;
use self::yaml::{Data, Node, Unreadable};

/// `lint …`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
RolloutPlugins, PhasedRollouts, AnalysisTemplates, ClusterAnalysisTemplates and AnalysisRuns are checked as the API server and the \
operator check them, and built-in kinds (StatefulSets, Services, ConfigMaps and others) by Kubernetes' own schema. Other kinds are not \
checked, and are named. Warnings are about what may be meant otherwise, notes about what is not in the files.

A chart is checked as it is rendered: helm template CHART | stateward lint --strict -

Exit codes:
  0  no errors; with --strict no warnings and no notes either
  1  there are, or a file cannot be read")]
pub struct Args {
    /// Manifests, or directories of them; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "filename")]
    files: Vec<PathBuf>,
    /// The same as FILE, as with kubectl
    #[arg(short = 'f', long, value_name = "FILE")]
    filename: Vec<PathBuf>,
    /// Also read subdirectories
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Report warnings and notes as errors
    #[arg(long)]
    strict: bool,
    /// Accept metric addresses in this range, which the operator refuses unless it runs with the same flag; may be repeated
    #[arg(long, value_name = "CIDR")]
    allow_egress: Vec<Cidr>,
    /// The output format: json
    #[arg(short, long, value_parser = ["json"], hide_possible_values = true, value_name = "json")]
    output: Option<String>,
}

impl Unreadable {
    fn finding(self, file: &Path) -> Finding {
        Finding {
            file: file.display().to_string(),
            source: self.source,
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
    source: Option<String>,
    node: Node,
    value: Value,
    class: Class,
    /// The problem with how the document gives its kind.
    misnamed: Option<Problem>,
    /// The result of the schema check.
    checked: Checked,
}

impl Document {
    fn new(file: &Path, source: Option<String>, node: Node, value: Value) -> Self {
        let (class, misnamed) = kinds::classify(&value);
        let checked = match &class {
            Class::Ours(definition) => {
                let version = definition.spec.versions.first();
                let schema = version.and_then(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
                let schema = schema.and_then(|schema| serde_json::to_value(schema).ok());
                schema::checked(&schema.unwrap_or_default(), &value, false)
            }
            Class::BuiltIn(kind) => schema::checked(kind.schema(), &value, kind.kind == "Secret"),
            Class::Foreign | Class::NoObject => Checked::default(),
        };
        Self {
            file: file.display().to_string(),
            source,
            node,
            value,
            class,
            misnamed,
            checked,
        }
    }

    /// The kind of Stateward's definitions that it is, or was meant to be.
    fn our_kind(&self) -> &str {
        match &self.class {
            Class::Ours(definition) => &definition.spec.names.kind,
            Class::BuiltIn(_) | Class::Foreign | Class::NoObject => "",
        }
    }

    fn text(&self, pointer: &str) -> &str {
        self.value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn finding(&self, severity: Severity, field: &str, message: impl Into<String>) -> Finding {
        Finding {
            file: self.file.clone(),
            source: self.source.clone(),
            line: self.node.line_of(field),
            severity,
            field: field.to_owned(),
            message: message.into(),
        }
    }
}

/// The problems of manifests that were read from these files, each with its file, line and field.
pub fn mistakes(read: &[(PathBuf, String)]) -> Vec<String> {
    let (mut findings, mut documents) = (Vec::new(), Vec::new());
    for (file, text) in read {
        take(file, text, &mut documents, &mut findings);
    }
    check(&documents, &Egress::default(), &mut findings);
    sort(&mut findings, read.iter().map(|(file, _)| file));
    let wrong = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    let line = |finding: &Finding| {
        stateward_terminal::line(&finding.to_string(), Style::of_the_terminal().charset())
    };
    wrong.map(line).collect()
}

pub(crate) fn run(args: &Args, out: &mut dyn Write, talk: &mut dyn Write) -> Result<Exit, Error> {
    let (mut findings, mut documents, mut files) = (Vec::new(), Vec::new(), Vec::new());
    // A file that cannot be read must not hide the findings of the others.
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
    let egress = Egress {
        allow: args.allow_egress.clone(),
        ..Egress::default()
    };
    check(&documents, &egress, &mut findings);
    if args.strict {
        let all = findings.iter_mut();
        all.for_each(|finding| finding.severity = Severity::Error);
    }
    sort(&mut findings, &files);
    if args.output.is_some() {
        writeln!(
            out,
            "{}",
            to_json(&for_machines(&findings), Style::of_the_terminal().charset())?
        )
        .map_err(Error::Output)?;
    } else {
        for finding in &findings {
            write_line(out, &finding.to_string(), Style::of_the_terminal())?;
        }
    }
    let summary = summary(&documents, &findings, files.len());
    // A closed stderr is not an error.
    let _ = write_line(talk, &summary, Style::of_the_terminal());
    tell(&unread, talk);
    let is_wrong = findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(if is_wrong || !unread.is_empty() {
        Exit::Error
    } else {
        Exit::Done
    })
}

/// Prints errors. A closed stderr is not an error.
fn tell(errors: &[Error], talk: &mut dyn Write) {
    for error in errors {
        let _ = write_line(talk, &error.to_string(), Style::of_the_terminal());
    }
}

/// The manifests under a path; a path without any is an error.
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

/// Adds the documents of a file, and findings for what cannot be parsed.
fn take(file: &Path, text: &str, documents: &mut Vec<Document>, findings: &mut Vec<Finding>) {
    let (read, unreadable) = yaml::documents(text);
    for yaml::Document { node, source } in read {
        objects(file, source.as_ref(), node, documents);
    }
    findings.extend(unreadable.into_iter().map(|unreadable| unreadable.finding(file)));
}

/// Adds the objects of a document: itself, or the items of a list.
fn objects(file: &Path, source: Option<&String>, node: Node, found: &mut Vec<Document>) {
    objects_of(file, source, node, &Value::Null, found);
}

/// Adds the objects of a list item, whose kind may come from the list.
fn objects_of(file: &Path, source: Option<&String>, node: Node, list: &Value, found: &mut Vec<Document>) {
    let mut value = node.value();
    if let (Some(fields), Some(kind)) = (value.as_object_mut(), kinds::of_items(list)) {
        for (name, of_all) in [("apiVersion", &list["apiVersion"]), ("kind", &kind.into())] {
            fields.entry(name).or_insert_with(|| of_all.clone());
        }
    }
    let is_a_list = value["kind"] == "List" || kinds::of_items(&value).is_some();
    let items = node.field("items").map(|items| items.value.clone());
    match items {
        Some(Node {
            data: Data::List(items),
            ..
        }) if is_a_list => {
            for item in items {
                objects_of(file, source, item, &value, found);
            }
        }
        _ => found.push(Document::new(file, source.cloned(), node, value)),
    }
}

/// Checks all documents.
fn check(documents: &[Document], egress: &Egress, findings: &mut Vec<Finding>) {
    let templates = documents
        .iter()
        .filter_map(|document| object::template(document.our_kind(), &document.checked.readable));
    let known = templates.collect();
    for document in documents {
        let mut found = Vec::new();
        let error =
            |problem: &Problem| document.finding(Severity::Error, &problem.field, problem.message.clone());
        found.extend(document.misnamed.iter().map(error));
        if matches!(document.class, Class::NoObject) {
            let none = "is not a Kubernetes object: it has no kind; it is not checked";
            found.push(document.finding(Severity::Note, "", none));
        }
        found.extend(problems(document, &known, egress).iter().map(error));
        found.extend(refused_jobs(document));
        found.extend(success_on::finding(document));
        found.extend(neighbours::findings(document, documents, &known));
        found.sort_by_key(|finding| finding.line);
        findings.extend(found);
    }
}

/// The problems that the API server and the operator report.
fn problems(document: &Document, known: &object::Known, egress: &Egress) -> Vec<Problem> {
    let (kind, checked) = (document.our_kind(), &document.checked);
    let mut problems = match &document.class {
        Class::Foreign | Class::NoObject => return Vec::new(),
        Class::BuiltIn(_) | Class::Ours(_) => meta::problems(&document.value),
    };
    // What the schema check removed is reported once, and not again as missing.
    let of_itself = |problem: &Problem| !checked.explains(problem);
    let by_operator = match object::problems(kind, &checked.readable, known) {
        Ok(problems) => problems.into_iter().filter(of_itself).collect(),
        Err(why) if checked.problems.is_empty() => vec![Problem {
            field: "spec".into(),
            message: format!("cannot be read: {why}"),
        }],
        Err(_) => Vec::new(),
    };
    // Where both report a problem, the operator's message is used.
    let silent = |problem: &Problem| by_operator.iter().all(|theirs| theirs.field != problem.field);
    let by_schema = checked.problems.iter().cloned().chain(jobs(document));
    problems.extend(by_schema.filter(silent));
    problems.extend(by_operator);
    problems.extend(addresses::problems(kind, &checked.readable, known, egress));
    problems
}

/// The Jobs of an analysis's metrics, with their paths.
fn metric_jobs(document: &Document) -> impl Iterator<Item = (String, &Value)> {
    let metrics = document.value.pointer("/spec/metrics").and_then(Value::as_array);
    let metrics = metrics.filter(|_| !document.our_kind().is_empty());
    let metrics = metrics.into_iter().flatten().enumerate();
    metrics.filter_map(|(index, metric)| {
        let job = metric.pointer("/provider/job")?;
        Some((format!("spec.metrics[{index}].provider.job"), job))
    })
}

/// The problems that the API server would report when the Jobs of an analysis are created.
fn jobs(document: &Document) -> Vec<Problem> {
    let of_a_job = |(path, job): (String, &Value)| {
        let metadata = schema::part(
            stateward_schema::object_meta(),
            &job["metadata"],
            &format!("{path}.metadata"),
        );
        let spec = schema::part(
            stateward_schema::job_spec(),
            &job["spec"],
            &format!("{path}.spec"),
        );
        metadata.into_iter().chain(spec)
    };
    metric_jobs(document).flat_map(of_a_job).collect()
}

/// The Job settings of an analysis that an operator refuses without a flag.
fn refused_jobs(document: &Document) -> Vec<Finding> {
    let refused = metric_jobs(document).flat_map(|(path, job)| {
        let template = job.pointer("/spec/template");
        template.map_or_else(Vec::new, |template| {
            stateward_pod_security::violations(template, &format!("{path}.spec.template"))
        })
    });
    // The values of args are not known here.
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
