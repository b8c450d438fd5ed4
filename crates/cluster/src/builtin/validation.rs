//! Which rules hold for which kind.

use serde_json::Value;

use super::Endpoint;
use super::metadata_validation as metadata;
use super::problems::{At, Problems};
use super::{autoscaler, budget, endpoints, lease, node, persistent_volume, rbac, revision, storage_class};
use super::{
    claim_validation, configuration_validation, event_validation, job_status_validation, job_validation,
};
use super::{pod_update_validation, pod_validation, service_validation, statefulset, workload_validation};

/// Checks a new object as its kind does.
pub(super) fn create(resource: &str, object: &Value, problems: &mut Problems) {
    match resource {
        "pods" => pod_validation::create(object, problems),
        "statefulsets.apps" => statefulset::validate_create(object, problems),
        "deployments.apps" | "daemonsets.apps" | "replicasets.apps" => {
            workload_validation::create(resource, object, problems);
        }
        "jobs.batch" => job_validation::create(object, problems),
        "cronjobs.batch" => job_validation::cron_job(object, true, problems),
        "services" => service_validation::create(object, problems),
        "persistentvolumeclaims" => claim_validation::create(object, problems),
        "configmaps" => configuration_validation::config_map(object, problems),
        "secrets" => configuration_validation::secret(object, problems),
        "controllerrevisions.apps" => {
            revision::validate(object, problems);
            revision::validate_data(object, problems);
        }
        "poddisruptionbudgets.policy" => budget::validate(object, problems),
        "podtemplates" => {
            metadata::of_kind(resource, object, problems);
            pod_validation::template(&At::new("template"), &object["template"], problems);
        }
        "events" => event_validation::validate(object, "reportingComponent", problems),
        "events.events.k8s.io" => event_validation::create_of_new_group(object, problems),
        resource if resource.ends_with("rolebindings.rbac.authorization.k8s.io") => {
            rbac::validate_binding(resource, object, problems);
        }
        resource if resource.ends_with("roles.rbac.authorization.k8s.io") => {
            rbac::validate_role(resource, object, problems);
        }
        _ => {
            if super::is_known(resource) {
                metadata::of_kind(resource, object, problems);
            } else {
                metadata::of_custom(resource, object, problems);
            }
            plain(resource, object, problems);
        }
    }
}

/// Kinds that have nothing to say about their metadata and little about the rest.
fn plain(resource: &str, object: &Value, problems: &mut Problems) {
    match resource {
        "namespaces" => {
            let finalizers = super::fields::items(&object["spec"], "finalizers");
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

/// Checks a changed object as its kind does.
pub(super) fn update(resource: &str, old: &Value, new: &Value, endpoint: Endpoint, problems: &mut Problems) {
    if endpoint == Endpoint::Status {
        return update_status(resource, old, new, problems);
    }
    match resource {
        "pods" => pod_update_validation::update(old, new, endpoint, problems),
        "statefulsets.apps" => statefulset::validate_update(old, new, problems),
        "deployments.apps" | "daemonsets.apps" | "replicasets.apps" => {
            workload_validation::update(resource, old, new, problems);
        }
        "jobs.batch" => job_validation::update(old, new, problems),
        "cronjobs.batch" => {
            metadata::update_of_kind(resource, old, new, problems);
            job_validation::cron_job(new, false, problems);
        }
        "services" => service_validation::update(old, new, problems),
        "persistentvolumeclaims" => claim_validation::update(old, new, problems),
        "configmaps" => configuration_validation::config_map_update(old, new, problems),
        "secrets" => configuration_validation::secret_update(old, new, problems),
        "controllerrevisions.apps" => revision::validate_update(old, new, problems),
        "poddisruptionbudgets.policy" => budget::validate(new, problems),
        "podtemplates" => {
            metadata::update_of_kind(resource, old, new, problems);
            pod_validation::template(&At::new("template"), &new["template"], problems);
        }
        "events" => event_validation::validate(new, "reportingComponent", problems),
        "events.events.k8s.io" => event_validation::validate(new, "reportingController", problems),
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
        "pods" => pod_update_validation::update(old, new, Endpoint::Status, problems),
        "statefulsets.apps" => statefulset::validate_status(old, new, problems),
        "jobs.batch" => job_status_validation::update(old, new, problems),
        "services" => service_validation::update_status(old, new, problems),
        "persistentvolumeclaims" => claim_validation::update_status(old, new, problems),
        _ => metadata::update_of_kind(resource, old, new, problems),
    }
}
