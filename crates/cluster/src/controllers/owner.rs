//! Owner references.

use crate::json::{Value, json};

use crate::object;

pub(crate) use crate::object::controller as controller_of;

/// The owner references of an object.
pub(crate) fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
}

/// Whether the object with this uid is the controller of `object`.
pub(crate) fn is_controlled_by(object: &Value, uid: &str) -> bool {
    controller_of(object).is_some_and(|owner| owner["uid"] == uid)
}

/// A reference that makes `owner` the controller.
pub(crate) fn controller_reference(owner: &Value, api_version: &str, kind: &str) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "name": object::name(owner), "uid": object::uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// Removes the references to these owners. Returns whether there were any.
pub(crate) fn disown(object: &mut Value, uids: &[&str]) -> bool {
    let metadata = object::metadata_mut(object);
    let Some(references) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) else {
        return false;
    };
    let before = references.len();
    references.retain(|owner| !owner["uid"].as_str().is_some_and(|uid| uids.contains(&uid)));
    let changed = references.len() != before;
    if references.is_empty() {
        metadata.remove("ownerReferences");
    }
    changed
}
