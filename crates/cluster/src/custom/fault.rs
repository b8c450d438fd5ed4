//! Field errors as Go words them: how a value is shown, and the kinds of error that only schemas give.

use serde_json::Value;

use crate::status::FieldError;
pub(super) use crate::table::go::{json, plain, quoted, shown};

/// Where an error about the whole object is said to be: Go's empty path.
pub(super) const NOWHERE: &str = "<nil>";

/// `Invalid value: <value>: <detail>`, or without the value where Go leaves it out.
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
    FieldError {
        field: path(field),
        reason: "FieldValueInvalid",
        message,
    }
}

/// A value of the wrong type. Go shows the type's name in the place of the value.
pub(super) fn wrong_type(field: impl Into<String>, found: &str, detail: &str) -> FieldError {
    let message = format!("Invalid value: {}: {detail}", quoted(found));
    FieldError {
        field: path(field),
        reason: "FieldValueTypeInvalid",
        message,
    }
}

pub(super) fn too_many(field: impl Into<String>, found: usize, limit: u64) -> FieldError {
    let items = if limit == 1 { "item" } else { "items" };
    let message = format!("Too many: {found}: must have at most {limit} {items}");
    FieldError {
        field: path(field),
        reason: "FieldValueTooMany",
        message,
    }
}

pub(super) fn too_long(field: impl Into<String>, limit: u64) -> FieldError {
    let bytes = if limit == 1 { "byte" } else { "bytes" };
    let message = format!("Too long: may not be more than {limit} {bytes}");
    FieldError {
        field: path(field),
        reason: "FieldValueTooLong",
        message,
    }
}

pub(super) fn not_supported(field: impl Into<String>, value: &Value, allowed: &[Value]) -> FieldError {
    let allowed: Vec<_> = allowed
        .iter()
        .map(|one| match one {
            Value::String(text) => quoted(text),
            other => quoted(&json(other)),
        })
        .collect();
    let message = format!(
        "Unsupported value: {}: supported values: {}",
        shown(value),
        allowed.join(", ")
    );
    FieldError {
        field: path(field),
        reason: "FieldValueNotSupported",
        message,
    }
}

/// `None` for a value that Go leaves out.
pub(super) fn duplicate(field: impl Into<String>, value: Option<&Value>) -> FieldError {
    let message = match value {
        Some(value) => format!("Duplicate value: {}", shown(value)),
        None => "Duplicate value".to_owned(),
    };
    FieldError {
        field: path(field),
        reason: "FieldValueDuplicate",
        message,
    }
}

/// Whether rules cannot be trusted with an object that has this error.
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
