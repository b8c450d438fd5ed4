//! Reading and filling the fields of JSON that may have any shape.
//!
//! After decoding, absent, null and (for strings) empty all mean "not set", as they do in Go. Nothing here panics on a
//! value of the wrong type: it is read as not set, and what cannot be filled is left alone.

use crate::json::{Map, Value};

/// Sets a field that is absent or null.
pub(super) fn fill(at: &mut Value, name: &str, default: impl Into<Value>) {
    if let Value::Object(fields) = at {
        // Looked at first: whoever asks to write a field gets a map of its own.
        if fields.get(name).is_none_or(Value::is_null) {
            fields.insert(name.into(), default.into());
        }
    }
}

/// Sets a string that is absent, null or empty.
pub(super) fn fill_text(at: &mut Value, name: &str, default: &str) {
    if text(at, name).is_empty() {
        set(at, name, default);
    }
}

/// Sets a field, whatever it was.
pub(super) fn set(at: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = at {
        fields.insert(name.into(), value.into());
    }
}

/// Takes a field away.
pub(super) fn unset(at: &mut Value, name: &str) -> Option<Value> {
    at.as_object_mut()?.remove(name)
}

/// Makes a field what it is in another object, absent included.
pub(super) fn copy(from: &Value, to: &mut Value, name: &str) {
    match from.get(name) {
        // Most of what is copied is what is there already, and comparing costs less than making it anew.
        Some(value) if to.get(name) == Some(value) => {}
        Some(value) => set(to, name, value.clone()),
        None => {
            unset(to, name);
        }
    }
}

/// An inner object that is there.
pub(super) fn part<'v>(at: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    at.get_mut(name).filter(|inner| inner.is_object())
}

/// An inner object, made if it is not there. `None` where there is no room for one.
pub(super) fn made<'v>(at: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    fill(at, name, Map::new());
    part(at, name)
}

/// The elements of a list, none if it is not there.
pub(super) fn each<'v>(at: &'v mut Value, name: &str) -> impl Iterator<Item = &'v mut Value> {
    at.get_mut(name)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

/// The elements of a list, none if it is not there.
pub(super) fn items<'v>(at: &'v Value, name: &str) -> &'v [Value] {
    at[name].as_array().map_or(&[], Vec::as_slice)
}

/// The entries of a map by key, none if it is not there.
pub(super) fn entries<'v>(at: &'v Value, name: &str) -> impl Iterator<Item = (&'v str, &'v Value)> {
    at[name]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value))
}

/// A string, empty if it is not there.
pub(super) fn text<'v>(at: &'v Value, name: &str) -> &'v str {
    at[name].as_str().unwrap_or_default()
}

/// A whole number, if it is there.
pub(super) fn int(at: &Value, name: &str) -> Option<i64> {
    at[name].as_i64()
}

/// A flag, false if it is not there.
pub(super) fn flag(at: &Value, name: &str) -> bool {
    at[name].as_bool().unwrap_or_default()
}

/// Whether a field is there at all.
pub(super) fn has(at: &Value, name: &str) -> bool {
    !at[name].is_null()
}

/// Whether two values are the same to Go's semantic equality: absent, null and empty lists or maps are one thing.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        _ if left.shares(right) => true,
        (Value::Object(left), Value::Object(right)) => {
            let names = left
                .keys()
                .chain(right.keys().filter(|name| !left.contains_key(name)));
            names.into_iter().all(|name| {
                same(
                    left.get(name).unwrap_or(&Value::Null),
                    right.get(name).unwrap_or(&Value::Null),
                )
            })
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Null, Value::Array(items)) | (Value::Array(items), Value::Null) => items.is_empty(),
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    #[rstest]
    #[case(json!({}), json!({"a": 1}))]
    #[case(json!({"a": null}), json!({"a": 1}))]
    #[case(json!({"a": 0}), json!({"a": 0}))]
    #[case(json!("text"), json!("text"))]
    fn only_what_is_not_set_is_filled(#[case] mut given: Value, #[case] expected: Value) {
        fill(&mut given, "a", 1);
        assert_eq!(given, expected);
    }

    #[rstest]
    #[case(json!({"a": []}), json!({}), true)]
    #[case(json!({"a": {}}), json!({}), false)]
    #[case(json!({"a": {"b": null}}), json!({"a": {}}), true)]
    #[case(json!([1, 2]), json!([2, 1]), false)]
    fn equality_is_as_go_sees_it(#[case] left: Value, #[case] right: Value, #[case] expected: bool) {
        assert_eq!((same(&left, &right), same(&right, &left)), (expected, expected));
    }
}
