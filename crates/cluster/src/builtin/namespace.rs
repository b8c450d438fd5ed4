//! Namespaces.

use crate::json::{Value, json};

use super::fields::{copy, fill_text, items, made, set, text};

pub(super) fn default(object: &mut Value) {
    // Without a name there is nothing to label; the server calls this again once it has generated one.
    let name = text(&object["metadata"], "name").to_owned();
    if !name.is_empty()
        && let Some(labels) = made(object, "metadata").and_then(|metadata| made(metadata, "labels"))
    {
        set(labels, "kubernetes.io/metadata.name", name);
    }
    if let Some(status) = made(object, "status") {
        fill_text(status, "phase", "Active");
    }
}

pub(super) fn prepare_create(object: &mut Value) {
    set(object, "status", json!({"phase": "Active"}));
    let Some(spec) = made(object, "spec") else { return };
    let mut finalizers = items(spec, "finalizers").to_vec();
    if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
        finalizers.push("kubernetes".into());
    }
    set(spec, "finalizers", finalizers);
    default(object);
}

pub(super) fn prepare_update(old: &Value, new: &mut Value) {
    if let Some(spec) = made(new, "spec") {
        copy(&old["spec"], spec, "finalizers");
    }
}
