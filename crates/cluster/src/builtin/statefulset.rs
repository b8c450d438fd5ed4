//! StatefulSets: defaults and dropped fields.

use crate::json::{Map, Value, json};

use super::Gates;
use super::claim;
use super::fields::{each, fill, fill_text, has, made, part, set, text, unset};
use super::pod_defaults::template;

pub(super) fn default(object: &mut Value) {
    let Some(spec) = made(object, "spec") else { return };
    fill_text(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = made(spec, "updateStrategy") {
        if text(strategy, "type").is_empty() {
            set(strategy, "type", "RollingUpdate");
            fill(strategy, "rollingUpdate", Map::new());
        }
        // A strategy with a type but without a block gets none.
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = part(strategy, "rollingUpdate")
        {
            fill(rolling, "partition", 0);
        }
    }
    if let Some(policy) = made(spec, "persistentVolumeClaimRetentionPolicy") {
        fill_text(policy, "whenDeleted", "Retain");
        fill_text(policy, "whenScaled", "Retain");
    }
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    template(spec);
    for one in each(spec, "volumeClaimTemplates") {
        // The kind is set in every claim template, whatever was sent (k/k#87583).
        set(one, "apiVersion", "v1");
        set(one, "kind", "PersistentVolumeClaim");
        claim::default(one);
    }
}

pub(super) fn prepare_create(object: &mut Value, gates: Gates) {
    set(object, "status", json!({"replicas": 0, "availableReplicas": 0}));
    max_unavailable(&Value::Null, object, gates);
}

pub(super) fn prepare_update(old: &Value, new: &mut Value, gates: Gates) {
    max_unavailable(old, new, gates);
}

/// Drops `maxUnavailable` while its gate is off, unless it was stored while the gate was on.
fn max_unavailable(old: &Value, new: &mut Value, gates: Gates) {
    let in_use = has(&old["spec"]["updateStrategy"]["rollingUpdate"], "maxUnavailable");
    let Some(strategy) = part(new, "spec").and_then(|spec| part(spec, "updateStrategy")) else {
        return;
    };
    let is_rolling = text(strategy, "type") == "RollingUpdate";
    let Some(rolling) = part(strategy, "rollingUpdate") else {
        return;
    };
    if gates.max_unavailable_statefulset {
        if is_rolling {
            fill(rolling, "maxUnavailable", 1);
        }
    } else if !in_use {
        unset(rolling, "maxUnavailable");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn set_with(rolling: Value) -> Value {
        json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}})
    }

    #[rstest]
    #[case(true, json!({}), json!({}), json!({"maxUnavailable": 1}))]
    #[case(true, json!({}), json!({"maxUnavailable": "10%"}), json!({"maxUnavailable": "10%"}))]
    #[case(false, json!({}), json!({"maxUnavailable": 2}), json!({}))]
    #[case(false, json!({"maxUnavailable": 3}), json!({"maxUnavailable": 2}), json!({"maxUnavailable": 2}))]
    fn the_gate_decides_about_max_unavailable(
        #[case] gate: bool,
        #[case] old: Value,
        #[case] new: Value,
        #[case] expected: Value,
    ) {
        let mut new = set_with(new);
        prepare_update(
            &set_with(old),
            &mut new,
            Gates {
                max_unavailable_statefulset: gate,
            },
        );
        assert_eq!(new, set_with(expected));
    }
}
