//! Decodes the JSON of a custom object.
//!
//! Fields that the schema does not declare are pruned, nulls that it does not allow are dropped unless a default will fill them, and
//! metadata, the object's own and that of embedded resources, is decoded as the built-in type.

use crate::json::{Map, Value};

use super::definition::CustomType;
use super::fault;
use super::schema::{Additional, Schema};
use crate::types::{self, Decoded};

pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Why an object could not be decoded; the server prefixes it with `Widget in version "v1" cannot be handled as a Widget: `.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// The object's own metadata.
    #[error("{0}")]
    Metadata(String),
    /// Metadata or type of an embedded resource.
    #[error("{field}: Invalid value: {shown}: {why}")]
    Embedded {
        field: String,
        shown: String,
        why: String,
    },
}

/// Decodes an object of a custom type.
pub(crate) fn decode(custom: &CustomType, value: &Value) -> Result<Decoded, Unreadable> {
    read(custom, value, true)
}

/// Like `decode`, for the result of an apply: a null that the schema does not allow is kept, so that validation rejects it.
pub(crate) fn decode_applied(custom: &CustomType, value: &Value) -> Result<Decoded, Unreadable> {
    read(custom, value, false)
}

fn read(custom: &CustomType, value: &Value, drops_nulls: bool) -> Result<Decoded, Unreadable> {
    let mut value = match value {
        Value::Object(_) => value.clone(),
        _ => Value::Object(Map::new()),
    };
    let schema = custom.schema();
    let mut unknown = Vec::new();
    let metadata = match value.get("metadata") {
        Some(metadata) => {
            Some(object_meta(metadata, "metadata", &mut unknown).map_err(Unreadable::Metadata)?)
        }
        None => None,
    };

    // A valid object is left unmodified, because a mutable one would no longer be shared with the stored one.
    if !is_known(&value, schema, true) {
        let mut pruned = Vec::new();
        prune(&mut value, Some(schema), true, "", &mut pruned);
        pruned.sort();
        unknown.append(&mut pruned);
    }
    if drops_nulls && has_null(&value) {
        drop_nulls(&mut value, Some(schema));
    }
    if schema.inside.embedded {
        let mut embedded = Vec::new();
        coerce(&mut value, schema, "", &mut embedded)?;
        embedded.sort();
        unknown.append(&mut embedded);
    }

    if let (Some(metadata), Value::Object(fields)) = (metadata, &mut value) {
        fields.insert("metadata".into(), metadata);
    }
    Ok(Decoded { value, unknown })
}

fn object_meta(metadata: &Value, at: &str, unknown: &mut Vec<String>) -> Result<Value, String> {
    match types::decode(OBJECT_META, metadata) {
        Some(Ok(decoded)) => {
            unknown.extend(decoded.unknown.iter().map(|field| format!("{at}.{field}")));
            Ok(decoded.value)
        }
        Some(Err(mismatch)) => Err(mismatch.to_string()),
        None => Ok(metadata.clone()),
    }
}

fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// Whether the schema declares every field, so that there is nothing to prune.
fn is_known(value: &Value, schema: &Schema, resource: bool) -> bool {
    match value {
        Value::Object(fields) => fields.iter().all(|(name, value)| {
            let implied = (resource || schema.embedded) && is_meta(name);
            let known = || schema.properties.get(name.as_str());
            implied || known().is_some_and(|known| is_known(value, known, false))
        }),
        Value::Array(items) => match schema.items.as_deref() {
            Some(inner) => items.iter().all(|item| is_known(item, inner, false)),
            None => items.is_empty(),
        },
        _ => true,
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

/// Removes undeclared fields. `resource` is true where apiVersion, kind and metadata are implied.
pub(super) fn prune(
    value: &mut Value,
    schema: Option<&Schema>,
    resource: bool,
    at: &str,
    unknown: &mut Vec<String>,
) {
    let keep = schema.is_some_and(|schema| schema.preserve);
    prune_unless(keep, value, schema, resource, at, unknown);
}

/// `keep` keeps the undeclared fields here, and those of a list's elements, but not those further down.
fn prune_unless(
    keep: bool,
    value: &mut Value,
    schema: Option<&Schema>,
    resource: bool,
    at: &str,
    unknown: &mut Vec<String>,
) {
    match (value, schema) {
        (_, None) if keep => {}
        (Value::Object(fields), None) => {
            unknown.extend(fields.keys().map(|name| joined(at, name)));
            fields.clear();
        }
        (Value::Object(fields), Some(schema)) => {
            let implied = resource || schema.embedded;
            fields.retain(|name, value| {
                if implied && is_meta(name) {
                    return true;
                }
                let place = joined(at, name);
                match (schema.properties.get(name.as_str()), &schema.additional) {
                    (Some(known), _) => prune(value, Some(known), false, &place, unknown),
                    (None, Additional::Of(known)) => prune(value, Some(known), false, &place, unknown),
                    (None, Additional::Allowed(_)) => prune(value, None, false, &place, unknown),
                    (None, Additional::Absent) if keep => {}
                    (None, Additional::Absent) => {
                        unknown.push(place);
                        return false;
                    }
                }
                true
            });
        }
        (Value::Array(items), schema) => {
            let inner = schema.and_then(|schema| schema.items.as_deref());
            let keep = keep || inner.is_some_and(|inner| inner.preserve);
            for (index, item) in items.iter_mut().enumerate() {
                prune_unless(keep, item, inner, false, &inside(at, index.to_string()), unknown);
            }
        }
        _ => {}
    }
}

/// Drops nulls that the schema does not allow and that no default replaces.
fn drop_nulls(value: &mut Value, schema: Option<&Schema>) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let known = schema.and_then(|schema| schema.member(name));
            let stays =
                !value.is_null() || known.is_none_or(|known| known.nullable || known.default.is_some());
            if stays {
                drop_nulls(value, known);
            }
            stays
        }),
        Value::Array(items) => {
            let inner = schema.and_then(|schema| schema.items.as_deref());
            items.iter_mut().for_each(|item| drop_nulls(item, inner));
        }
        _ => {}
    }
}

/// Decodes the metadata of embedded resources.
fn coerce(value: &mut Value, schema: &Schema, at: &str, unknown: &mut Vec<String>) -> Result<(), Unreadable> {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                let place = joined(at, name);
                if schema.embedded {
                    coerce_meta(name, value, &place, unknown)?;
                }
                if let Some(known) = schema.properties.get(name.as_str()) {
                    coerce(value, known, &place, unknown)?;
                } else if let Some(known) = schema.additional() {
                    coerce(value, known, &inside(at, name), unknown)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    coerce(item, inner, &inside(at, index.to_string()), unknown)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_meta(name: &str, value: &mut Value, at: &str, unknown: &mut Vec<String>) -> Result<(), Unreadable> {
    let refused = |value: &Value, why: String| Unreadable::Embedded {
        field: at.to_owned(),
        shown: fault::shown(value),
        why,
    };
    match name {
        "apiVersion" | "kind" if !value.is_string() => Err(refused(value, "must be a string".into())),
        "metadata" => {
            *value = object_meta(value, at, unknown).map_err(|why| refused(value, why))?;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The path of a field. Without `format!`, which would take most of the time of a walk.
pub(super) fn joined(at: &str, name: &str) -> String {
    if at.is_empty() {
        name.to_owned()
    } else {
        [at, ".", name].concat()
    }
}

/// The path of an element, or of a map's value.
pub(super) fn inside(at: &str, key: impl AsRef<str>) -> String {
    [at, "[", key.as_ref(), "]"].concat()
}
