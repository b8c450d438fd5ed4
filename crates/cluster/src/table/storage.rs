//! Volumes, claims and their classes.

use serde_json::Value;

use super::sheet::{AGE, Column, NAME, Sheet, age, is_set, list, name, text, text_or};

const MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];
/// Names of classes once stood in an annotation.
const OLD_CLASS: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
const DEFAULT_CLASS: [&str; 2] = [
    "/metadata/annotations/storageclass.kubernetes.io~1is-default-class",
    "/metadata/annotations/storageclass.beta.kubernetes.io~1is-default-class",
];

pub(super) static VOLUMES: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Capacity", "How large the volume is."),
        Column::text("Access Modes", "Who may use the volume at a time."),
        Column::text(
            "Reclaim Policy",
            "What happens to the volume when its claim goes.",
        ),
        Column::text("Status", "Whether the volume is free, bound or gone."),
        Column::text("Claim", "The claim that the volume is bound to."),
        Column::text("StorageClass", "The volume's storage class."),
        Column::text("VolumeAttributesClass", "The volume's class of attributes."),
        Column::text("Reason", "Why the volume is in this state."),
        AGE,
        Column::wide(
            "VolumeMode",
            "Whether the volume is a filesystem or a block device.",
        ),
    ],
    cells: |volume, now| {
        let claim = match volume.pointer("/spec/claimRef") {
            Some(claim) if !claim.is_null() => {
                format!("{}/{}", text(claim, "/namespace"), text(claim, "/name"))
            }
            _ => String::new(),
        };
        vec![
            name(volume),
            text_or(volume, "/spec/capacity/storage", "0").into(),
            access_modes(volume, "/spec/accessModes").into(),
            text(volume, "/spec/persistentVolumeReclaimPolicy").into(),
            phase(volume).into(),
            claim.into(),
            class(volume).into(),
            text_or(volume, "/spec/volumeAttributesClassName", "<unset>").into(),
            text(volume, "/status/reason").into(),
            age(volume, now),
            text_or(volume, "/spec/volumeMode", "<unset>").into(),
        ]
    },
    conditions: None,
};

pub(super) static CLAIMS: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Status", "Whether the claim has a volume."),
        Column::text("Volume", "The claim's volume."),
        Column::text("Capacity", "How large the volume is."),
        Column::text("Access Modes", "Who may use the volume at a time."),
        Column::text("StorageClass", "The claim's storage class."),
        Column::text("VolumeAttributesClass", "The claim's class of attributes."),
        AGE,
        Column::wide(
            "VolumeMode",
            "Whether the volume is a filesystem or a block device.",
        ),
    ],
    cells: |claim, now| {
        let volume = text(claim, "/spec/volumeName");
        let (capacity, modes) = match volume {
            "" => ("", String::new()),
            _ => (
                text_or(claim, "/status/capacity/storage", "0"),
                access_modes(claim, "/status/accessModes"),
            ),
        };
        vec![
            name(claim),
            phase(claim).into(),
            volume.into(),
            capacity.into(),
            modes.into(),
            class(claim).into(),
            text_or(claim, "/spec/volumeAttributesClassName", "<unset>").into(),
            age(claim, now),
            text_or(claim, "/spec/volumeMode", "<unset>").into(),
        ]
    },
    conditions: None,
};

pub(super) static CLASSES: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Provisioner", "Who makes the volumes."),
        Column::text("ReclaimPolicy", "What happens to a volume when its claim goes."),
        Column::text("VolumeBindingMode", "When a claim gets its volume."),
        Column::text("AllowVolumeExpansion", "Whether a volume can grow."),
        AGE,
    ],
    cells: |class, now| {
        let is_default = DEFAULT_CLASS
            .iter()
            .any(|annotation| text(class, annotation) == "true");
        let shown = text(class, "/metadata/name");
        vec![
            if is_default {
                format!("{shown} (default)").into()
            } else {
                shown.into()
            },
            text(class, "/provisioner").into(),
            text_or(class, "/reclaimPolicy", "Delete").into(),
            text_or(class, "/volumeBindingMode", "Immediate").into(),
            class["allowVolumeExpansion"].as_bool().unwrap_or_default().into(),
            age(class, now),
        ]
    },
    conditions: None,
};

fn phase(object: &Value) -> &str {
    if is_set(object, "/metadata/deletionTimestamp") {
        "Terminating"
    } else {
        text(object, "/status/phase")
    }
}

fn class(object: &Value) -> &str {
    if is_set(object, OLD_CLASS) {
        text(object, OLD_CLASS)
    } else {
        text(object, "/spec/storageClassName")
    }
}

fn access_modes(object: &Value, pointer: &str) -> String {
    let modes = list(object, pointer);
    let known = MODES
        .iter()
        .filter(|(mode, _)| modes.iter().any(|given| given == mode));
    known.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}
