//! StorageClasses.

use crate::json::Value;

use super::fields::{fill, text};
use super::problems::{At, Problems};
use crate::names;

pub(super) fn default(object: &mut Value) {
    fill(object, "reclaimPolicy", "Delete");
    fill(object, "volumeBindingMode", "Immediate");
}

pub(super) fn validate(object: &Value, problems: &mut Problems) {
    let provisioner = text(object, "provisioner");
    if provisioner.is_empty() {
        problems.required(&At::new("provisioner"), "");
    } else {
        let lower = provisioner.to_lowercase();
        problems.invalid_for(
            &At::new("provisioner"),
            provisioner,
            names::qualified_name(&lower),
        );
    }
    for (name, allowed) in [
        ("reclaimPolicy", ["Delete", "Retain"]),
        ("volumeBindingMode", ["Immediate", "WaitForFirstConsumer"]),
    ] {
        if !allowed.contains(&text(object, name)) {
            problems.not_supported(&At::new(name), text(object, name), &allowed);
        }
    }
}
