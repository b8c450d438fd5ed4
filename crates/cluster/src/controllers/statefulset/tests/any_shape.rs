//! Objects that no API server would accept must not cause a panic.

use crate::json::{Map, Value};
use proptest::prelude::*;

use super::*;
use crate::controllers::{Changed, Controller};

const FIELDS: [&str; 24] = [
    "metadata",
    "spec",
    "status",
    "data",
    "labels",
    "annotations",
    "ownerReferences",
    "controller",
    "uid",
    "name",
    "deletionTimestamp",
    "replicas",
    "ordinals",
    "start",
    "selector",
    "matchLabels",
    "template",
    "updateStrategy",
    "type",
    "rollingUpdate",
    "partition",
    "volumes",
    "conditions",
    "volumeClaimTemplates",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..4).prop_map(Value::from),
        prop_oneof![
            Just("db"),
            Just("db-0"),
            Just("Ready"),
            Just("True"),
            Just("Delete"),
            Just("RollingUpdate"),
            Just("-")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let field = proptest::sample::select(FIELDS.as_slice());
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::vec((field, inner), 0..6).prop_map(|fields| Value::Object(
                fields
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()
            )),
        ]
    })
}

/// The object with these fields merged over its own, one level deep.
fn overlaid(mut object: Value, over: &Value) -> Value {
    let empty = Map::new();
    for part in ["metadata", "spec", "status", "data"] {
        for (field, value) in over[part].as_object().unwrap_or(&empty) {
            if !matches!(field.as_str(), "name" | "namespace") && object[part].is_object() {
                object[part][field] = value.clone();
            }
        }
    }
    object
}

proptest! {
    #[test]
    fn a_sync_survives_objects_of_any_shape(
        set_shape in any_json(), pod_shape in any_json(), revision_shape in any_json(), claim_shape in any_json(),
        parallel in any::<bool>(),
    ) {
        let lab = Lab::new();
        let new = set("db").replicas(2).claim("data").retention("Delete", "Delete").current("v2");
        let (resource, object) = if parallel { new.parallel() } else { new }.into();
        lab.put_raw(resource, overlaid(object, &set_shape));
        let shapes: [((&str, Value), &Value); 4] = [
            (pod("db", 0).ready().into(), &pod_shape),
            (pod("db", 3).into(), &pod_shape),
            (build::revision("v2", 1).into(), &revision_shape),
            (build::claim("data-db-0").into(), &claim_shape),
        ];
        for ((resource, object), shape) in shapes {
            lab.put_raw(resource, overlaid(object, shape));
        }
        let _ = lab.sync();
        let _ = lab.sync();
    }

    #[test]
    fn a_change_of_any_shape_is_survived(before in any_json(), after in any_json()) {
        let lab = Lab::new().with(set("db"));
        for resource in ["pods", "statefulsets.apps"] {
            let change = Changed {
                resource: resource.into(),
                before: Some(before.clone().into()),
                after: Some(after.clone().into()),
            };
            let _ = super::super::StatefulSets::default().concerned(&change, &lab);
        }
    }
}
