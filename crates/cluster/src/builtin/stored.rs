//! The effects of storing an object.

use crate::json::{Name, Value};

/// Built-in objects are stored as protobuf, which does not distinguish an empty list from none: an empty list reads back as null. Raw JSON
/// inside an object is kept as it is.
pub(super) fn as_protobuf(resource: &str, object: &mut Value) {
    as_protobuf_changed(resource, &Value::Null, object);
}

/// The same for an object that is stored as `old`.
pub(super) fn as_protobuf_changed(resource: &str, old: &Value, object: &mut Value) {
    // CRDs are stored as JSON.
    if resource == "customresourcedefinitions.apiextensions.k8s.io" {
        return;
    }
    let has_any = |(name, field): &(&Name, &Value)| match (resource, name.as_str()) {
        ("controllerrevisions.apps", "data") | (_, "metadata") => false,
        _ => !field.shares(&old[*name]) && has_empty_lists(field),
    };
    let fields = object.as_object().into_iter().flatten();
    let found: Vec<_> = fields.filter(has_any).map(|(name, _)| name.clone()).collect();
    for name in found {
        empty_lists(&mut object[name]);
    }
}

fn has_empty_lists(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty_lists),
        Value::Object(fields) => fields.values().any(has_empty_lists),
        _ => false,
    }
}

fn empty_lists(value: &mut Value) {
    match value {
        Value::Array(items) if items.is_empty() => *value = Value::Null,
        Value::Array(items) => items.iter_mut().for_each(empty_lists),
        Value::Object(fields) => fields.values_mut().for_each(empty_lists),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    #[rstest]
    #[case("roles.rbac.authorization.k8s.io", json!({"rules": []}), json!({"rules": null}))]
    #[case("roles.rbac.authorization.k8s.io", json!({"rules": [{"verbs": []}]}), json!({"rules": [{"verbs": null}]}))]
    #[case("controllerrevisions.apps", json!({"data": {"a": []}}), json!({"data": {"a": []}}))]
    #[case("customresourcedefinitions.apiextensions.k8s.io", json!({"status": {"a": []}}), json!({"status": {"a": []}}))]
    fn empty_lists_read_back_as_null(
        #[case] resource: &str,
        #[case] mut given: Value,
        #[case] expected: Value,
    ) {
        as_protobuf(resource, &mut given);
        assert_eq!(given, expected);
    }
}
