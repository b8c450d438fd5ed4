//! An object that fails to deserialize must not block the others.
//!
//! A list is one JSON document, so a single object with a number that is too large, or with values nested too deep, would hide all
//! others of its kind, in all namespaces. The API server accepts such objects: the CRDs may belong to another project, a schema
//! cannot express everything, and `managedFields` may be nested arbitrarily deep. [`DeserializeGuard`] reads each object as text
//! first and parses it separately.
//!
//! `managedFields` are dropped before anything else: nothing here reads them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::json::{self, Limit};

/// How many values a JSON object counts as.
pub const JSON_OBJECT: usize = 8;

/// How many values and keys an object may have. The largest of ours, the status of a rollout of 5 000 pods, has some 120 000.
pub const MAX_VALUES: Limit = Limit {
    values: 300_000,
    object: JSON_OBJECT,
};

/// How many its `spec` may have; several copies of it are in memory.
pub(crate) const MAX_SPEC_VALUES: Limit = Limit {
    values: 20_000,
    object: JSON_OBJECT,
};

/// How many bytes of JSON its `spec` may have.
const MAX_SPEC_BYTES: usize = 512 * 1024;

/// An object, or the metadata of one that failed to deserialize.
#[derive(Clone, Debug)]
pub enum DeserializeGuard<K> {
    /// The object.
    Valid(K),
    /// Its metadata, and why the rest failed to deserialize.
    Invalid(Box<ObjectMeta>, String),
}

impl<K> DeserializeGuard<K> {
    /// The object, or the result of `make` for an invalid one.
    pub fn unwrap_or_else(self, make: impl FnOnce(ObjectMeta, String) -> K) -> K {
        match self {
            Self::Valid(object) => object,
            Self::Invalid(metadata, why) => make(*metadata, why),
        }
    }
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for DeserializeGuard<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let read = check_spec(text.get()).and_then(|()| read(text.get()));
        Ok(match read {
            Ok(object) => Self::Valid(object),
            Err(why) => Self::Invalid(Box::new(metadata(text.get())), why),
        })
    }
}

impl<K: Resource> Resource for DeserializeGuard<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Valid(object) => object.meta(),
            Self::Invalid(metadata, _) => metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Valid(object) => object.meta_mut(),
            Self::Invalid(metadata, _) => metadata,
        }
    }
}

/// Checks that the `spec` of an object, if it has one, is within [`MAX_SPEC_BYTES`] and [`MAX_SPEC_VALUES`].
fn check_spec(text: &str) -> Result<(), String> {
    let fields: Fields = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Some(spec) = fields.get("spec") else {
        return Ok(());
    };
    if spec.get().len() > MAX_SPEC_BYTES {
        return Err(format!("spec: it has more than {MAX_SPEC_BYTES} bytes"));
    }
    let checked = json::check(spec.get().as_bytes(), MAX_SPEC_VALUES);
    checked.map_err(|error| format!("spec: {error}"))
}

/// Reads one object of at most [`MAX_VALUES`] values, without its `managedFields`.
pub(crate) fn read<K: DeserializeOwned>(text: &str) -> Result<K, String> {
    let text = without_managed_fields(text).map_err(|error| error.to_string())?;
    let object: Value = json::read(text.as_bytes(), MAX_VALUES).map_err(|error| error.to_string())?;
    K::deserialize(&object).map_err(|error| error.to_string())
}

/// The fields of an object as text. Text is not parsed, however deep it is.
type Fields<'t> = BTreeMap<Cow<'t, str>, &'t RawValue>;

fn without_managed_fields(text: &str) -> serde_json::Result<Cow<'_, str>> {
    let mut object: Fields = serde_json::from_str(text)?;
    let Some(metadata) = object.get("metadata") else {
        return Ok(Cow::Borrowed(text));
    };
    let mut metadata: Option<Fields> = serde_json::from_str(metadata.get())?;
    let managed = metadata
        .as_mut()
        .and_then(|fields| fields.remove("managedFields"));
    if managed.is_none() {
        return Ok(Cow::Borrowed(text));
    }
    let metadata = to_raw_value(&metadata)?;
    object.insert("metadata".into(), &metadata);
    serde_json::to_string(&object).map(Cow::Owned)
}

/// As much of the metadata as can be read.
fn metadata(text: &str) -> ObjectMeta {
    #[derive(Deserialize)]
    struct Object<'t> {
        #[serde(borrow)]
        metadata: &'t RawValue,
    }
    let Ok(Object { metadata }) = serde_json::from_str(text) else {
        return ObjectMeta::default();
    };
    let fields: Fields = serde_json::from_str(metadata.get()).unwrap_or_default();
    let whole = to_raw_value(
        &fields
            .iter()
            .filter(|(name, _)| *name != "managedFields")
            .collect::<BTreeMap<_, _>>(),
    );
    let whole = whole
        .ok()
        .and_then(|fields| json::read(fields.get().as_bytes(), MAX_VALUES).ok());
    whole.unwrap_or_else(|| {
        let text = |name: &str| serde_json::from_str::<String>(fields.get(name)?.get()).ok();
        ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    };
    use kube::ResourceExt;
    use kube::core::{ObjectList, WatchEvent};
    use rstest::rstest;
    use serde_json::json;

    fn nested(depth: usize) -> String {
        format!("{}{{}}{}", r#"{"f:a":"#.repeat(depth), "}".repeat(depth))
    }

    /// A ConfigMap with the JSON `data`, and with `managedFields` nested `depth` levels deep.
    fn object(name: &str, data: &str, depth: usize) -> String {
        let managed = format!(r#"[{{"manager":"m","fieldsV1":{}}}]"#, nested(depth));
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","uid":"{name}","managedFields":{managed},
            "labels":{{"a":"b"}}}},"data":{data}}}"#
        )
    }

    const GOOD: &str = r#"{"a":"b"}"#;

    fn many_values() -> String {
        format!("[{}0]", r#"{"":0},"#.repeat(MAX_VALUES.values / JSON_OBJECT))
    }

    #[rstest]
    #[case::a_wrong_type("3".into(), "invalid type")]
    #[case::too_deep(nested(5_000), "nested more than 120 levels")]
    #[case::too_many_values(many_values(), "more than 300000 values")]
    fn an_invalid_object_hides_no_other(#[case] data: String, #[case] why: &str) {
        let items = [object("a", GOOD, 1), object("b", &data, 1), object("c", GOOD, 1)];
        let list = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMapList","metadata":{{"resourceVersion":"9"}},"items":[{}]}}"#,
            items.join(",")
        );
        let list: ObjectList<DeserializeGuard<ConfigMap>> = serde_json::from_str(&list).unwrap();
        let seen = list.items.iter().map(|object| match object {
            DeserializeGuard::Valid(object) => object.name_any(),
            DeserializeGuard::Invalid(metadata, reason) => {
                assert!(reason.contains(why), "{reason}");
                assert_eq!(metadata.labels.as_ref().unwrap()["a"], "b");
                format!("{} is invalid", metadata.name.as_deref().unwrap())
            }
        });
        assert_eq!(seen.collect::<Vec<_>>(), ["a", "b is invalid", "c"]);
    }

    #[test]
    fn a_spec_has_a_limit_of_its_own() {
        let object = |values: usize| {
            let spec = vec![json!({"": 0}); values];
            let object = json!({"metadata": {"name": "a"}, "spec": spec}).to_string();
            serde_json::from_str::<DeserializeGuard<ConfigMap>>(&object).unwrap()
        };
        assert!(matches!(object(1_000), DeserializeGuard::Valid(_)));
        let DeserializeGuard::Invalid(_, why) = object(2_001) else {
            panic!("it is read");
        };
        assert_eq!(why, "spec: it has more than 20000 values");
    }

    /// The most values and keys that a schema allows, counted as above.
    fn most_values(schema: &JSONSchemaProps, path: &str) -> usize {
        let limit = |limit: Option<i64>| usize::try_from(limit.unwrap()).unwrap();
        match schema.type_.as_deref() {
            Some("object") => {
                let fields = schema.properties.iter().flatten();
                let fields = fields.map(|(name, field)| 1 + most_values(field, &format!("{path}.{name}")));
                let others = match &schema.additional_properties {
                    Some(JSONSchemaPropsOrBool::Schema(value)) => {
                        limit(schema.max_properties) * (1 + most_values(value, path))
                    }
                    _ => 0,
                };
                assert_ne!(schema.x_kubernetes_preserve_unknown_fields, Some(true), "{path}");
                JSON_OBJECT + fields.sum::<usize>() + others
            }
            Some("array") => match &schema.items {
                Some(JSONSchemaPropsOrArray::Schema(item)) => {
                    1 + limit(schema.max_items) * most_values(item, &format!("{path}[]"))
                }
                items => panic!("{path}: {items:?}"),
            },
            Some(_) => 1,
            None => panic!("{path} can be anything"),
        }
    }

    /// A user who may only write a status must not be able to make the whole object unreadable, and with it abort and the guard.
    #[test]
    fn the_largest_status_that_the_schema_of_a_rollout_allows_can_be_read() {
        let mut seen = 0;
        for definition in stateward_api::definitions() {
            let kind = definition.spec.names.kind;
            if !["RolloutPlugin", "PhasedRollout"].contains(&kind.as_str()) {
                continue;
            }
            let schema = definition.spec.versions[0].schema.clone().unwrap();
            let schema = schema.open_api_v3_schema.unwrap();
            let most = most_values(&schema.properties.unwrap()["status"], &kind);
            // Half is left to spec and metadata.
            assert!(most < MAX_VALUES.values / 2, "{kind}: {most}");
            seen += 1;
        }
        assert_eq!(seen, 2);
    }

    /// A few values may be long.
    #[test]
    fn a_spec_has_a_limit_of_bytes() {
        let object = |bytes: usize| {
            let object = json!({"metadata": {"name": "a"}, "spec": "x".repeat(bytes)}).to_string();
            serde_json::from_str::<DeserializeGuard<ConfigMap>>(&object).unwrap()
        };
        assert!(matches!(object(MAX_SPEC_BYTES - 2), DeserializeGuard::Valid(_)));
        let DeserializeGuard::Invalid(_, why) = object(MAX_SPEC_BYTES) else {
            panic!("it is read");
        };
        assert_eq!(why, "spec: it has more than 524288 bytes");
    }

    #[rstest]
    #[case("ADDED")]
    #[case("MODIFIED")]
    #[case("DELETED")]
    fn a_watch_goes_on_after_an_invalid_object(#[case] event: &str) {
        let line = format!(
            r#"{{"type":"{event}","object":{}}}"#,
            object("b", &nested(5_000), 5_000)
        );
        let event: WatchEvent<DeserializeGuard<ConfigMap>> = serde_json::from_str(&line).unwrap();
        let (WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) = event
        else {
            panic!("{event:?}");
        };
        assert!(
            matches!(object, DeserializeGuard::Invalid(metadata, _) if metadata.uid.as_deref() == Some("b"))
        );
    }

    #[test]
    fn managed_fields_make_no_object_invalid() {
        let object: DeserializeGuard<ConfigMap> = serde_json::from_str(&object("a", GOOD, 5_000)).unwrap();
        let DeserializeGuard::Valid(object) = object else {
            panic!("{object:?}");
        };
        assert_eq!(object.data.unwrap()["a"], "b");
        assert_eq!(object.metadata.managed_fields, None);
    }

    #[rstest]
    #[case(json!({"metadata": {"name": "a", "labels": 3}, "data": 3}), Some("a"))]
    #[case(json!({"metadata": 3, "data": 3}), None)]
    #[case(json!({"data": 3}), None)]
    #[case(json!([]), None)]
    fn of_broken_metadata_as_much_is_kept_as_there_is(#[case] object: Value, #[case] name: Option<&str>) {
        let object: DeserializeGuard<ConfigMap> = serde_json::from_value(object).unwrap();
        assert!(
            matches!(&object, DeserializeGuard::Invalid(metadata, _) if metadata.name.as_deref() == name),
            "{object:?}"
        );
    }
}
