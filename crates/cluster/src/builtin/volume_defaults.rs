//! The defaults of a pod's volume.

use crate::json::{Map, Value};

use super::claim;
use super::container_defaults::{field_reference, pull_policy};
use super::fields::{each, fill, fill_text, part, text};

/// rw-r--r--, the mode of projected files.
const FILE_MODE: i64 = 0o644;
/// How long a projected service account token lives.
const TOKEN_SECONDS: i64 = 3600;

/// Sets the defaults of one volume of a pod.
pub(super) fn volume(volume: &mut Value) {
    // A volume without a source is an empty directory.
    if volume.as_object().is_some_and(|fields| {
        fields
            .iter()
            .all(|(name, value)| name == "name" || value.is_null())
    }) {
        fill(volume, "emptyDir", Map::new());
    }
    if let Some(image) = part(volume, "image") {
        let policy = pull_policy(text(image, "reference"));
        fill_text(image, "pullPolicy", policy);
    }
    source(volume);
    for name in ["secret", "configMap"] {
        if let Some(files) = part(volume, name) {
            fill(files, "defaultMode", FILE_MODE);
        }
    }
    if let Some(files) = part(volume, "downwardAPI") {
        fill(files, "defaultMode", FILE_MODE);
        each(files, "items").for_each(field_reference);
    }
    if let Some(projected) = part(volume, "projected") {
        fill(projected, "defaultMode", FILE_MODE);
        each(projected, "sources").for_each(projection);
    }
    if let Some(template) = part(volume, "ephemeral").and_then(|it| part(it, "volumeClaimTemplate")) {
        claim::default_spec(template);
    }
}

fn projection(source: &mut Value) {
    if let Some(files) = part(source, "downwardAPI") {
        each(files, "items").for_each(field_reference);
    }
    if let Some(token) = part(source, "serviceAccountToken") {
        fill(token, "expirationSeconds", TOKEN_SECONDS);
    }
}

/// Sets the defaults of the sources that a pod's volume and a PersistentVolume share.
pub(super) fn source(volume: &mut Value) {
    if let Some(path) = part(volume, "hostPath") {
        fill(path, "type", "");
    }
    if let Some(iscsi) = part(volume, "iscsi") {
        fill_text(iscsi, "iscsiInterface", "default");
    }
    if let Some(rbd) = part(volume, "rbd") {
        fill_text(rbd, "pool", "rbd");
        fill_text(rbd, "user", "admin");
        fill_text(rbd, "keyring", "/etc/ceph/keyring");
    }
    if let Some(disk) = part(volume, "azureDisk") {
        fill(disk, "cachingMode", "ReadWrite");
        fill(disk, "fsType", "ext4");
        fill(disk, "readOnly", false);
        fill(disk, "kind", "Shared");
    }
    if let Some(scale) = part(volume, "scaleIO") {
        fill_text(scale, "storageMode", "ThinProvisioned");
        fill_text(scale, "fsType", "xfs");
    }
}
