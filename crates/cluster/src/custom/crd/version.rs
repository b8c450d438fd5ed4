//! The versions of a CRD: schema, subresources, printer columns, selectable fields.

use std::collections::BTreeSet;

use crate::json::Value;

use super::{defaults, keywords, structural};
use crate::custom::definition::is_storage;
use crate::custom::schema::{Schema, flag, text};
use crate::custom::{fault, field_path};
use crate::names;
use crate::status::FieldError;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];
const MOST_SELECTABLE: usize = 8;
/// The keywords allowed at the root of a schema with a status subresource, whose status is validated separately.
const WITH_STATUS: [(&str, &str); 22] = [
    ("Description", "description"),
    ("Type", "type"),
    ("Format", "format"),
    ("Title", "title"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Required", "required"),
    ("Items", "items"),
    ("Properties", "properties"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"),
    ("XValidations", "x-kubernetes-validations"),
];

/// Validates the versions one by one and together.
pub(super) fn check_all(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let versions = spec["versions"].as_array().map_or(&[] as &[_], Vec::as_slice);
    for (index, version) in versions.iter().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            errors.push(FieldError::required(
                format!("spec.versions[{index}].schema.openAPIV3Schema"),
                "",
            ));
        }
    }
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        let wrong = names::dns_1035_label(&text(version, "name"));
        let wrong = wrong.map(|why| fault::invalid(format!("{at}.name"), Some(&version["name"]), why));
        let names_twice = versions.len() == 1;
        errors.extend(wrong.clone());
        if names_twice {
            errors.extend(wrong.map(|error| FieldError {
                field: "spec.version".into(),
                ..error
            }));
        }
        if let Some(warning) = version
            .get("deprecationWarning")
            .filter(|warning| !warning.is_null())
            && !flag(version, "deprecated")
        {
            let place = format!("{at}.deprecationWarning");
            errors.push(fault::invalid(
                place,
                Some(warning),
                "can only be set for deprecated versions",
            ));
        }
        let (base, schema_at) = match versions.len() {
            1 => ("spec".to_owned(), "spec.validation".to_owned()),
            _ => (at.clone(), format!("{at}.schema")),
        };
        errors.extend(check_one(version, &base, &schema_at));
    }
    let named: BTreeSet<_> = versions.iter().map(|version| text(version, "name")).collect();
    let place = "spec.versions";
    if named.len() != versions.len() {
        errors.push(fault::invalid(
            place,
            Some(&spec["versions"]),
            "must contain unique version names",
        ));
    }
    if versions.iter().filter(|version| is_storage(version)).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(fault::invalid(place, Some(&spec["versions"]), detail));
    }
    errors
}

fn check_one(version: &Value, base: &str, schema_at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let node = &version["schema"]["openAPIV3Schema"];
    let subresources = &version["subresources"];
    if node.is_object() {
        errors.extend(check_schema(
            node,
            subresources.get("status").is_some_and(Value::is_object),
            schema_at,
        ));
    }
    errors.extend(check_scale(
        &subresources["scale"],
        &format!("{base}.subresources.scale"),
    ));
    let list = |name: &str| version[name].as_array().map_or(&[] as &[_], Vec::as_slice);
    for (index, column) in list("additionalPrinterColumns").iter().enumerate() {
        errors.extend(check_column(
            column,
            &format!("{base}.additionalPrinterColumns[{index}]"),
        ));
    }
    let selectable = list("selectableFields");
    if !selectable.is_empty() {
        errors.extend(check_selectable(
            selectable,
            &Schema::read(node),
            &format!("{base}.selectableFields"),
        ));
    }
    errors
}

fn check_schema(node: &Value, has_status: bool, at: &str) -> Vec<FieldError> {
    let at = format!("{at}.openAPIV3Schema");
    let mut errors = Vec::new();
    if has_status {
        errors.extend(check_root(node, &at));
    }
    if flag(node, "nullable") {
        errors.push(FieldError::forbidden(
            format!("{at}.nullable"),
            "nullable cannot be true at the root",
        ));
    }
    let mut rules_can_be_read = false;
    if !keywords::has_unsupported(node) {
        let wrong = structural::check(node, &at);
        let wrong = if wrong.is_empty() {
            defaults::check(node, &at)
        } else {
            wrong
        };
        rules_can_be_read = wrong.is_empty();
        errors.extend(wrong);
    }
    errors.extend(keywords::check(node, &at, rules_can_be_read));
    errors
}

fn check_root(node: &Value, at: &str) -> Option<FieldError> {
    if !text(node, "type").is_empty() && node["type"] != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return Some(fault::invalid(format!("{at}.type"), Some(&node["type"]), detail));
    }
    let allowed = |name: &str| WITH_STATUS.iter().any(|(_, allowed)| *allowed == name);
    let is_set = |value: &Value| !(value.is_null() || *value == false || *value == "");
    let stray = node
        .as_object()?
        .iter()
        .any(|(name, value)| !allowed(name) && is_set(value));
    let names: Vec<_> = WITH_STATUS.iter().map(|(name, _)| *name).collect();
    let names = names.join(" ");
    let detail = format!(
        "only [{names}] fields are allowed at the root of the schema if the status subresource is enabled"
    );
    stray.then(|| fault::invalid(at, Some(node), detail))
}

fn check_scale(scale: &Value, at: &str) -> Vec<FieldError> {
    if !scale.is_object() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let roots: [(&str, &[&str], &str, bool); 3] = [
        (
            "specReplicasPath",
            &[".spec."],
            "should be a json path under .spec",
            true,
        ),
        (
            "statusReplicasPath",
            &[".status."],
            "should be a json path under .status",
            true,
        ),
        (
            "labelSelectorPath",
            &[".spec.", ".status."],
            "should be a json path under either .spec or .status",
            false,
        ),
    ];
    for (field, roots, detail, required) in roots {
        let place = format!("{at}.{field}");
        let path = text(scale, field);
        if path.is_empty() {
            errors.extend(required.then(|| FieldError::required(place, "")));
        } else if let Some(error) = check_path(&path, &place) {
            errors.push(error);
        } else if !roots.iter().any(|root| path.starts_with(root)) {
            errors.push(fault::invalid(place, Some(&path.into()), detail));
        }
    }
    errors
}

fn check_path(path: &str, at: &str) -> Option<FieldError> {
    let simple = path.starts_with('.');
    (!simple).then(|| {
        fault::invalid(
            at,
            Some(&path.into()),
            "must be a simple json path starting with .",
        )
    })
}

fn check_column(column: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(column, "name").is_empty() {
        errors.push(FieldError::required(format!("{at}.name"), ""));
    }
    let types = format!("must be one of {}", COLUMN_TYPES.join(","));
    match text(column, "type").as_str() {
        "" => errors.push(FieldError::required(format!("{at}.type"), &types)),
        kind if !COLUMN_TYPES.contains(&kind) => {
            errors.push(fault::invalid(format!("{at}.type"), Some(&kind.into()), types));
        }
        _ => {}
    }
    let format = text(column, "format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format.as_str()) {
        let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.push(fault::invalid(
            format!("{at}.format"),
            Some(&format.into()),
            detail,
        ));
    }
    let path = text(column, "jsonPath");
    let place = format!("{at}.JSONPath");
    if path.is_empty() {
        errors.push(FieldError::required(place, ""));
    } else {
        errors.extend(check_path(&path, &place));
    }
    errors
}

fn check_selectable(fields: &[Value], schema: &Schema, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let place = format!("{at}[{index}].jsonPath");
        let path = text(field, "jsonPath");
        if path.is_empty() {
            errors.push(FieldError::required(place, ""));
            continue;
        }
        let shown = Value::from(path.as_str());
        let found = match field_path::resolve(&path, schema, false) {
            Ok(found) => found,
            Err(why) => {
                errors.push(fault::invalid(
                    place,
                    Some(&shown),
                    format!("is an invalid path: {why}"),
                ));
                continue;
            }
        };
        if found.path == "metadata" || found.path.starts_with("metadata.") {
            errors.push(fault::invalid(
                &place,
                Some(&shown),
                "must not point to fields in metadata",
            ));
        }
        let kind = found.schema.map_or("", |schema| schema.kind.as_str());
        if !matches!(kind, "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(fault::invalid(&place, Some(&shown), detail));
        }
        if !seen.insert(found.path) {
            errors.push(fault::duplicate(place, Some(&shown)));
        }
    }
    if seen.len() > MOST_SELECTABLE {
        errors.push(fault::too_many(at, seen.len(), MOST_SELECTABLE as u64));
    }
    errors
}
