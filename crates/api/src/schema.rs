//! Pieces of schema that attributes cannot say.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, JSONSchemaProps, ValidationRule,
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

/// A definition that is served with these columns, its schema with what attributes cannot say.
pub(crate) fn served(
    mut definition: CustomResourceDefinition,
    columns: &[CustomResourceColumnDefinition],
    complete: impl Fn(&mut JSONSchemaProps),
) -> CustomResourceDefinition {
    definition.spec.names.categories = Some(vec!["all".into(), "stateward".into()]);
    for version in &mut definition.spec.versions {
        version.additional_printer_columns = Some(columns.to_vec());
        let schema = version.schema.as_mut();
        if let Some(schema) = schema.and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            complete(schema);
        }
    }
    definition
}

/// A rule that the server checks.
pub(crate) fn rule(rule: &str, message: &str) -> Option<Vec<ValidationRule>> {
    Some(vec![ValidationRule {
        rule: rule.into(),
        message: Some(message.into()),
        ..Default::default()
    }])
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
