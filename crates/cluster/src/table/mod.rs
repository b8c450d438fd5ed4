//! Tables: the output of `kubectl get`, built by the server.
//!
//! In flow stored objects; out flows a `meta.k8s.io/v1` Table whose cells equal the real server's. Everything is pure, and `now` is a
//! parameter: ages are part of the cells.
//!
//! - here: [`render`], and the columns of each kind.
//! - `column`: headings and cells, and reading fields.
//! - one file per family of kinds: `pods`, `workloads`, `autoscaling`, `network`, `storage`, `cluster`; `custom` for CRDs' own.
//! - `age`: ages. `selector`: label selectors as text.

mod age;
mod autoscaling;
mod cluster;
mod column;
mod custom;
mod network;
mod pods;
mod selector;
mod storage;
#[cfg(test)]
mod tests;
mod workloads;

use crate::json::{Value, json};
use jiff::Timestamp;

use column::Column;

use crate::custom::CustomType;

/// How much of its object each row includes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    #[default]
    Metadata,
    Object,
    None,
}

impl IncludeObject {
    /// Parses the `includeObject` query parameter; `None` if the value is invalid.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "Metadata" => Some(Self::Metadata),
            "Object" => Some(Self::Object),
            "None" => Some(Self::None),
            _ => None,
        }
    }
}

/// The table of some objects of one kind. `resource` is `pods`, `statefulsets.apps`, …
///
/// The metadata of the table is empty: its resourceVersion and the rest are those of the list or object. A watch sends column definitions
/// in its first table only; use [`without_columns`] for the others.
pub(crate) fn render(
    resource: &str,
    objects: &[&Value],
    custom: Option<&CustomType>,
    now: Timestamp,
    include: IncludeObject,
) -> Value {
    let (columns, rows): (Vec<Value>, Vec<Value>) = match custom {
        Some(custom) => {
            let rows = objects
                .iter()
                .map(|object| row(object, custom::cells(custom, object, now), None, include));
            (custom::columns(custom), rows.collect())
        }
        None => {
            let columns = columns_of(resource);
            let rows = objects.iter().map(|object| {
                let cells = columns.iter().map(|column| column.cell(object, now));
                let conditions = (resource == "pods").then(|| pods::ended(object)).flatten();
                row(object, cells.collect(), conditions, include)
            });
            (
                columns.iter().map(|column| column.to_value()).collect(),
                rows.collect(),
            )
        }
    };
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {},
        "columnDefinitions": columns, "rows": rows,
    })
}

/// The same table for a watch that has sent its columns already.
pub(crate) fn without_columns(mut table: Value) -> Value {
    table["columnDefinitions"] = Value::Null;
    table
}

fn row(object: &Value, cells: Vec<Value>, conditions: Option<Value>, include: IncludeObject) -> Value {
    let shown = match include {
        IncludeObject::Metadata => json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
        }),
        IncludeObject::Object => object.clone(),
        IncludeObject::None => Value::Null,
    };
    let mut row = json!({"cells": cells, "object": shown});
    if let Some(conditions) = conditions {
        row["conditions"] = conditions;
    }
    row
}

/// The columns of a built-in kind. The default is the name and the creation time.
fn columns_of(resource: &str) -> &'static [Column] {
    match resource.split('.').next().unwrap_or(resource) {
        "pods" => pods::PODS,
        "podtemplates" => workloads::POD_TEMPLATES,
        "statefulsets" => workloads::STATEFULSETS,
        "controllerrevisions" => workloads::CONTROLLER_REVISIONS,
        "replicasets" => workloads::REPLICASETS,
        "deployments" => workloads::DEPLOYMENTS,
        "daemonsets" => workloads::DAEMONSETS,
        "jobs" => workloads::JOBS,
        "cronjobs" => workloads::CRONJOBS,
        "poddisruptionbudgets" => workloads::DISRUPTION_BUDGETS,
        "horizontalpodautoscalers" => autoscaling::AUTOSCALERS,
        "scales" => autoscaling::SCALES,
        "services" => network::SERVICES,
        "endpoints" => network::ENDPOINTS,
        "endpointslices" => network::ENDPOINT_SLICES,
        "persistentvolumes" => storage::VOLUMES,
        "persistentvolumeclaims" => storage::CLAIMS,
        "storageclasses" => storage::CLASSES,
        "nodes" => cluster::NODES,
        "namespaces" => cluster::NAMESPACES,
        "events" => cluster::EVENTS,
        "leases" => cluster::LEASES,
        "configmaps" => cluster::CONFIG_MAPS,
        "secrets" => cluster::SECRETS,
        "serviceaccounts" => cluster::SERVICE_ACCOUNTS,
        "resourcequotas" => cluster::QUOTAS,
        "rolebindings" | "clusterrolebindings" => cluster::ROLE_BINDINGS,
        _ => column::PLAIN,
    }
}
