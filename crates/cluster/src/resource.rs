//! The resources that the server serves: a table with built-in rows from data, and custom rows from CRDs.
//!
//! Everything else is code over this table; no kind has a handler of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;
use serde::Deserialize;

use crate::custom::{CustomType, Scope};
use crate::hash::Table;
use crate::json::Value;
use crate::store::Shelf;
use crate::types::{Kind, Shape};

/// One served resource.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) subresources: Vec<Subresource>,
    pub(crate) model: Model,
    /// `statefulsets.apps`, `pods`: its name in this crate's code.
    pub(crate) id: Arc<str>,
    pub(crate) shelf: Shelf,
}

/// A subresource.
#[derive(Clone, Debug)]
pub(crate) struct Subresource {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) verbs: Vec<String>,
}

/// The source of a resource's type.
#[derive(Debug)]
pub(crate) enum Model {
    Builtin { name: String, root: Kind },
    Custom(Arc<CustomType>),
}

impl Resource {
    /// `apps/v1`, or `v1` in the core group.
    pub(crate) fn api_version(&self) -> String {
        join(&self.group, &self.version)
    }

    pub(crate) fn shape(&self) -> Shape<'_> {
        match &self.model {
            Model::Builtin { root, .. } => Shape::Builtin {
                kind: root,
                field: None,
            },
            Model::Custom(custom) => custom.shape(),
        }
    }

    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.model, Model::Custom(_))
    }

    /// Whether this is a review, which is answered but not stored.
    pub(crate) fn is_a_review(&self) -> bool {
        matches!(
            self.group.as_str(),
            "authorization.k8s.io" | "authentication.k8s.io"
        )
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources
            .iter()
            .find(|subresource| subresource.name == name)
    }

    /// Whether an update of a missing object of this kind creates it.
    pub(crate) fn is_created_by_update(&self) -> bool {
        matches!(
            &*self.id,
            "leases.coordination.k8s.io"
                | "events"
                | "events.events.k8s.io"
                | "services"
                | "endpoints"
                | "limitranges"
                | "roles.rbac.authorization.k8s.io"
                | "rolebindings.rbac.authorization.k8s.io"
                | "clusterroles.rbac.authorization.k8s.io"
                | "clusterrolebindings.rbac.authorization.k8s.io"
        )
    }

    /// Whether a deletion returns the deleted object instead of a Status.
    pub(crate) fn shows_what_it_deletes(&self) -> bool {
        matches!(
            &*self.id,
            "pods"
                | "services"
                | "serviceaccounts"
                | "persistentvolumeclaims"
                | "persistentvolumes"
                | "podtemplates"
                | "resourcequotas"
                | "storageclasses.storage.k8s.io"
        )
    }

    /// An update of a custom resource must have a resourceVersion; that of a built-in one may omit it.
    pub(crate) fn may_update_unconditionally(&self) -> bool {
        matches!(self.model, Model::Builtin { .. }) && crate::builtin::allows_unconditional_update(&self.id)
    }
}

/// `apps/v1`, or `v1` in the core group.
pub(crate) fn join(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// The file; besides the rows it names their source.
#[derive(Deserialize)]
struct Data {
    /// By group and version.
    resources: BTreeMap<String, Vec<Row>>,
}

/// A row of the data: an entry of the real server's discovery.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    singular_name: String,
    namespaced: bool,
    kind: String,
    verbs: Vec<String>,
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

static BUILTIN: LazyLock<Vec<Arc<Resource>>> = LazyLock::new(|| {
    let data: Data = match serde_json::from_str(stateward_schema::RESOURCES) {
        Ok(data) => data,
        Err(error) => {
            unreachable!("the table of resources is part of the binary and was read by its tests: {error}")
        }
    };
    data.resources
        .iter()
        .flat_map(|(group_version, rows)| of_group_version(group_version, rows))
        .map(Arc::new)
        .collect()
});

/// The built-in resources by id: every read and write looks one up.
static BY_ID: LazyLock<Table<&'static str, &'static Arc<Resource>>> = LazyLock::new(|| {
    let mut by_id = Table::default();
    for resource in BUILTIN.iter() {
        by_id.entry(&*resource.id).or_insert(resource);
    }
    by_id
});

/// The built-in resource of that id.
pub(crate) fn builtin(id: &str) -> Option<&'static Resource> {
    BY_ID.get(id).map(|resource| &***resource)
}

fn of_group_version(group_version: &str, rows: &[Row]) -> Vec<Resource> {
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    let (parts, wholes): (Vec<_>, Vec<_>) = rows.iter().cloned().partition(|row| row.name.contains('/'));
    let resource = |row: Row| {
        let subresources = parts.iter().filter_map(|part| {
            let (owner, name) = part.name.split_once('/')?;
            (owner == row.name).then(|| Subresource {
                name: name.to_owned(),
                group: if part.version.is_empty() {
                    group.to_owned()
                } else {
                    part.group.clone()
                },
                version: if part.version.is_empty() {
                    version.to_owned()
                } else {
                    part.version.clone()
                },
                kind: part.kind.clone(),
                verbs: part.verbs.clone(),
            })
        });
        let name = stateward_schema::type_name(group, version, &row.kind);
        Resource {
            subresources: subresources.collect(),
            id: id(group, &row.name),
            // The two Events share storage.
            shelf: if row.name == "events" {
                Shelf::new("", "events")
            } else {
                Shelf::new(group, &row.name)
            },
            model: Model::Builtin {
                root: Kind::Struct(name.as_str().into()),
                name,
            },
            group: group.to_owned(),
            version: version.to_owned(),
            list_kind: format!("{}List", row.kind),
            plural: row.name,
            singular: row.singular_name,
            kind: row.kind,
            namespaced: row.namespaced,
            verbs: row.verbs,
            short_names: row.short_names,
            categories: row.categories,
        }
    };
    wholes.into_iter().map(resource).collect()
}

fn id(group: &str, plural: &str) -> Arc<str> {
    if group.is_empty() {
        plural.into()
    } else {
        format!("{plural}.{group}").into()
    }
}

impl From<CustomType> for Resource {
    fn from(custom: CustomType) -> Self {
        let all = [
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "create",
            "update",
            "watch",
        ];
        let verbs = |verbs: &[&str]| verbs.iter().map(|verb| (*verb).to_owned()).collect::<Vec<_>>();
        let mut subresources = Vec::new();
        let CustomType {
            group,
            names,
            scope,
            version,
            spec: _,
        } = &custom;
        if version.has_status {
            subresources.push(Subresource {
                name: "status".into(),
                group: group.clone(),
                version: version.name.clone(),
                kind: names.kind.clone(),
                verbs: verbs(&["get", "patch", "update"]),
            });
        }
        if version.scale.is_some() {
            subresources.push(Subresource {
                name: "scale".into(),
                group: "autoscaling".into(),
                version: "v1".into(),
                kind: "Scale".into(),
                verbs: verbs(&["get", "patch", "update"]),
            });
        }
        Self {
            group: group.clone(),
            version: version.name.clone(),
            plural: names.plural.clone(),
            singular: names.singular.clone(),
            kind: names.kind.clone(),
            list_kind: names.list_kind.clone(),
            namespaced: *scope == Scope::Namespaced,
            verbs: verbs(&all),
            short_names: names.short_names.clone(),
            categories: names.categories.clone(),
            subresources,
            id: id(group, &names.plural),
            shelf: Shelf::new(group, &names.plural),
            model: Model::Custom(Arc::new(custom)),
        }
    }
}

/// All resources: the built-in ones and those of CRDs.
#[derive(Default)]
pub(crate) struct Registry {
    custom: RwLock<BTreeMap<Arc<str>, Arc<Resource>>>,
}

impl Registry {
    pub(crate) fn all(&self) -> Vec<Arc<Resource>> {
        let custom = self.custom.read();
        BUILTIN.iter().chain(custom.values()).cloned().collect()
    }

    /// By path: `apps`, `v1`, `statefulsets`.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.by_id(&id(group, plural))
            .filter(|resource| resource.version == version)
    }

    /// By the name that code uses: `statefulsets.apps`.
    pub(crate) fn by_id(&self, wanted: &str) -> Option<Arc<Resource>> {
        if let Some(builtin) = BY_ID.get(wanted) {
            return Some(Arc::clone(builtin));
        }
        self.custom.read().get(wanted).cloned()
    }

    /// Whether the type of this CRD is served with this spec.
    pub(crate) fn serves(&self, crd: &Value) -> bool {
        let resource = self.by_id(crate::object::name(crd));
        resource.is_some_and(|resource| match &resource.model {
            Model::Custom(custom) => custom.spec.shares(&crd["spec"]),
            Model::Builtin { .. } => false,
        })
    }

    /// Adds or replaces a custom resource.
    pub(crate) fn add(&self, custom: CustomType) {
        let resource = Arc::new(Resource::from(custom));
        self.custom.write().insert(resource.id.clone(), resource);
    }

    /// Stops serving a custom resource.
    pub(crate) fn remove(&self, id: &str) {
        self.custom.write().remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::builtin;

    #[test]
    fn every_built_in_resource_has_a_type() {
        for resource in BUILTIN.iter() {
            let Model::Builtin { name, .. } = &resource.model else {
                panic!("{} is not built in", resource.id)
            };
            assert!(builtin(name).is_some(), "{}: no type {name}", resource.id);
        }
    }

    #[test]
    fn a_subresource_can_belong_to_another_group() {
        let pods = Registry::default().find("", "v1", "pods").unwrap();
        let eviction = pods.subresource("eviction").unwrap();
        assert_eq!(
            (eviction.group.as_str(), eviction.kind.as_str()),
            ("policy", "Eviction")
        );
        assert_eq!(pods.subresource("exec").map(|part| &part.kind), None);
    }
}
