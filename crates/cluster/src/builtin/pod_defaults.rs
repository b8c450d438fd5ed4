//! The defaults of a pod and of a pod template.
//!
//! Revision hashes are computed from templates, so these defaults must equal the real server's byte for byte. A pod gets more than a
//! template: requests from limits, service links and host ports appear only on pods.

use std::collections::BTreeMap;

use crate::json::{Map, Value};

use super::container_defaults::{container, host_ports, requests_from_limits};
use super::fields::{each, entries, fill, fill_text, flag, has, int, items, made, part, set, text, unset};
use super::volume_defaults::volume;
use crate::types::quantity::round_list;
use stateward_schema::Quantity;

const OLD_ANNOTATIONS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

/// Sets the defaults of a Pod.
pub(super) fn pod(object: &mut Value) {
    all_but_spec(object);
    let Some(spec) = made(object, "spec") else { return };
    // A pod cannot have a negative period; a template may keep one.
    if int(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        set(spec, "terminationGracePeriodSeconds", 1);
    }
    each(spec, "containers").for_each(requests_from_limits);
    each(spec, "initContainers").for_each(requests_from_limits);
    pod_resources(spec);
    fill(spec, "enableServiceLinks", true);
    if flag(spec, "hostNetwork") {
        each(spec, "containers").for_each(host_ports);
        each(spec, "initContainers").for_each(host_ports);
    }
    pod_spec(spec);
}

/// Sets the defaults of a Pod outside its spec.
pub(super) fn all_but_spec(object: &mut Value) {
    drop_old_annotations(object);
    let Some(status) = part(object, "status") else {
        return;
    };
    for name in [
        "initContainerStatuses",
        "containerStatuses",
        "ephemeralContainerStatuses",
    ] {
        for one in each(status, name) {
            round_list(one.get_mut("allocatedResources"));
            round_resources(one);
        }
    }
    round_list(status.get_mut("allocatedResources"));
    round_resources(status);
}

/// Sets the defaults of the pod template inside `at`.
pub(super) fn template(at: &mut Value) {
    let Some(template) = made(at, "template") else {
        return;
    };
    drop_old_annotations(template);
    if let Some(spec) = made(template, "spec") {
        pod_spec(spec);
    }
}

/// Init containers were once annotations; those are dropped.
fn drop_old_annotations(object: &mut Value) {
    let Some(metadata) = part(object, "metadata") else {
        return;
    };
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else {
        return;
    };
    annotations.retain(|name, _| !OLD_ANNOTATIONS.contains(&name.as_str()));
    if annotations.is_empty() {
        unset(metadata, "annotations");
    }
}

/// Sets the defaults that pods and templates share.
fn pod_spec(spec: &mut Value) {
    fill_text(spec, "dnsPolicy", "ClusterFirst");
    fill_text(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", Map::new());
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill_text(spec, "schedulerName", "default-scheduler");
    each(spec, "volumes").for_each(volume);
    for name in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, name).for_each(container);
    }
    round_list(spec.get_mut("overhead"));
    round_resources(spec);
    account_alias(spec);
}

/// `serviceAccount` is the old name of `serviceAccountName`; both are written, and the new name wins.
fn account_alias(spec: &mut Value) {
    let name = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    };
    if !name.is_empty() {
        let name = name.to_owned();
        set(spec, "serviceAccountName", name.clone());
        set(spec, "serviceAccount", name);
    }
}

fn round_resources(at: &mut Value) {
    if let Some(resources) = part(at, "resources") {
        round_list(resources.get_mut("limits"));
        round_list(resources.get_mut("requests"));
    }
}

/// Sets pod-level requests if there are pod-level resources: from the containers, then from the pod's limits.
fn pod_resources(spec: &mut Value) {
    if !spec["resources"].is_object() {
        return;
    }
    let is_empty = |name: &str| entries(&spec["resources"], name).next().is_none();
    if is_empty("limits") && is_empty("requests") {
        return;
    }
    let huge: Vec<_> = of_all_containers(spec, "limits")
        .into_iter()
        .filter(|(name, _)| is_huge_page(name) && !has(&spec["resources"]["requests"], name))
        .collect();
    fill_list(&mut spec["resources"], "limits", huge);
    if entries(&spec["resources"], "limits").next().is_none() {
        return;
    }
    let of_containers: Vec<_> = of_all_containers(spec, "requests")
        .into_iter()
        .filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"))
        .collect();
    fill_list(&mut spec["resources"], "requests", of_containers);
    let of_limits: Vec<_> = entries(&spec["resources"], "limits")
        .filter(|(name, _)| matches!(*name, "cpu" | "memory") || is_huge_page(name))
        .map(|(name, limit)| (name.to_owned(), limit.clone()))
        .collect();
    fill_list(&mut spec["resources"], "requests", of_limits);
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn fill_list(at: &mut Value, name: &str, amounts: Vec<(String, Value)>) {
    for (resource, amount) in amounts {
        if let Some(list) = made(at, name) {
            fill(list, &resource, amount);
        }
    }
}

/// The total of all containers of a pod. Sidecars run concurrently with everything that starts after them; other init containers run one at
/// a time.
fn of_all_containers(spec: &Value, list: &str) -> BTreeMap<String, Value> {
    let mut total = BTreeMap::new();
    for container in items(spec, "containers") {
        add(&mut total, &container["resources"], list);
    }
    let (mut sidecars, mut peak) = (BTreeMap::new(), BTreeMap::new());
    for container in items(spec, "initContainers") {
        let mut now = BTreeMap::new();
        if text(container, "restartPolicy") == "Always" {
            add(&mut total, &container["resources"], list);
            add(&mut sidecars, &container["resources"], list);
        } else {
            add(&mut now, &container["resources"], list);
        }
        for (name, amount) in &sidecars {
            plus(&mut now, name, *amount);
        }
        raise(&mut peak, &now);
    }
    raise(&mut total, &peak);
    total
        .into_iter()
        .map(|(name, amount)| (name, amount.to_string().into()))
        .collect()
}

fn add(total: &mut BTreeMap<String, Quantity>, resources: &Value, list: &str) {
    for (name, amount) in entries(resources, list) {
        plus(total, name, Quantity::of(amount.as_str()));
    }
}

fn plus(total: &mut BTreeMap<String, Quantity>, name: &str, amount: Quantity) {
    total
        .entry(name.to_owned())
        .and_modify(|sum| *sum = sum.plus(amount))
        .or_insert(amount);
}

fn raise(total: &mut BTreeMap<String, Quantity>, least: &BTreeMap<String, Quantity>) {
    for (name, amount) in least {
        let entry = total.entry(name.clone()).or_insert(*amount);
        if *amount > *entry {
            *entry = *amount;
        }
    }
}
