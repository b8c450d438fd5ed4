//! The server's rules for each built-in kind: defaults, resets and validation.
//!
//! Flows in: an object that `types::decode` has read, and the resource it belongs to (`statefulsets.apps`, `pods`). Flows out: the object
//! as it would be stored, or the field errors that the real server answers with, in its order. Every function is pure: no clock, no store,
//! no randomness. Rules that need other objects (quotas, address allocation, owners) belong to the server, not here; only
//! [`crate::status::FieldError`] is imported from it.
//!
//! A write goes through [`default`], then [`prepare_create`] or [`prepare_update`], then [`validate_create`] or [`validate_update`]
//! (`validation`). A kind that is not listed gets the rules for all: system metadata and its validation.
//!
//! The rules are those of Kubernetes v1.36.3; `golden.rs` compares them with recorded answers.

#[cfg(test)]
mod arbitrary;
mod autoscaler;
mod budget;
mod claim;
mod configuration;
mod container_defaults;
mod definition;
mod disabled;
mod endpoints;
mod fields;
#[cfg(test)]
mod golden;
mod image;
mod job;
mod lease;
mod limits;
mod metadata;
mod namespace;
mod node;
mod persistent_volume;
mod pod;
mod pod_defaults;
mod problems;
mod qos;
mod rbac;
mod revision;
mod scale;
mod service;
mod statefulset;
mod storage_class;
mod stored;
mod unified_diff;
mod validation;
mod volume_defaults;
mod workload;

use crate::json::Value;
use jiff::Timestamp;

use crate::resource;
use crate::status::FieldError;
use problems::Problems;

pub(crate) use service::{give_address, give_node_ports, wants_address};

/// Feature gates that affect stored objects.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gates {
    /// `MaxUnavailableStatefulSet`, off by default in v1.36.
    pub(crate) max_unavailable_statefulset: bool,
}

/// The inputs of a write besides the object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'c> {
    /// The UID of a new object; not used by updates.
    pub(crate) uid: &'c str,
    pub(crate) now: Timestamp,
    pub(crate) gates: Gates,
}

/// The endpoint of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Main,
    Status,
    /// The object with the replicas from a Scale; otherwise like [`Endpoint::Main`].
    Scale,
}

impl Endpoint {
    pub(crate) fn of(subresource: &str) -> Self {
        match subresource {
            "status" => Self::Status,
            "scale" => Self::Scale,
            _ => Self::Main,
        }
    }
}

/// Sets defaults. Idempotent.
pub(crate) fn default(resource: &str, object: &mut Value) {
    match resource {
        "pods" => pod_defaults::pod(object),
        "podtemplates" => pod_defaults::template(object),
        "statefulsets.apps" => statefulset::default(object),
        "deployments.apps" => workload::default_deployment(object),
        "daemonsets.apps" => workload::default_daemon_set(object),
        "replicasets.apps" => workload::default_replica_set(object),
        "jobs.batch" => job::default(object),
        "cronjobs.batch" => job::default_cron_job(object),
        "services" => service::default(object),
        "persistentvolumeclaims" => claim::default(object),
        "persistentvolumes" => persistent_volume::default(object),
        "secrets" => configuration::default_secret(object),
        "namespaces" => namespace::default(object),
        "nodes" => node::default(object),
        "limitranges" => limits::default_range(object),
        "resourcequotas" => limits::default_quota(object),
        "endpoints" => endpoints::default(object),
        "endpointslices.discovery.k8s.io" => endpoints::default_slice(object),
        "horizontalpodautoscalers.autoscaling" => autoscaler::default(object),
        "rolebindings.rbac.authorization.k8s.io" | "clusterrolebindings.rbac.authorization.k8s.io" => {
            rbac::default_binding(object);
        }
        "storageclasses.storage.k8s.io" => storage_class::default(object),
        "customresourcedefinitions.apiextensions.k8s.io" => definition::default(object),
        _ => {}
    }
}

/// Sets the defaults of an object that is stored as `old`: parts that are unchanged have theirs already.
pub(crate) fn default_changed(resource: &str, old: &Value, new: &mut Value) {
    let is_same = new["spec"].is_object() && new["spec"].shares(&old["spec"]);
    match resource {
        "pods" if is_same => pod_defaults::all_but_spec(new),
        "statefulsets.apps" if is_same => {}
        _ => default(resource, new),
    }
}

/// Like [`prepare_create`] for an object created through its status, which works only for Services: they get no address.
pub(crate) fn prepare_create_by_status(service: &mut Value) {
    service::forget_status(service);
}

/// Resets what the creator of an object may not set: system metadata and the status are the server's.
pub(crate) fn prepare_create(resource: &str, object: &mut Value, context: &Context<'_>) {
    metadata::prepare_create(object, context);
    if let Some(spec) = disabled::template_spec(resource, object) {
        disabled::drop_disabled(spec, &Value::Null);
    }
    if has_generation(resource) {
        metadata::set_generation(object, 1);
    }
    match resource {
        "pods" => pod::prepare_create(object, context.now),
        "nodes" => node::prepare_create(object),
        "resourcequotas" => limits::prepare_create_quota(object),
        "statefulsets.apps" => statefulset::prepare_create(object, context.gates),
        "deployments.apps" | "replicasets.apps" | "cronjobs.batch" => {
            workload::reset_status(resource, object)
        }
        "daemonsets.apps" => workload::prepare_create_daemon_set(object),
        "jobs.batch" => job::prepare_create(object),
        "services" => service::prepare_create(object),
        "persistentvolumeclaims" => claim::prepare_create(object),
        "persistentvolumes" => persistent_volume::prepare_create(object, context.now),
        "namespaces" => namespace::prepare_create(object),
        "serviceaccounts" => configuration::prepare_service_account(object),
        "poddisruptionbudgets.policy" => budget::prepare_create(object),
        "horizontalpodautoscalers.autoscaling" => autoscaler::prepare_create(object),
        "customresourcedefinitions.apiextensions.k8s.io" => definition::prepare_create(object),
        _ => {}
    }
    stored::as_protobuf(resource, object);
}

/// Resets what this endpoint may not change: those fields are copied from `old`.
pub(crate) fn prepare_update(
    resource: &str,
    old: &Value,
    new: &mut Value,
    endpoint: Endpoint,
    context: &Context<'_>,
) {
    metadata::prepare_update(old, new);
    match endpoint {
        Endpoint::Main | Endpoint::Scale => prepare_main(resource, old, new, context),
        Endpoint::Status => prepare_status(resource, old, new, context),
    }
    metadata::keep_system_fields(old, new);
    stored::as_protobuf_changed(resource, old, new);
}

fn prepare_main(resource: &str, old: &Value, new: &mut Value, context: &Context<'_>) {
    if has_status(resource) {
        fields::copy(old, new, "status");
    }
    if let Some(spec) = disabled::template_spec(resource, new) {
        disabled::drop_disabled(spec, disabled::template_spec_of(resource, old));
    }
    match resource {
        "statefulsets.apps" => statefulset::prepare_update(old, new, context.gates),
        "daemonsets.apps" => workload::prepare_update_daemon_set(old, new),
        "services" => service::prepare_update(old, new),
        "persistentvolumeclaims" => claim::normalize_data_sources(new),
        "namespaces" => namespace::prepare_update(old, new),
        "secrets" => configuration::prepare_update_secret(old, new),
        "serviceaccounts" => configuration::prepare_service_account(new),
        "customresourcedefinitions.apiextensions.k8s.io" => definition::store_version(new),
        "pods" => pod::prepare_update(old, new),
        "jobs.batch" => job::take_labels(new),
        _ => {}
    }
    let changed = match resource {
        // A deployment's annotations are part of what its controller observes.
        "deployments.apps" => {
            !fields::same(&old["spec"], &new["spec"])
                || !fields::same(&old["metadata"]["annotations"], &new["metadata"]["annotations"])
        }
        "endpointslices.discovery.k8s.io" => endpoints::slice_changed(old, new),
        "podtemplates" => !fields::same(&old["template"], &new["template"]),
        _ => !fields::same(&old["spec"], &new["spec"]),
    };
    if changed && has_generation(resource) {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
        metadata::set_generation(new, generation.saturating_add(1));
    }
}

fn prepare_status(resource: &str, old: &Value, new: &mut Value, context: &Context<'_>) {
    // Missing labels come from the template that was sent, which is then dropped.
    if resource == "jobs.batch" {
        job::take_labels(new);
    }
    fields::copy(old, new, "spec");
    match resource {
        "pods" => pod::prepare_status(old, new),
        "deployments.apps" => metadata::keep(old, new, "labels"),
        "persistentvolumes" => persistent_volume::prepare_status(old, new, context.now),
        _ => {}
    }
}

/// Whether this kind has a generation.
fn has_generation(resource: &str) -> bool {
    matches!(
        resource,
        "pods"
            | "podtemplates"
            | "statefulsets.apps"
            | "deployments.apps"
            | "daemonsets.apps"
            | "replicasets.apps"
            | "jobs.batch"
            | "cronjobs.batch"
            | "poddisruptionbudgets.policy"
            | "endpointslices.discovery.k8s.io"
            | "customresourcedefinitions.apiextensions.k8s.io"
    )
}

/// Whether this is a built-in kind with rules here.
fn is_known(resource: &str) -> bool {
    resource::builtin(resource).is_some() || resource == "scales.autoscaling"
}

/// Whether this kind has a status subresource.
fn has_status(resource: &str) -> bool {
    resource::builtin(resource).is_some_and(|resource| resource.subresource("status").is_some())
}

/// Whether an update may omit the resourceVersion; the server then uses the stored one.
pub(crate) fn allows_unconditional_update(resource: &str) -> bool {
    !matches!(
        resource,
        "poddisruptionbudgets.policy"
            | "leases.coordination.k8s.io"
            | "customresourcedefinitions.apiextensions.k8s.io"
    )
}

/// The errors of a new object, in the real server's order.
pub(crate) fn validate_create(resource: &str, object: &Value) -> Vec<FieldError> {
    let mut problems = Problems::default();
    validation::create(resource, object, &mut problems);
    // The shared rules are checked only if the kind's own rules report nothing.
    if problems.is_empty() {
        validation::metadata::of_any(resource, &Value::Null, object, &mut problems);
    }
    problems.into_errors()
}

/// The errors of a changed object, in the real server's order. Errors that both the kind's own and the shared rules find are reported
/// twice, as on the real server.
pub(crate) fn validate_update(
    resource: &str,
    old: &Value,
    new: &Value,
    endpoint: Endpoint,
) -> Vec<FieldError> {
    let mut problems = Problems::default();
    validation::metadata::of_any(resource, old, new, &mut problems);
    validation::metadata::update_of_any(old, new, &mut problems);
    validation::update(resource, old, new, endpoint, &mut problems);
    problems.into_errors()
}

/// The errors of a Scale.
pub(crate) fn validate_scale(scale: &Value) -> Vec<FieldError> {
    let mut problems = Problems::default();
    scale::validate(scale, &mut problems);
    problems.into_errors()
}
