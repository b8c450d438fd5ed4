//! PersistentVolumes.

use crate::json::{Value, json};
use jiff::Timestamp;

use super::claim::protect;
use super::fields::{copy, fill, fill_text, has, items, made, part, set, text};
use super::metadata::timestamp;
use super::problems::{At, Problems};
use super::validation::claim::ACCESS_MODES;
use super::volume_defaults::source;
use crate::types::quantity::round_list;

pub(super) fn default(object: &mut Value) {
    if let Some(status) = made(object, "status") {
        fill_text(status, "phase", "Pending");
    }
    let Some(spec) = made(object, "spec") else { return };
    fill_text(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill(spec, "volumeMode", "Filesystem");
    round_list(spec.get_mut("capacity"));
    source(spec);
}

pub(super) fn prepare_create(object: &mut Value, now: Timestamp) {
    set(
        object,
        "status",
        json!({"phase": "Pending", "lastPhaseTransitionTime": timestamp(now)}),
    );
    protect(object, "kubernetes.io/pv-protection");
}

/// The server records when a volume changes its phase, unless the client does.
pub(super) fn prepare_status(old: &Value, new: &mut Value, now: Timestamp) {
    const CHANGED: &str = "lastPhaseTransitionTime";
    let before = &old["status"];
    let Some(status) = part(new, "status") else { return };
    let same_phase = text(before, "phase") == text(status, "phase");
    if same_phase && !has(status, CHANGED) {
        copy(before, status, CHANGED);
    } else if !same_phase && (!has(status, CHANGED) || status[CHANGED] == before[CHANGED]) {
        set(status, CHANGED, timestamp(now));
    }
}

/// Checks the basics of a PersistentVolume.
pub(super) fn validate(object: &Value, problems: &mut Problems) {
    let (at, spec) = (At::new("spec"), &object["spec"]);
    let modes = items(spec, "accessModes");
    if modes.is_empty() {
        problems.required(&at.field("accessModes"), "");
    }
    for mode in modes.iter().filter_map(Value::as_str) {
        if !ACCESS_MODES.contains(&mode) {
            problems.not_supported(&at.field("accessModes"), mode, &ACCESS_MODES);
        }
    }
    if !has(spec, "capacity") {
        problems.required(&at.field("capacity"), "");
        problems.not_supported(&at.field("capacity"), Value::Null, &["storage"]);
    }
    let plain = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    let has_source = spec
        .as_object()
        .is_some_and(|fields| fields.keys().any(|name| !plain.contains(&name.as_str())));
    if !has_source {
        problems.required(&at, "must specify a volume type");
    }
}
