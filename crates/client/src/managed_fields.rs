//! The owners of a field, read from `managedFields` as text: no value is built, however deep they are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Object<'t> {
    #[serde(borrow)]
    metadata: Metadata<'t>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'t> {
    #[serde(borrow, default)]
    managed_fields: Vec<Entry<'t>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'t> {
    #[serde(default)]
    manager: String,
    #[serde(borrow)]
    fields_v1: Option<&'t RawValue>,
}

/// The names of the managers that own the field at `path`.
pub(crate) fn managers_of(object: &str, path: &[&str]) -> serde_json::Result<Vec<String>> {
    let object: Object = serde_json::from_str(object)?;
    let entries = object.metadata.managed_fields.into_iter();
    let owners = entries.filter(|entry| entry.fields_v1.is_some_and(|fields| has(fields, path)));
    Ok(owners.map(|entry| entry.manager).collect())
}

fn has(fields: &RawValue, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return true;
    };
    let fields: serde_json::Result<BTreeMap<Cow<str>, &RawValue>> = serde_json::from_str(fields.get());
    fields.is_ok_and(|fields| fields.get(*first).is_some_and(|inner| has(inner, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_managers_of_a_field_are_those_whose_fields_have_its_path() {
        let deep = (0..500).fold(json!({}), |inner, _| json!({ "f:a": inner }));
        let object = json!({"metadata": {"name": "db", "managedFields": [
            {"manager": "git", "fieldsV1": {"f:spec": {"f:a": deep, "f:partition": {}}}},
            {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "stateward", "fieldsV1": {"f:spec": {"f:partition": {}}}},
            {"manager": "none"},
        ]}});
        let managers = |path: &[&str]| managers_of(&object.to_string(), path).unwrap();
        assert_eq!(managers(&["f:spec", "f:partition"]), ["git", "stateward"]);
        assert_eq!(managers(&["f:spec", "f:replicas"]), ["kubectl"]);
        assert!(managers(&["f:status"]).is_empty());
        assert!(
            managers_of(r#"{"metadata": {"name": "db"}}"#, &["f:spec"])
                .unwrap()
                .is_empty()
        );
    }
}
