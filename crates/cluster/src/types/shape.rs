//! A cursor over the type of a value, built-in or custom, for patches and field ownership.

use crate::json::Value;

use super::table::{Field, Kind};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The type at one path in an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'s> {
    /// A built-in type, and the field it was reached through.
    Builtin {
        kind: &'s Kind,
        field: Option<&'s Field>,
    },
    /// A node of a structural schema.
    Structural(&'s Value),
    /// A whole custom object: its metadata is a built-in type, the rest follows its schema.
    Custom(&'s Value),
    /// Unknown: maps are maps, lists are replaced as a whole.
    Unknown,
}

/// How a list is merged and owned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ListKind<'s> {
    /// As one value.
    Atomic,
    /// Each scalar separately.
    Set,
    /// Each element, identified by these fields.
    Map(&'s [String]),
    /// Like `Map`, with keys from a schema.
    MapOf(&'s [Value]),
}

impl<'s> Shape<'s> {
    /// The shape of a field or of a map's value.
    pub(crate) fn member(self, name: &str) -> Self {
        match self {
            Self::Builtin {
                kind: Kind::Struct(owner),
                ..
            } => match owner.described().and_then(|described| described.fields.get(name)) {
                Some(field) => Self::Builtin {
                    kind: &field.kind,
                    field: Some(field),
                },
                None => Self::Unknown,
            },
            Self::Builtin {
                kind: Kind::Map(element),
                ..
            } => Self::Builtin {
                kind: element,
                field: None,
            },
            Self::Custom(schema) => match name {
                "metadata" => object_meta(),
                _ => Self::Structural(schema).member(name),
            },
            Self::Structural(schema)
                if name == "metadata" && schema["x-kubernetes-embedded-resource"] == true =>
            {
                object_meta()
            }
            Self::Structural(schema) => {
                let declared = schema["properties"]
                    .get(name)
                    .or_else(|| schema.get("additionalProperties"));
                match declared {
                    Some(node @ Value::Object(_)) => Self::Structural(node),
                    _ => Self::Unknown,
                }
            }
            _ => Self::Unknown,
        }
    }

    /// The shape of a list's elements.
    pub(crate) fn element(self) -> Self {
        match self {
            Self::Builtin {
                kind: Kind::List(element),
                ..
            } => Self::Builtin {
                kind: element,
                field: None,
            },
            Self::Structural(schema) => match &schema["items"] {
                node @ Value::Object(_) => Self::Structural(node),
                _ => Self::Unknown,
            },
            _ => Self::Unknown,
        }
    }

    /// How server-side apply merges the list here.
    pub(crate) fn list(self) -> ListKind<'s> {
        match self {
            Self::Builtin {
                field: Some(field), ..
            } => match field.list_type.as_str() {
                "map" => ListKind::Map(&field.list_map_keys),
                "set" => ListKind::Set,
                _ => ListKind::Atomic,
            },
            Self::Structural(schema) => match schema["x-kubernetes-list-type"].as_str() {
                Some("map") => ListKind::MapOf(
                    schema["x-kubernetes-list-map-keys"]
                        .as_array()
                        .map_or(&[], Vec::as_slice),
                ),
                Some("set") => ListKind::Set,
                _ => ListKind::Atomic,
            },
            _ => ListKind::Atomic,
        }
    }

    /// Whether the map or struct here is merged as one value.
    pub(crate) fn is_atomic_map(self) -> bool {
        match self {
            Self::Builtin { kind, field } => {
                let by_type = || match kind {
                    Kind::Struct(name) => name.described().is_some_and(|described| described.atomic),
                    // Any JSON: a part of it cannot be owned.
                    Kind::Any => true,
                    _ => false,
                };
                field.and_then(|field| field.atomic).unwrap_or_else(by_type)
            }
            Self::Structural(schema) => schema["x-kubernetes-map-type"] == "atomic",
            _ => false,
        }
    }

    /// The strategic merge strategy of the field here: `merge`, `replace`, `retainKeys` or several.
    pub(crate) fn patch_strategy(self) -> &'s str {
        match self {
            Self::Builtin {
                field: Some(field), ..
            } => &field.patch_strategy,
            _ => "",
        }
    }

    /// The merge key of the list here in a strategic merge.
    pub(crate) fn patch_merge_key(self) -> &'s str {
        match self {
            Self::Builtin {
                field: Some(field), ..
            } => &field.patch_merge_key,
            _ => "",
        }
    }

    /// The value of a key field that a list element omits, such as a port's protocol.
    pub(crate) fn default_of(self, name: &str) -> Option<&'s Value> {
        match self.member(name) {
            Self::Builtin {
                field: Some(field), ..
            } => field.default.as_ref(),
            Self::Structural(schema) => schema.get("default"),
            _ => None,
        }
    }
}

/// The shape of every object's metadata.
fn object_meta() -> Shape<'static> {
    static KIND: std::sync::LazyLock<Kind> = std::sync::LazyLock::new(|| Kind::Struct(OBJECT_META.into()));
    Shape::Builtin {
        kind: &KIND,
        field: None,
    }
}
