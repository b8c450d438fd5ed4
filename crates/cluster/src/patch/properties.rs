//! Properties of ownership that hold for any input.

use crate::json::Value;
use proptest::prelude::*;

use super::arbitrary::{json, pod_template};
use super::managed::Write;
use super::managed::whole::{apply, keep_times, scale, update};
use crate::types::{Kind, Shape, decode};

const POD_TEMPLATE: &str = "io.k8s.api.core.v1.PodTemplate";
const EARLIER: &str = "2026-01-01T00:00:00Z";
const NOW: &str = "2026-01-02T00:00:00Z";

fn write<'a>(manager: &'a str, now: &'a str) -> Write<'a> {
    Write {
        manager,
        subresource: "",
        api_version: "v1",
        kind: "PodTemplate",
        reset: &["status"],
        now,
    }
}

/// A pod template with a type, with any `managedFields`.
fn any_object() -> impl Strategy<Value = Value> {
    (pod_template(), prop_oneof![3 => Just(Value::Null), 1 => json()]).prop_map(|(mut object, managers)| {
        if let Value::Object(fields) = &mut object {
            fields.insert("apiVersion".into(), "v1".into());
            fields.insert("kind".into(), "PodTemplate".into());
        }
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.insert("managedFields".into(), managers);
        }
        object
    })
}

/// Applies and stores like the server: unknown fields are dropped, and times are kept if nothing changed.
fn store(live: Option<&Value>, config: &Value, manager: &str, now: &str) -> Option<Value> {
    let kind = Kind::Struct(POD_TEMPLATE.into());
    let applied = apply(
        live,
        config,
        true,
        &write(manager, now),
        Shape::Builtin {
            kind: &kind,
            field: None,
        },
    )
    .ok()?;
    let mut stored = decode(POD_TEMPLATE, &applied)?.ok()?.value;
    keep_times(live.unwrap_or(&Value::Null), &mut stored);
    Some(stored)
}

/// Whether the server would store it: there are containers, and every item has a name.
fn is_valid(config: &Value) -> bool {
    let list = |name: &str| {
        config["template"]["spec"][name]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let is_named = |item: &Value| item["name"].as_str().is_some_and(|name| !name.is_empty());
    !list("containers").is_empty() && list("containers").iter().chain(&list("volumes")).all(is_named)
}

proptest! {
    #[test]
    fn no_write_panics(old in any_object(), mut new in any_object(), is_create: bool, force: bool) {
        let kind = Kind::Struct(POD_TEMPLATE.into());
        for shape in [Shape::Builtin { kind: &kind, field: None }, Shape::Unknown] {
            let live = (!is_create).then_some(&old);
            let _ = apply(live, &new, force, &write("m", NOW), shape);
            update(live, &mut new, &write("m", NOW), shape);
            scale(&old, &mut new, &write("m", NOW), &["spec", "replicas"]);
            keep_times(&old, &mut new);
        }
    }

    #[test]
    fn applied_and_stored_twice_is_once(before in any_object(), earlier in any_object(), config in any_object()) {
        // `z` sorts last: a new time that changes the order of entries is stored, also by the real server.
        let live = store(None, &before, "other", EARLIER).filter(is_valid);
        let live = store(live.as_ref(), &earlier, "z", EARLIER).filter(is_valid).or(live);
        if let Some(once) = store(live.as_ref(), &config, "z", EARLIER).filter(|_| is_valid(&config)) {
            prop_assert_eq!(store(Some(&once), &config, "z", NOW), Some(once));
        }
    }
}
