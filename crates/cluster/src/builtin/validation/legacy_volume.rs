//! Volumes of the plugins that were once built into Kubernetes.

use crate::json::Value;

use crate::builtin::fields::{has, int, items, text};
use crate::builtin::problems::{At, Problems, between};

/// Checks the source of a legacy volume. Other sources are accepted.
pub(crate) fn validate(at: &At, kind: &str, source: &Value, problems: &mut Problems) {
    let required: &[&str] = match kind {
        "azureDisk" => return azure_disk(at, source, problems),
        "iscsi" => return iscsi(at, source, problems),
        "rbd" => {
            if items(source, "monitors").is_empty() {
                problems.required(&at.field("monitors"), "");
            }
            &["image"]
        }
        "scaleIO" => &["gateway", "system", "volumeName"],
        _ => &[],
    };
    for name in required.iter().filter(|name| text(source, name).is_empty()) {
        problems.required(&at.field(name), "");
    }
}

fn iscsi(at: &At, source: &Value, problems: &mut Problems) {
    if text(source, "targetPortal").is_empty() {
        problems.required(&at.field("targetPortal"), "");
    }
    let name = text(source, "iqn");
    if name.is_empty() {
        problems.required(&at.field("iqn"), "");
    } else if !["iqn", "eui", "naa"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
    {
        problems.invalid(
            &at.field("iqn"),
            name,
            "must be valid format starting with iqn, eui, or naa",
        );
    }
    let unit = int(source, "lun").unwrap_or_default();
    if !(0..=255).contains(&unit) {
        problems.invalid(&at.field("lun"), unit, &between(0, 255));
    }
}

fn azure_disk(at: &At, source: &Value, problems: &mut Problems) {
    let uri = text(source, "diskURI");
    for name in ["diskName", "diskURI"] {
        if text(source, name).is_empty() {
            problems.required(&at.field(name), "");
        }
    }
    for (name, allowed) in [
        ("cachingMode", ["None", "ReadOnly", "ReadWrite"]),
        ("kind", ["Dedicated", "Managed", "Shared"]),
    ] {
        if has(source, name) && !allowed.contains(&text(source, name)) {
            problems.not_supported(&at.field(name), text(source, name), &allowed);
        }
    }
    let (prefix, shape) = if text(source, "kind") == "Managed" {
        let shape =
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
        ("/subscriptions/", shape)
    } else {
        (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        )
    };
    if !uri.starts_with(prefix) {
        problems.not_supported(&at.field("diskURI"), uri, &[shape]);
    }
}
