//! ControllerRevisions.

use crate::json::Value;

use super::fields::int;
use super::problems::{At, IMMUTABLE, NEGATIVE, Problems};
use super::validation;

const RESOURCE: &str = "controllerrevisions.apps";

pub(super) fn validate(object: &Value, problems: &mut Problems) {
    validation::metadata::of_kind(RESOURCE, object, problems);
    if let Some(number) = int(object, "revision").filter(|number| *number < 0) {
        problems.invalid(&At::new("revision"), number, NEGATIVE);
    }
}

/// A new revision must have data.
pub(super) fn validate_data(object: &Value, problems: &mut Problems) {
    match &object["data"] {
        Value::Null => problems.required(&At::new("data"), "data is mandatory"),
        Value::Object(_) => {}
        _ => problems.required(&At::new("data"), "data must be a valid JSON object"),
    }
}

pub(super) fn validate_update(old: &Value, new: &Value, problems: &mut Problems) {
    validation::metadata::update_of_kind(RESOURCE, old, new, problems);
    validate(new, problems);
    if old["data"] != new["data"] {
        problems.invalid(&At::new("data"), new["data"].clone(), IMMUTABLE);
    }
}
