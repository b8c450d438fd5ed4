//! Manifests as they are written: every value with the line it stands on.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// From 1.
    pub(super) line: u64,
    pub(super) data: Data,
}

/// What is there.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Data {
    Scalar(Value),
    List(Vec<Node>),
    Fields(Vec<Field>),
}

/// A field: its name, where that stands, and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) line: u64,
    pub(super) value: Node,
}

/// What cannot be read, and where.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub(super) line: u64,
    pub(super) why: String,
}

/// The documents of a file, without those that are empty, and those that cannot be read.
pub(super) fn documents(text: &str) -> (Vec<Node>, Vec<Unreadable>) {
    if let Ok(documents) = read(text) {
        return (documents, Vec::new());
    }
    // One that is broken says nothing about those beside it.
    let (mut documents, mut unreadable) = (Vec::new(), Vec::new());
    for (before, document) in apart(text) {
        // As many empty lines keep every line its number.
        match read(&format!("{}{document}", "\n".repeat(before))) {
            Ok(read) => documents.extend(read),
            Err(error) => unreadable.push(Unreadable {
                line: error.location().map_or(1, |place| place.line()),
                why: words(&error),
            }),
        }
    }
    (documents, unreadable)
}

fn read(text: &str) -> Result<Vec<Node>, serde_saphyr::Error> {
    let options = serde_saphyr::options! { with_snippet: false };
    let documents: Vec<Spanned<Data>> = serde_saphyr::from_multiple_with_options(text, options)?;
    Ok(documents.into_iter().map(Node::from).collect())
}

/// The texts of the documents, each with the number of lines before it. `---` at the beginning of a line stands inside of no value.
fn apart(text: &str) -> Vec<(usize, &str)> {
    let (mut apart, mut begin, mut before, mut at) = (Vec::new(), 0, 0, 0);
    // What stands before a mark, such as %YAML, belongs to the document behind it as long as it is none itself.
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

/// Without what only a program could do about it.
fn words(error: &serde_saphyr::Error) -> String {
    match error.without_snippet() {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => format!("{key} is there twice"),
        serde_saphyr::Error::DuplicateMappingKey { key: None, .. } => "a key is there twice".to_owned(),
        other => other.to_string(),
    }
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
            Data::Fields(fields) => fields.iter().find(|field| field.name == name),
            Data::Scalar(_) | Data::List(_) => None,
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

    /// The line of what a path such as `spec.steps[2].setWeight` leads to, or of as much of it as is there.
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
                    // The longest name first: keys of labels have dots of their own.
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

/// Whether a path begins with this name.
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
        assert_eq!(documents(TEXT).0[0].line_of(path), line);
    }

    #[test]
    fn every_document_has_its_own_place() {
        let documents = documents(TEXT).0;
        assert_eq!(documents[1].line_of("kind"), 11);
        assert_eq!(documents[0].value()["spec"]["steps"][0]["setWeight"], 20);
    }

    #[test]
    fn what_cannot_be_read_says_where() {
        let unreadable = documents("a: 1\nb: [1\nc: 2\n").1.remove(0);
        assert!((2..=4).contains(&unreadable.line), "{unreadable:?}");
        assert_eq!(documents("a: 1\na: 2\n").1[0].line, 2);
    }

    #[test]
    fn what_is_broken_takes_nothing_with_it() {
        let text = "# first\n%YAML 1.2\n---\nkind: A\n---\nkind: [\n---\nkind: B\ntext: |\n  --- not a mark\n--- # again\nkind: B\nkind: B\n";
        let (read, unreadable) = documents(text);
        let kinds: Vec<_> = read
            .iter()
            .map(|node| (node.value()["kind"].clone(), node.line_of("kind")))
            .collect();
        assert_eq!(kinds, [("A".into(), 4), ("B".into(), 8)]);
        let lines: Vec<_> = unreadable.iter().map(|unreadable| unreadable.line).collect();
        assert_eq!(lines, [6, 13]);
        assert!(unreadable[0].why.contains("line 6"), "{}", unreadable[0].why);
    }
}
