//! Defaults must be valid for their schema.

use crate::json::Value;

use super::structural::properties;
use crate::custom::decode::{joined, prune};
use crate::custom::rules::{self, Part, Ratchet};
use crate::custom::schema::{Schema, flag};
use crate::custom::{embedded, fault, value};
use crate::status::FieldError;

/// The errors in the defaults of a schema.
pub(super) fn check(node: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_node(node, at, true, false, &mut errors);
    errors
}

/// `inside_meta` is true within a resource's own type and metadata, where defaults are validated with the whole object.
fn check_node(node: &Value, at: &str, root: bool, inside_meta: bool, errors: &mut Vec<FieldError>) {
    let resource = root || flag(node, "x-kubernetes-embedded-resource");
    let inside_meta = inside_meta && !resource;
    if let Some(default) = node.get("default").filter(|default| !default.is_null())
        && !inside_meta
    {
        check_default(node, default, resource, &format!("{at}.default"), errors);
    }
    if let items @ Value::Object(_) = &node["items"] {
        check_node(items, &format!("{at}.items"), false, inside_meta, errors);
    }
    for (name, inner) in properties(node) {
        let meta = resource && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        check_node(
            inner,
            &format!("{at}.properties[{name}]"),
            false,
            inside_meta || meta,
            errors,
        );
    }
}

fn check_default(node: &Value, default: &Value, resource: bool, at: &str, errors: &mut Vec<FieldError>) {
    let mut schema = Schema::read(node);
    schema.embedded = resource;
    schema.inside.embedded |= resource;
    let mut pruned = default.clone();
    prune(&mut pruned, Some(&schema), resource, "", &mut Vec::new());
    if pruned != *default {
        errors.push(fault::invalid(at, Some(default), "must not have unknown fields"));
    }
    let mut found = Vec::new();
    embedded::check(default, &schema, "", &mut found);
    if found.is_empty() {
        found.extend(
            value::check(default, &schema, "", None)
                .errors
                .into_iter()
                .map(|complaint| complaint.error),
        );
    }
    if found.is_empty() {
        let part = Part {
            value: default,
            schema: &schema,
            old: Some(default),
            ratchet: Ratchet::default(),
            resource,
        };
        rules::run(part, "", &mut found);
        if found.is_empty() {
            rules::run(Part { old: None, ..part }, "", &mut found);
        }
    }
    errors.extend(found.into_iter().map(|error| FieldError {
        field: below(at, &error.field),
        ..error
    }));
}

fn below(at: &str, field: &str) -> String {
    match field {
        fault::NOWHERE => at.to_owned(),
        field if field.starts_with('[') => format!("{at}{field}"),
        field => joined(at, field),
    }
}
