//! Additions to nodes: the deprecated form of two labels, the TTL for cached secrets, and a taint while the node is not ready.
//!
//! Of upstream's node controllers this has only what a node shows to kubectl and to the scheduler. No controller watches heartbeats, so a
//! silent node stays ready, and no pod is evicted from it.

use crate::json::{Value, json};

use super::edit::{Target, edit};
use super::{Changed, Controller, Next};
use crate::access::Access;
use crate::object;
use crate::status::Status;
use crate::store::Key;

const NODES: &str = "nodes";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const TTL: &str = "node.alpha.kubernetes.io/ttl";
/// Current labels and their deprecated forms, which nodes still have.
const LABELS: [(&str, &str); 2] = [
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
];

pub(crate) struct NodeController;

impl Controller for NodeController {
    fn name(&self) -> &'static str {
        "node-controller"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[NODES]
    }

    fn concerned(&self, change: &Changed, _access: &dyn Access) -> Vec<Key> {
        change
            .after
            .iter()
            .map(|node| Key::new("", object::name(node)))
            .collect()
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        let node = access
            .get(NODES, "", &key.name)
            .filter(|node| !object::is_terminating(node));
        if let Some(node) = node {
            edit(access, Target::of(NODES, &node), complete)?;
        }
        Ok(Next::Wait)
    }
}

/// Adds what is missing. Returns whether anything was.
fn complete(node: &mut Value) -> bool {
    let before = node.clone();
    for (label, old) in LABELS {
        if let Some(value) = node["metadata"]["labels"].get(label).cloned() {
            node["metadata"]["labels"][old] = value;
        }
    }
    if node["metadata"]["annotations"].get(TTL).is_none() {
        node["metadata"]["annotations"][TTL] = "0".into();
    }
    taint(node);
    *node != before
}

/// Keeps new pods off a node that is not ready.
fn taint(node: &mut Value) {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let Some(ready) = conditions.clone().find(|condition| condition["type"] == "Ready") else {
        return;
    };
    let wanted = ready["status"] == "False";
    let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let is_ours = |taint: &Value| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule";
    match (wanted, taints.iter().any(is_ours)) {
        (true, false) => taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"})),
        (false, true) => taints.retain(|taint| !is_ours(taint)),
        _ => return,
    }
    match (taints.is_empty(), node["spec"].as_object_mut()) {
        (true, Some(spec)) => drop(spec.remove("taints")),
        _ => node["spec"]["taints"] = taints.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(ready: &str, taints: Value) -> Value {
        json!({
            "metadata": {"name": "a", "labels": {"kubernetes.io/os": "linux"}},
            "spec": {"taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        })
    }

    #[test]
    fn a_ready_node_loses_the_taint_it_was_born_with() {
        let mut node = node("True", json!([{"key": NOT_READY, "effect": "NoSchedule"}]));
        assert!(complete(&mut node));
        assert_eq!(node["spec"], json!({}));
        assert_eq!(node["metadata"]["labels"]["beta.kubernetes.io/os"], "linux");
        assert_eq!(node["metadata"]["annotations"], json!({TTL: "0"}));
        assert!(!complete(&mut node), "nothing is left to do");
    }

    #[test]
    fn a_node_that_is_not_ready_keeps_its_other_taints() {
        let theirs = json!({"key": "dedicated", "effect": "NoSchedule"});
        let mut node = node("False", json!([theirs]));
        complete(&mut node);
        assert_eq!(
            node["spec"]["taints"],
            json!([theirs, {"key": NOT_READY, "effect": "NoSchedule"}])
        );
    }
}
