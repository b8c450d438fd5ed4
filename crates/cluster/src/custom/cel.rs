//! JSON as CEL values: typed by the schema, with escaped field names.

use std::collections::HashMap;
use std::sync::Arc;

use crate::json::Value;
use base64::Engine;
use kube_cel::cel::Value as Cel;
use kube_cel::cel::objects::{Key, Map};

use super::format;
use super::schema::Schema;

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The CEL value of a JSON value. Of a resource's metadata, rules can access only the names.
pub(super) fn seen(value: &Value, schema: &Schema, resource: bool) -> Cel {
    match value {
        Value::Object(fields) if resource || schema.embedded => {
            let declared = |name: &str| schema.properties.get(name);
            let entries = fields
                .iter()
                .filter_map(|(name, value)| match (name.as_str(), declared(name)) {
                    ("apiVersion" | "kind", _) => Some((name.to_string(), untyped(value))),
                    ("metadata", _) => Some((name.to_string(), seen_metadata(value))),
                    (name, Some(known)) => Some((escaped(name)?, seen(value, known, false))),
                    (_, None) => None,
                });
            map(both_spellings(entries))
        }
        Value::Object(fields) if !schema.properties.is_empty() => {
            map(both_spellings(fields.iter().filter_map(|(name, value)| {
                let known = schema.properties.get(name.as_str())?;
                Some((escaped(name)?, seen(value, known, false)))
            })))
        }
        Value::Object(fields) => match schema.additional() {
            // The keys of a map are data: they are not escaped.
            Some(known) => map(fields
                .iter()
                .map(|(name, value)| (name.to_string(), seen(value, known, false)))),
            None => map(fields
                .iter()
                .map(|(name, value)| (name.to_string(), untyped(value)))),
        },
        Value::Array(items) => Cel::List(Arc::new(match &schema.items {
            Some(inner) => items.iter().map(|item| seen(item, inner, false)).collect(),
            None => items.iter().map(untyped).collect(),
        })),
        Value::String(text) if schema.kind == "string" => seen_text(text, &schema.format),
        Value::Number(number) if schema.kind == "number" => Cel::Float(number.as_f64().unwrap_or_default()),
        other => untyped(other),
    }
}

/// A field whose name is a reserved word is also available unescaped.
fn both_spellings(fields: impl Iterator<Item = (String, Cel)>) -> impl Iterator<Item = (String, Cel)> {
    fields.flat_map(|(name, value)| {
        let plain = RESERVED.iter().find(|word| name == format!("__{word}__"));
        let plain = plain.map(|word| ((*word).to_owned(), value.clone()));
        std::iter::once((name, value)).chain(plain)
    })
}

fn seen_metadata(metadata: &Value) -> Cel {
    let visible = ["name", "generateName"];
    map(visible
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), untyped(metadata.get(name)?)))))
}

fn seen_text(text: &str, format: &str) -> Cel {
    let parsed = match format {
        "date-time" => chrono::DateTime::parse_from_rfc3339(text)
            .ok()
            .map(Cel::Timestamp),
        "date" if format::date(text) => chrono::DateTime::parse_from_rfc3339(&format!("{text}T00:00:00Z"))
            .ok()
            .map(Cel::Timestamp),
        "duration" => format::duration(text).map(|nanos| Cel::Duration(chrono::Duration::nanoseconds(nanos))),
        "byte" => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok();
            bytes.map(|bytes| Cel::Bytes(Arc::new(bytes)))
        }
        _ => None,
    };
    parsed.unwrap_or_else(|| Cel::String(Arc::new(text.to_owned())))
}

fn untyped(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Cel::Int(whole),
            None => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Cel::String(Arc::new(text.to_string())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(untyped).collect())),
        Value::Object(fields) => map(fields
            .iter()
            .map(|(name, value)| (name.to_string(), untyped(value)))),
    }
}

fn map(entries: impl Iterator<Item = (String, Cel)>) -> Cel {
    let entries: HashMap<_, _> = entries
        .map(|(name, value)| (Key::String(Arc::new(name)), value))
        .collect();
    Cel::Map(Map {
        map: Arc::new(entries),
    })
}

/// The escaped field name; `None` if it cannot be escaped.
pub(super) fn escaped(name: &str) -> Option<String> {
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '_' if chars.peek() == Some(&'_') => {
                chars.next();
                out.push_str("__underscores__");
            }
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => out.push(c),
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("plain", Some("plain"))]
    #[case("snake_case", Some("snake_case"))]
    #[case("a__b", Some("a__underscores__b"))]
    #[case("a-b.c/d", Some("a__dash__b__dot__c__slash__d"))]
    #[case("namespace", Some("__namespace__"))]
    #[case("1st", None)]
    #[case("ä", None)]
    fn a_field_is_spelled_as_cel_can(#[case] name: &str, #[case] expected: Option<&str>) {
        assert_eq!(escaped(name).as_deref(), expected);
    }
}
