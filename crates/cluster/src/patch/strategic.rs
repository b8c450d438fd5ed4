//! Strategic merge patch: a merge that follows the merge strategy of each list in a built-in type.

use crate::json::{List, Map, Value};

use super::error::PatchError;
use super::lists::{holds_maps, merge_list};
use super::merge::drop_nulls;
use super::order::{Order, expected, is_deletion, key_of, left_behind, split};
use super::strategy::{lookup, lookup_list};
use crate::go;
use crate::types::Shape;

pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

type Fields = Map;

/// `live` with `patch` merged into it. Only for built-in types.
pub(crate) fn strategic(live: &Value, patch: &Value, shape: Shape<'_>) -> Result<Value, PatchError> {
    if !matches!(shape, Shape::Builtin { .. }) {
        return Err(PatchError::BadRequest(
            "strategic merge patch format is not supported".to_owned(),
        ));
    }
    let patch = match patch {
        Value::Object(fields) => fields.clone(),
        Value::Null => Fields::new(),
        other => {
            let kind = go::json_kind(other);
            let why =
                format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}");
            return Err(PatchError::BadRequest(why));
        }
    };
    let live = live.as_object().cloned().unwrap_or_default();
    merge_fields(live, patch, shape).map(Value::Object)
}

/// Merges two maps, unless a `$patch` directive says otherwise.
pub(super) fn merge_fields(
    mut live: Fields,
    mut patch: Fields,
    shape: Shape<'_>,
) -> Result<Fields, PatchError> {
    match patch.get(DIRECTIVE).cloned() {
        None => {}
        Some(directive) if directive == "replace" => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some(directive) if directive == "delete" => return Ok(Fields::new()),
        Some(directive) => return Err(unknown_directive(&directive, &Value::Object(patch))),
    }
    retain_keys(&mut live, &mut patch)?;
    merge_ordered_lists(&mut live, &mut patch, shape)?;
    for (key, new) in patch {
        let (name, deletes) = match key.strip_prefix(DELETE_FROM_LIST) {
            Some(_) => (
                name_after(&key, DELETE_FROM_LIST, "invalid patch format of primitive list")?.into(),
                true,
            ),
            None => (key, false),
        };
        if new.is_null() {
            live.remove(&name);
            continue;
        }
        let merged = match (live.get(&name), new) {
            (Some(Value::Object(old)), Value::Object(fields)) => {
                let field = lookup(shape, &name)?;
                Some(Value::Object(match field.strategy() {
                    "replace" => fields,
                    _ => merge_fields(old.clone(), fields, field.shape)?,
                }))
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                let list = lookup_list(shape, &name)?;
                Some(merge_list(old.to_vec(), new.into_vec(), list, deletes)?.into())
            }
            _ if deletes => continue,
            (_, mut new) => {
                drop_nulls(&mut new);
                without_directives(new)
            }
        };
        match merged {
            // Most of a patch changes nothing, and unchanged values stay shared.
            Some(merged) if live.get(&name) == Some(&merged) => {}
            Some(merged) => drop(live.insert(name, merged)),
            None => drop(live.remove(&name)),
        }
    }
    Ok(live)
}

/// `$retainKeys`: fields that are not in the list are removed, and the patch must not have others.
fn retain_keys(live: &mut Fields, patch: &mut Fields) -> Result<(), PatchError> {
    let Some(kept) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let bad = || PatchError::BadRequest("invalid patch format of retainKeys".to_owned());
    let Value::Array(kept) = kept else {
        return Err(bad());
    };
    let is_kept = |key: &str| kept.iter().any(|kept| kept == key);
    let is_directive = |key: &str| key.starts_with(DELETE_FROM_LIST) || key.starts_with(ELEMENT_ORDER);
    if patch
        .iter()
        .any(|(key, value)| !value.is_null() && !is_directive(key) && !is_kept(key))
    {
        return Err(bad());
    }
    live.retain(|key, _| is_kept(key));
    Ok(())
}

/// Lists with a `$setElementOrder` are merged first, together with it.
fn merge_ordered_lists(live: &mut Fields, patch: &mut Fields, shape: Shape<'_>) -> Result<(), PatchError> {
    let keys: Vec<_> = patch
        .keys()
        .filter(|key| key.starts_with(ELEMENT_ORDER))
        .cloned()
        .collect();
    for key in keys {
        let empty_list = Value::Array(List::default());
        let wanted = match patch.remove(&key) {
            Some(Value::Array(wanted)) => wanted,
            other => return Err(expected(&empty_list, &other.unwrap_or_default())),
        };
        let name = name_after(
            &key,
            ELEMENT_ORDER,
            "invalid patch format of setElementOrder list",
        )?;
        let list_of = |value: Option<&Value>| match value {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items.to_vec())),
            Some(other) => Err(expected(&empty_list, other)),
        };
        let (old, new) = (list_of(live.get(name))?, list_of(patch.get(name))?);
        let list = lookup_list(shape, name)?;
        let items = new.clone().unwrap_or_default();
        check_order(&items, &wanted, list.key())?;
        let merged = match (old.clone(), new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
            (Some(old), Some(new)) => merge_list(old, new, list, false)?,
        };
        let old = old.unwrap_or_default();
        let (named, rest) = split(merged, &wanted, list.key())?;
        let order = Order {
            key: list.key(),
            maps: holds_maps(&old, &items)?,
        };
        let live_order = if list.merges() {
            left_behind(&old, &items, list.key())?
        } else {
            old
        };
        let arranged = order.arrange(named, rest, &wanted, &live_order)?;
        patch.remove(name);
        live.insert(name.into(), arranged.into());
    }
    Ok(())
}

/// The patch may have only items that are in the order list, and in that order.
fn check_order(patch: &[Value], wanted: &[Value], key: &str) -> Result<(), PatchError> {
    if patch.is_empty() || wanted.is_empty() {
        return Ok(());
    }
    if let Some(other) = patch.iter().find(|item| !key.is_empty() && !item.is_object()) {
        return Err(expected(&Value::Object(Fields::new()), other));
    }
    let patched: Vec<_> = patch
        .iter()
        .filter(|item| key.is_empty() || !is_deletion(item))
        .collect();
    let (mut pending, mut wanted_left) = (patched.as_slice(), wanted);
    while let ([next, others @ ..], [first, rest @ ..]) = (pending, wanted_left) {
        if next.get(DIRECTIVE).is_some() {
            pending = others;
            continue;
        }
        let is_same = if key.is_empty() {
            *next == first
        } else {
            key_of(next, key)? == key_of(first, key)?
        };
        if is_same {
            pending = others;
        }
        wanted_left = rest;
    }
    if pending.is_empty() {
        return Ok(());
    }
    Err(PatchError::Internal(format!(
        "The order in patch list:\n{}\n doesn't match {ELEMENT_ORDER} list:\n{}\n",
        go::plain_list(patch),
        go::plain_list(wanted)
    )))
}

/// `$setElementOrder/containers` is about `containers`.
fn name_after<'k>(key: &'k str, directive: &str, otherwise: &str) -> Result<&'k str, PatchError> {
    match key.split_once('/') {
        Some((found, name)) if found == directive => Ok(name),
        _ => Err(PatchError::BadRequest(otherwise.to_owned())),
    }
}

/// A new value without the maps in it that are only directives.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        value if !has_directives(&value) => Some(value),
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .filter_map(|(name, value)| Some((name, without_directives(value)?)));
            Some(Value::Object(fields.collect()))
        }
        Value::Array(items) => Some(Value::Array(
            items.into_iter().filter_map(without_directives).collect(),
        )),
        other => Some(other),
    }
}

fn has_directives(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.contains_key(DIRECTIVE) || fields.values().any(has_directives),
        Value::Array(items) => items.iter().any(has_directives),
        _ => false,
    }
}

pub(super) fn unknown_directive(directive: &Value, map: &Value) -> PatchError {
    PatchError::Internal(format!(
        "unknown patch type: {} in map: {}",
        go::plain(directive),
        go::plain(map)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use crate::types::Kind;
    use proptest::prelude::*;
    use rstest::rstest;

    fn template() -> Value {
        json!({"metadata": {"labels": {"k": "1", "l": "1"}, "finalizers": ["x/a", "x/b"]}, "template": {"spec": {
            "containers": [{"name": "a", "args": ["1"], "env": [{"name": "X", "value": "1"}]}, {"name": "b"}, {"name": "c"}],
            "volumes": [{"name": "v", "configMap": {"name": "m"}}],
            "nodeSelector": {"n": "1"}, "tolerations": [{"key": "t"}],
        }}})
    }

    fn patched(patch: &Value) -> Result<Value, PatchError> {
        let kind = Kind::Struct("io.k8s.api.core.v1.PodTemplate".into());
        strategic(
            &template(),
            patch,
            Shape::Builtin {
                kind: &kind,
                field: None,
            },
        )
    }

    /// The order of containers on the real server after each patch to its pod template.
    #[rstest]
    #[case(json!({"containers": [{"name": "d"}]}), &["d", "a", "b", "c"])]
    #[case(json!({"containers": [{"name": "c"}, {"name": "d"}, {"name": "a"}]}), &["b", "c", "d", "a"])]
    #[case(json!({"containers": [{"name": "b", "$patch": "delete"}]}), &["a", "c"])]
    #[case(json!({"containers": [{"name": "d"}, {"$patch": "replace"}]}), &["d"])]
    #[case(json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}, {"name": "b"}]}), &["c", "a", "b"])]
    #[case(json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "d"}, {"name": "a"}],
        "containers": [{"name": "d"}, {"name": "b", "$patch": "delete"}]}), &["c", "d", "a"])]
    #[case(json!({"$setElementOrder/containers": [{"name": "d"}], "containers": [{"name": "d"}]}), &["d", "a", "b", "c"])]
    fn merged_lists_keep_an_order(#[case] spec: Value, #[case] expected: &[&str]) {
        let patched = patched(&json!({"template": {"spec": spec}})).unwrap();
        let containers = patched["template"]["spec"]["containers"].as_array().unwrap();
        assert_eq!(
            containers
                .iter()
                .map(|container| container["name"].as_str().unwrap())
                .collect::<Vec<_>>(),
            expected
        );
    }

    /// The value in the real server's pod template at a path after each patch.
    #[rstest]
    #[case(json!({"metadata": {"finalizers": ["x/c"]}}), "/metadata/finalizers", json!(["x/c", "x/a", "x/b"]))]
    #[case(json!({"metadata": {"finalizers": ["x/b"]}}), "/metadata/finalizers", json!(["x/a", "x/b"]))]
    #[case(json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a"]}}), "/metadata/finalizers", json!(["x/b"]))]
    #[case(json!({"metadata": {"$setElementOrder/finalizers": ["x/c", "x/b", "x/a"], "finalizers": ["x/c"]}}),
        "/metadata/finalizers", json!(["x/c", "x/b", "x/a"]))]
    #[case(json!({"metadata": {"labels": {"k": null, "m": "1"}}}), "/metadata/labels", json!({"l": "1", "m": "1"}))]
    #[case(json!({"metadata": {"labels": {"$patch": "replace", "m": "1"}}}), "/metadata/labels", json!({"m": "1"}))]
    #[case(json!({"metadata": {"labels": {"$patch": "delete"}}}), "/metadata/labels", json!({}))]
    #[case(json!({"metadata": {"labels": {"$retainKeys": ["l", "m"], "m": "1"}}}), "/metadata/labels", json!({"l": "1", "m": "1"}))]
    #[case(json!({"template": {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}]}}}),
        "/template/spec/volumes", json!([{"name": "v", "emptyDir": {}}]))]
    #[case(json!({"template": {"spec": {"nodeSelector": {"m": "1"}}}}), "/template/spec/nodeSelector", json!({"m": "1", "n": "1"}))]
    #[case(json!({"template": {"spec": {"tolerations": [{"key": "u"}]}}}), "/template/spec/tolerations", json!([{"key": "u"}]))]
    #[case(json!({"template": {"spec": {"containers": [{"name": "a", "args": ["2"], "env": [{"name": "X", "value": null}]}]}}}),
        "/template/spec/containers/0", json!({"name": "a", "args": ["2"], "env": [{"name": "X"}]}))]
    #[case(json!(null), "/template", template()["template"].clone())]
    fn fields_merge_as_their_types_say(#[case] patch: Value, #[case] place: &str, #[case] expected: Value) {
        assert_eq!(patched(&patch).unwrap().pointer(place), Some(&expected));
    }

    /// The messages of the real server; those without a reason come with 500.
    #[rstest]
    #[case(json!([]), 400, "json: cannot unmarshal array into Go value of type map[string]interface {}")]
    #[case(json!({"template": {"spec": {"$setElementOrder": []}}}), 400, "invalid patch format of setElementOrder list")]
    #[case(json!({"metadata": {"$deleteFromPrimitiveList": ["a"]}}), 400, "invalid patch format of primitive list")]
    #[case(json!({"metadata": {"$retainKeys": "x"}}), 400, "invalid patch format of retainKeys")]
    #[case(json!({"metadata": {"$retainKeys": ["name"], "labels": {}}}), 400, "invalid patch format of retainKeys")]
    #[case(json!({"template": {"$patch": "bogus"}}), 500, "unknown patch type: bogus in map: map[$patch:bogus]")]
    #[case(json!({"template": {"spec": {"containers": [{"image": "x"}]}}}), 500,
        "map: map[image:x] does not contain declared merge key: name")]
    #[case(json!({"template": {"spec": {"volumes": [{"$patch": "merge"}]}}}), 500, "merging lists cannot yet be specified in the patch")]
    #[case(json!({"template": {"spec": {"volumes": [null]}}}), 500,
        "list element types are not identical: [[map[configMap:map[name:m] name:v]] [<nil>]]")]
    #[case(json!({"template": {"spec": {"$setElementOrder/volumes": "x"}}}), 500, "expected a []interface {}, but received a string")]
    #[case(json!({"template": {"spec": {"$setElementOrder/volumes": ["x"]}}}), 500, "value for key 0 is not a map")]
    #[case(json!({"template": {"spec": {"$setElementOrder/foo": []}}}), 500,
        "unable to find api field in struct PodSpec for the json field \"foo\"")]
    #[case(json!({"template": {"spec": {"$setElementOrder/volumes": [{"name": "a"}], "volumes": [{"name": "c"}]}}}), 500,
        "The order in patch list:\n[map[name:c]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n")]
    fn a_bad_patch_is_refused(#[case] patch: Value, #[case] code: u16, #[case] message: &str) {
        let status = crate::status::Status::from(patched(&patch).unwrap_err());
        assert_eq!((status.code, status.message.as_str()), (code, message));
    }

    proptest! {
        #[test]
        fn no_patch_panics(
            live in super::super::arbitrary::pod_template(),
            patch in super::super::arbitrary::pod_template_patch(),
        ) {
            let kind = Kind::Struct("io.k8s.api.core.v1.PodTemplate".into());
            let shape = Shape::Builtin { kind: &kind, field: None };
            let _ = strategic(&live, &patch, shape);
            let same = strategic(&live, &json!({}), shape).unwrap();
            prop_assert_eq!(same, if live.is_object() { live } else { json!({}) });
        }
    }
}
