//! The form of a value for ownership: a map, a list or a scalar, and the identity of list items.

use crate::json::{Name, Value};

use super::super::element::Element;
use crate::types::{Kind, ListKind, Shape};

/// How a value is walked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    Map,
    List,
    Scalar,
}

/// The scalars that are allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    Number,
    String,
    Bool,
    Any,
}

/// The forms that the type allows at one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    map: bool,
    list: bool,
    pub(super) scalar: Option<Scalar>,
}

const ANYTHING: Allowed = Allowed {
    map: true,
    list: true,
    scalar: Some(Scalar::Any),
};

/// The forms allowed here.
pub(super) fn allowed(shape: Shape<'_>) -> Allowed {
    let map = Allowed {
        map: true,
        list: false,
        scalar: None,
    };
    let list = Allowed {
        map: false,
        list: true,
        scalar: None,
    };
    let scalar = |scalar| Allowed {
        map: false,
        list: false,
        scalar: Some(scalar),
    };
    match shape {
        Shape::Builtin { kind, .. } => match kind {
            Kind::String | Kind::Bytes | Kind::Duration => scalar(Scalar::String),
            Kind::Bool => scalar(Scalar::Bool),
            Kind::Int32 | Kind::Int64 | Kind::Uint8 | Kind::Float => scalar(Scalar::Number),
            Kind::Time | Kind::MicroTime | Kind::Quantity | Kind::IntOrString => scalar(Scalar::Any),
            Kind::Struct(_) | Kind::Map(_) => map,
            Kind::List(_) => list,
            Kind::Any => ANYTHING,
        },
        Shape::Structural(schema) => match schema["type"].as_str() {
            Some("object") => map,
            Some("array") => list,
            Some("string")
                if schema["format"]
                    .as_str()
                    .is_none_or(|format| matches!(format, "" | "byte")) =>
            {
                scalar(Scalar::String)
            }
            Some("string") => scalar(Scalar::Any),
            Some("boolean") => scalar(Scalar::Bool),
            Some("integer" | "number") => scalar(Scalar::Number),
            _ => ANYTHING,
        },
        Shape::Custom(_) => map,
        Shape::Unknown => ANYTHING,
    }
}

/// How to walk `value` here. A value that does not fit its type is walked as the type says.
pub(super) fn form(shape: Shape<'_>, value: &Value) -> Form {
    let allowed = allowed(shape);
    match value {
        Value::Object(_) if allowed.map => Form::Map,
        Value::Array(_) if allowed.list => Form::List,
        Value::Bool(_) | Value::Number(_) | Value::String(_) if allowed.scalar.is_some() => Form::Scalar,
        _ if allowed.map => Form::Map,
        _ if allowed.scalar.is_some() => Form::Scalar,
        _ => Form::List,
    }
}

/// How to walk two values at the same path: one form, or both if they differ.
pub(super) fn forms(
    shape: Shape<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
) -> impl Iterator<Item = Form> + use<> {
    let (old, new) = (
        old.map(|value| form(shape, value)),
        new.map(|value| form(shape, value)),
    );
    [old, new.filter(|new| old != Some(*new))].into_iter().flatten()
}

/// Whether `name` is a field of the struct here, rather than a key of a map.
pub(crate) fn is_named(shape: Shape<'_>, name: &str) -> bool {
    match shape {
        Shape::Builtin {
            kind: Kind::Struct(owner),
            ..
        } => owner
            .described()
            .is_some_and(|described| described.fields.contains_key(name)),
        Shape::Custom(schema) => is_meta(name) || schema["properties"].get(name).is_some(),
        Shape::Structural(schema) => {
            (is_meta(name) && schema["x-kubernetes-embedded-resource"] == true)
                || schema["properties"].get(name).is_some()
        }
        _ => false,
    }
}

/// Whether the field or key `name` is allowed here.
pub(super) fn declares(shape: Shape<'_>, name: &str) -> bool {
    match shape {
        Shape::Builtin {
            kind: Kind::Struct(owner),
            ..
        } => owner
            .described()
            .is_none_or(|described| described.fields.contains_key(name)),
        Shape::Structural(schema) | Shape::Custom(schema) => {
            is_named(shape, name)
                || match &schema["additionalProperties"] {
                    Value::Null => {
                        schema["x-kubernetes-preserve-unknown-fields"] == true
                            || schema["properties"]
                                .as_object()
                                .is_none_or(|properties| properties.is_empty())
                    }
                    Value::Bool(allowed) => *allowed,
                    _ => true,
                }
        }
        _ => true,
    }
}

/// The fields that every object has, whether its schema declares them or not.
fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// The identity of `item` in the list here, which is a set or a map.
pub(super) fn element_of(list: Shape<'_>, item: &Value) -> Result<Element, String> {
    let keys: Vec<&str> = match list.list() {
        ListKind::Map(keys) => keys.iter().map(String::as_str).collect(),
        ListKind::MapOf(keys) => keys.iter().filter_map(Value::as_str).collect(),
        ListKind::Set => Vec::new(),
        ListKind::Atomic => return Err("invalid indexing of non-associative list".to_owned()),
    };
    if keys.is_empty() {
        return match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null".to_owned())
            }
            scalar => Ok(Element::Value(scalar.clone())),
        };
    }
    let fields = match item {
        Value::Object(fields) => fields,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let found = keys.iter().filter_map(|key| {
        let value = fields
            .get(key)
            .cloned()
            .or_else(|| key_default(list.element(), key))?;
        Some((Name::from(*key), value))
    });
    let mut found: Vec<_> = found.collect();
    if found.is_empty() {
        let keys: Vec<_> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] \
             (and doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(Element::Key(found))
}

/// The value of a key that the item omits: its default, or zero if Go would write zero.
fn key_default(item: Shape<'_>, key: &str) -> Option<Value> {
    if let Some(default) = item.default_of(key) {
        return Some(default.clone());
    }
    match item.member(key) {
        Shape::Builtin {
            kind,
            field: Some(field),
        } if !field.omit_empty && !field.pointer => match kind {
            Kind::String => Some("".into()),
            Kind::Int32 | Kind::Int64 => Some(0.into()),
            _ => None,
        },
        _ => None,
    }
}

/// The fields of a value that is walked as a map; none for null and other types.
pub(super) fn fields(value: Option<&Value>) -> Option<&crate::json::Map> {
    value.and_then(Value::as_object)
}

/// The items of a value that is walked as a list; none for null and other types.
pub(super) fn items(value: Option<&Value>) -> Option<&[Value]> {
    value.and_then(Value::as_array).map(Vec::as_slice)
}
