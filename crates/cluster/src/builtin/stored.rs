//! What storing does to an object.

use crate::json::Value;

/// Built-in objects are stored as protobuf, which tells no empty list from none: one that is written although it is
/// empty reads back as null. Raw JSON inside an object is kept as it is.
pub(super) fn as_protobuf(resource: &str, object: &mut Value) {
    // Definitions are stored as JSON.
    if resource == "customresourcedefinitions.apiextensions.k8s.io" {
        return;
    }
    for (name, field) in object.as_object_mut().into_iter().flatten() {
        match (resource, name.as_str()) {
            ("controllerrevisions.apps", "data") | (_, "metadata") => {}
            _ => empty_lists(field),
        }
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
