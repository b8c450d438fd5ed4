//! Custom kinds: the columns of their CRD.

use crate::json::{Value, json};
use jiff::Timestamp;

use super::age::since;
use super::column::{NAME, age};
use crate::custom::{Column, CustomType};
use crate::go;

const AGE_DESCRIPTION: &str = "How long ago the object was created.";

/// The headings: the name, then the CRD's columns, or the age if it has none.
pub(super) fn columns(custom: &CustomType) -> Vec<Value> {
    let mut columns = vec![NAME.to_value()];
    if custom.version.columns.is_empty() {
        columns.push(json!({"name": "Age", "type": "date", "format": "", "description": AGE_DESCRIPTION, "priority": 0}));
    }
    columns.extend(readable(custom).map(|column| {
        let Column { name, kind, format, description, priority, source, .. } = column;
        let described = format!("Custom resource definition column (in JSONPath format): {source}");
        let description = if description.is_empty() { &described } else { description };
        json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
    }));
    columns
}

pub(super) fn cells(custom: &CustomType, object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![NAME.cell(object, now)];
    if custom.version.columns.is_empty() {
        cells.push(age(object, now));
    }
    cells.extend(readable(custom).map(|column| cell(column, object, now)));
    cells
}

/// An invalid column ends the table.
fn readable(custom: &CustomType) -> impl Iterator<Item = &Column> {
    custom
        .version
        .columns
        .iter()
        .take_while(|column| column.path.is_some())
}

/// The first match of the column's path, if it has the column's type.
fn cell(column: &Column, object: &Value, now: Timestamp) -> Value {
    let object = serde_json::Value::from(object);
    let Some(found) = column.path.as_ref().and_then(|path| path.first(&object)) else {
        return Value::Null;
    };
    let found = Value::from(found.clone());
    match (column.kind.as_str(), &found) {
        ("string", found) => printed(found).into(),
        (_, Value::Null) => Value::Null,
        // Go truncates floats the same way.
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(float)) => (float as i64).into(),
            _ => Value::Null,
        },
        ("number", Value::Number(number)) => match number.as_f64() {
            // Go writes whole floats without a point.
            Some(_) if number.is_i64() => Value::Number(number.clone()),
            Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => json!(float as i64),
            Some(float) => float.into(),
            None => Value::Null,
        },
        ("boolean", Value::Bool(value)) => (*value).into(),
        ("date", Value::String(moment)) => match moment.parse::<Timestamp>() {
            Ok(_) => since(moment, now).into(),
            Err(_) if moment.is_empty() || &**moment == "null" => "<unknown>".into(),
            Err(_) => "<invalid>".into(),
        },
        _ => Value::Null,
    }
}

/// A value as kubectl prints the result of a path: bare scalars, compact JSON.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Array(_) | Value::Object(_) => go::json(value),
        scalar => go::plain(scalar),
    }
}
