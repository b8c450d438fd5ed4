//! The types in the form of a CRD's structural schema, so that built-in and custom kinds are checked alike.
//!
//! A named type is a `$ref` to its definition. One extension of structural schemas is `x-implied`: the structs of a struct that exist even
//! if they are omitted, so that their required fields are required all the same.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A built-in kind whose objects are stored.
#[derive(Debug)]
pub struct Kind {
    /// `apps/v1`, or `v1` in the core group.
    pub api_version: String,
    /// `StatefulSet`
    pub kind: String,
    /// The name of its type in the table.
    type_name: String,
}

impl Kind {
    /// The schema of its objects.
    pub fn schema(&self) -> &'static Value {
        definition(&self.type_name)
    }
}

/// The built-in kinds.
pub fn kinds() -> &'static [Kind] {
    &KINDS
}

/// The metadata of every object.
pub fn object_meta() -> &'static Value {
    definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
}

/// The spec of a Job.
pub fn job_spec() -> &'static Value {
    definition("io.k8s.api.batch.v1.JobSpec")
}

/// Resolves a `$ref`.
pub fn resolve(schema: &Value) -> &Value {
    match schema["$ref"].as_str() {
        Some(name) => definition(name),
        None => schema,
    }
}

/// The name of a kind's type in the table.
pub fn type_name(group: &str, version: &str, kind: &str) -> String {
    match group {
        "" => format!("io.k8s.api.core.{version}.{kind}"),
        "apiextensions.k8s.io" => {
            format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}")
        }
        _ => {
            let short = group.split_once('.').map_or(group, |(short, _)| short);
            format!("io.k8s.api.{short}.{version}.{kind}")
        }
    }
}

fn definition(name: &str) -> &'static Value {
    DEFINITIONS.get(name).unwrap_or(&Value::Null)
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Table {
        resources: BTreeMap<String, Vec<Row>>,
    }
    #[derive(Deserialize)]
    struct Row {
        name: String,
        kind: String,
        verbs: Vec<String>,
    }
    let table: Table = table(crate::RESOURCES);
    let mut kinds = Vec::new();
    for (api_version, rows) in table.resources {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version.as_str()));
        // Subresources have a slash; a review is answered but not stored, so it cannot be read.
        let kept = |row: &Row| !row.name.contains('/') && row.verbs.iter().any(|verb| verb == "get");
        kinds.extend(rows.into_iter().filter(kept).map(|row| Kind {
            type_name: type_name(group, version, &row.kind),
            api_version: api_version.clone(),
            kind: row.kind,
        }));
    }
    kinds
});

static DEFINITIONS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Table {
        types: BTreeMap<String, Struct>,
    }
    #[derive(Deserialize)]
    struct Struct {
        fields: BTreeMap<String, Field>,
    }
    let table: Table = table(crate::TYPES);
    let definition = |owner: &str, described: &Struct| {
        let fields = &described.fields;
        let named = |is: &dyn Fn(&str, &Field) -> bool| -> Vec<&String> {
            let named = fields.iter().filter(|(name, field)| is(name, field));
            named.map(|(name, _)| name).collect()
        };
        let is_required =
            |name: &str, field: &Field| field.required && !ZERO_IS_A_VALUE.contains(&(owner, name));
        let properties: Map<_, _> = fields
            .iter()
            .map(|(name, field)| (name.clone(), field.schema()))
            .collect();
        json!({
            "type": "object", "properties": properties,
            "required": named(&is_required), "x-implied": named(&|_, field| field.is_implied()),
        })
    };
    let types = table.types.iter();
    types
        .map(|(name, described)| (name.clone(), definition(name, described)))
        .collect()
});

fn table<T: for<'de> Deserialize<'de>>(text: &str) -> T {
    match serde_json::from_str(text) {
        Ok(table) => table,
        Err(error) => unreachable!("the tables are part of the binary and are read by tests: {error}"),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Field {
    #[serde(rename = "type")]
    spelled: String,
    #[serde(default)]
    pointer: bool,
    #[serde(default)]
    required: bool,
    #[serde(default, rename = "enum")]
    allowed: Vec<Value>,
}

impl Field {
    fn schema(&self) -> Value {
        let mut schema = schema(&self.spelled);
        if !self.allowed.is_empty() {
            let mut allowed = self.allowed.clone();
            // Go cannot distinguish an empty string from a missing one.
            if !self.pointer && !self.required && !allowed.contains(&json!("")) {
                allowed.push(json!(""));
            }
            schema["enum"] = allowed.into();
        }
        schema
    }

    /// Go also writes a non-pointer struct if it is omitted.
    fn is_implied(&self) -> bool {
        !self.pointer && self.spelled.starts_with("io.k8s.")
    }
}

/// Fields that Kubernetes' OpenAPI requires and its server does not: their zero is a valid value.
const ZERO_IS_A_VALUE: [(&str, &str); 10] = [
    ("io.k8s.api.apps.v1.ControllerRevision", "revision"),
    ("io.k8s.api.batch.v1.PodFailurePolicy", "rules"),
    ("io.k8s.api.core.v1.HTTPHeader", "value"),
    ("io.k8s.api.core.v1.ISCSIPersistentVolumeSource", "lun"),
    ("io.k8s.api.core.v1.ISCSIVolumeSource", "lun"),
    ("io.k8s.api.core.v1.LimitRangeSpec", "limits"),
    ("io.k8s.api.core.v1.SleepAction", "seconds"),
    ("io.k8s.api.core.v1.Sysctl", "value"),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion",
        "served",
    ),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion",
        "storage",
    ),
];

/// The schema of a type in the table's notation.
fn schema(spelled: &str) -> Value {
    match spelled {
        "string" | "duration" => json!({"type": "string"}),
        "bool" => json!({"type": "boolean"}),
        "int32" => json!({"type": "integer", "minimum": i32::MIN, "maximum": i32::MAX}),
        "int64" => json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX}),
        "uint8" => json!({"type": "integer", "minimum": u8::MIN, "maximum": u8::MAX}),
        "float64" => json!({"type": "number"}),
        "bytes" => json!({"type": "string", "format": "byte"}),
        "time" | "microtime" => json!({"type": "string", "format": "date-time"}),
        "quantity" => json!({"format": "quantity"}),
        "intstr" => json!({"x-kubernetes-int-or-string": true}),
        "any" => json!({"x-kubernetes-preserve-unknown-fields": true}),
        other => match (other.strip_prefix("[]"), other.strip_prefix("{}")) {
            (Some(items), _) => json!({"type": "array", "items": schema(items)}),
            (_, Some(values)) => json!({"type": "object", "additionalProperties": schema(values)}),
            _ => json!({"$ref": other}),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_and_every_type_that_is_named_has_a_schema() {
        fn names(schema: &Value, found: &mut Vec<String>) {
            match schema {
                Value::Object(fields) => {
                    found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    fields.values().for_each(|inner| names(inner, found));
                }
                Value::Array(items) => items.iter().for_each(|inner| names(inner, found)),
                _ => {}
            }
        }
        let mut named = Vec::new();
        DEFINITIONS.values().for_each(|schema| names(schema, &mut named));
        named.extend(kinds().iter().map(|kind| kind.type_name.clone()));
        assert!(named.len() > 500, "only {} names", named.len());
        for name in named {
            assert!(definition(&name).is_object(), "there is no type {name}");
        }
        for (name, field) in ZERO_IS_A_VALUE {
            assert!(
                definition(name)["properties"][field].is_object(),
                "there is no {name}.{field}"
            );
        }
        assert!(object_meta()["properties"]["labels"].is_object());
        assert!(job_spec()["properties"]["template"].is_object());
    }

    #[test]
    fn a_type_says_what_go_says_of_it() {
        let field = |name: &str, field: &str| definition(name)["properties"][field].clone();
        let set = "io.k8s.api.apps.v1.StatefulSetSpec";
        assert_eq!(field(set, "replicas")["maximum"], i32::MAX);
        assert_eq!(
            resolve(&field(set, "template"))["properties"]["spec"],
            json!({"$ref": "io.k8s.api.core.v1.PodSpec"})
        );
        assert_eq!(definition(set)["required"], json!(["selector", "template"]));
        assert_eq!(
            definition(set)["x-implied"],
            json!(["template", "updateStrategy"])
        );
        // `type: ""` counts as missing; a pointer to an empty string does not.
        let strategy = field("io.k8s.api.apps.v1.StatefulSetUpdateStrategy", "type");
        assert_eq!(strategy["enum"], json!(["OnDelete", "RollingUpdate", ""]));
        let policy = field("io.k8s.api.core.v1.PodSecurityContext", "fsGroupChangePolicy");
        assert_eq!(policy["enum"], json!(["Always", "OnRootMismatch"]));
    }
}
