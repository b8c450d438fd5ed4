//! The selection of objects for a list or a watch.

use crate::json::Value;

use crate::resource::{Model, Resource};
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::Status;

/// A label selector and a field selector together.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListFilter {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl ListFilter {
    /// Parses both from a query. Unsupported fields are rejected.
    pub(crate) fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, Status> {
        let labels = LabelSelector::parse(labels).map_err(|error| Status::bad_request(error.to_string()))?;
        let fields = FieldSelector::parse(fields).map_err(|error| Status::bad_request(error.to_string()))?;
        for field in fields.fields() {
            if !is_selectable(resource, field) {
                let message = match resource.model {
                    Model::Builtin { .. } if !has_own_fields(&resource.id) => format!(
                        "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                    ),
                    _ => format!("field label not supported: {field}"),
                };
                return Err(Status::bad_request(message));
            }
        }
        Ok(Self { labels, fields })
    }

    pub(crate) fn and_name(mut self, name: &str) -> Self {
        self.fields = self.fields.and_equal("metadata.name", name);
        self
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn holds(&self, resource: &Resource, object: &Value) -> bool {
        self.labels.matches(&object["metadata"]["labels"])
            && self.fields.matches(|field| read(resource, object, field))
    }
}

/// The selectable fields of built-in kinds, besides name and namespace.
fn own_fields(id: &str) -> &'static [&'static str] {
    match id {
        "pods" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        "events" | "events.events.k8s.io" => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        "secrets" => &["type"],
        "namespaces" => &["status.phase"],
        "nodes" => &["spec.unschedulable"],
        "jobs.batch" => &["status.successful"],
        "services" => &["spec.clusterIP", "spec.type"],
        _ => &[],
    }
}

fn has_own_fields(id: &str) -> bool {
    !own_fields(id).is_empty()
}

fn is_selectable(resource: &Resource, field: &str) -> bool {
    if field == "metadata.name" || field == "metadata.namespace" && resource.namespaced {
        return true;
    }
    match &resource.model {
        Model::Builtin { .. } => own_fields(&resource.id).contains(&field),
        Model::Custom(custom) => custom
            .version
            .selectable_fields
            .iter()
            .any(|(name, _)| name == field),
    }
}

/// The string that a selector compares a field with.
fn read(resource: &Resource, object: &Value, field: &str) -> String {
    let at = |path: &str| path.split('.').fold(object, |value, part| &value[part]);
    match (&*resource.id, field) {
        ("events" | "events.events.k8s.io", field) => {
            // Events are stored in the core group's form.
            let field = field.replace("regarding.", "involvedObject.");
            match field.as_str() {
                "source" => text(at("source.component")),
                field => text(at(field)),
            }
        }
        ("pods", "spec.hostNetwork") | ("nodes", "spec.unschedulable") => {
            at(field).as_bool().unwrap_or(false).to_string()
        }
        ("jobs.batch", "status.successful") => at("status.succeeded").as_i64().unwrap_or(0).to_string(),
        _ => text(at(field)),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
