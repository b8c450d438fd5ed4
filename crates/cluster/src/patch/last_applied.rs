//! The annotation in which kubectl's client-side apply stores its configuration. The server keeps it up to date when the same kubectl moves
//! to server-side apply.

use crate::json::Value;

use super::fields::FieldSet;
use super::typed::{compare, validate};
use crate::go;
use crate::types::Shape;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The fields of the annotation that the live object still has.
pub(super) fn owned(live: &Value, api_version: &str, shape: Shape<'_>) -> Option<FieldSet> {
    let last: Value = serde_json::from_str(text(live)?).ok()?;
    if last["apiVersion"] != api_version || validate(&last, shape).is_err() {
        return None;
    }
    let changed = compare(&last, live, shape);
    let set = FieldSet::of(&last, shape);
    Some(
        set.difference(&changed.modified)
            .difference(&changed.added)
            .difference(&changed.removed),
    )
}

/// Updates the annotation, if there is one.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if text(object).is_none() {
        return;
    }
    let mut applied = config.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    object["metadata"]["annotations"][ANNOTATION] = format!("{}\n", go::json(&applied)).into();
}

fn text(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][ANNOTATION]
        .as_str()
        .filter(|text| !text.is_empty())
}
