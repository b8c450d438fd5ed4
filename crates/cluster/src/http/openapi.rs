//! OpenAPI v3: kubectl needs it to explain types, to apply objects and to know that the server validates fields.
//!
//! The structure of built-in types comes from the table of types; their descriptions come from k8s-openapi, which has upstream's own.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::json::{Map, Value, json};
use axum::body::Body;
use axum::http::Response;
use k8s_openapi::api::{
    apps, autoscaling, batch, coordination, core, discovery, events, policy, rbac, storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use schemars::SchemaGenerator;

use super::{answer, not_found};
use crate::resource::{Model, Resource};
use crate::server::Server;
use crate::types::{Field, Kind, builtin};

/// `/openapi/v3`: the index of the documents.
pub(super) fn index(server: &Server) -> Response<Body> {
    let mut paths = Map::new();
    for resource in server.registry.all() {
        let path = path_of(&resource);
        let address = format!("/openapi/v3/{path}");
        paths.insert(path.into(), json!({"serverRelativeURL": address}));
    }
    answer::json(200, &json!({"paths": paths}))
}

/// `/openapi/v2`, in protobuf. kubectl falls back to it for kinds that version 3 does not have, so it is empty: `swagger: "2.0"`, and a
/// title and a version.
pub(super) fn version_2() -> Response<Body> {
    let document = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.36.3".to_vec();
    answer::response(
        200,
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        document,
    )
}

/// `/openapi/v3/apis/apps/v1`: one group and version.
pub(super) fn document(server: &Server, path: &str) -> Response<Body> {
    let served: Vec<_> = server
        .registry
        .all()
        .into_iter()
        .filter(|resource| path_of(resource) == path)
        .collect();
    if served.is_empty() {
        return not_found();
    }
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for resource in &served {
        match &resource.model {
            Model::Builtin { name, .. } => {
                add_schema(name, &mut schemas);
                say_kind(&mut schemas, name, resource);
            }
            Model::Custom(_) => {
                let name = custom_name(resource);
                add_schema(OBJECT_META, &mut schemas);
                schemas.insert(name.as_str().into(), custom_schema(resource));
                say_kind(&mut schemas, &name, resource);
            }
        }
        add_paths(resource, &mut paths);
    }
    answer::json(
        200,
        &json!({
            "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.36.3"},
            "paths": paths, "components": {"schemas": schemas},
        }),
    )
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// `api/v1`, `apis/apps/v1`
fn path_of(resource: &Resource) -> String {
    let prefix = if resource.group.is_empty() { "api" } else { "apis" };
    format!("{prefix}/{}", resource.api_version())
}

fn say_kind(schemas: &mut Map, name: &str, resource: &Resource) {
    if let Some(schema) = schemas.get_mut(name) {
        schema["x-kubernetes-group-version-kind"] = json!([kind_of(resource)]);
    }
}

fn kind_of(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

/// The operation that shows kubectl that fields are validated, and which patch types are supported.
fn add_paths(resource: &Arc<Resource>, paths: &mut Map) {
    let scope = if resource.namespaced {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let address = format!("/{}{scope}/{}/{{name}}", path_of(resource), resource.plural);
    let mut patches = vec![
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
    ];
    if matches!(resource.model, Model::Builtin { .. }) {
        patches.push("application/strategic-merge-patch+json");
    }
    let content: Map = patches
        .into_iter()
        .map(|media| (media.to_owned(), json!({})))
        .collect();
    let parameters: Vec<_> = ["dryRun", "fieldManager", "fieldValidation", "force"]
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
        .collect();
    paths.insert(
        address.into(),
        json!({"patch": {
            "x-kubernetes-action": "patch", "x-kubernetes-group-version-kind": kind_of(resource),
            "parameters": parameters, "requestBody": {"content": content},
        }}),
    );
}

/// Adds a built-in type and every type that it references.
fn add_schema(name: &str, schemas: &mut Map) {
    let Some(described) = builtin(name).filter(|_| !schemas.contains_key(name)) else {
        return;
    };
    let sentences = SENTENCES.get(name);
    let mut schema = json!({"type": "object"});
    if let Some(sentence) = sentences
        .map(|known| &known.own)
        .filter(|sentence| !sentence.is_empty())
    {
        schema["description"] = sentence.as_str().into();
    }
    schemas.insert(name.into(), Value::Null);
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (field_name, field) in described.fields.iter() {
        let mut property = property(field_name, field, schemas);
        let sentence = sentences
            .and_then(|known| known.fields.get(field_name))
            .map_or("", String::as_str);
        let said = match field.enum_text.as_str() {
            "" => sentence.to_owned(),
            values => format!("{sentence}\n\nPossible enum values:\n{values}"),
        };
        if !said.is_empty() {
            property["description"] = said.into();
        }
        if field.required {
            required.push(field_name.as_str());
        }
        properties.insert(field_name.into(), property);
    }
    schema["properties"] = properties.into();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if described.atomic {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    schemas.insert(name.into(), schema);
}

fn property(name: &str, field: &Field, schemas: &mut Map) -> Value {
    let mut property = match (&field.kind, name) {
        // A type that allows anything still has a name.
        (Kind::Any, "fieldsV1") => named(
            "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
            json!({"type": "object"}),
            schemas,
        ),
        (Kind::Any, "data") => named(
            "io.k8s.apimachinery.pkg.runtime.RawExtension",
            json!({"type": "object"}),
            schemas,
        ),
        (kind, _) => schema_of(kind, schemas),
    };
    // A `$ref` must be alone, so its description is wrapped around it.
    if property.get("$ref").is_some() {
        property = json!({"allOf": [property]});
    }
    let texts = [
        ("x-kubernetes-patch-strategy", &field.patch_strategy),
        ("x-kubernetes-patch-merge-key", &field.patch_merge_key),
        ("x-kubernetes-list-type", &field.list_type),
    ];
    for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        property[name] = text.as_str().into();
    }
    if !field.list_map_keys.is_empty() {
        property["x-kubernetes-list-map-keys"] = json!(field.list_map_keys);
    }
    if let Some(atomic) = field.atomic {
        property["x-kubernetes-map-type"] = if atomic { "atomic" } else { "granular" }.into();
    }
    if let Some(default) = &field.default {
        property["default"] = default.clone();
    }
    if !field.allowed.is_empty() {
        property["enum"] = json!(field.allowed);
    }
    property
}

fn schema_of(kind: &Kind, schemas: &mut Map) -> Value {
    match kind {
        Kind::String => json!({"type": "string"}),
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Int32 | Kind::Uint8 => json!({"type": "integer", "format": "int32"}),
        Kind::Int64 => json!({"type": "integer", "format": "int64"}),
        Kind::Float => json!({"type": "number", "format": "double"}),
        Kind::Bytes => json!({"type": "string", "format": "byte"}),
        // Types with custom encoding have names of their own, which kubectl shows.
        Kind::Time => named(
            "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
            json!({"type": "string", "format": "date-time"}),
            schemas,
        ),
        Kind::MicroTime => named(
            "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
            json!({"type": "string", "format": "date-time"}),
            schemas,
        ),
        Kind::Duration => named(
            "io.k8s.apimachinery.pkg.apis.meta.v1.Duration",
            json!({"type": "string"}),
            schemas,
        ),
        Kind::Quantity => named(
            "io.k8s.apimachinery.pkg.api.resource.Quantity",
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            schemas,
        ),
        Kind::IntOrString => named(
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
            schemas,
        ),
        Kind::Any => json!({"type": "object"}),
        Kind::Struct(name) => {
            add_schema(name, schemas);
            reference(name)
        }
        Kind::List(element) => json!({"type": "array", "items": schema_of(element, schemas)}),
        Kind::Map(element) => json!({"type": "object", "additionalProperties": schema_of(element, schemas)}),
    }
}

fn named(name: &str, mut schema: Value, schemas: &mut Map) -> Value {
    if let Some(sentence) = SENTENCES
        .get(name)
        .map(|known| &known.own)
        .filter(|sentence| !sentence.is_empty())
    {
        schema["description"] = sentence.as_str().into();
    }
    schemas.insert(name.into(), schema);
    reference(name)
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// `io.example.v1.Thing` for a kind of `example.io`.
fn custom_name(resource: &Resource) -> String {
    let mut group: Vec<_> = resource.group.split('.').collect();
    group.reverse();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}

fn custom_schema(resource: &Resource) -> Value {
    let Model::Custom(custom) = &resource.model else {
        return Value::Null;
    };
    let mut schema = custom.node().clone();
    if !schema.is_object() {
        schema = json!({"type": "object"});
    }
    let known = SENTENCES.get("io.k8s.api.core.v1.ConfigMap");
    for field in ["apiVersion", "kind"] {
        schema["properties"][field] = json!({"type": "string"});
        if let Some(sentence) = known.and_then(|known| known.fields.get(field)) {
            schema["properties"][field]["description"] = sentence.as_str().into();
        }
    }
    schema["properties"]["metadata"] = json!({
        "allOf": [reference(OBJECT_META)],
        "description": "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
    });
    schema
}

/// Upstream's descriptions of a type and of its fields.
#[derive(Default)]
struct Sentences {
    own: String,
    fields: BTreeMap<String, String>,
}

static SENTENCES: LazyLock<BTreeMap<String, Sentences>> = LazyLock::new(|| {
    let mut generator = SchemaGenerator::default();
    macro_rules! kinds {
        ($($kind:ty),+ $(,)?) => {$( let _ = generator.subschema_for::<$kind>(); )+};
    }
    kinds![
        core::v1::Namespace,
        core::v1::Node,
        core::v1::Pod,
        core::v1::Service,
        core::v1::ConfigMap,
        core::v1::Secret,
        core::v1::ServiceAccount,
        core::v1::PersistentVolumeClaim,
        core::v1::PersistentVolume,
        core::v1::Event,
        core::v1::Endpoints,
        core::v1::LimitRange,
        core::v1::PodTemplate,
        core::v1::ResourceQuota,
        apps::v1::StatefulSet,
        apps::v1::ControllerRevision,
        apps::v1::DaemonSet,
        apps::v1::Deployment,
        apps::v1::ReplicaSet,
        batch::v1::Job,
        batch::v1::CronJob,
        policy::v1::PodDisruptionBudget,
        events::v1::Event,
        coordination::v1::Lease,
        storage::v1::StorageClass,
        discovery::v1::EndpointSlice,
        autoscaling::v2::HorizontalPodAutoscaler,
        rbac::v1::Role,
        rbac::v1::RoleBinding,
        rbac::v1::ClusterRole,
        rbac::v1::ClusterRoleBinding,
        apiextensions::v1::CustomResourceDefinition,
    ];
    let text = |value: &serde_json::Value| value["description"].as_str().unwrap_or_default().to_owned();
    let said = |schema: &serde_json::Value| Sentences {
        own: text(schema),
        fields: schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, field)| (name.clone(), text(field)))
            .filter(|(_, sentence)| !sentence.is_empty())
            .collect(),
    };
    generator
        .definitions()
        .iter()
        .map(|(name, schema)| (name.clone(), said(schema)))
        .collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_belong_to_the_types_of_the_table() {
        let set = SENTENCES
            .get("io.k8s.api.apps.v1.StatefulSetSpec")
            .expect("a sentence about StatefulSetSpec");
        assert!(set.fields.contains_key("podManagementPolicy"));
    }
}
