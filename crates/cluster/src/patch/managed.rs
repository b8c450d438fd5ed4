//! Field ownership after a write that is not an apply.
//!
//! The server calls [`update`] once the new object is decoded and defaulted, before its strategy changes it, and [`keep_times`] once it is
//! final.

use std::sync::{Arc, LazyLock};

use crate::json::{Map, Name, Value};

use super::fields::FieldSet;
use super::managers::{Entry, Id, Managers, clear};
use super::owned::Owned;
use super::transition::Transition;
use super::typed::{Comparison, compare, trace};
use crate::object::Object;
use crate::types::{Kind, Shape, decode};

pub(crate) use super::apply::apply;
pub(crate) use super::scale::scale;

/// System fields that are never owned.
const UNOWNED: [&str; 12] = [
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
];

static BOOKKEEPING: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_paths(&UNOWNED));

/// The properties of a write that affect ownership.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    /// The `fieldManager` of the request, or the prefix of its user agent.
    pub(crate) manager: &'a str,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    /// Dotted paths that this endpoint ignores, so that it gives no ownership of them: `status`, or `spec` on `/status`.
    pub(crate) reset: &'static [&'static str],
    /// RFC 3339, to the second.
    pub(crate) now: &'a str,
}

impl Write<'_> {
    pub(super) fn reset_fields(&self) -> FieldSet {
        FieldSet::of_paths(self.reset)
    }
}

/// Gives ownership of the changes from `old` to `new` to the manager and removes it from all others. `old` is `None` for a create. Removes
/// `managedFields` from `new`.
pub(crate) fn update(old: Option<&Object>, new: &mut Value, write: &Write<'_>, shape: Shape<'_>) -> Managers {
    let mut managers = inherited(old, new, write, shape);
    clear(new);
    let is_new = old.is_none_or(|old| old["metadata"]["uid"].as_str().is_none_or(str::is_empty));
    // Once an object has no managers, only an apply restores them.
    if !managers.is_empty() || is_new {
        match old {
            Some(old) => record(&mut managers, old, new, write, shape),
            None => record(&mut managers, &empty(shape), new, write, shape),
        }
    }
    managers
}

/// The managers before the write: those of the request if it has valid ones, else those of the live object.
fn inherited(old: Option<&Object>, new: &Value, write: &Write<'_>, shape: Shape<'_>) -> Managers {
    let live = || old.map(|old| old.managers.read_again()).unwrap_or_default();
    // A subresource cannot change ownership.
    if !write.subresource.is_empty() {
        return live();
    }
    let is_reset = match new["metadata"]["managedFields"].as_array().map(Vec::as_slice) {
        // Custom objects lose an empty list during decoding.
        Some([]) => matches!(shape, Shape::Builtin { .. }),
        Some([only]) => only.as_object().is_some_and(Map::is_empty),
        _ => false,
    };
    match Managers::of(new) {
        _ if is_reset => Managers::default(),
        Ok(managers) if !managers.is_empty() => managers,
        _ => live(),
    }
}

/// Moves ownership of the changes between two objects to the writer.
pub(super) fn record(managers: &mut Managers, old: &Value, new: &Value, write: &Write<'_>, shape: Shape<'_>) {
    managers.forget_other_versions(write.api_version);
    let transition = Transition::of(managers, write, || trace(old, new, shape));
    let known = transition
        .as_ref()
        .and_then(|transition| transition.outcome(managers, write));
    let mut find_out = || hand_over(managers, compare(old, new, shape).without(write.reset), write);
    if let Some(after) = known {
        debug_assert!({
            find_out();
            *managers == after
        });
        *managers = after;
        return;
    }
    let has_gained = find_out();
    if let Some(transition) = transition {
        transition.remember(managers, has_gained);
    }
}

/// The same for a known change. Returns whether the writer has gained anything.
fn hand_over(managers: &mut Managers, changed: Comparison, write: &Write<'_>) -> bool {
    let Comparison {
        removed,
        modified: mut taken,
        added,
    } = changed;
    taken.add(added);
    // Skips the writer: it would only get the fields back.
    let id = Id::update(write.manager, write.api_version, write.subresource);
    let own = managers.remove(&id);
    managers.subtract(&[&taken, &removed]);
    let unowned = if taken.meets(&BOOKKEEPING) {
        taken.intersection(&BOOKKEEPING)
    } else {
        FieldSet::default()
    };
    let gained = owned(taken);
    let own = own.map(|mut own| {
        own.owned.subtract(&[&unowned, &removed]);
        own
    });
    let has_gained = !gained.is_empty();
    if !has_gained {
        if let Some(own) = own.filter(|own| !own.owned.is_empty()) {
            managers.insert(id, own);
        }
    } else {
        let owned = match own {
            Some(mut own) => {
                own.owned.add(gained);
                own.owned
            }
            None => Owned::of(gained),
        };
        let entry = Entry {
            owned,
            api_version: write.api_version.into(),
            time: Some(write.now.into()),
        };
        managers.insert(id, entry);
    }
    managers.forget_the_oldest();
    has_gained
}

/// The part of a set that can be owned.
pub(super) fn owned(mut set: FieldSet) -> FieldSet {
    set.subtract(&BOOKKEEPING);
    set
}

/// The value that the real server compares a new object with: a Go struct contains its inner structs from the start.
pub(super) fn empty(shape: Shape<'_>) -> Value {
    let decoded = match shape {
        Shape::Builtin {
            kind: Kind::Struct(name),
            ..
        } => decode(name, &Value::Object(Map::new())),
        _ => None,
    };
    match decoded {
        Some(Ok(decoded)) => decoded.value,
        _ => Value::Object(Map::new()),
    }
}

/// The managers of `new`, with the old timestamps if nothing else changed, so that a write without effect stays one.
pub(crate) fn keep_times(old: &Object, new: &Value, managers: Managers) -> Arc<Managers> {
    let is_same = !old.managers.is_empty()
        && old.managers.is_same_but_for_times(&managers)
        && same_but_for(&["metadata"], old, new)
        && same_but_for(&["resourceVersion"], &old["metadata"], &new["metadata"]);
    match is_same {
        true => old.managers.clone(),
        false => Arc::new(managers),
    }
}

/// Whether two objects have the same fields, except for these.
fn same_but_for(names: &[&str], left: &Value, right: &Value) -> bool {
    fn fields<'v>(object: &'v Value, names: &[&str]) -> impl Iterator<Item = (&'v Name, &'v Value)> {
        let fields = object.as_object().into_iter().flatten();
        fields.filter(|(name, _)| !names.contains(&name.as_str()))
    }
    fields(left, names).eq(fields(right, names))
}

/// The same for objects that contain their `managedFields`, as in recordings.
#[cfg(test)]
pub(super) mod whole {
    use super::*;
    use crate::patch::conflict::ApplyError;

    pub(in crate::patch) fn kept(object: &Value) -> Object {
        let managers = Managers::of(object).unwrap_or_default();
        let mut value = object.clone();
        clear(&mut value);
        Object::new(value, managers)
    }

    pub(in crate::patch) fn update(
        old: Option<&Value>,
        new: &mut Value,
        write: &Write<'_>,
        shape: Shape<'_>,
    ) {
        let old = old.map(kept);
        super::update(old.as_ref(), new, write, shape).write(new);
    }

    pub(in crate::patch) fn keep_times(old: &Value, new: &mut Value) {
        let made = kept(new);
        super::keep_times(&kept(old), &made, Managers::clone(&made.managers)).write(new);
    }

    pub(in crate::patch) fn apply(
        live: Option<&Value>,
        config: &Value,
        force: bool,
        write: &Write<'_>,
        shape: Shape<'_>,
    ) -> Result<Value, ApplyError> {
        let live = live.map(kept);
        let (mut object, managers) = super::apply(live.as_ref(), config, force, write, shape)?;
        managers.write(&mut object);
        Ok(object)
    }

    pub(in crate::patch) fn scale(old: &Value, new: &mut Value, write: &Write<'_>, replicas: &[&str]) {
        super::scale(&kept(old), new, write, replicas).write(new);
    }
}

#[cfg(test)]
mod tests {
    use super::whole::{keep_times, update};
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    const NOW: &str = "2026-01-02T00:00:00Z";
    const EARLIER: &str = "2026-01-01T00:00:00Z";

    fn write<'a>(manager: &'a str, now: &'a str) -> Write<'a> {
        Write {
            manager,
            subresource: "",
            api_version: "v1",
            kind: "ConfigMap",
            reset: &[],
            now,
        }
    }

    fn entry(manager: &str, time: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    /// A ConfigMap with two owners.
    fn config() -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "2", "y": "1"}, "metadata": {"name": "own", "uid": "u",
            "managedFields": [
                entry("one", EARLIER, json!({"f:data": {".": {}, "f:y": {}}})),
                entry("two", EARLIER, json!({"f:data": {"f:x": {}}})),
            ],
        }})
    }

    fn updated(old: Option<&Value>, mut new: Value, write: &Write<'_>, name: &str) -> Value {
        let kind = Kind::Struct(name.into());
        update(
            old,
            &mut new,
            write,
            Shape::Builtin {
                kind: &kind,
                field: None,
            },
        );
        std::mem::take(&mut new["metadata"]["managedFields"])
    }

    const CONFIG_MAP: &str = "io.k8s.api.core.v1.ConfigMap";

    /// The real server's entries after each write to this ConfigMap.
    #[rstest]
    #[case::no_effect("three", json!({"x": "2", "y": "1"}), json!([
        entry("one", EARLIER, json!({"f:data": {".": {}, "f:y": {}}})), entry("two", EARLIER, json!({"f:data": {"f:x": {}}}))]))]
    #[case::change("three", json!({"x": "3", "y": "1"}), json!([
        entry("one", EARLIER, json!({"f:data": {".": {}, "f:y": {}}})), entry("three", NOW, json!({"f:data": {"f:x": {}}}))]))]
    #[case::change_of_ones_own("two", json!({"x": "3", "y": "1"}), json!([
        entry("one", EARLIER, json!({"f:data": {".": {}, "f:y": {}}})), entry("two", NOW, json!({"f:data": {"f:x": {}}}))]))]
    #[case::removal("three", json!({"x": "2"}), json!([
        entry("one", EARLIER, json!({"f:data": {}})), entry("two", EARLIER, json!({"f:data": {"f:x": {}}}))]))]
    #[case::addition("two", json!({"x": "2", "y": "1", "z": "1"}), json!([
        entry("one", EARLIER, json!({"f:data": {".": {}, "f:y": {}}})), entry("two", NOW, json!({"f:data": {"f:x": {}, "f:z": {}}}))]))]
    fn what_changes_changes_hands(#[case] manager: &str, #[case] data: Value, #[case] expected: Value) {
        let mut new = config();
        new["data"] = data;
        assert_eq!(
            updated(Some(&config()), new, &write(manager, NOW), CONFIG_MAP),
            expected
        );
    }

    /// From the real server: a list with one empty entry clears all managers, an invalid one changes nothing.
    #[rstest]
    #[case(json!([{}]), json!(null))]
    #[case(json!([]), json!(null))]
    #[case(json!(null), config()["metadata"]["managedFields"].clone())]
    #[case(json!([{"manager": "bogus", "operation": "Nope"}]), config()["metadata"]["managedFields"].clone())]
    #[case(json!([entry("given", EARLIER, json!({"f:data": {"f:x": {}}}))]), json!([entry("given", EARLIER, json!({"f:data": {"f:x": {}}}))]))]
    fn a_request_may_bring_its_own_managers(#[case] given: Value, #[case] expected: Value) {
        let mut new = config();
        new["metadata"]["managedFields"] = given;
        assert_eq!(
            updated(Some(&config()), new.clone(), &write("three", NOW), CONFIG_MAP),
            expected
        );
        // But not through a subresource.
        let through_status = Write {
            subresource: "status",
            ..write("three", NOW)
        };
        assert_eq!(
            updated(Some(&config()), new, &through_status, CONFIG_MAP),
            config()["metadata"]["managedFields"]
        );
    }

    #[test]
    fn an_object_without_managers_stays_without() {
        let mut old = config();
        clear(&mut old);
        let mut new = old.clone();
        new["data"]["z"] = "1".into();
        assert_eq!(
            updated(Some(&old), new, &write("three", NOW), CONFIG_MAP),
            Value::Null
        );
    }

    /// The entry of the real server for a StatefulSet with these fields.
    #[test]
    fn the_maker_owns_what_it_made_but_not_the_bookkeeping() {
        let new = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "s1", "namespace": "ns", "uid": "u", "resourceVersion": "1", "generation": 1,
                "creationTimestamp": NOW, "labels": {"app": "s1"}},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "s1"}}, "serviceName": "s1",
                "template": {"metadata": {"labels": {"app": "s1"}}, "spec": {
                    "containers": [{"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}], "resources": {}}],
                    "securityContext": {}}},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}},
            "status": {"replicas": 3}});
        let write = Write {
            api_version: "apps/v1",
            kind: "StatefulSet",
            reset: &["status"],
            ..write("maker", NOW)
        };
        let managed = updated(None, new, &write, "io.k8s.api.apps.v1.StatefulSet");
        assert_eq!(
            managed[0]["fieldsV1"],
            json!({
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {"f:replicas": {}, "f:selector": {}, "f:serviceName": {},
                    "f:template": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {
                        "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:resources": {}, "f:ports": {".": {},
                            "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}}}}},
                        "f:securityContext": {}}},
                    "f:updateStrategy": {"f:rollingUpdate": {".": {}, "f:partition": {}}, "f:type": {}}},
            })
        );
    }

    #[rstest]
    #[case(json!({"x": "2", "y": "1"}), EARLIER)]
    #[case(json!({"x": "2", "y": "2"}), NOW)]
    fn times_are_kept_if_nothing_else_is_new(#[case] data: Value, #[case] expected: &str) {
        let mut new = config();
        new["data"] = data;
        new["metadata"]["managedFields"][1]["time"] = NOW.into();
        keep_times(&config(), &mut new);
        assert_eq!(new["metadata"]["managedFields"][1]["time"], expected);
    }
}
