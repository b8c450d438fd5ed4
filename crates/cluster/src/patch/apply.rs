//! Server-side apply: a client sends the fields it wants, and owns exactly those.

use std::collections::BTreeMap;

use crate::json::{Map, Value, json};

use super::conflict::{ApplyError, Found, conflicts};
use super::element::same;
use super::fields::FieldSet;
use super::last_applied;
use super::managed::{Write, empty, owned, record};
use super::managers::{Entry, Id, Managers, clear};
use super::owned::Owned;
use super::typed::{Comparison, compare, join, remove, validate};
use crate::object::Object;
use crate::types::Shape;

/// Owns the fields that no apply has claimed, once the first apply comes.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The object after `config` is applied to `live`, which is `None` for a create, and its managers. It still needs decoding and defaults.
pub(crate) fn apply(
    live: Option<&Object>,
    config: &Value,
    force: bool,
    write: &Write<'_>,
    shape: Shape<'_>,
) -> Result<(Value, Managers), ApplyError> {
    check(config, write)?;
    let known = match live {
        Some(live) => managers_of(live, write, shape),
        None => Managers::default(),
    };
    validate(config, shape).map_err(|why| {
        ApplyError::Internal(format!(
            "failed to create typed patch object ({}): {why}",
            described(config)
        ))
    })?;

    let nothing = json!({"apiVersion": write.api_version, "kind": write.kind});
    let live = live.map_or(&nothing, |live| &*live.value);

    let attempt = Attempt {
        live,
        config,
        write,
        shape,
    };
    let (mut object, managers) = match attempt.run(known.clone(), force) {
        // kubectl may take fields from the manager of its own earlier client-side apply.
        Err(found) if write.manager == "kubectl" => match last_applied::owned(live, write.api_version, shape)
        {
            Some(allowed) => {
                let left: Vec<_> = found.into_iter().filter(|(_, path)| !allowed.has(path)).collect();
                if !left.is_empty() {
                    return Err(conflicts(left));
                }
                attempt.run(known, true).map_err(conflicts)?
            }
            None => return Err(conflicts(found)),
        },
        outcome => outcome.map_err(conflicts)?,
    };
    if write.manager == "kubectl" {
        last_applied::refresh(&mut object, config);
    }
    Ok((object, managers))
}

/// The errors that upstream finds before it looks at the types.
fn check(config: &Value, write: &Write<'_>) -> Result<(), ApplyError> {
    let text = |name: &str| config[name].as_str().unwrap_or_default();
    if text("apiVersion") != write.api_version || text("kind") != write.kind {
        return Err(ApplyError::BadRequest(format!(
            "invalid object type: {}",
            group_version_kind(config)
        )));
    }
    if config["metadata"]["managedFields"].is_array() {
        return Err(ApplyError::BadRequest(
            "metadata.managedFields must be nil".to_owned(),
        ));
    }
    Ok(())
}

/// The managers of `live`. If it has none, every field gets one now, or the first apply would own them all.
fn managers_of(live: &Object, write: &Write<'_>, shape: Shape<'_>) -> Managers {
    let mut managers = live.managers.read_again();
    if managers.is_empty() {
        let before = Write {
            manager: BEFORE_FIRST_APPLY,
            ..*write
        };
        record(&mut managers, &empty(shape), live, &before, shape);
    }
    managers
}

struct Attempt<'a> {
    live: &'a Value,
    config: &'a Value,
    write: &'a Write<'a>,
    shape: Shape<'a>,
}

impl Attempt<'_> {
    fn run(&self, mut managers: Managers, force: bool) -> Result<(Value, Managers), Found> {
        let Self {
            live,
            config,
            write,
            shape,
        } = *self;
        let reset = write.reset_fields();
        let id = Id::apply(write.manager, write.subresource);
        managers.forget_other_versions(write.api_version);
        let last = managers.get(&id).cloned();
        let set = FieldSet::of(config, shape).without(&reset);
        let time = last.as_ref().and_then(|last| last.time.clone());
        let entry = Entry {
            owned: Owned::of(set),
            api_version: write.api_version.into(),
            time,
        };
        managers.insert(id.clone(), entry);

        let merged = join(Some(live), Some(config), shape).unwrap_or_default();
        let object = match &last {
            Some(last) => prune(&merged, &last.owned.set(), &managers, shape),
            None => merged,
        };
        let changed = compare(live, &object, shape).without(write.reset);
        take(&mut managers, &id, &changed, force)?;

        let is_changed = !same(live, &object);
        if let Some(entry) = managers.get_mut(&id) {
            entry.owned = Owned::of(owned(FieldSet::clone(&entry.owned.set())));
            if is_changed {
                entry.time = Some(write.now.into());
            }
        }
        managers.forget_the_dispossessed();
        let mut object = if object.is_object() {
            object
        } else {
            Value::Object(Map::new())
        };
        clear(&mut object);
        Ok((object, managers))
    }
}

/// Takes changed fields from the other managers; without force, it is a conflict if they own any.
fn take(managers: &mut Managers, id: &Id, changed: &Comparison, force: bool) -> Result<(), Found> {
    let taken = changed.modified.union(&changed.added);
    let others = managers.iter().filter(|(other, _)| *other != id);
    let lost: BTreeMap<Id, FieldSet> = others
        .map(|(other, entry)| (other.clone(), entry.owned.set().intersection(&taken)))
        .collect();
    let found: Found = lost
        .iter()
        .flat_map(|(other, set)| set.paths().into_iter().map(|path| (other.clone(), path)))
        .collect();
    if !force && !found.is_empty() {
        return Err(found);
    }
    for (other, set) in lost {
        if let Some(entry) = managers.get_mut(&other) {
            entry.owned.subtract(&[&set, &changed.removed]);
        }
    }
    Ok(())
}

/// Removes fields that this applier applied last time and that have no owner now.
fn prune(merged: &Value, last: &FieldSet, managers: &Managers, shape: Shape<'_>) -> Value {
    if last.is_empty() {
        return merged.clone();
    }
    let named = |set: FieldSet| set.with_named_fields(shape);
    let all = named(FieldSet::of(merged, shape));
    let last = last.with_named_fields(shape);
    let kept = named(FieldSet::of(&remove(merged, &last, shape), shape));
    let owned = managers.iter().fold(FieldSet::default(), |owned, (_, entry)| {
        owned.union(&entry.owned.set())
    });
    let kept = kept.union(&named(owned));
    // Removing a parent removes its children, so compute what that leaves before deciding what to remove.
    let left = named(FieldSet::of(
        &remove(merged, &all.difference(&kept), shape),
        shape,
    ));
    remove(merged, &all.difference(&left).intersection(&last), shape)
}

/// `ns/name; apps/v1, Kind=StatefulSet`
fn described(config: &Value) -> String {
    let text = |name: &str| config["metadata"][name].as_str().unwrap_or_default();
    format!(
        "{}/{}; {}",
        text("namespace"),
        text("name"),
        group_version_kind(config)
    )
}

/// `apps/v1, Kind=StatefulSet`; the core group is empty but keeps its slash.
fn group_version_kind(config: &Value) -> String {
    let text = |name: &str| config[name].as_str().unwrap_or_default();
    let version = text("apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={}", text("kind"))
}

#[cfg(test)]
mod tests {
    use super::super::managed::whole::apply;
    use super::*;
    use crate::status::Status;
    use crate::types::Kind;
    use rstest::rstest;

    const EARLIER: &str = "2026-01-01T00:00:00Z";
    const NOW: &str = "2026-01-02T00:00:00Z";

    fn write<'a>(manager: &'a str, now: &'a str) -> Write<'a> {
        Write {
            manager,
            subresource: "",
            api_version: "v1",
            kind: "PodTemplate",
            reset: &[],
            now,
        }
    }

    fn applied(
        live: Option<&Value>,
        manager: &str,
        now: &str,
        force: bool,
        template: Value,
    ) -> Result<Value, ApplyError> {
        let config = json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "t"}, "template": template});
        let kind = Kind::Struct("io.k8s.api.core.v1.PodTemplate".into());
        apply(
            live,
            &config,
            force,
            &write(manager, now),
            Shape::Builtin {
                kind: &kind,
                field: None,
            },
        )
    }

    fn template(image: &str) -> Value {
        json!({"metadata": {"labels": {"app": "t"}}, "spec": {
            "containers": [{"name": "a", "image": image, "ports": [{"containerPort": 80}]}]}})
    }

    fn live() -> Value {
        applied(None, "one", EARLIER, false, template("i:1")).unwrap()
    }

    fn entries(object: &Value) -> Vec<(&str, &str)> {
        let entries = object["metadata"]["managedFields"].as_array().unwrap().iter();
        entries
            .map(|entry| {
                (
                    entry["manager"].as_str().unwrap(),
                    entry["time"].as_str().unwrap_or("-"),
                )
            })
            .collect()
    }

    /// From the real server: a port's key includes the protocol, although it was not applied and has no owner.
    #[test]
    fn an_applier_owns_exactly_what_it_applied() {
        assert_eq!(
            live()["metadata"]["managedFields"],
            json!([{
                "manager": "one", "operation": "Apply", "apiVersion": "v1", "time": EARLIER, "fieldsType": "FieldsV1",
                "fieldsV1": {"f:template": {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:containers": {
                    "k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:name": {}, "f:ports": {
                        "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}}},
            }])
        );
    }

    /// From the real server: a second applier of the same values owns them too, but no timestamp changes.
    #[test]
    fn the_same_again_changes_nothing_but_may_add_an_owner() {
        assert_eq!(
            applied(Some(&live()), "one", NOW, false, template("i:1")).unwrap(),
            live()
        );
        let shared = applied(Some(&live()), "two", NOW, false, template("i:1")).unwrap();
        assert_eq!(entries(&shared), [("two", "-"), ("one", EARLIER)]);
    }

    /// The answer of the real server.
    #[test]
    fn a_value_of_someone_else_is_a_conflict() {
        let status = Status::from(applied(Some(&live()), "two", NOW, false, template("i:2")).unwrap_err());
        let field = ".template.spec.containers[name=\"a\"].image";
        assert_eq!((status.code, status.reason), (409, "Conflict"));
        assert_eq!(
            status.message,
            format!("Apply failed with 1 conflict: conflict with \"one\": {field}")
        );
        let cause =
            json!({"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": field});
        assert_eq!(status.details, Some(json!({"causes": [cause]})));
    }

    #[test]
    fn force_takes_what_others_own() {
        let taken = applied(Some(&live()), "two", NOW, true, template("i:2")).unwrap();
        assert_eq!(taken["template"]["spec"]["containers"][0]["image"], "i:2");
        let back = applied(Some(&taken), "one", NOW, false, template("i:1")).unwrap_err();
        assert_eq!(
            back.to_string(),
            "Apply failed with 1 conflict: conflict with \"two\": .template.spec.containers[name=\"a\"].image"
        );
    }

    /// From the real server: a field that an applier omits is removed, unless another manager owns it as well.
    #[rstest]
    #[case(json!({"spec": {"containers": [{"name": "a", "image": "i:1"}]}}), "/template/spec/containers/0/ports", None)]
    #[case(json!({"spec": {"containers": [{"name": "a", "image": "i:1"}]}}), "/template/metadata", None)]
    #[case(json!({"spec": {"containers": [{"name": "b", "image": "i:1"}]}}), "/template/spec/containers",
        Some(json!([{"name": "b", "image": "i:1"}])))]
    #[case(json!({}), "/template/spec", None)]
    fn what_is_left_out_goes(#[case] template: Value, #[case] place: &str, #[case] expected: Option<Value>) {
        let object = applied(Some(&live()), "one", NOW, false, template.clone()).unwrap();
        assert_eq!(
            object.pointer(place).filter(|value| !value.is_null()),
            expected.as_ref()
        );
        let shared = applied(Some(&live()), "two", EARLIER, false, self::template("i:1")).unwrap();
        let object = applied(Some(&shared), "one", NOW, false, template).unwrap();
        assert_eq!(object["template"]["metadata"], self::template("")["metadata"]);
    }

    /// From the real server: fields without an owner at the first apply get an owner of their own.
    #[test]
    fn what_was_there_before_the_first_apply_is_owned_by_the_past() {
        let mut old = live();
        clear(&mut old);
        let object = applied(
            Some(&old),
            "one",
            NOW,
            true,
            json!({"spec": {"nodeSelector": {"a": "b"}}}),
        )
        .unwrap();
        assert_eq!(entries(&object), [("one", NOW), ("before-first-apply", NOW)]);
        assert_eq!(
            object["template"]["spec"]["containers"],
            old["template"]["spec"]["containers"]
        );
    }

    /// Messages of the real server.
    #[rstest]
    #[case(json!({"kind": "PodTemplate"}), "invalid object type: /, Kind=PodTemplate")]
    #[case(json!({"apiVersion": "apps/v1", "kind": "Deployment"}), "invalid object type: apps/v1, Kind=Deployment")]
    #[case(json!(null), "invalid object type: /, Kind=")]
    #[case(json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"managedFields": []}}), "metadata.managedFields must be nil")]
    fn what_cannot_be_applied_is_refused(#[case] config: Value, #[case] expected: &str) {
        let result = apply(None, &config, false, &write("m", NOW), Shape::Unknown);
        assert_eq!(result, Err(ApplyError::BadRequest(expected.to_owned())));
    }
}
