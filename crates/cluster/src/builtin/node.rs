//! Nodes.

use crate::json::{Value, json};

use super::fields::{fill, items, made, part, set, text};
use super::problems::{At, Problems};
use super::validation::scheduling::taints;
use crate::types::quantity::round_list;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub(super) fn default(object: &mut Value) {
    if let Some(status) = part(object, "status") {
        if let Some(capacity) = status
            .get("capacity")
            .filter(|capacity| capacity.is_object())
            .cloned()
        {
            fill(status, "allocatable", capacity);
        }
        round_list(status.get_mut("capacity"));
        round_list(status.get_mut("allocatable"));
    }
    let Some(spec) = part(object, "spec") else { return };
    // The old singular field is the first of the list; if both are set and differ, it wins.
    let single = text(spec, "podCIDR").to_owned();
    let first = items(spec, "podCIDRs").first().cloned();
    if !single.is_empty() && first.as_ref() != Some(&Value::from(single.as_str())) {
        set(spec, "podCIDRs", json!([single]));
    } else if let Some(first) = first {
        set(spec, "podCIDR", first);
    }
}

/// TaintNodesByCondition admission: a new node takes no pods until it is ready.
pub(super) fn prepare_create(object: &mut Value) {
    let Some(spec) = made(object, "spec") else { return };
    let mut taints = items(spec, "taints").to_vec();
    if !taints
        .iter()
        .any(|taint| text(taint, "key") == NOT_READY && text(taint, "effect") == "NoSchedule")
    {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        set(spec, "taints", taints);
    }
}

pub(super) fn validate(object: &Value, problems: &mut Problems) {
    // Upstream reports taints under metadata, their former place.
    taints(&At::new("metadata.taints"), &object["spec"], problems);
}
