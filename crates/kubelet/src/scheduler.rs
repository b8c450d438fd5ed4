//! Chooses the node of an unscheduled pod.

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement};

use crate::chance;
use crate::node::{Nodes, PlayedNode};
use crate::pod::{Pod, Wanted};

/// A node for `pod`: the pods of a set go round the nodes that fit, from a start that the seed chooses.
pub(crate) fn choose<'a>(pod: &Pod, wanted: &Wanted, nodes: &'a Nodes, seed: u64) -> Option<&'a str> {
    let suits = |(name, node): &(&String, &PlayedNode)| node.is_live() && suits(wanted, name, node);
    let fitting: Vec<_> = nodes
        .iter()
        .filter(suits)
        .map(|(name, _)| name.as_str())
        .collect();
    let count = u64::try_from(fitting.len()).ok().filter(|count| *count > 0)?;
    let start = match (pod.owner.set(), pod.ordinal) {
        (Some(set), Some(ordinal)) => {
            chance::hash(seed, [pod.key.namespace.as_str(), set]).wrapping_add(u64::from(ordinal))
        }
        _ => chance::hash(seed, [pod.key.namespace.as_str(), pod.key.name.as_str()]),
    };
    usize::try_from(start % count)
        .ok()
        .and_then(|index| fitting.get(index).copied())
}

fn suits(wanted: &Wanted, name: &str, node: &PlayedNode) -> bool {
    let selected = wanted
        .selector
        .iter()
        .all(|(key, value)| node.labels.get(key) == Some(value));
    selected
        && wanted
            .affinity
            .as_ref()
            .is_none_or(|affinity| has_affinity(affinity, name, node))
}

/// One term must match with all its requirements; the only supported field is the name.
fn has_affinity(affinity: &NodeSelector, name: &str, node: &PlayedNode) -> bool {
    affinity.node_selector_terms.iter().any(|term| {
        let fields = term.match_fields.iter().flatten();
        let labels = term.match_expressions.iter().flatten();
        fields.clone().chain(labels.clone()).next().is_some()
            && fields
                .clone()
                .all(|wanted| wanted.key == "metadata.name" && holds(wanted, Some(name)))
            && labels
                .clone()
                .all(|wanted| holds(wanted, node.labels.get(&wanted.key).map(String::as_str)))
    })
}

fn holds(wanted: &NodeSelectorRequirement, seen: Option<&str>) -> bool {
    let listed = || {
        wanted
            .values
            .iter()
            .flatten()
            .any(|value| Some(value.as_str()) == seen)
    };
    match wanted.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => seen.is_some(),
        "DoesNotExist" => seen.is_none(),
        // Gt and Lt compare numbers, and none of our labels is a number.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::node::NodeSpec;
    use crate::node::fixtures::live;
    use crate::pod::Place;
    use crate::pod::fixtures::{parse, set_pod_json};

    fn nodes() -> Nodes {
        live([
            NodeSpec::new("a").label("zone", "1"),
            NodeSpec::new("b").label("zone", "2"),
            NodeSpec::new("c"),
        ])
    }

    fn chosen(ordinal: u32, spec: Value, nodes: &Nodes) -> Option<String> {
        let mut object = set_pod_json("db", ordinal);
        object["spec"]["nodeName"] = Value::Null;
        for (key, value) in spec.as_object().unwrap() {
            object["spec"][key] = value.clone();
        }
        let pod = Pod::of(&parse(object));
        let Place::Wanted(wanted) = &pod.place else {
            panic!("has a node")
        };
        choose(&pod, wanted, nodes, 0).map(ToOwned::to_owned)
    }

    fn affinity(term: Value) -> Value {
        let required = json!({ "nodeSelectorTerms": [term] });
        json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } } })
    }

    #[test]
    fn the_pods_of_a_set_are_spread_over_the_nodes() {
        let used: BTreeSet<_> = (0..3)
            .filter_map(|ordinal| chosen(ordinal, json!({}), &nodes()))
            .collect();
        assert_eq!(used.len(), 3);
    }

    #[rstest]
    #[case::hostname(json!({ "nodeSelector": { "kubernetes.io/hostname": "b" } }), Some("b"))]
    #[case::label(json!({ "nodeSelector": { "zone": "1" } }), Some("a"))]
    #[case::no_such_label(json!({ "nodeSelector": { "zone": "3" } }), None)]
    #[case::name(
        affinity(json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["c"] }] })),
        Some("c")
    )]
    #[case::expression(
        affinity(json!({ "matchExpressions": [{ "key": "zone", "operator": "DoesNotExist" }] })),
        Some("c")
    )]
    #[case::all_expressions(
        affinity(json!({ "matchExpressions": [
            { "key": "zone", "operator": "Exists" },
            { "key": "zone", "operator": "NotIn", "values": ["1"] },
        ] })),
        Some("b")
    )]
    #[case::empty_term(affinity(json!({})), None)]
    fn a_pod_goes_where_its_spec_allows(#[case] spec: Value, #[case] node: Option<&str>) {
        assert_eq!(chosen(0, spec, &nodes()).as_deref(), node);
    }

    #[test]
    fn without_live_nodes_there_is_no_place() {
        assert_eq!(chosen(0, json!({}), &Nodes::new()), None);
    }
}
