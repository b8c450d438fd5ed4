//! The answer of a metric provider: the `result` of a condition.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::shape::Shape;
use super::value::{DEEPEST, Key, ListKind, MapKind, Value};

/// The answer of a metric provider.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) value: Value,
    /// The answer was nested too deeply; the deeper parts are missing, so no condition may be decided by the rest.
    pub(super) cut: bool,
}

impl Answer {
    /// No answer.
    pub fn none() -> Self {
        Self::of(Value::Nil)
    }

    /// One number.
    pub fn number(number: f64) -> Self {
        Self::of(Value::Float(number))
    }

    /// Numbers, as in the result of a Prometheus query. For a condition they differ from a JSON list of numbers in that their type is
    /// known.
    pub fn numbers(numbers: impl IntoIterator<Item = f64>) -> Self {
        let numbers = numbers.into_iter().map(Value::Float).collect();
        Self::of(Value::flat(ListKind::Floats, numbers))
    }

    /// Text that is not JSON.
    pub fn text(text: &str) -> Self {
        Self::of(Value::text(text))
    }

    /// A document. Every number becomes a float, as Go reads JSON.
    pub fn json(json: &serde_json::Value) -> Self {
        match value_of(json, 0) {
            Some(value) => Self::of(value),
            None => Self {
                value: Value::Nil,
                cut: true,
            },
        }
    }

    /// The shape that conditions are compiled for.
    pub fn shape(&self) -> Shape {
        match &self.value {
            Value::Nil => Shape::Nil,
            Value::Bool(_) => Shape::Bool,
            Value::Text(_) => Shape::Text,
            Value::Map(_) => Shape::Map,
            Value::List(list) if list.kind == ListKind::Floats => Shape::Numbers,
            Value::List(_) => Shape::List,
            // An answer has no other numbers, and neither times nor durations.
            Value::Int(_)
            | Value::Long(_)
            | Value::Byte(_)
            | Value::Float(_)
            | Value::Time(_)
            | Value::Duration(_) => Shape::Number,
        }
    }

    fn of(value: Value) -> Self {
        Self { value, cut: false }
    }
}

fn value_of(json: &serde_json::Value, depth: u16) -> Option<Value> {
    if depth > DEEPEST {
        return None;
    }
    match json {
        serde_json::Value::Null => Some(Value::Nil),
        serde_json::Value::Bool(bool) => Some(Value::Bool(*bool)),
        serde_json::Value::Number(number) => Some(Value::Float(number.as_f64().unwrap_or(f64::NAN))),
        serde_json::Value::String(text) => Some(Value::text(text)),
        serde_json::Value::Array(items) => {
            let items = items
                .iter()
                .map(|item| value_of(item, depth + 1))
                .collect::<Option<_>>()?;
            Value::list(ListKind::Any, items)
        }
        serde_json::Value::Object(fields) => {
            let entries: Option<BTreeMap<_, _>> = fields
                .iter()
                .map(|(name, value)| Some((Key::Text(Arc::from(name.as_str())), value_of(value, depth + 1)?)))
                .collect();
            Value::map(MapKind::Fields, entries?)
        }
    }
}
