//! JSON merge patch (RFC 7386), with the quirks of the real server's library.

use crate::json::{Map, Value};

use super::error::PatchError;
use crate::go;

/// `live` with `patch` merged into it.
pub(crate) fn merge(live: &Value, patch: &Value) -> Result<Value, PatchError> {
    let fields = match patch {
        Value::Object(fields) => fields.clone(),
        Value::Null => return Err(PatchError::BadRequest("Invalid JSON Patch".to_owned())),
        other => {
            return Err(PatchError::BadRequest(format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                go::json_kind(other)
            )));
        }
    };
    let mut merged = live.as_object().cloned().unwrap_or_default();
    merge_fields(&mut merged, fields);
    Ok(Value::Object(merged))
}

fn merge_fields(live: &mut Map, patch: Map) {
    for (name, new) in patch {
        match (live.get_mut(&name), new) {
            (_, Value::Null) => {
                live.remove(&name);
            }
            (Some(Value::Object(old)), Value::Object(fields)) => merge_fields(old, fields),
            // Upstream keeps nulls inside a list that replaces an object, but not inside one that replaces anything else.
            (Some(old @ Value::Object(_)), new) => *old = new,
            (_, mut new) => {
                drop_nulls(&mut new);
                live.insert(name, new);
            }
        }
    }
}

/// A null has nothing to remove in a new value.
pub(super) fn drop_nulls(value: &mut Value) {
    if has_nulls(value) {
        drop_them(value);
    }
}

fn has_nulls(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().any(|value| value.is_null() || has_nulls(value)),
        Value::Array(items) => items.iter().any(has_nulls),
        _ => false,
    }
}

fn drop_them(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_them);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_them),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    /// The resulting custom object on the real server after each patch.
    #[rstest]
    #[case(json!({"a": null}), json!({"l": [1]}))]
    #[case(json!({"a": {"c": 1}}), json!({"a": {"b": 1, "c": 1}, "l": [1]}))]
    #[case(json!({"a": "s"}), json!({"a": "s", "l": [1]}))]
    #[case(json!({"l": {"x": null, "y": 1}}), json!({"a": {"b": 1}, "l": {"y": 1}}))]
    #[case(json!({"l": [{"x": null}, null]}), json!({"a": {"b": 1}, "l": [{}, null]}))]
    #[case(json!({"a": [{"x": null}]}), json!({"a": [{"x": null}], "l": [1]}))]
    #[case(json!({"q": {"x": null, "y": {"z": null}}}), json!({"a": {"b": 1}, "l": [1], "q": {"y": {}}}))]
    fn a_patch_is_merged(#[case] patch: Value, #[case] expected: Value) {
        assert_eq!(merge(&json!({"a": {"b": 1}, "l": [1]}), &patch), Ok(expected));
    }

    /// The real server answers 400 with these texts.
    #[rstest]
    #[case(json!(null), "Invalid JSON Patch")]
    #[case(json!([]), "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}")]
    #[case(json!(1), "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}")]
    fn what_is_no_object_is_refused(#[case] patch: Value, #[case] expected: &str) {
        assert_eq!(
            merge(&json!({}), &patch),
            Err(PatchError::BadRequest(expected.to_owned()))
        );
    }
}
