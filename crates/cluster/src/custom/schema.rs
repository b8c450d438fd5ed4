//! A structural schema, parsed once from its CRD.
//!
//! Parsing never fails: `crd` rejects invalid schemas first, and any invalid part that remains is treated as absent.

use std::collections::BTreeMap;

use crate::json::Value;

use super::pattern::Pattern;
use super::rules::{Kept, Rule};

/// One node of a schema: the allowed values at one path of an object.
#[derive(Debug, Default)]
pub(super) struct Schema {
    /// `object`, `array`, `string`, `integer`, `number`, `boolean`, or empty if any type is allowed.
    pub(super) kind: String,
    pub(super) format: String,
    pub(super) nullable: bool,
    pub(super) int_or_string: bool,
    /// Unknown fields are kept.
    pub(super) preserve: bool,
    /// A whole resource with apiVersion, kind and metadata of its own.
    pub(super) embedded: bool,
    pub(super) list: ListType,
    pub(super) default: Option<Value>,
    pub(super) properties: BTreeMap<String, Schema>,
    pub(super) additional: Additional,
    pub(super) items: Option<Box<Schema>>,
    pub(super) required: Vec<String>,
    pub(super) allowed: Vec<Value>,
    pub(super) bounds: Bounds,
    pub(super) all_of: Vec<Schema>,
    pub(super) any_of: Vec<Schema>,
    pub(super) one_of: Vec<Schema>,
    pub(super) not: Option<Box<Schema>>,
    pub(super) rules: Vec<Rule>,
    pub(super) kept: Kept,
    pub(super) inside: Inside,
}

/// The features used anywhere in a schema, so that walks skip parts without them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inside {
    pub(super) rules: bool,
    /// Lists that are sets or maps.
    pub(super) keyed_lists: bool,
    pub(super) embedded: bool,
    pub(super) defaults: bool,
}

/// The value of `additionalProperties`.
#[derive(Debug, Default)]
pub(super) enum Additional {
    #[default]
    Absent,
    Allowed(bool),
    Of(Box<Schema>),
}

/// How the elements of a list are identified.
#[derive(Debug, Default, PartialEq)]
pub(super) enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// The limits of numbers, strings, lists and maps.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    pub(super) minimum: Option<f64>,
    pub(super) exclusive_minimum: bool,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_maximum: bool,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) pattern: Option<Pattern>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) unique_items: bool,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
}

impl Schema {
    /// Parses a node and everything below it.
    pub(super) fn read(node: &Value) -> Self {
        let mut schema = Self {
            kind: text(node, "type"),
            format: text(node, "format"),
            nullable: flag(node, "nullable"),
            int_or_string: flag(node, "x-kubernetes-int-or-string"),
            preserve: flag(node, "x-kubernetes-preserve-unknown-fields"),
            embedded: flag(node, "x-kubernetes-embedded-resource"),
            list: list_type(node),
            default: node.get("default").filter(|default| !default.is_null()).cloned(),
            properties: named(node, "properties"),
            additional: match node.get("additionalProperties") {
                Some(Value::Bool(allowed)) => Additional::Allowed(*allowed),
                Some(of @ Value::Object(_)) => Additional::Of(Box::new(Self::read(of))),
                _ => Additional::Absent,
            },
            items: one(node, "items"),
            required: texts(node, "required"),
            allowed: node["enum"].as_array().cloned().unwrap_or_default(),
            bounds: bounds(node),
            all_of: several(node, "allOf"),
            any_of: several(node, "anyOf"),
            one_of: several(node, "oneOf"),
            not: one(node, "not"),
            rules: Vec::new(),
            kept: Kept::default(),
            inside: Inside::default(),
        };
        schema.rules = Rule::read_all(node, &schema);
        schema.inside = schema.found();
        schema
    }

    fn found(&self) -> Inside {
        let here = Inside {
            rules: !self.rules.is_empty(),
            keyed_lists: self.list != ListType::Atomic,
            embedded: self.embedded,
            defaults: self.default.is_some(),
        };
        let inner = self.properties.values().chain(self.items.as_deref());
        inner.chain(self.additional()).fold(here, |found, inner| {
            let Inside {
                rules,
                keyed_lists,
                embedded,
                defaults,
            } = inner.inside;
            Inside {
                rules: found.rules || rules,
                keyed_lists: found.keyed_lists || keyed_lists,
                embedded: found.embedded || embedded,
                defaults: found.defaults || defaults,
            }
        })
    }

    /// The schema of a field, declared or additional.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or_else(|| self.additional())
    }

    /// The schema of undeclared fields.
    pub(super) fn additional(&self) -> Option<&Self> {
        match &self.additional {
            Additional::Of(schema) => Some(schema),
            _ => None,
        }
    }

    /// The types that a value may have, by the names that validation uses.
    pub(super) fn types(&self) -> &[&str] {
        match self.kind.as_str() {
            _ if self.int_or_string => &["integer", "string"],
            "object" => &["object"],
            "array" => &["array"],
            "string" => &["string"],
            "integer" => &["integer"],
            "number" => &["number"],
            "boolean" => &["boolean"],
            _ => &[],
        }
    }
}

fn list_type(node: &Value) -> ListType {
    match node["x-kubernetes-list-type"].as_str() {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(texts(node, "x-kubernetes-list-map-keys")),
        _ => ListType::Atomic,
    }
}

fn bounds(node: &Value) -> Bounds {
    let number = |name: &str| node[name].as_f64();
    let count = |name: &str| node[name].as_u64();
    Bounds {
        minimum: number("minimum"),
        exclusive_minimum: flag(node, "exclusiveMinimum"),
        maximum: number("maximum"),
        exclusive_maximum: flag(node, "exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern: node["pattern"]
            .as_str()
            .filter(|source| !source.is_empty())
            .map(Pattern::read),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: flag(node, "uniqueItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
    }
}

/// A string, empty if there is none.
pub(super) fn text(node: &Value, name: &str) -> String {
    node[name].as_str().unwrap_or_default().to_owned()
}

/// The strings of a list.
pub(super) fn texts(node: &Value, name: &str) -> Vec<String> {
    let items = node[name].as_array().map_or(&[] as &[_], Vec::as_slice);
    items
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

pub(super) fn flag(node: &Value, name: &str) -> bool {
    node[name].as_bool().unwrap_or_default()
}

fn one(node: &Value, name: &str) -> Option<Box<Schema>> {
    node.get(name)
        .filter(|inner| inner.is_object())
        .map(|inner| Box::new(Schema::read(inner)))
}

fn several(node: &Value, name: &str) -> Vec<Schema> {
    node[name]
        .as_array()
        .map_or_else(Vec::new, |nodes| nodes.iter().map(Schema::read).collect())
}

fn named(node: &Value, name: &str) -> BTreeMap<String, Schema> {
    let nodes = node[name].as_object().into_iter().flatten();
    nodes
        .map(|(name, node)| (name.to_string(), Schema::read(node)))
        .collect()
}
