//! Validation: here, which rules apply to which kind; below, the rules.
//!
//! The rules of small kinds are next to their defaults. Shared rules (`metadata`, `selector`, `resource`, `env`, …) report errors at the
//! path that the caller passes.

pub(super) mod claim;
pub(super) mod configuration;
pub(super) mod container;
pub(super) mod env;
pub(super) mod event;
pub(super) mod job;
pub(super) mod job_status;
pub(super) mod legacy_volume;
pub(super) mod metadata;
pub(super) mod pod;
pub(super) mod pod_update;
pub(super) mod probe;
pub(super) mod resource;
pub(super) mod scheduling;
pub(super) mod security;
pub(super) mod selector;
pub(super) mod service;
pub(super) mod statefulset;
pub(super) mod volume;
pub(super) mod workload;

use crate::json::Value;

use crate::builtin::Endpoint;
use crate::builtin::problems::{At, Problems};
use crate::builtin::{
    autoscaler, budget, endpoints, lease, node, persistent_volume, rbac, revision, storage_class,
};

/// Checks a new object by its kind's rules.
pub(crate) fn create(resource: &str, object: &Value, problems: &mut Problems) {
    match resource {
        "pods" => pod::create(object, problems),
        "statefulsets.apps" => statefulset::create(object, problems),
        "deployments.apps" | "daemonsets.apps" | "replicasets.apps" => {
            workload::create(resource, object, problems);
        }
        "jobs.batch" => job::create(object, problems),
        "cronjobs.batch" => job::cron_job(object, true, problems),
        "services" => service::create(object, problems),
        "persistentvolumeclaims" => claim::create(object, problems),
        "configmaps" => configuration::config_map(object, problems),
        "secrets" => configuration::secret(object, problems),
        "controllerrevisions.apps" => {
            revision::validate(object, problems);
            revision::validate_data(object, problems);
        }
        "poddisruptionbudgets.policy" => budget::validate(object, problems),
        "podtemplates" => {
            metadata::of_kind(resource, object, problems);
            pod::template(&At::new("template"), &object["template"], problems);
        }
        "events" => event::validate(object, "reportingComponent", problems),
        "events.events.k8s.io" => event::create_of_new_group(object, problems),
        resource if resource.ends_with("rolebindings.rbac.authorization.k8s.io") => {
            rbac::validate_binding(resource, object, problems);
        }
        resource if resource.ends_with("roles.rbac.authorization.k8s.io") => {
            rbac::validate_role(resource, object, problems);
        }
        _ => {
            if crate::builtin::is_known(resource) {
                metadata::of_kind(resource, object, problems);
            } else {
                metadata::of_custom(resource, object, problems);
            }
            plain(resource, object, problems);
        }
    }
}

/// Kinds with no rules for their metadata and few others.
fn plain(resource: &str, object: &Value, problems: &mut Problems) {
    match resource {
        "namespaces" => {
            let finalizers = crate::builtin::fields::items(&object["spec"], "finalizers");
            for finalizer in finalizers.iter().filter_map(Value::as_str) {
                metadata::finalizer_domain(&At::new("spec.finalizers"), finalizer, problems);
            }
        }
        "leases.coordination.k8s.io" => lease::validate(object, problems),
        "storageclasses.storage.k8s.io" => storage_class::validate(object, problems),
        "persistentvolumes" => persistent_volume::validate(object, problems),
        "nodes" => node::validate(object, problems),
        "endpointslices.discovery.k8s.io" => endpoints::validate_slice(object, problems),
        "horizontalpodautoscalers.autoscaling" => autoscaler::validate(object, problems),
        _ => {}
    }
}

/// Checks a changed object by its kind's rules.
pub(crate) fn update(resource: &str, old: &Value, new: &Value, endpoint: Endpoint, problems: &mut Problems) {
    if endpoint == Endpoint::Status {
        return update_status(resource, old, new, problems);
    }
    match resource {
        "pods" => pod_update::update(old, new, endpoint, problems),
        "statefulsets.apps" => statefulset::update(old, new, problems),
        "deployments.apps" | "daemonsets.apps" | "replicasets.apps" => {
            workload::update(resource, old, new, problems);
        }
        "jobs.batch" => job::update(old, new, problems),
        "cronjobs.batch" => {
            metadata::update_of_kind(resource, old, new, problems);
            job::cron_job(new, false, problems);
        }
        "services" => service::update(old, new, problems),
        "persistentvolumeclaims" => claim::update(old, new, problems),
        "configmaps" => configuration::config_map_update(old, new, problems),
        "secrets" => configuration::secret_update(old, new, problems),
        "controllerrevisions.apps" => revision::validate_update(old, new, problems),
        "poddisruptionbudgets.policy" => budget::validate(new, problems),
        "podtemplates" => {
            metadata::update_of_kind(resource, old, new, problems);
            pod::template(&At::new("template"), &new["template"], problems);
        }
        "events" => event::validate(new, "reportingComponent", problems),
        "events.events.k8s.io" => event::update_of_new_group(old, new, problems),
        resource if resource.ends_with("rolebindings.rbac.authorization.k8s.io") => {
            rbac::validate_binding_update(resource, old, new, problems);
        }
        resource if resource.ends_with("roles.rbac.authorization.k8s.io") => {
            rbac::validate_role(resource, new, problems);
            metadata::update_of_kind(resource, old, new, problems);
        }
        _ => {
            metadata::update_of_kind(resource, old, new, problems);
            plain(resource, new, problems);
        }
    }
}

fn update_status(resource: &str, old: &Value, new: &Value, problems: &mut Problems) {
    match resource {
        "pods" => pod_update::update(old, new, Endpoint::Status, problems),
        "statefulsets.apps" => statefulset::update_status(old, new, problems),
        "jobs.batch" => job_status::update(old, new, problems),
        "services" => service::update_status(old, new, problems),
        "persistentvolumeclaims" => claim::update_status(old, new, problems),
        _ => metadata::update_of_kind(resource, old, new, problems),
    }
}
