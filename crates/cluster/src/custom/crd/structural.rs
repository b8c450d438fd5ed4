//! The rules for structural schemas: every field has one type, declared outside of allOf, anyOf, oneOf and not.

use crate::json::{Name, Value};

use crate::custom::schema::{flag, text};
use crate::custom::{fault, pattern};
use crate::status::FieldError;

/// The position of a node.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The violations of the structural rules, in alphabetical order.
pub(super) fn check(node: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_node(node, Level::Root, at, &mut errors);
    check_complete(node, Some(node), at, at, &mut errors);
    errors.sort_by_key(|error| format!("{}: {}", error.field, error.message));
    errors
}

fn check_node(node: &Value, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let kind = text(node, "type");
    if kind == "array" && !node["items"].is_object() {
        errors.push(FieldError::required(format!("{at}.items"), "must be specified"));
    }
    if let items @ Value::Object(_) = &node["items"] {
        check_node(items, Level::Item, &format!("{at}.items"), errors);
    }
    for (name, inner) in properties(node) {
        check_node(inner, Level::Field, &format!("{at}.properties[{name}]"), errors);
    }
    let additional = node
        .get("additionalProperties")
        .filter(|additional| !additional.is_null());
    if additional.is_some() && level == Level::Root {
        errors.push(FieldError::forbidden(
            format!("{at}.additionalProperties"),
            "must not be used at the root",
        ));
    }
    if let Some(inner @ Value::Object(_)) = additional {
        check_node(inner, Level::Field, &format!("{at}.additionalProperties"), errors);
    }
    check_extensions(node, at, errors);
    check_values(
        node,
        is_int_or_string(&node["anyOf"]),
        is_int_or_string(&node["allOf"][0]["anyOf"]),
        at,
        errors,
    );

    let embedded = flag(node, "x-kubernetes-embedded-resource");
    let place = format!("{at}.type");
    if embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind.as_str() {
            "" => FieldError::required(place, detail),
            kind => fault::invalid(place, Some(&kind.into()), detail),
        });
    } else if kind.is_empty()
        && !flag(node, "x-kubernetes-int-or-string")
        && !flag(node, "x-kubernetes-preserve-unknown-fields")
    {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(place, detail));
    } else if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(fault::invalid(
            place,
            Some(&kind.as_str().into()),
            "must be object at the root",
        ));
    }
    if embedded && additional.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(
            format!("{at}.additionalProperties"),
            detail,
        ));
    }
    check_meta(node, level, embedded, at, errors);
    if embedded && !flag(node, "x-kubernetes-preserve-unknown-fields") && properties(node).next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{at}.properties"), detail));
    }
}

/// A resource's type and metadata are fixed; a schema may only restrict its name.
fn check_meta(node: &Value, level: Level, embedded: bool, at: &str, errors: &mut Vec<FieldError>) {
    let is_resource = level == Level::Root || embedded;
    for name in ["kind", "apiVersion"] {
        if let Some(inner) = node["properties"]
            .get(name)
            .filter(|inner| is_resource && inner["type"] != "string")
        {
            let place = format!("{at}.properties[{name}].type");
            errors.push(fault::invalid(
                place,
                Some(&text(inner, "type").into()),
                "must be string",
            ));
        }
    }
    let Some(metadata) = node["properties"].get("metadata") else {
        return;
    };
    let place = format!("{at}.properties[metadata]");
    if is_resource && metadata["type"] != "object" {
        errors.push(fault::invalid(
            format!("{place}.type"),
            Some(&text(metadata, "type").into()),
            "must be object",
        ));
    }
    if level == Level::Root {
        let names_only =
            properties(metadata).all(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
        let known = |name: &str| matches!(name, "type" | "default" | "properties");
        let is_set = |value: &Value| !(value.is_null() || *value == false || *value == "");
        let bare = metadata
            .as_object()
            .into_iter()
            .flatten()
            .all(|(name, value)| known(name) || !is_set(value));
        if !(names_only && bare) {
            let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            errors.push(FieldError::forbidden(place, detail));
        }
    }
}

fn check_extensions(node: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if !flag(node, "x-kubernetes-int-or-string") {
        return;
    }
    for name in [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    ] {
        if flag(node, name) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(fault::invalid(format!("{at}.{name}"), Some(&true.into()), detail));
        }
    }
}

/// The branches of a node. Two of them are exempt: those that express int-or-string.
fn check_values(
    node: &Value,
    spare_any: bool,
    spare_first_all: bool,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    if !spare_any {
        for (index, branch) in list(node, "anyOf") {
            check_branch(branch, false, &format!("{at}.anyOf[{index}]"), errors);
        }
    }
    for (index, branch) in list(node, "allOf") {
        check_branch(
            branch,
            spare_first_all && index == 0,
            &format!("{at}.allOf[{index}]"),
            errors,
        );
    }
    for (index, branch) in list(node, "oneOf") {
        check_branch(branch, false, &format!("{at}.oneOf[{index}]"), errors);
    }
    if let not @ Value::Object(_) = &node["not"] {
        check_branch(not, false, &format!("{at}.not"), errors);
    }
    if let Some(source) = node["pattern"].as_str()
        && let Err(why) = pattern::compile(source)
    {
        let detail = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(fault::invalid(
            format!("{at}.pattern"),
            Some(&source.into()),
            detail,
        ));
    }
}

/// A branch may only restrict values, not declare them.
fn check_branch(node: &Value, spare_any: bool, at: &str, errors: &mut Vec<FieldError>) {
    check_values(node, spare_any, false, at, errors);
    if let items @ Value::Object(_) = &node["items"] {
        check_branch(items, false, &format!("{at}.items"), errors);
    }
    for (name, inner) in properties(node) {
        check_branch(inner, false, &format!("{at}.properties[{name}]"), errors);
    }
    let is_set = |name: &str| node.get(name).is_some_and(|value| !value.is_null());
    let is_filled = |name: &str| node[name].as_array().is_some_and(|items| !items.is_empty());
    let mut forbid =
        |name: &str, detail: &str| errors.push(FieldError::forbidden(format!("{at}.{name}"), detail));
    for name in ["type", "title", "description"] {
        if !text(node, name).is_empty() {
            forbid(name, "must be empty to be structural");
        }
    }
    for name in [
        "additionalProperties",
        "default",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    ] {
        if is_set(name) {
            forbid(name, "must be undefined to be structural");
        }
    }
    let flags = [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ];
    for name in flags {
        if flag(node, name) {
            forbid(name, "must be false to be structural");
        }
    }
    for name in ["x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
        if is_filled(name) {
            forbid(name, "must be empty to be structural");
        }
    }
    if node["properties"].get("metadata").is_some() {
        forbid(
            "properties[metadata]",
            "must not be specified in a nested context",
        );
    }
}

/// Every field that a branch restricts must be declared outside of it.
fn check_complete(
    branch: &Value,
    outside: Option<&Value>,
    at: &str,
    inside: &str,
    errors: &mut Vec<FieldError>,
) {
    for (name, inner) in ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|junctor| {
        list(branch, junctor).map(move |(index, inner)| (format!("{junctor}[{index}]"), inner))
    }) {
        check_branch_complete(inner, outside, at, &format!("{inside}.{name}"), errors);
    }
    if let not @ Value::Object(_) = &branch["not"] {
        check_branch_complete(not, outside, at, &format!("{inside}.not"), errors);
    }
}

fn check_branch_complete(
    branch: &Value,
    outside: Option<&Value>,
    at: &str,
    inside: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(outside) = outside else {
        errors.push(FieldError::required(
            at,
            &format!("because it is defined in {inside}"),
        ));
        return;
    };
    check_complete(branch, Some(outside), at, inside, errors);
    if let items @ Value::Object(_) = &branch["items"] {
        let declared = outside.get("items").filter(|items| items.is_object());
        check_branch_complete(
            items,
            declared,
            &format!("{at}.items"),
            &format!("{inside}.items"),
            errors,
        );
    }
    for (name, inner) in properties(branch) {
        let place = format!("properties[{name}]");
        let declared = outside["properties"].get(name);
        check_branch_complete(
            inner,
            declared,
            &format!("{at}.{place}"),
            &format!("{inside}.{place}"),
            errors,
        );
    }
}

fn is_int_or_string(any_of: &Value) -> bool {
    let is = |branch: &Value, kind: &str| {
        branch["type"] == kind && branch.as_object().is_some_and(|fields| fields.len() == 1)
    };
    matches!(any_of.as_array().map(Vec::as_slice), Some([one, other]) if is(one, "integer") && is(other, "string"))
}

pub(super) fn properties(node: &Value) -> impl Iterator<Item = (&Name, &Value)> {
    node["properties"].as_object().into_iter().flatten()
}

pub(super) fn list<'v>(node: &'v Value, name: &str) -> impl Iterator<Item = (usize, &'v Value)> {
    node[name].as_array().into_iter().flatten().enumerate()
}
