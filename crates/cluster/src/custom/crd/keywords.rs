//! The keywords of a schema: where they are allowed, and with which values.

use crate::json::Value;

use super::expressions;
use super::structural::{list, properties};
use crate::custom::fault;
use crate::custom::schema::{flag, text, texts};
use crate::status::FieldError;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// The constraints on a node from its position.
#[derive(Clone, Default)]
struct Surroundings {
    root: bool,
    /// Why defaults are not allowed here.
    no_defaults: Option<String>,
    inside_meta: bool,
    /// The nearest ancestor where old and new cannot be correlated.
    no_old_self: Option<String>,
    rules_can_be_read: bool,
}

/// Errors of the schema, and of its rules, which come last.
#[derive(Default)]
struct Found {
    schema: Vec<FieldError>,
    rules: Vec<FieldError>,
}

/// The errors in the keywords of a schema.
pub(super) fn check(node: &Value, at: &str, rules_can_be_read: bool) -> Vec<FieldError> {
    let mut found = Found::default();
    let around = Surroundings {
        root: true,
        rules_can_be_read,
        ..Surroundings::default()
    };
    check_node(node, at, &around, &mut found);
    found.schema.append(&mut found.rules);
    found.schema
}

/// Whether a schema has a keyword that structural schemas do not allow.
pub(super) fn has_unsupported(node: &Value) -> bool {
    let set = |name: &str| node.get(name).is_some_and(|value| !value.is_null());
    let here = [
        "$ref",
        "patternProperties",
        "definitions",
        "dependencies",
        "additionalItems",
        "id",
    ]
    .into_iter()
    .any(set);
    let nested = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .flat_map(|name| list(node, name).map(|(_, inner)| inner));
    let nested = nested.chain(properties(node).map(|(_, inner)| inner));
    let nested = nested.chain(
        ["items", "not", "additionalProperties"]
            .into_iter()
            .map(|name| &node[name]),
    );
    here || node["items"].is_array() || nested.filter(|inner| inner.is_object()).any(has_unsupported)
}

fn check_node(node: &Value, at: &str, around: &Surroundings, found: &mut Found) {
    let before = found.schema.len();
    check_keywords(node, at, around, found);
    if flag(node, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found
            .schema
            .push(FieldError::forbidden(format!("{at}.uniqueItems"), detail));
    }
    check_inner(node, at, around, found);
    check_map_type(node, at, &mut found.schema);
    check_list_type(node, at, &mut found.schema);
    found.schema.extend(expressions::check_texts(node, at));
    // Rules are checked only if the schema below them is valid.
    if found.schema.len() == before && around.rules_can_be_read {
        let resource = around.root || flag(node, "x-kubernetes-embedded-resource");
        found.rules.extend(expressions::check(
            node,
            at,
            resource,
            around.no_old_self.as_deref(),
        ));
    }
}

fn check_keywords(node: &Value, at: &str, around: &Surroundings, found: &mut Found) {
    let errors = &mut found.schema;
    let kind = text(node, "type");
    if !kind.is_empty() && !TYPES.contains(&kind.as_str()) {
        errors.push(FieldError::not_supported(
            format!("{at}.type"),
            &kind.as_str().into(),
            &TYPES,
        ));
    }
    let mut forbid =
        |name: &str, detail: &str| errors.push(FieldError::forbidden(format!("{at}.{name}"), detail));
    let set = |name: &str| node.get(name).is_some_and(|value| !value.is_null());
    if let Some(reason) = around.no_defaults.as_ref().filter(|_| set("default")) {
        forbid("default", &format!("must not be set {reason}"));
    }
    for name in [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        if set(name) {
            forbid(name, &format!("{name} is not supported"));
        }
    }
    if kind == "null" {
        forbid(
            "type",
            "type cannot be set to null, use nullable as an alternative",
        );
    }
    if node["items"].is_array() {
        forbid("items", "items must be a schema object and not an array");
    }
    if around.inside_meta && flag(node, "x-kubernetes-embedded-resource") {
        forbid(
            "x-kubernetes-embedded-resource",
            "must not be used inside of resource meta",
        );
    }
}

fn check_inner(node: &Value, at: &str, around: &Surroundings, found: &mut Found) {
    let inner = Surroundings {
        root: false,
        ..around.clone()
    };
    let additional = &node["additionalProperties"];
    if properties(node).next().is_some() && (additional.is_object() || *additional == false) {
        let detail = "additionalProperties and properties are mutual exclusive";
        found.schema.push(FieldError::forbidden(
            format!("{at}.additionalProperties"),
            detail,
        ));
    }
    if additional.is_object() {
        let mut inner = inner.clone();
        if around.inside_meta {
            inner.no_defaults = Some("inside additionalProperties applying to object metadata".into());
        }
        check_node(additional, &format!("{at}.additionalProperties"), &inner, found);
    }
    let resource = around.root || flag(node, "x-kubernetes-embedded-resource");
    for (name, property) in properties(node) {
        let mut inner = inner.clone();
        if resource && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
            inner.inside_meta = true;
            if around.root {
                inner.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        check_node(property, &format!("{at}.properties[{name}]"), &inner, found);
    }
    let branch = Surroundings {
        rules_can_be_read: false,
        ..inner.clone()
    };
    if node["not"].is_object() {
        check_node(&node["not"], &format!("{at}.not"), &branch, found);
    }
    for junctor in ["allOf", "oneOf", "anyOf"] {
        for (index, inner) in list(node, junctor) {
            check_node(inner, &format!("{at}.{junctor}[{index}]"), &branch, found);
        }
    }
    if node["items"].is_object() {
        let mut inner = inner;
        if node["x-kubernetes-list-type"] != "map" {
            inner.no_old_self.get_or_insert_with(|| at.to_owned());
        }
        check_node(&node["items"], &format!("{at}.items"), &inner, found);
    }
}

/// Requires a type for another keyword.
fn demand_type(node: &Value, wanted: &str, because: &str, at: &str, errors: &mut Vec<FieldError>) {
    let detail = format!("must be {wanted} if {because} is specified");
    match text(node, "type").as_str() {
        "" => errors.push(FieldError::required(format!("{at}.type"), &detail)),
        kind if kind != wanted => {
            errors.push(fault::invalid(format!("{at}.type"), Some(&kind.into()), detail))
        }
        _ => {}
    }
}

fn check_map_type(node: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if node[preserve] == false {
        errors.push(fault::invalid(
            format!("{at}.{preserve}"),
            Some(&false.into()),
            "must be true or undefined",
        ));
    }
    let name = "x-kubernetes-map-type";
    if let Some(map_type) = node[name].as_str() {
        demand_type(node, "object", name, at, errors);
        if !matches!(map_type, "atomic" | "granular") {
            errors.push(FieldError::not_supported(
                format!("{at}.{name}"),
                &map_type.into(),
                &["atomic", "granular"],
            ));
        }
    }
}

fn check_list_type(node: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let name = "x-kubernetes-list-type";
    let place = format!("{at}.{name}");
    let list_type = node[name].as_str();
    let keys = texts(node, "x-kubernetes-list-map-keys");
    let items = &node["items"];
    if list_type.is_some() && node["type"] != "array" {
        demand_type(node, "array", name, at, errors);
    } else if list_type == Some("set") {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let inner = &items[name];
        match text(items, "type").as_str() {
            "array" if inner.is_string() && inner != "atomic" => {
                errors.push(fault::invalid(format!("{at}.items.{name}"), Some(inner), detail));
            }
            "object" if items["x-kubernetes-map-type"] != "atomic" => {
                // The server prints the item's list type here.
                errors.push(fault::invalid(
                    format!("{at}.items.x-kubernetes-map-type"),
                    Some(inner),
                    detail,
                ));
            }
            _ => {}
        }
    }
    if let Some(list_type) = list_type.filter(|list_type| !matches!(*list_type, "atomic" | "set" | "map")) {
        errors.push(FieldError::not_supported(
            &place,
            &list_type.into(),
            &["atomic", "set", "map"],
        ));
    }
    if !keys.is_empty() && list_type != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(&place, detail),
            Some(list_type) => fault::invalid(&place, Some(&list_type.into()), detail),
        });
    }
    if list_type == Some("map") {
        check_map_list(node, &keys, at, errors);
    }
    if let (Some(list_type @ ("set" | "map")), true) = (list_type, items.is_object()) {
        if flag(items, "nullable") {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            errors.push(FieldError::forbidden(format!("{at}.items.nullable"), &detail));
        }
        if list_type == "map" {
            check_map_keys(items, &keys, at, errors);
        }
    }
}

fn check_map_list(node: &Value, keys: &[String], at: &str, errors: &mut Vec<FieldError>) {
    let items = &node["items"];
    let keys_at = format!("{at}.x-kubernetes-list-map-keys");
    if keys.is_empty() {
        errors.push(FieldError::required(
            &keys_at,
            "must not be empty if x-kubernetes-list-type is map",
        ));
    }
    if items.is_null() {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(format!("{at}.items"), detail));
    }
    if items.is_object() && items["type"] != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(fault::invalid(
            format!("{at}.items.type"),
            Some(&text(items, "type").into()),
            detail,
        ));
    } else if items.is_object() {
        let shown = Value::from(keys.to_vec());
        for (index, key) in keys.iter().enumerate() {
            match items["properties"].get(key) {
                None => {
                    errors.push(fault::invalid(
                        &keys_at,
                        Some(&shown),
                        "entries must all be names of item properties",
                    ));
                }
                Some(property) if matches!(text(property, "type").as_str(), "array" | "object") => {
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    let place = format!("{at}.items.properties[{key}].type");
                    errors.push(fault::invalid(place, Some(&items["type"]), detail));
                }
                Some(_) => {}
            }
            if keys[..index].contains(key) {
                errors.push(fault::invalid(
                    &keys_at,
                    Some(&shown),
                    "must not contain duplicate entries",
                ));
            }
        }
    }
}

/// Every element must have every key.
fn check_map_keys(items: &Value, keys: &[String], at: &str, errors: &mut Vec<FieldError>) {
    let required = texts(items, "required");
    for key in keys {
        let Some(property) = items["properties"].get(key) else {
            continue;
        };
        let place = format!("{at}.items.properties[{key}]");
        let defaulted = property.get("default").is_some_and(|default| !default.is_null());
        if !required.contains(key) && !defaulted {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(format!("{place}.default"), detail));
        }
        if flag(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(format!("{place}.nullable"), detail));
        }
    }
}
