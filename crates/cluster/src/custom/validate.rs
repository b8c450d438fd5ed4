//! Validates custom objects: schema, lists, embedded resources, rules.

use crate::json::Value;

use super::correlate::Before;
use super::definition::CustomType;
use super::fault;
use super::outcome::Outcome;
use super::rules::{self, Part, Ratchet};
use super::{embedded, list, value};
use crate::status::FieldError;

const UNCHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

/// The errors of an object, or of its change from `old`. Metadata is validated elsewhere: its rules are the same for every kind.
#[cfg(test)]
pub(crate) fn validate(custom: &CustomType, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    validate_after(Vec::new(), custom, new, old)
}

/// Like `validate`, after earlier errors.
pub(crate) fn validate_after(
    mut errors: Vec<FieldError>,
    custom: &CustomType,
    new: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let schema = custom.schema();
    let before = old.map(|old| Before::new(old, schema));
    errors.extend(told(value::check(new, schema, "", before)));
    if let Some(scale) = &custom.version.scale {
        errors.extend(scale.check_spec(new));
        errors.extend(scale.check_status(new));
    }
    embedded::check(new, schema, "", &mut errors);
    check_lists(custom, new, old, &mut errors);
    check_rules(custom, new, old, &mut errors);
    errors
}

/// The errors of a status change. The rest of the object was stored before and is not validated again, except by rules.
pub(crate) fn validate_status(custom: &CustomType, new: &Value, old: &Value) -> Vec<FieldError> {
    let schema = custom.schema();
    let mut errors = Vec::new();
    if let (Some(status), Some(known)) = (new.get("status"), schema.properties.get("status")) {
        let before = Before::new(old, schema).member("status");
        errors = told(value::check(status, known, "", before));
        // The status is checked as an object of its own; only the fields in errors get the prefix.
        for error in &mut errors {
            error.field = match error.field.as_str() {
                fault::NOWHERE => "status".to_owned(),
                field => format!("status.{field}"),
            };
        }
    }
    if let Some(scale) = &custom.version.scale {
        errors.extend(scale.check_status(new));
    }
    check_lists(custom, new, Some(old), &mut errors);
    check_rules(custom, new, Some(old), &mut errors);
    errors
}

fn told(outcome: Outcome) -> Vec<FieldError> {
    outcome
        .errors
        .into_iter()
        .map(|complaint| complaint.error)
        .collect()
}

/// Duplicates are ignored if the old object had some too.
fn check_lists(custom: &CustomType, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let duplicates = |object: &Value| {
        let mut found = Vec::new();
        list::duplicates(object, custom.schema(), "", &mut found);
        found
    };
    let found = duplicates(new);
    if !found.is_empty() && old.is_none_or(|old| duplicates(old).is_empty()) {
        errors.extend(found);
    }
}

fn check_rules(custom: &CustomType, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if !custom.has_rules() {
        return;
    }
    if errors.iter().any(fault::blocks_rules) {
        errors.push(fault::invalid("", Some(&Value::Null), UNCHECKED));
        return;
    }
    let schema = custom.schema();
    let ratchet = old.map_or_else(Ratchet::default, |old| {
        Ratchet::new(Before::new(old, schema), new)
    });
    rules::run(
        Part {
            value: new,
            schema,
            old,
            ratchet,
            resource: true,
        },
        "",
        errors,
    );
}
