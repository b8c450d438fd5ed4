//! PersistentVolumeClaims.

use crate::json::{Value, json};

use super::fields::{fill, fill_text, has, items, made, part, set, text, unset};
use crate::types::quantity::round_list;

pub(super) fn default(object: &mut Value) {
    if let Some(status) = made(object, "status") {
        fill_text(status, "phase", "Pending");
        round_list(status.get_mut("capacity"));
        round_list(status.get_mut("allocatedResources"));
    }
    default_spec(object);
}

/// Fills the spec inside a claim or a claim template.
pub(super) fn default_spec(claim: &mut Value) {
    let Some(spec) = made(claim, "spec") else { return };
    fill(spec, "volumeMode", "Filesystem");
    if let Some(resources) = part(spec, "resources") {
        round_list(resources.get_mut("limits"));
        round_list(resources.get_mut("requests"));
    }
}

pub(super) fn prepare_create(object: &mut Value) {
    // The phase is what a claim without one is read back with.
    set(object, "status", json!({"phase": "Pending"}));
    normalize_data_sources(object);
    protect(object, "kubernetes.io/pvc-protection");
}

/// StorageObjectInUseProtection admission: an object in use is deleted only once it is no longer used.
pub(super) fn protect(object: &mut Value, finalizer: &str) {
    let Some(metadata) = made(object, "metadata") else {
        return;
    };
    let mut finalizers = items(metadata, "finalizers").to_vec();
    if !finalizers.iter().any(|known| known == finalizer) {
        finalizers.push(finalizer.into());
        set(metadata, "finalizers", finalizers);
    }
}

/// `dataSource` and `dataSourceRef` are two fields for the same thing; whichever was given fills the other.
pub(super) fn normalize_data_sources(object: &mut Value) {
    let Some(spec) = part(object, "spec") else { return };
    // The older of the two can name only claims and snapshots; anything else in it is dropped.
    let source = (
        text(&spec["dataSource"], "apiGroup"),
        text(&spec["dataSource"], "kind"),
    );
    if !matches!(
        source,
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    ) {
        unset(spec, "dataSource");
    }
    match (spec["dataSource"].clone(), spec["dataSourceRef"].clone()) {
        (source, Value::Null) if source.is_object() => set(spec, "dataSourceRef", source),
        (Value::Null, mut reference) if reference.is_object() && !has(&reference, "namespace") => {
            if let Value::Object(fields) = &mut reference {
                fields.retain(|name, _| matches!(name.as_str(), "apiGroup" | "kind" | "name"));
            }
            set(spec, "dataSource", reference);
        }
        _ => {}
    }
}
