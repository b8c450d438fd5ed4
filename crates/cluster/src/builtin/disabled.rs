//! Fields of pods behind a feature gate that is off in v1.36: the server drops them unless they are stored already.

use crate::json::Value;

use super::fields::{each, has, items, part, unset};

const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];
const PROJECTIONS: [&str; 2] = ["clusterTrustBundle", "podCertificate"];

/// The path of a workload's pod spec.
fn path(resource: &str) -> Option<&'static str> {
    match resource {
        "statefulsets.apps" | "deployments.apps" | "daemonsets.apps" | "replicasets.apps" | "jobs.batch" => {
            Some("/spec/template/spec")
        }
        "cronjobs.batch" => Some("/spec/jobTemplate/spec/template/spec"),
        "podtemplates" => Some("/template/spec"),
        _ => None,
    }
}

/// The spec of a workload's pods, mutable.
pub(super) fn template_spec<'v>(resource: &str, object: &'v mut Value) -> Option<&'v mut Value> {
    object.pointer_mut(path(resource)?)
}

/// The spec of a workload's pods.
pub(super) fn template_spec_of<'v>(resource: &str, object: &'v Value) -> &'v Value {
    path(resource)
        .and_then(|path| object.pointer(path))
        .unwrap_or(&Value::Null)
}

/// Drops fields behind a disabled gate unless `old` uses them.
pub(super) fn drop_disabled(spec: &mut Value, old: &Value) {
    if !has(old, "schedulingGroup") {
        unset(spec, "schedulingGroup");
    }
    let stops = |container: &Value| has(&container["lifecycle"], "stopSignal");
    if !CONTAINERS.iter().any(|name| items(old, name).iter().any(stops)) {
        for name in CONTAINERS {
            for lifecycle in each(spec, name).filter_map(|container| part(container, "lifecycle")) {
                unset(lifecycle, "stopSignal");
            }
        }
    }
    for projection in PROJECTIONS {
        let in_use = items(old, "volumes")
            .iter()
            .flat_map(|volume| items(&volume["projected"], "sources"))
            .any(|source| has(source, projection));
        if in_use {
            continue;
        }
        let projected = each(spec, "volumes").filter_map(|volume| part(volume, "projected"));
        for source in projected.flat_map(|projected| each(projected, "sources")) {
            unset(source, projection);
        }
    }
}
