//! The built-in types, parsed once from the table of `stateward-schema`.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{LazyLock, OnceLock};

use crate::hash::Table;
use crate::json::{self, Name, Value};
use serde::Deserialize;

static TABLE: LazyLock<&'static Table<String, Struct>> =
    LazyLock::new(|| match serde_json::from_str::<Data>(stateward_schema::TYPES) {
        Ok(data) => {
            let types: &'static Table<_, _> = Box::leak(Box::new(data.types));
            let fields = types.values().flat_map(|described| described.fields.iter());
            json::know(fields.map(|(name, _)| name.as_str()));
            types
        }
        Err(error) => {
            unreachable!("the table of types is part of the binary and was read by its tests: {error}")
        }
    });

/// The file; besides the types it names their source.
#[derive(Deserialize)]
struct Data {
    /// Looked up for every field of an object: their names are long and share prefixes, so comparing them is slow.
    types: Table<String, Struct>,
}

/// The built-in type with this OpenAPI name, such as `io.k8s.api.apps.v1.StatefulSet`.
pub(crate) fn builtin(name: &str) -> Option<&'static Struct> {
    TABLE.get(name)
}

/// A struct of the Kubernetes API.
#[derive(Debug, Deserialize)]
pub(crate) struct Struct {
    /// Owned and merged as one value.
    pub(crate) atomic: bool,
    pub(crate) fields: Fields,
    /// The values written for missing fields.
    #[serde(skip)]
    pub(super) zeros: OnceLock<Vec<(Name, Value)>>,
}

/// The fields of a struct, by name. Looked up for every field of an object too.
#[derive(Debug, Deserialize)]
#[serde(from = "BTreeMap<String, Field>")]
pub(crate) struct Fields {
    sorted: Vec<(String, Field)>,
    places: Table<String, usize>,
}

impl From<BTreeMap<String, Field>> for Fields {
    fn from(fields: BTreeMap<String, Field>) -> Self {
        let places = fields.keys().cloned().zip(0..).collect();
        Self {
            sorted: fields.into_iter().collect(),
            places,
        }
    }
}

impl Fields {
    pub(crate) fn get(&self, name: &str) -> Option<&Field> {
        self.places.get(name).map(|place| &self.sorted[*place].1)
    }

    pub(crate) fn contains_key(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Sorted by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Field)> {
        self.sorted.iter().map(|(name, field)| (name, field))
    }
}

/// A field of a struct, and its encoding.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Field {
    #[serde(rename = "type")]
    pub(crate) kind: Kind,
    /// The path of the field in protobuf: its number, after those of the structs that JSON inlines. Empty if it is not part of the message.
    #[serde(default)]
    pub(crate) wire: Vec<u32>,
    /// A pointer: absent and zero are different.
    #[serde(default)]
    pub(crate) pointer: bool,
    /// Omitted if it is false, 0, "", an empty list, an empty map or an absent pointer. A struct is never empty.
    #[serde(default)]
    pub(crate) omit_empty: bool,
    /// Omitted if it is zero, structs included.
    #[serde(default)]
    pub(crate) omit_zero: bool,
    /// Whether upstream's OpenAPI requires it.
    #[serde(default)]
    pub(crate) required: bool,
    #[serde(default)]
    pub(crate) patch_strategy: String,
    #[serde(default)]
    pub(crate) patch_merge_key: String,
    #[serde(default)]
    pub(crate) list_type: String,
    #[serde(default)]
    pub(crate) list_map_keys: Vec<String>,
    /// Whether a map or struct is owned and merged as one value here; if unset, its type decides.
    #[serde(default)]
    pub(crate) atomic: Option<bool>,
    #[serde(default)]
    pub(crate) default: Option<Value>,
    /// The allowed values, if upstream lists them.
    #[serde(default, rename = "enum")]
    pub(crate) allowed: Vec<Value>,
    /// Upstream's description of each of them.
    #[serde(default)]
    pub(crate) enum_text: String,
}

/// The name of a struct, and the struct once it was looked up, which happens for every field of an object.
#[derive(Clone, Debug)]
pub(crate) struct StructName {
    name: String,
    described: OnceLock<Option<&'static Struct>>,
}

impl StructName {
    /// `None` if there is no such type.
    pub(crate) fn described(&self) -> Option<&'static Struct> {
        *self.described.get_or_init(|| builtin(&self.name))
    }
}

impl From<&str> for StructName {
    fn from(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            described: OnceLock::new(),
        }
    }
}

impl Deref for StructName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.name
    }
}

impl PartialEq for StructName {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for StructName {}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(crate) enum Kind {
    String,
    Bool,
    Int32,
    Int64,
    Uint8,
    Float,
    /// base64 in JSON
    Bytes,
    Time,
    MicroTime,
    Duration,
    Quantity,
    IntOrString,
    /// Any JSON, stored as it is.
    Any,
    Struct(StructName),
    List(Box<Kind>),
    Map(Box<Kind>),
}

impl From<String> for Kind {
    fn from(spelled: String) -> Self {
        match spelled.as_str() {
            "string" => Self::String,
            "bool" => Self::Bool,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "uint8" => Self::Uint8,
            "float64" => Self::Float,
            "bytes" => Self::Bytes,
            "time" => Self::Time,
            "microtime" => Self::MicroTime,
            "duration" => Self::Duration,
            "quantity" => Self::Quantity,
            "intstr" => Self::IntOrString,
            "any" => Self::Any,
            other => match (other.strip_prefix("[]"), other.strip_prefix("{}")) {
                (Some(element), _) => Self::List(Box::new(Self::from(element.to_owned()))),
                (_, Some(element)) => Self::Map(Box::new(Self::from(element.to_owned()))),
                _ => Self::Struct(spelled.as_str().into()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_that_a_field_names_is_in_the_table() {
        fn check(kind: &Kind, at: &str) {
            match kind {
                Kind::Struct(name) => assert!(name.described().is_some(), "{at} names {name:?}"),
                Kind::List(element) | Kind::Map(element) => check(element, at),
                _ => {}
            }
        }
        assert!(TABLE.len() > 100, "only {} types", TABLE.len());
        for (name, described) in TABLE.iter() {
            for (field, described) in described.fields.iter() {
                check(&described.kind, &format!("{name}.{field}"));
            }
        }
    }
}
