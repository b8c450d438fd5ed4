//! Parts of the schemas that attributes cannot express.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool, ValidationRule,
};
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::names::OBJECT_NAME_PATTERN;

/// An object with unknown fields preserved.
pub(crate) fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Any JSON value, preserved.
pub(crate) fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// A number or a string. Kubernetes reads such numbers in 32 bits, and so does Stateward.
pub(crate) fn int_or_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-int-or-string": true, "minimum": i32::MIN, "maximum": i32::MAX})
}

/// A served definition with these columns, its schema completed with what attributes cannot express.
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

/// A validation rule for the API server.
pub(crate) fn rule(rule: &str, message: &str) -> Option<Vec<ValidationRule>> {
    Some(vec![ValidationRule {
        rule: rule.into(),
        message: Some(message.into()),
        ..Default::default()
    }])
}

/// The part of a schema at this path.
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

/// A timestamp that every client can parse. The API server accepts invalid years and offsets.
const TIME_PATTERN: &str =
    r"^(19|20|21)\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-][01]\d:[0-5]\d)$";
const LONGEST_TIME: i64 = 40;

/// The limits of strings, lists and maps for fields without their own limit.
const LONGEST_TEXT: i64 = 64 * 1024;
const LONGEST_LIST: i64 = 100;
const LARGEST_MAP: i64 = 100;
/// The maximum length of an int-or-string field.
const LONGEST_NUMBER: i64 = 256;

/// The limits of individual fields, by name.
const LIMITS: [(&str, i64); 26] = [
    // The args of several templates are merged.
    ("args", 1_000),
    // One entry for every pod that a workload may have.
    ("excusedPods", 5_000),
    ("keptPods", 5_000),
    ("pods", 5_000),
    // Twice as many as are kept.
    ("history", 20),
    // Short texts, names, UIDs and hashes in a status.
    ("abortedRevision", 253),
    ("currentRevision", 253),
    ("currentStepHash", 253),
    ("phase", 253),
    ("reason", 253),
    ("returning", 253),
    ("returningFrom", 253),
    ("revision", 253),
    ("stableRevision", 253),
    ("stableTemplateCopy", 253),
    ("stableTemplateHash", 253),
    ("step", 253),
    ("updateRevision", 253),
    ("updatedRevision", 253),
    ("withdrawnRevision", 253),
    ("workloadSetting", 253),
    ("workloadUid", 253),
    // User names can be long.
    ("requestedBy", 1_024),
    // The maximum length of an expression.
    ("successCondition", 16 * 1024),
    ("failureCondition", 16 * 1024),
    // The maximum length of a regular expression.
    ("metricName", 2_000),
];

/// Fields that name an object. `targetRef` of a PhasedRollout is not among them: as in sts-plus, the schema accepts any text, and the
/// operator validates it.
const NAMES: [&str; 4] = [
    "query.secretRef",
    "secretKeyRef.name",
    "templateName",
    "workloadRef.name",
];
const LONGEST_NAME: i64 = 253;

/// Limits every string, list and map of a definition that has no limit, so that the API server rejects excessive objects.
pub(crate) fn limited(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut definition.spec.versions {
        let schema = version.schema.as_mut();
        if let Some(schema) = schema.and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            limit(schema, "");
        }
    }
    definition
}

/// Limits the schema at `path` and everything below it.
fn limit(schema: &mut JSONSchemaProps, path: &str) {
    let is = |name: &str| path == name || path.ends_with(&format!(".{name}"));
    let own = LIMITS.iter().find(|(name, _)| is(name)).map(|(_, limit)| *limit);
    if NAMES.iter().any(|name| is(name)) {
        schema.pattern = Some(OBJECT_NAME_PATTERN.into());
        schema.max_length = Some(LONGEST_NAME);
    }
    if schema.format.as_deref() == Some("date-time") {
        schema.pattern = Some(TIME_PATTERN.into());
        schema.max_length = Some(LONGEST_TIME);
    }
    match schema.type_.as_deref() {
        Some("string") if schema.enum_.is_none() => {
            schema.max_length.get_or_insert(own.unwrap_or(LONGEST_TEXT));
        }
        Some("array") => {
            schema.max_items.get_or_insert(own.unwrap_or(LONGEST_LIST));
        }
        Some("object") if is_map(schema) => {
            schema.max_properties.get_or_insert(own.unwrap_or(LARGEST_MAP));
        }
        _ => {}
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        schema.max_length.get_or_insert(LONGEST_NUMBER);
    }
    for (name, field) in schema.properties.iter_mut().flatten() {
        limit(field, &format!("{path}.{name}"));
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => limit(item, path),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(|item| limit(item, path)),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &mut schema.additional_properties {
        limit(value, path);
    }
}

/// Whether an object allows fields that its schema does not name.
fn is_map(schema: &JSONSchemaProps) -> bool {
    schema.additional_properties.is_some() || schema.x_kubernetes_preserve_unknown_fields == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Untyped values, limited only by the size of the whole object.
    const ANYTHING: [&str; 1] = ["provider.web.jsonBody"];

    fn unbounded(schema: &JSONSchemaProps, path: &str, found: &mut Vec<String>) {
        let bounded = match schema.type_.as_deref() {
            Some("string") => schema.max_length.is_some() || schema.enum_.is_some(),
            Some("array") => schema.max_items.is_some(),
            Some("object") => schema.max_properties.is_some() || !is_map(schema),
            Some("integer" | "number" | "boolean") => true,
            _ if schema.x_kubernetes_int_or_string == Some(true) => schema.max_length.is_some(),
            _ => ANYTHING.iter().any(|anything| path.ends_with(anything)),
        };
        if !bounded {
            found.push(path.to_owned());
        }
        for (name, field) in schema.properties.iter().flatten() {
            unbounded(field, &format!("{path}.{name}"), found);
        }
        match &schema.items {
            Some(JSONSchemaPropsOrArray::Schema(item)) => unbounded(item, &format!("{path}[]"), found),
            Some(JSONSchemaPropsOrArray::Schemas(_)) => found.push(format!("{path}[]")),
            None => {}
        }
        if let Some(JSONSchemaPropsOrBool::Schema(value)) = &schema.additional_properties {
            unbounded(value, &format!("{path}{{}}"), found);
        }
    }

    #[test]
    fn every_text_list_and_map_of_every_definition_has_a_limit() {
        let mut found = Vec::new();
        let mut definitions = 0;
        for definition in crate::made_definitions() {
            definitions += 1;
            let kind = &definition.spec.names.kind;
            for version in &definition.spec.versions {
                let schema = version.schema.as_ref().unwrap();
                let schema = schema.open_api_v3_schema.as_ref().unwrap();
                // The API server validates everything outside spec and status.
                for (name, field) in schema.properties.as_ref().unwrap() {
                    unbounded(field, &format!("{kind}.{name}"), &mut found);
                }
            }
        }
        assert!(found.is_empty(), "without a limit:\n{}", found.join("\n"));
        assert_eq!(definitions, 5);
    }

    #[test]
    fn what_names_an_object_has_to_be_a_name() {
        let named = |schema: &JSONSchemaProps| {
            schema.max_length == Some(LONGEST_NAME) && schema.pattern.as_deref() == Some(OBJECT_NAME_PATTERN)
        };
        let mut schema = crate::made_definitions()
            .into_iter()
            .find(|definition| definition.spec.names.kind == "RolloutPlugin")
            .and_then(|definition| definition.spec.versions[0].schema.clone()?.open_api_v3_schema)
            .unwrap();
        assert!(named(at(&mut schema, &["spec", "workloadRef", "name"]).unwrap()));
        assert!(!named(at(&mut schema, &["spec", "plugin", "name"]).unwrap()));
    }

    /// The operator keeps the status of every object in memory and may include its fields in events.
    #[test]
    fn of_a_status_only_messages_are_long() {
        let long = |schema: &JSONSchemaProps| schema.max_length == Some(LONGEST_TEXT);
        for definition in crate::made_definitions() {
            let kind = definition.spec.names.kind.clone();
            if !["RolloutPlugin", "PhasedRollout"].contains(&kind.as_str()) {
                continue;
            }
            let mut schema = definition.spec.versions[0].schema.clone().unwrap();
            let schema = schema.open_api_v3_schema.as_mut().unwrap();
            let status = at(schema, &["status"]).unwrap();
            let fields = status.properties.iter().flatten();
            let long: Vec<_> = fields
                .filter(|(_, field)| long(field))
                .map(|(name, _)| name.as_str())
                .collect();
            assert_eq!(long, ["abortedReason", "message"], "{kind}");
        }
    }

    #[test]
    fn a_limit_that_a_field_has_is_kept() {
        let definition = limited(crate::phasedrollout::definition());
        let mut schema = definition.spec.versions[0].schema.clone().unwrap();
        let schema = schema.open_api_v3_schema.as_mut().unwrap();
        let url = at(schema, &["spec", "check", "query", "url"]).unwrap();
        assert_eq!(url.max_length, Some(2048));
        let expr = at(schema, &["spec", "check", "query", "expr"]).unwrap();
        assert_eq!(expr.max_length, Some(LONGEST_TEXT));
    }
}
