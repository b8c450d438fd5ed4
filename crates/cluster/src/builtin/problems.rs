//! Collects validation errors with their field paths.

use std::fmt::{self, Write};

use crate::json::Value;

use super::fields::int;
use crate::status::FieldError;

/// The path of a field: `spec.containers[0].name`. A chain back to the root, because most fields are valid and their path is never printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'a> {
    above: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root(&'a str),
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> At<'a> {
    pub(super) fn new(path: &'a str) -> Self {
        Self {
            above: None,
            step: Step::Root(path),
        }
    }

    fn step(&'a self, step: Step<'a>) -> Self {
        Self {
            above: Some(self),
            step,
        }
    }

    pub(super) fn field(&'a self, name: &'a str) -> Self {
        self.step(Step::Field(name))
    }

    pub(super) fn index(&'a self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    pub(super) fn key(&'a self, key: &'a str) -> Self {
        self.step(Step::Key(key))
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(f)?;
        }
        match self.step {
            Step::Root(path) => f.write_str(path),
            Step::Field(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

/// The errors found so far.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<FieldError>);

impl Problems {
    pub(super) fn into_errors(self) -> Vec<FieldError> {
        self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn required(&mut self, at: &At, detail: &str) {
        self.0.push(FieldError::required(at.to_string(), detail));
    }

    pub(super) fn forbidden(&mut self, at: &At, detail: &str) {
        self.0.push(FieldError::forbidden(at.to_string(), detail));
    }

    pub(super) fn invalid(&mut self, at: &At, value: impl Into<Value>, detail: &str) {
        self.0
            .push(FieldError::invalid(at.to_string(), &value.into(), detail));
    }

    /// For a value whose text is not JSON.
    pub(super) fn invalid_as(&mut self, at: &At, shown: &str, detail: &str) {
        self.0.push(FieldError::invalid_as(at.to_string(), shown, detail));
    }

    /// One error for each complaint about a value.
    pub(super) fn invalid_for(&mut self, at: &At, value: &str, complaints: Vec<String>) {
        for complaint in complaints {
            self.invalid(at, value, &complaint);
        }
    }

    pub(super) fn duplicate(&mut self, at: &At, value: impl Into<Value>) {
        self.0.push(FieldError::duplicate(at.to_string(), &value.into()));
    }

    /// For a value whose text is not JSON.
    pub(super) fn duplicate_as(&mut self, at: &At, shown: &str) {
        self.0.push(FieldError::duplicate_as(at.to_string(), shown));
    }

    pub(super) fn not_found(&mut self, at: &At, value: &str) {
        self.0.push(FieldError::not_found(at.to_string(), &value.into()));
    }

    pub(super) fn too_long(&mut self, at: &At, limit: usize) {
        self.0.push(FieldError::too_long(at.to_string(), limit as u64));
    }

    pub(super) fn too_many(&mut self, at: &At, count: usize, limit: usize) {
        self.0
            .push(FieldError::too_many(at.to_string(), count, limit as u64));
    }

    pub(super) fn not_supported(&mut self, at: &At, value: impl Into<Value>, allowed: &[&str]) {
        self.0
            .push(FieldError::not_supported(at.to_string(), &value.into(), allowed));
    }

    /// For a value whose text is not JSON.
    pub(super) fn not_supported_as(&mut self, at: &At, shown: &str, allowed: &[&str]) {
        self.0
            .push(FieldError::not_supported_as(at.to_string(), shown, allowed));
    }

    /// A required choice: an error if it is empty or not one of `allowed`.
    pub(super) fn choice(&mut self, at: &At, value: &str, allowed: &[&str]) {
        if value.is_empty() {
            self.required(at, "");
        } else if !allowed.contains(&value) {
            self.not_supported(at, value, allowed);
        }
    }

    /// A number of `object` that must not be negative, if it is set.
    pub(super) fn non_negative(&mut self, at: &At, object: &Value, name: &str) {
        if let Some(number) = int(object, name).filter(|number| *number < 0) {
            self.invalid(&at.field(name), number, NEGATIVE);
        }
    }

    /// A number of `object` that must be within bounds, if it is set.
    pub(super) fn in_range(&mut self, at: &At, object: &Value, name: &str, low: i64, high: i64) {
        if let Some(number) = int(object, name).filter(|number| !(low..=high).contains(number)) {
            self.invalid(&at.field(name), number, &between(low, high));
        }
    }
}

pub(super) const NEGATIVE: &str = "must be greater than or equal to 0";
pub(super) const IMMUTABLE: &str = "field is immutable";

pub(super) fn between(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// Fields that Go writes before others because of the order in its structs, at any depth.
const FIRST: [&str; 12] = [
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "apiVersion",
    "kind",
    "name",
    "uid",
    "controller",
    "blockOwnerDeletion",
    "resourceVersion",
];

/// JSON with the fields of selectors and references in the order of their Go structs.
pub(super) fn in_order(value: &Value) -> String {
    let mut out = String::new();
    write_in_order(value, &mut out);
    out
}

fn write_in_order(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| {
                FIRST
                    .iter()
                    .position(|first| first == name)
                    .unwrap_or(FIRST.len())
            });
            list(out, ['{', '}'], fields, |(name, value), out| {
                // Writing to a string does not fail.
                let _ = write!(out, "{}:", Value::from(name.as_str()));
                write_in_order(value, out);
            });
        }
        Value::Array(items) => list(out, ['[', ']'], items, write_in_order),
        other => out.push_str(&other.to_string()),
    }
}

fn list<T>(
    out: &mut String,
    ends: [char; 2],
    items: impl IntoIterator<Item = T>,
    one: impl Fn(T, &mut String),
) {
    out.push(ends[0]);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        one(item, out);
    }
    out.push(ends[1]);
}
