//! Field errors in Go's format: how a value is printed, and the kinds of error that only schemas have.

use crate::json::Value;

pub(super) use crate::go::{json, plain, quoted, shown};
use crate::status::FieldError;

/// The path of an error about the whole object: Go's empty path.
pub(super) const NOWHERE: &str = "<nil>";

/// `Invalid value: <value>: <detail>`, or without the value if Go omits it.
pub(super) fn invalid(
    field: impl Into<String>,
    value: Option<&Value>,
    detail: impl AsRef<str>,
) -> FieldError {
    let detail = detail.as_ref();
    let message = match value {
        Some(value) => format!("Invalid value: {}: {detail}", shown(value)),
        None => format!("Invalid value: {detail}"),
    };
    FieldError::new(path(field), "FieldValueInvalid", message)
}

/// A value of the wrong type. Go prints the type's name in place of the value.
pub(super) fn wrong_type(field: impl Into<String>, found: &str, detail: &str) -> FieldError {
    let message = format!("Invalid value: {}: {detail}", quoted(found));
    FieldError::new(path(field), "FieldValueTypeInvalid", message)
}

pub(super) fn too_many(field: impl Into<String>, found: usize, limit: u64) -> FieldError {
    FieldError::too_many(path(field), found, limit)
}

pub(super) fn too_long(field: impl Into<String>, limit: u64) -> FieldError {
    FieldError::too_long(path(field), limit)
}

pub(super) fn not_supported(field: impl Into<String>, value: &Value, allowed: &[Value]) -> FieldError {
    let allowed: Vec<_> = allowed
        .iter()
        .map(|one| match one {
            Value::String(text) => text.to_string(),
            other => json(other),
        })
        .collect();
    let allowed: Vec<_> = allowed.iter().map(String::as_str).collect();
    FieldError::not_supported(path(field), value, &allowed)
}

/// `None` for a value that Go omits.
pub(super) fn duplicate(field: impl Into<String>, value: Option<&Value>) -> FieldError {
    let message = match value {
        Some(value) => format!("Duplicate value: {}", shown(value)),
        None => "Duplicate value".to_owned(),
    };
    FieldError::new(path(field), "FieldValueDuplicate", message)
}

/// Whether rules cannot run on an object with this error.
pub(super) fn blocks_rules(error: &FieldError) -> bool {
    matches!(
        error.reason,
        "FieldValueNotSupported"
            | "FieldValueRequired"
            | "FieldValueTooLong"
            | "FieldValueTooMany"
            | "FieldValueTypeInvalid"
    )
}

fn path(field: impl Into<String>) -> String {
    let field = field.into();
    if field.is_empty() {
        NOWHERE.to_owned()
    } else {
        field
    }
}
