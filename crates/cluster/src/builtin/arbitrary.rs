//! No object that a client can send makes the server panic.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::json::{Map, Value};
use proptest::prelude::*;

use super::fields::{items, text};
use super::{
    Context, Endpoint, Gates, default, give_address, give_node_ports, validate_scale, wants_address,
};
use super::{prepare_create, prepare_update, validate_create, validate_update};

const RECORDED: [&str; 3] = [
    include_str!("testdata/workloads.json"),
    include_str!("testdata/objects.json"),
    include_str!("testdata/refused.json"),
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z.:/%@ü-]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = prop_oneof![
            Just("metadata".to_owned()),
            Just("spec".to_owned()),
            Just("status".to_owned()),
            Just("template".to_owned()),
            Just("containers".to_owned()),
            Just("name".to_owned()),
            "[a-z]{0,4}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map>())),
        ]
    })
}

/// The recorded cases: resource and object.
static CASES: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
    let files = RECORDED
        .iter()
        .map(|file| serde_json::from_str::<Value>(file).unwrap());
    let cases = files.flat_map(|file| items(&file, "cases").to_vec());
    cases
        .map(|case| (text(&case, "resource").to_owned(), case["given"].clone()))
        .collect()
});

/// Replaces one value somewhere inside, chosen by `path`.
fn replace(value: &mut Value, mut path: impl Iterator<Item = usize>, by: Value) {
    let Some(step) = path.next() else {
        *value = by;
        return;
    };
    let inner = match value {
        Value::Object(fields) if !fields.is_empty() => fields.values_mut().cycle_to(step),
        Value::Array(items) if !items.is_empty() => items.iter_mut().cycle_to(step),
        _ => {
            *value = by;
            return;
        }
    };
    if let Some(inner) = inner {
        replace(inner, path, by);
    }
}

/// The element at an index modulo the length.
trait CycleTo<'v>: Iterator<Item = &'v mut Value> + Sized {
    fn cycle_to(self, step: usize) -> Option<&'v mut Value> {
        let mut all: Vec<_> = self.collect();
        let place = step.checked_rem(all.len())?;
        Some(all.swap_remove(place))
    }
}

impl<'v, I: Iterator<Item = &'v mut Value>> CycleTo<'v> for I {}

fn handle(resource: &str, old: &Value, mut object: Value) {
    let gates = Gates {
        max_unavailable_statefulset: true,
    };
    let context = Context {
        uid: "u",
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        gates,
    };
    default(resource, &mut object);
    for endpoint in [Endpoint::Main, Endpoint::Status, Endpoint::Scale] {
        let mut new = object.clone();
        prepare_update(resource, old, &mut new, endpoint, &context);
        validate_update(resource, old, &new, endpoint);
    }
    prepare_create(resource, &mut object, &context);
    if wants_address(&object) {
        give_address(&mut object, "10.0.0.1");
    }
    give_node_ports(&mut object, || 30_000);
    validate_create(resource, &object);
    validate_scale(&object);
}

proptest! {
    #[test]
    fn any_json_is_handled_for_every_kind(object in any_json(), old in any_json()) {
        let resources: BTreeSet<_> = CASES.iter().map(|(resource, _)| resource.as_str()).collect();
        for resource in resources.into_iter().chain(["unknown.example.com", ""]) {
            handle(resource, &old, object.clone());
        }
    }

    #[test]
    fn real_objects_with_one_thing_wrong_are_handled(
        case in any::<prop::sample::Index>(),
        path in prop::collection::vec(any::<usize>(), 0..9),
        by in any_json(),
    ) {
        let (resource, object) = case.get(&CASES);
        let mut broken = object.clone();
        replace(&mut broken, path.into_iter(), by);
        handle(resource, object, broken.clone());
        handle(resource, &broken, object.clone());
    }
}
