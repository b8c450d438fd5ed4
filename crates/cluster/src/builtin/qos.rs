//! The quality-of-service class of a pod.

use std::collections::BTreeMap;

use crate::json::Value;

use super::fields::{entries, items};
use stateward_schema::Quantity;

type Totals = BTreeMap<String, Quantity>;

/// The class of a pod: Guaranteed if every limit is set and equals its request, BestEffort if there are no requests or limits.
pub(super) fn class(spec: &Value) -> &'static str {
    let (mut requests, mut limits) = (Totals::new(), Totals::new());
    let mut guaranteed = true;
    if spec["resources"].is_object() {
        add(&mut requests, &spec["resources"], "requests");
        if entries(&spec["resources"], "limits").next().is_some() {
            guaranteed = add(&mut limits, &spec["resources"], "limits");
        }
    } else {
        for container in items(spec, "containers")
            .iter()
            .chain(items(spec, "initContainers"))
        {
            add(&mut requests, &container["resources"], "requests");
            guaranteed &= add(&mut limits, &container["resources"], "limits");
        }
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds the resources that count for the class; returns whether both CPU and memory were set.
fn add(totals: &mut Totals, resources: &Value, list: &str) -> bool {
    let counted = entries(resources, list)
        .map(|(name, amount)| (name, Quantity::of(amount.as_str())))
        .filter(|(name, amount)| matches!(*name, "cpu" | "memory") && amount.is_positive());
    let mut found = 0;
    for (name, amount) in counted {
        found += 1;
        totals
            .entry(name.to_owned())
            .and_modify(|sum| *sum = sum.plus(amount))
            .or_insert(amount);
    }
    found == 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    #[rstest]
    #[case(json!([{}]), "BestEffort")]
    #[case(json!([{"requests": {"cpu": "1"}}]), "Burstable")]
    #[case(json!([{"requests": {"cpu": "0"}}]), "BestEffort")]
    #[case(json!([{"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}]), "Guaranteed")]
    #[case(json!([{"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}]), "Burstable")]
    #[case(json!([{"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}, {}]), "Burstable")]
    #[case(json!([{"requests": {"ephemeral-storage": "1Gi"}}]), "BestEffort")]
    fn the_class_follows_requests_and_limits(#[case] resources: Value, #[case] expected: &str) {
        let containers: Vec<_> = resources
            .as_array()
            .unwrap()
            .iter()
            .map(|resources| json!({"resources": resources}))
            .collect();
        assert_eq!(class(&json!({"containers": containers})), expected);
    }
}
