//! A custom type, as its CRD defines it.

use std::sync::Arc;

use crate::json::Value;
use stateward_jsonpath::JsonPath;

use super::crd;
use super::scale::Scale;
use super::schema::{Schema, flag, text, texts};
use crate::status::FieldError;
use crate::types::Shape;

/// A kind from a CRD, with everything the server needs to serve it.
#[derive(Clone, Debug)]
pub(crate) struct CustomType {
    pub(crate) group: String,
    pub(crate) names: Names,
    pub(crate) scope: Scope,
    /// The version that is served and stored. A CRD with several is rejected for now; everything that depends on the version is in this
    /// struct, so that there can be one per version.
    pub(crate) version: Arc<Version>,
    /// The spec of the CRD that this was read from.
    pub(crate) spec: Value,
}

/// The names of a custom type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Names {
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
}

/// Whether objects are namespaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Cluster,
    Namespaced,
}

/// One version of a custom type.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    /// Whether there is a status subresource.
    pub(crate) has_status: bool,
    pub(crate) scale: Option<Scale>,
    pub(crate) columns: Vec<Column>,
    /// The selectable fields: their names in selectors, and their paths.
    pub(crate) selectable_fields: Vec<(String, JsonPath)>,
    /// The schema as in the CRD, for patches and field ownership.
    node: Value,
    schema: Schema,
}

/// A column of `kubectl get`.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) source: String,
    /// `None` if it is invalid; the server then omits this column and those after it.
    pub(crate) path: Option<JsonPath>,
}

impl CustomType {
    /// The errors of a new CRD, or of one that replaces `old`.
    pub(crate) fn errors(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let errors = match old {
            Some(old) => crd::check_change(crd, old),
            None => crd::check(crd),
        };
        if errors.is_empty() && only_version(crd).is_none() {
            let detail = "this server keeps one version per custom resource: leave only the storage version";
            return vec![FieldError::forbidden("spec.versions", detail)];
        }
        errors
    }

    /// Reads a new CRD, or returns its errors.
    #[cfg(test)]
    pub(crate) fn from_crd(crd: &Value) -> Result<Self, Vec<FieldError>> {
        match Self::errors(crd, None) {
            errors if errors.is_empty() => Self::of_stored_crd(crd).ok_or(errors),
            errors => Err(errors),
        }
    }

    /// Reads a stored CRD, which was valid when it was stored; `None` if it is not.
    pub(crate) fn of_stored_crd(crd: &Value) -> Option<Self> {
        let (spec, version) = (&crd["spec"], only_version(crd)?);
        Some(Self {
            group: text(spec, "group"),
            names: Names::read(&spec["names"]),
            scope: if spec["scope"] == "Cluster" {
                Scope::Cluster
            } else {
                Scope::Namespaced
            },
            version: Arc::new(Version::read(version)),
            spec: spec.clone(),
        })
    }

    pub(super) fn schema(&self) -> &Schema {
        &self.version.schema
    }

    /// Whether the schema has any rules.
    pub(super) fn has_rules(&self) -> bool {
        self.version.schema.inside.rules
    }

    /// The schema as in the CRD.
    pub(crate) fn node(&self) -> &Value {
        &self.version.node
    }

    /// The cursor for patches and field ownership.
    pub(crate) fn shape(&self) -> Shape<'_> {
        Shape::Custom(&self.version.node)
    }
}

fn only_version(crd: &Value) -> Option<&Value> {
    match crd["spec"]["versions"].as_array()?.as_slice() {
        [version] => Some(version),
        _ => None,
    }
}

impl Names {
    /// Reads names and sets those that the server derives: the singular and the list's kind.
    pub(crate) fn read(names: &Value) -> Self {
        let kind = text(names, "kind");
        let or = |name: &str, otherwise: String| {
            Some(text(names, name))
                .filter(|t| !t.is_empty())
                .unwrap_or(otherwise)
        };
        Self {
            plural: text(names, "plural"),
            singular: or("singular", kind.to_lowercase()),
            list_kind: or(
                "listKind",
                if kind.is_empty() {
                    String::new()
                } else {
                    format!("{kind}List")
                },
            ),
            kind,
            short_names: texts(names, "shortNames"),
            categories: texts(names, "categories"),
        }
    }
}

impl Version {
    fn read(version: &Value) -> Self {
        let node = version["schema"]["openAPIV3Schema"].clone();
        let schema = Schema::read(&node);
        let list = |name: &str| version[name].as_array().map_or(&[] as &[_], Vec::as_slice);
        Self {
            name: text(version, "name"),
            has_status: version["subresources"]
                .get("status")
                .is_some_and(Value::is_object),
            scale: Scale::read(&version["subresources"]["scale"]),
            columns: list("additionalPrinterColumns")
                .iter()
                .map(Column::read)
                .collect(),
            selectable_fields: list("selectableFields")
                .iter()
                .filter_map(|field| {
                    let path = field["jsonPath"].as_str()?;
                    Some((path.trim_start_matches('.').to_owned(), JsonPath::parse(path)?))
                })
                .collect(),
            schema,
            node,
        }
    }
}

impl Column {
    fn read(column: &Value) -> Self {
        let source = text(column, "jsonPath");
        Self {
            name: text(column, "name"),
            kind: text(column, "type"),
            format: text(column, "format"),
            description: text(column, "description"),
            priority: column["priority"].as_i64().unwrap_or_default(),
            path: JsonPath::parse(&source),
            source,
        }
    }
}

/// Whether a version is the storage version.
pub(super) fn is_storage(version: &Value) -> bool {
    flag(version, "storage")
}
