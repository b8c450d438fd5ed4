//! Random values for property tests: any JSON, and JSON that resembles an object.

use crate::json::{Value, json};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

/// Any JSON, with few names so that values overlap.
pub(super) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..4).prop_map(Value::from),
        Just(json!(1.5)),
        "[a-c]|x/[a-c]|delete|replace|merge".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = "[a-c]|name|value|\\$patch|\\$retainKeys|image|env|ports|containerPort";
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(name, inner, 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A pod template whose parts may be anything, but mostly are valid.
pub(super) fn pod_template() -> impl Strategy<Value = Value> {
    let labels = prop_oneof![
        6 => btree_map("[a-c]", "[1-2]", 0..3).prop_map(|labels| json!(labels)),
        1 => json(),
    ];
    let finalizers = prop_oneof![6 => vec("x/[a-c]", 0..3).prop_map(Value::from), 1 => json()];
    let volumes =
        prop_oneof![3 => Just(json!([{"name": "v", "emptyDir": {}}])), 3 => Just(Value::Null), 1 => json()];
    let whole =
        (containers(), finalizers, labels, volumes).prop_map(|(containers, finalizers, labels, volumes)| {
            json!({
                "metadata": {"labels": labels, "finalizers": finalizers},
                "template": {"spec": {"containers": containers, "volumes": volumes}},
            })
        });
    prop_oneof![9 => whole, 1 => json()]
}

/// A pod template with the directives of a strategic merge patch.
pub(super) fn pod_template_patch() -> impl Strategy<Value = Value> {
    (pod_template(), containers(), vec("x/[a-c]", 0..2)).prop_map(|(mut patch, order, gone)| {
        if let Some(Value::Object(spec)) = patch.pointer_mut("/template/spec") {
            spec.insert("$setElementOrder/containers".into(), order);
        }
        if let Some(Value::Object(metadata)) = patch.pointer_mut("/metadata") {
            metadata.insert("$deleteFromPrimitiveList/finalizers".into(), gone.into());
        }
        patch
    })
}

fn containers() -> impl Strategy<Value = Value> {
    let environment = vec(("[X-Z]", "[1-2]"), 0..3);
    let container = ("[a-d]", "[i-k]", environment).prop_map(|(name, image, env)| {
        let env: Vec<_> = env
            .into_iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        json!({"name": name, "image": image, "env": env})
    });
    let item = prop_oneof![12 => container, 1 => json()];
    prop_oneof![9 => vec(item, 0..4).prop_map(Value::from), 1 => json()]
}
