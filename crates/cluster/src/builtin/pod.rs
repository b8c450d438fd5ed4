//! The server's changes to a pod at a write: its first status, its QoS class, its tolerations.

use crate::json::{Value, json};
use jiff::Timestamp;

use super::disabled::drop_disabled;
use super::fields::{copy, each, fill, fill_text, has, int, items, made, part, set, text, unset};
use super::{metadata, qos};

/// How long a pod stays on a node that is not ready or unreachable.
const TOLERATION_SECONDS: i64 = 300;
const NODE_TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

pub(super) fn prepare_create(object: &mut Value, now: Timestamp) {
    // A class set by the client is kept, right or wrong.
    let given = text(&object["status"], "qosClass").to_owned();
    let labels = object["metadata"]["labels"].clone();
    let Some(spec) = made(object, "spec") else { return };
    // Priority admission, for a cluster with only the system's own classes.
    fill(spec, "priority", 0);
    fill(spec, "preemptionPolicy", "PreemptLowerPriority");
    tolerate_node_trouble(spec);
    apply_label_keys(spec, &labels);
    drop_disabled(spec, &Value::Null);
    let class = if given.is_empty() {
        qos::class(spec).to_owned()
    } else {
        given
    };
    let gated = !items(spec, "schedulingGates").is_empty();
    set(object, "status", json!({"phase": "Pending", "qosClass": class}));
    if gated && let Some(status) = part(object, "status") {
        let condition = json!({
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastProbeTime": null,
            "lastTransitionTime": metadata::timestamp(now), "message": "Scheduling is blocked due to non-empty scheduling gates",
        });
        set(status, "conditions", json!([condition]));
    }
}

/// DefaultTolerationSeconds admission: it runs on every write of the pod itself.
fn tolerate_node_trouble(spec: &mut Value) {
    for taint in NODE_TAINTS {
        let tolerated = items(spec, "tolerations").iter().any(|toleration| {
            let (key, effect) = (text(toleration, "key"), text(toleration, "effect"));
            (key == taint || key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if tolerated {
            continue;
        }
        fill(spec, "tolerations", json!([]));
        if let Some(Value::Array(tolerations)) = spec.get_mut("tolerations") {
            tolerations.push(json!({
                "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
}

/// `matchLabelKeys` become part of the selector next to them, with the values of this pod.
fn apply_label_keys(spec: &mut Value, labels: &Value) {
    for constraint in each(spec, "topologySpreadConstraints") {
        extend_selector(constraint, labels);
    }
    let Some(affinity) = part(spec, "affinity") else {
        return;
    };
    for name in ["podAffinity", "podAntiAffinity"] {
        let Some(rules) = part(affinity, name) else {
            continue;
        };
        for term in each(rules, "requiredDuringSchedulingIgnoredDuringExecution") {
            extend_selector(term, labels);
        }
        for preferred in each(rules, "preferredDuringSchedulingIgnoredDuringExecution") {
            if let Some(term) = part(preferred, "podAffinityTerm") {
                extend_selector(term, labels);
            }
        }
    }
}

fn extend_selector(term: &mut Value, labels: &Value) {
    let mut expressions = Vec::new();
    for (name, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in items(term, name).iter().filter_map(Value::as_str) {
            if let Some(value) = labels.get(key) {
                expressions.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    let Some(selector) = part(term, "labelSelector").filter(|_| !expressions.is_empty()) else {
        return;
    };
    fill(selector, "matchExpressions", json!([]));
    if let Some(Value::Array(known)) = selector.get_mut("matchExpressions") {
        known.extend(expressions);
    }
}

pub(super) fn prepare_update(old: &Value, new: &mut Value) {
    let Some(spec) = part(new, "spec") else { return };
    // An update that omits the priority keeps it.
    for name in ["priority", "preemptionPolicy"] {
        if !has(spec, name) {
            copy(&old["spec"], spec, name);
        }
    }
    tolerate_node_trouble(spec);
    drop_disabled(spec, &old["spec"]);
}

/// The status endpoint keeps fields that kubelets have overwritten wrongly: owners, class and observed generations.
pub(super) fn prepare_status(old: &Value, new: &mut Value) {
    metadata::keep(old, new, "ownerReferences");
    if let Some(metadata) = part(new, "metadata") {
        unset(metadata, "deletionTimestamp");
    }
    let before = &old["status"];
    let Some(status) = made(new, "status") else { return };
    fill_text(status, "qosClass", text(before, "qosClass"));
    if text(status, "qosClass").is_empty() {
        unset(status, "qosClass");
    }
    keep_generation(before, status);
    let mut known: Vec<_> = items(before, "conditions").iter().collect();
    for condition in each(status, "conditions") {
        let place = known.iter().position(|one| one["type"] == condition["type"]);
        if let Some(place) = place {
            keep_generation(known.remove(place), condition);
        }
    }
    addresses(status);
}

fn keep_generation(before: &Value, now: &mut Value) {
    if int(now, "observedGeneration").unwrap_or_default() == 0 {
        copy(before, now, "observedGeneration");
    }
}

/// The old singular `podIP` is the first of the list; if both are set and differ, it wins.
fn addresses(status: &mut Value) {
    let single = text(status, "podIP").to_owned();
    let first = items(status, "podIPs")
        .first()
        .map(|first| text(first, "ip").to_owned());
    match first {
        Some(first) if single.is_empty() => set(status, "podIP", first),
        first if !single.is_empty() && first.as_ref() != Some(&single) => {
            set(status, "podIPs", json!([{"ip": single}]))
        }
        _ => {}
    }
}
