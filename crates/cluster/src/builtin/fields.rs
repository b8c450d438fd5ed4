//! Reads and sets the fields of JSON of any shape.
//!
//! After decoding, absent, null and (for strings) empty all mean "not set", as in Go. Nothing here panics on a value of the wrong type: it
//! reads as not set, and setting a field of it does nothing.

use crate::json::{Map, Value};

/// Sets a field that is absent or null.
pub(super) fn fill(at: &mut Value, name: &str, default: impl Into<Value>) {
    if let Value::Object(fields) = at {
        // Check first: mutable access copies a shared map.
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

/// Sets a field, whatever its value was.
pub(super) fn set(at: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = at {
        fields.insert(name.into(), value.into());
    }
}

/// Removes a field.
pub(super) fn unset(at: &mut Value, name: &str) -> Option<Value> {
    at.as_object_mut()?.remove(name)
}

/// Copies a field from another object, including its absence.
pub(super) fn copy(from: &Value, to: &mut Value, name: &str) {
    match from.get(name) {
        // Most fields are equal already, and comparing costs less than copying.
        Some(value) if to.get(name) == Some(value) => {}
        Some(value) => set(to, name, value.clone()),
        None => {
            unset(to, name);
        }
    }
}

/// An inner object, if there is one.
pub(super) fn part<'v>(at: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    at.get_mut(name).filter(|inner| inner.is_object())
}

/// An inner object, created if it is missing. `None` if its parent is not an object.
pub(super) fn made<'v>(at: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    fill(at, name, Map::new());
    part(at, name)
}

/// The elements of a list, none if it is missing.
pub(super) fn each<'v>(at: &'v mut Value, name: &str) -> impl Iterator<Item = &'v mut Value> {
    at.get_mut(name)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

/// The elements of a list, none if it is missing.
pub(super) fn items<'v>(at: &'v Value, name: &str) -> &'v [Value] {
    at[name].as_array().map_or(&[], Vec::as_slice)
}

/// The entries of a map by key, none if it is missing.
pub(super) fn entries<'v>(at: &'v Value, name: &str) -> impl Iterator<Item = (&'v str, &'v Value)> {
    at[name]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value))
}

/// A string, empty if it is missing.
pub(super) fn text<'v>(at: &'v Value, name: &str) -> &'v str {
    at[name].as_str().unwrap_or_default()
}

/// A whole number, if there is one.
pub(super) fn int(at: &Value, name: &str) -> Option<i64> {
    at[name].as_i64()
}

/// A bool, false if it is missing.
pub(super) fn flag(at: &Value, name: &str) -> bool {
    at[name].as_bool().unwrap_or_default()
}

/// Whether a field is set.
pub(super) fn has(at: &Value, name: &str) -> bool {
    !at[name].is_null()
}

/// Whether two values are equal by Go's semantic equality: absent, null and empty lists or maps are the same.
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
