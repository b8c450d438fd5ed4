//! Conversions from and to other crates' JSON.

use super::{Map, Name, Value};

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(value),
            serde_json::Value::Number(number) => Self::Number(number),
            serde_json::Value::String(text) => text.into(),
            serde_json::Value::Array(items) => items.into(),
            serde_json::Value::Object(fields) => {
                let fields = fields.into_iter();
                let fields: Map = fields
                    .map(|(name, value)| (Name::from(name), value.into()))
                    .collect();
                fields.into()
            }
        }
    }
}

impl From<&Value> for serde_json::Value {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::String(text.as_ref().to_owned()),
            Value::Array(items) => items.iter().map(Self::from).collect(),
            Value::Object(fields) => {
                let fields = fields.iter();
                fields
                    .map(|(name, value)| (name.as_str().to_owned(), Self::from(value)))
                    .collect()
            }
        }
    }
}
