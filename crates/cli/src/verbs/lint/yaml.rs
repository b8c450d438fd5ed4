//! YAML with line numbers for every value.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, NonFiniteFloatPolicy, Spanned};

/// A value and its line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// From 1.
    pub(super) line: u64,
    pub(super) data: Data,
}

/// The data of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Data {
    Scalar(Value),
    List(Vec<Node>),
    Fields(Vec<Field>),
}

/// A field: its name, the line of the name, and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) line: u64,
    /// The line where the name is defined, which differs from `line` for an alias.
    written: u64,
    pub(super) value: Node,
}

/// A document of a file.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) node: Node,
    /// The chart file that it was rendered from, if given.
    pub(super) source: Option<String>,
}

/// A parse error and its line.
#[derive(Debug)]
pub(super) struct Unreadable {
    /// As in a document.
    pub(super) source: Option<String>,
    pub(super) line: u64,
    pub(super) why: String,
}

/// The non-empty documents of a file, and parse errors. Each document is parsed on its own, so a broken one does not affect the others.
pub(super) fn documents(text: &str) -> (Vec<Document>, Vec<Unreadable>) {
    let (mut documents, mut unreadable) = (Vec::new(), Vec::new());
    for (before, text) in apart(text) {
        let source = source(text);
        let mut wrong = BTreeSet::new();
        match read(text, DuplicateKeyPolicy::LastWins) {
            Ok(read) => {
                for mut node in read {
                    node.shift(before as u64);
                    node.duplicates(&mut wrong);
                    let source = source.clone();
                    documents.push(Document { node, source });
                }
                // Numeric keys are compared by value, and only the last one is read.
                if wrong.is_empty()
                    && let Err(error) = self::read(text, DuplicateKeyPolicy::Error)
                {
                    wrong.insert(unread(before, text, DuplicateKeyPolicy::Error, &error));
                }
            }
            Err(error) => {
                wrong.insert(unread(before, text, DuplicateKeyPolicy::LastWins, &error));
            }
        }
        unreadable.extend(wrong.into_iter().map(|(line, why)| Unreadable {
            source: source.clone(),
            line,
            why,
        }));
    }
    (documents, unreadable)
}

fn read(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Vec<Node>, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        duplicate_keys: duplicate_keys,
        // Like Kubernetes: 0644 is octal, and a number that is too large is a string.
        legacy_octal_numbers: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
    };
    let documents: Vec<Spanned<Data>> = serde_saphyr::from_multiple_with_options(text, options)?;
    let documents = documents.into_iter().map(Node::from);
    Ok(documents
        .filter(|node| node.data != Data::Scalar(Value::Null))
        .collect())
}

/// The line and message of an error, relative to the file.
fn unread(
    before: usize,
    text: &str,
    policy: DuplicateKeyPolicy,
    error: &serde_saphyr::Error,
) -> (u64, String) {
    // The message contains line numbers. Prepending empty lines makes them those of the file.
    let again = read(&format!("{}{text}", "\n".repeat(before)), policy);
    let again = again.err();
    let error = again.as_ref().unwrap_or(error);
    // Args of metrics also use braces, and remain in rendered charts.
    let is_arg = |rest: &str| rest.trim_start().starts_with("args.");
    let template = if text.split("{{").skip(1).any(|rest| !is_arg(rest)) {
        "; a Helm template is checked when it is rendered: helm template CHART | stateward lint -"
    } else {
        ""
    };
    let line = error.location().map_or(1, |place| place.line());
    (line, format!("{}{template}", words(error)))
}

/// `# Source: chart/templates/statefulset.yaml`, as `helm template` writes it before each document.
fn source(text: &str) -> Option<String> {
    let is_before =
        |line: &&str| line.trim().is_empty() || line.starts_with(['#', '%']) || line.starts_with("---");
    let mut before = text.lines().take_while(is_before);
    let source = before.find_map(|line| line.strip_prefix("# Source: "))?;
    Some(source.trim().to_owned())
}

/// The texts of the documents, each with its line offset. A `---` at the start of a line is never inside a value.
fn apart(text: &str) -> Vec<(usize, &str)> {
    let (mut apart, mut begin, mut before, mut at) = (Vec::new(), 0, 0, 0);
    // Text before a separator, such as %YAML, belongs to the next document unless it is one itself.
    let mut begun = false;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let marks = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if marks && begun {
            apart.push((before, &text[begin..at]));
            (begin, before) = (at, number);
        }
        begun |= marks || !line.trim().is_empty() && !line.starts_with(['#', '%']);
        at += line.len();
    }
    apart.push((before, &text[begin..]));
    apart
}

/// The message without what only concerns programs.
fn words(error: &serde_saphyr::Error) -> String {
    match error.without_snippet() {
        serde_saphyr::Error::DuplicateMappingKey { key, .. } => duplicate(key.as_deref().unwrap_or("a key")),
        serde_saphyr::Error::NullIntoString { .. } => "a key is null; it must be a string".to_owned(),
        other => other.to_string(),
    }
}

fn duplicate(key: &str) -> String {
    format!("duplicate key {key:?}")
}

impl From<Spanned<Data>> for Node {
    fn from(spanned: Spanned<Data>) -> Self {
        Self {
            line: spanned.referenced.line(),
            data: spanned.value,
        }
    }
}

impl Node {
    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        match &self.data {
            // For duplicate fields, the last one counts.
            Data::Fields(fields) => fields.iter().rfind(|field| field.name == name),
            Data::Scalar(_) | Data::List(_) => None,
        }
    }

    /// Adds an offset to the lines.
    fn shift(&mut self, lines: u64) {
        self.line += lines;
        match &mut self.data {
            Data::Scalar(_) => {}
            Data::List(items) => items.iter_mut().for_each(|item| item.shift(lines)),
            Data::Fields(fields) => fields.iter_mut().for_each(|field| {
                field.line += lines;
                field.written += lines;
                field.value.shift(lines);
            }),
        }
    }

    /// Findings for duplicate fields, by the line of the later one.
    fn duplicates(&self, found: &mut BTreeSet<(u64, String)>) {
        match &self.data {
            Data::Scalar(_) => {}
            Data::List(items) => items.iter().for_each(|item| item.duplicates(found)),
            Data::Fields(fields) => {
                let mut names = BTreeSet::new();
                for field in fields {
                    if !names.insert(&field.name) {
                        found.insert((field.written, duplicate(&field.name)));
                    }
                    field.value.duplicates(found);
                }
            }
        }
    }

    pub(super) fn value(&self) -> Value {
        match &self.data {
            Data::Scalar(value) => value.clone(),
            Data::List(items) => items.iter().map(Self::value).collect(),
            Data::Fields(fields) => {
                let fields = fields
                    .iter()
                    .map(|field| (field.name.clone(), field.value.value()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// The line of the value at a path such as `spec.steps[2].setWeight`, or of its deepest existing parent.
    pub(super) fn line_of(&self, path: &str) -> u64 {
        let (mut node, mut line) = (self, self.line);
        let mut rest = path;
        while !rest.is_empty() {
            rest = rest.trim_start_matches('.');
            let next = match rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
                Some((index, after)) => {
                    let item = match (&node.data, index.parse::<usize>()) {
                        (Data::List(items), Ok(index)) => items.get(index),
                        _ => None,
                    };
                    item.map(|item| (item.line, item, after))
                }
                None => match &node.data {
                    // The longest name first: label keys contain dots.
                    Data::Fields(fields) => {
                        let named = fields.iter().filter(|field| leads(rest, &field.name));
                        let field = named.max_by_key(|field| field.name.len());
                        field.map(|field| (field.line, &field.value, &rest[field.name.len()..]))
                    }
                    _ => None,
                },
            };
            let Some((at, inner, after)) = next else {
                return line;
            };
            (line, node, rest) = (at, inner, after);
        }
        line
    }
}

/// Whether a path starts with this name.
fn leads(path: &str, name: &str) -> bool {
    let rest = path.strip_prefix(name).filter(|_| !name.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Data, E> {
        Ok(Data::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Data, E> {
        Ok(Data::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Data, D::Error> {
        Data::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Data, E> {
        Ok(Data::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Data, E> {
        Ok(Data::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Data, E> {
        Ok(Data::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Data, E> {
        // Kubernetes reads 5.0 and 1e3 as whole numbers.
        #[allow(clippy::cast_possible_truncation, reason = "it is whole and within the range")]
        if value.fract() == 0.0 && value.abs() < i64::MAX as f64 {
            return Ok(Data::Scalar((value as i64).into()));
        }
        Ok(Data::Scalar(
            Number::from_f64(value).map_or(Value::Null, Value::Number),
        ))
    }

    fn visit_str<E>(self, value: &str) -> Result<Data, E> {
        Ok(Data::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Data, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element::<Spanned<Data>>()? {
            items.push(Node::from(item));
        }
        Ok(Data::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Data, A::Error> {
        let mut fields = Vec::new();
        while let Some((name, value)) = map.next_entry::<Spanned<String>, Spanned<Data>>()? {
            fields.push(Field {
                line: name.referenced.line(),
                written: name.defined.line(),
                name: name.value,
                value: value.into(),
            });
        }
        Ok(Data::Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const TEXT: &str = "\
# a comment
kind: A
spec:
  steps:
    - setWeight: 20
    - pause:
        duration: 5m
  labels:
    a.b/c: x
---
kind: B
";

    #[rstest]
    #[case("kind", 2)]
    #[case("spec.steps[0].setWeight", 5)]
    #[case("spec.steps[1]", 6)]
    #[case("spec.steps[1].pause.duration", 7)]
    #[case("spec.steps[1].pause.missing", 6)]
    #[case("spec.steps[9]", 4)]
    #[case("spec.labels.a.b/c", 9)]
    #[case("nothing", 2)]
    fn a_path_leads_to_its_line(#[case] path: &str, #[case] line: u64) {
        assert_eq!(documents(TEXT).0[0].node.line_of(path), line);
    }

    #[test]
    fn every_document_has_its_own_place() {
        let documents = documents(TEXT).0;
        assert_eq!(documents[1].node.line_of("kind"), 11);
        assert_eq!(documents[0].node.value()["spec"]["steps"][0]["setWeight"], 20);
    }

    fn found(text: &str) -> Vec<(u64, String)> {
        let unreadable = documents(text).1.into_iter();
        unreadable
            .map(|unreadable| (unreadable.line, unreadable.why))
            .collect()
    }

    #[test]
    fn what_cannot_be_read_says_where() {
        let (line, why) = found("a: 1\nb: [1\nc: 2\n").remove(0);
        assert!((2..=4).contains(&line), "{line}: {why}");
        assert_eq!(
            found("a: 1\n---\n~: 2\n"),
            [(3, "a key is null; it must be a string".to_owned())]
        );
    }

    #[rstest]
    #[case("kind: A\n---\nreplicas: {{ .Values.replicas }}\n", true)]
    #[case("kind: A\n---\nname: {{ include \"name\" . }}\n", true)]
    #[case("kind: A\n---\n{{- if .Values.enabled }}\nkind: B\n{{- end }}\n", true)]
    #[case("kind: A\n---\nquery: [\"{{args.query}}\"\n", false)]
    #[case("kind: A\n---\nquery: [\n", false)]
    fn a_template_of_a_chart_is_to_be_rendered_first(#[case] text: &str, #[case] expected: bool) {
        let (line, why) = found(text).remove(0);
        assert!(line >= 3, "{line}: {why}");
        assert_eq!(
            why.contains("helm template CHART | stateward lint -"),
            expected,
            "{why}"
        );
    }

    #[test]
    fn what_is_there_twice_is_told_and_the_rest_is_read() {
        let text = "kind: A\n---\nx: &x\n  a: 1\n  a: 2\ny: *x\nz: *x\nx: 3\n---\n1: a\n0x1: b\n";
        let twice = |line, name: &str| (line, format!("duplicate key {name:?}"));
        assert_eq!(found(text), [twice(5, "a"), twice(8, "x"), twice(11, "0x1")]);
        let documents = documents(text).0;
        assert_eq!(documents[1].node.value()["x"], 3);
        assert_eq!(documents[1].node.line_of("x"), 8);
        assert_eq!(documents.len(), 3);
    }

    #[test]
    fn what_is_broken_takes_nothing_with_it() {
        let text = "# first\n%YAML 1.2\n---\nkind: A\n---\nkind: [\n---\nkind: B\ntext: |\n  --- not a mark\n--- # again\nkind: B\nkind: B\n";
        let (read, _) = documents(text);
        let kinds: Vec<_> = read
            .iter()
            .map(|document| {
                (
                    document.node.value()["kind"].clone(),
                    document.node.line_of("kind"),
                )
            })
            .collect();
        assert_eq!(kinds, [("A".into(), 4), ("B".into(), 8), ("B".into(), 13)]);
        let unreadable = found(text);
        let lines: Vec<_> = unreadable.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [6, 13]);
        assert!(unreadable[0].1.contains("line 6"), "{}", unreadable[0].1);
    }

    #[rstest]
    #[case("---\n# Source: db/templates/set.yaml\nkind: A\n", &[(Some("db/templates/set.yaml"), 3)])]
    #[case("---\n# Source: a\n---\n\n---\n# Source: b\n# a comment\n\nkind: A\n---\nkind: B\n...\n---\n", &[(Some("b"), 9), (None, 11)])]
    #[case("\u{feff}# Source: a\nkind: A\n", &[(None, 2)])]
    #[case("\u{feff}---\r\n# Source: a\r\nkind: A\r\n---\r\n# Source: b\r\nkind: B\r\n", &[(None, 3), (Some("b"), 6)])]
    #[case("kind: A\n...\nkind: B\n", &[(None, 1), (None, 3)])]
    #[case("kind: A\ntext: |\n  # Source: b\n", &[(None, 1)])]
    #[case("{\n\t\"a\": 1,\n\t\"kind\": \"A\"\n}\n", &[(None, 3)])]
    #[case("# nothing\n", &[])]
    #[case("", &[])]
    fn a_stream_says_where_its_documents_come_from(
        #[case] text: &str,
        #[case] expected: &[(Option<&str>, u64)],
    ) {
        let (documents, unreadable) = documents(text);
        assert!(unreadable.is_empty(), "{unreadable:?}");
        let found: Vec<_> = documents
            .iter()
            .map(|document| (document.source.as_deref(), document.node.line_of("kind")))
            .collect();
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case("0644", "420")]
    #[case("0o644", "420")]
    #[case("08", "8")]
    #[case("0x1F", "31")]
    #[case("1_000", "1000")]
    #[case("5.0", "5")]
    #[case("1e3", "1000")]
    #[case("0.5", "0.5")]
    #[case("-0", "0")]
    #[case("18446744073709551615", "18446744073709551615")]
    #[case("99999999999999999999", "1e+20")]
    #[case("1e400", "\".inf\"")]
    #[case("yes", "true")]
    #[case("Off", "false")]
    #[case("'yes'", "\"yes\"")]
    #[case("~", "null")]
    #[case("2026-01-02", "\"2026-01-02\"")]
    #[case("12:30", "\"12:30\"")]
    #[case("!!str 5", "\"5\"")]
    fn scalars_are_read_as_kubernetes_reads_them(#[case] text: &str, #[case] expected: &str) {
        let documents = documents(&format!("a: {text}\n")).0;
        assert_eq!(documents[0].node.value()["a"].to_string(), expected);
    }

    #[test]
    fn a_bomb_and_a_well_end_in_an_error() {
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..9 {
            let before = format!("*a{},", level - 1).repeat(9);
            bomb.push_str(&format!("a{level}: &a{level} [{before}]\n"));
        }
        assert_eq!(found(&bomb).len(), 1);
        let well = format!("a: {}{}\n", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(found(&well).len(), 1);
    }
}
