//! Deployments, DaemonSets and ReplicaSets: stored without a controller, with the shared template defaults.

use crate::json::{Map, Value, json};

use super::fields::{entries, fill, fill_text, made, same, set, text};
use super::pod_defaults::template;

/// A DaemonSet counts its template changes in this annotation.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) fn default_deployment(object: &mut Value) {
    let Some(spec) = made(object, "spec") else { return };
    fill(spec, "replicas", 1);
    if let Some(strategy) = made(spec, "strategy") {
        rolling(strategy, "25%".into(), "25%".into());
    }
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
    template(spec);
}

pub(super) fn default_daemon_set(object: &mut Value) {
    let Some(spec) = made(object, "spec") else { return };
    if let Some(strategy) = made(spec, "updateStrategy") {
        rolling(strategy, 1.into(), 0.into());
    }
    fill(spec, "revisionHistoryLimit", 10);
    template(spec);
}

fn rolling(strategy: &mut Value, unavailable: Value, surge: Value) {
    fill_text(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = made(strategy, "rollingUpdate")
    {
        fill(rolling, "maxUnavailable", unavailable);
        fill(rolling, "maxSurge", surge);
    }
}

pub(super) fn default_replica_set(object: &mut Value) {
    let Some(spec) = made(object, "spec") else { return };
    fill(spec, "replicas", 1);
    template(spec);
}

/// The initial status of a workload.
pub(super) fn reset_status(resource: &str, object: &mut Value) {
    let status = if resource == "replicasets.apps" {
        json!({"replicas": 0})
    } else {
        json!({})
    };
    set(object, "status", status);
}

pub(super) fn prepare_create_daemon_set(object: &mut Value) {
    let status = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
    ];
    set(
        object,
        "status",
        Map::from_iter(status.map(|name| (name.to_owned(), 0.into()))),
    );
    let given = template_generation(object);
    set_template_generation(object, given.max(1));
}

pub(super) fn prepare_update_daemon_set(old: &Value, new: &mut Value) {
    let changed = !same(&old["spec"]["template"], &new["spec"]["template"]);
    set_template_generation(new, template_generation(old).saturating_add(i64::from(changed)));
}

fn template_generation(object: &Value) -> i64 {
    let annotation =
        entries(&object["metadata"], "annotations").find(|(name, _)| *name == TEMPLATE_GENERATION);
    annotation
        .and_then(|(_, value)| value.as_str()?.parse().ok())
        .unwrap_or_default()
}

fn set_template_generation(object: &mut Value, generation: i64) {
    if let Some(annotations) = made(object, "metadata").and_then(|metadata| made(metadata, "annotations")) {
        set(annotations, TEMPLATE_GENERATION, generation.to_string());
    }
}
