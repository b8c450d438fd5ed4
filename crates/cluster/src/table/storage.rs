//! Volumes, claims and their classes.

use crate::json::Value;

use super::column::Cell::{Made, Text, TextOr};
use super::column::{AGE, Column, NAME, is_set, list, text, text_or};

const MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];
/// The deprecated annotation with the class.
const OLD_CLASS: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
const DEFAULT_CLASS: [&str; 2] = [
    "/metadata/annotations/storageclass.kubernetes.io~1is-default-class",
    "/metadata/annotations/storageclass.beta.kubernetes.io~1is-default-class",
];

const VOLUME_MODE: Column = Column::wide(
    "VolumeMode",
    "Whether the volume is a filesystem or a block device.",
    TextOr("/spec/volumeMode", "<unset>"),
);

pub(super) static VOLUMES: &[Column] = &[
    NAME,
    Column::text(
        "Capacity",
        "How large the volume is.",
        TextOr("/spec/capacity/storage", "0"),
    ),
    Column::text(
        "Access Modes",
        "Who may use the volume at a time.",
        Made(|volume| access_modes(volume, "/spec/accessModes")),
    ),
    Column::text(
        "Reclaim Policy",
        "What happens to the volume when its claim goes.",
        Text("/spec/persistentVolumeReclaimPolicy"),
    ),
    Column::text(
        "Status",
        "Whether the volume is free, bound or gone.",
        Made(phase),
    ),
    Column::text("Claim", "The claim that the volume is bound to.", Made(claim_of)),
    Column::text("StorageClass", "The volume's storage class.", Made(class)),
    Column::text(
        "VolumeAttributesClass",
        "The volume's class of attributes.",
        TextOr("/spec/volumeAttributesClassName", "<unset>"),
    ),
    Column::text(
        "Reason",
        "Why the volume is in this state.",
        Text("/status/reason"),
    ),
    AGE,
    VOLUME_MODE,
];

pub(super) static CLAIMS: &[Column] = &[
    NAME,
    Column::text("Status", "Whether the claim has a volume.", Made(phase)),
    Column::text("Volume", "The claim's volume.", Text("/spec/volumeName")),
    Column::text(
        "Capacity",
        "How large the volume is.",
        Made(|claim| if_bound(claim, || text_or(claim, "/status/capacity/storage", "0").into())),
    ),
    Column::text(
        "Access Modes",
        "Who may use the volume at a time.",
        Made(|claim| if_bound(claim, || access_modes(claim, "/status/accessModes"))),
    ),
    Column::text("StorageClass", "The claim's storage class.", Made(class)),
    Column::text(
        "VolumeAttributesClass",
        "The claim's class of attributes.",
        TextOr("/spec/volumeAttributesClassName", "<unset>"),
    ),
    AGE,
    VOLUME_MODE,
];

pub(super) static CLASSES: &[Column] = &[
    NAME.showing(Made(class_name)),
    Column::text("Provisioner", "Who makes the volumes.", Text("/provisioner")),
    Column::text(
        "ReclaimPolicy",
        "What happens to a volume when its claim goes.",
        TextOr("/reclaimPolicy", "Delete"),
    ),
    Column::text(
        "VolumeBindingMode",
        "When a claim gets its volume.",
        TextOr("/volumeBindingMode", "Immediate"),
    ),
    Column::text(
        "AllowVolumeExpansion",
        "Whether a volume can grow.",
        Made(|class| class["allowVolumeExpansion"].as_bool().unwrap_or_default().into()),
    ),
    AGE,
];

fn phase(object: &Value) -> Value {
    if is_set(object, "/metadata/deletionTimestamp") {
        "Terminating".into()
    } else {
        text(object, "/status/phase").into()
    }
}

fn class(object: &Value) -> Value {
    if is_set(object, OLD_CLASS) {
        text(object, OLD_CLASS).into()
    } else {
        text(object, "/spec/storageClassName").into()
    }
}

fn class_name(class: &Value) -> Value {
    let name = text(class, "/metadata/name");
    if DEFAULT_CLASS.iter().any(|at| text(class, at) == "true") {
        format!("{name} (default)").into()
    } else {
        name.into()
    }
}

fn claim_of(volume: &Value) -> Value {
    match &volume["spec"]["claimRef"] {
        Value::Null => "".into(),
        claim => format!("{}/{}", text(claim, "/namespace"), text(claim, "/name")).into(),
    }
}

/// A cell that stays empty until the claim is bound.
fn if_bound(claim: &Value, cell: impl Fn() -> Value) -> Value {
    match text(claim, "/spec/volumeName") {
        "" => "".into(),
        _ => cell(),
    }
}

fn access_modes(object: &Value, pointer: &str) -> Value {
    let modes = list(object, pointer);
    let known = MODES
        .iter()
        .filter(|(mode, _)| modes.iter().any(|given| given == mode));
    known
        .map(|(_, short)| *short)
        .collect::<Vec<_>>()
        .join(",")
        .into()
}
