//! Pieces of schema that attributes cannot say.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, JSONSchemaProps,
};
use schemars::{Schema, SchemaGenerator, json_schema};

/// An object that is kept as it is.
pub(crate) fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Any JSON, kept as it is.
pub(crate) fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// A number or a text. Kubernetes itself reads such numbers in 32 bits, and so do we.
pub(crate) fn int_or_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-int-or-string": true, "minimum": i32::MIN, "maximum": i32::MAX})
}

/// The part of a schema that a path leads to.
pub(crate) fn at<'s>(schema: &'s mut JSONSchemaProps, path: &[&str]) -> Option<&'s mut JSONSchemaProps> {
    path.iter().try_fold(schema, |schema, field| {
        schema
            .properties
            .as_mut()
            .and_then(|fields| fields.get_mut(*field))
    })
}

/// A column of `kubectl get`.
pub(crate) fn column(name: &str, type_: &str, path: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: name.into(),
        type_: type_.into(),
        json_path: path.into(),
        ..Default::default()
    }
}

/// A column of `kubectl get -o wide`.
pub(crate) fn wide_column(name: &str, type_: &str, path: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        priority: Some(1),
        ..column(name, type_, path)
    }
}
