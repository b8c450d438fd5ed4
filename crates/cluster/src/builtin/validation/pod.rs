//! Pods and pod templates.

use crate::json::Value;

use super::scheduling;
use super::security::pod_security;
use super::{container, metadata, resource, selector, volume};
use crate::builtin::fields::{entries, flag, has, int, items, text};
use crate::builtin::problems::{At, Problems, between};
use crate::names;

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

/// Checks a new pod.
pub(crate) fn create(object: &Value, problems: &mut Problems) {
    metadata_and_spec(object, problems);
    let (at, spec) = (At::new("spec"), &object["spec"]);
    if !items(spec, "ephemeralContainers").is_empty() {
        problems.forbidden(&at.field("ephemeralContainers"), "cannot be set on create");
    }
    if !text(spec, "nodeName").is_empty() && !items(spec, "schedulingGates").is_empty() {
        problems.forbidden(
            &at.field("nodeName"),
            "cannot be set until all schedulingGates have been cleared",
        );
    }
}

/// The rules for new and changed pods.
pub(crate) fn metadata_and_spec(object: &Value, problems: &mut Problems) {
    let (at, spec) = (At::new("spec"), &object["spec"]);
    metadata::of_kind("pods", object, problems);
    annotations(
        &At::new("metadata.annotations"),
        &object["metadata"],
        spec,
        problems,
    );
    self::spec(&at, spec, Some(text(&object["metadata"], "name")), problems);
    if text(spec, "serviceAccountName").is_empty() {
        for (index, volume) in items(spec, "volumes").iter().enumerate() {
            for (place, source) in items(&volume["projected"], "sources").iter().enumerate() {
                if has(source, "serviceAccountToken") {
                    let at = at.field("volumes");
                    let at = at.index(index);
                    let at = at.field("projected.sources");
                    let at = at.index(place);
                    let detail = "must not be specified when serviceAccountName is not set";
                    problems.forbidden(&at.field("serviceAccountToken"), detail);
                }
            }
        }
    }
    // Templates with such images exist in storage, so the rule applies only to pods.
    for list in ["containers", "initContainers"] {
        for (index, container) in items(spec, list).iter().enumerate() {
            let image = text(container, "image");
            if image.trim() != image {
                let detail = "must not have leading or trailing whitespace";
                problems.invalid(&at.field(list).index(index).field("image"), image, detail);
            }
        }
    }
}

/// Checks a workload's template at the path `at`.
pub(crate) fn template(at: &At, template: &Value, problems: &mut Problems) {
    template_metadata(at, template, problems);
    spec(&at.field("spec"), &template["spec"], None, problems);
    if !items(&template["spec"], "ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        problems.forbidden(&at.field("spec.ephemeralContainers"), detail);
    }
}

/// Upstream omits `metadata` in these paths.
pub(crate) fn template_metadata(at: &At, template: &Value, problems: &mut Problems) {
    selector::labels(&at.field("labels"), &template["metadata"]["labels"], problems);
    metadata::annotations(&at.field("annotations"), &template["metadata"], problems);
    annotations(
        &at.field("annotations"),
        &template["metadata"],
        &template["spec"],
        problems,
    );
}

/// Annotations with a meaning on pods.
pub(crate) fn annotations(at: &At, metadata: &Value, spec: &Value, problems: &mut Problems) {
    for (key, value) in entries(metadata, "annotations") {
        let value = value.as_str().unwrap_or_default();
        match key {
            "kubernetes.io/config.mirror" if text(spec, "nodeName").is_empty() => {
                problems.invalid(
                    &at.key(key),
                    value,
                    "must set spec.nodeName if mirror pod annotation is set",
                );
            }
            "controller.kubernetes.io/pod-deletion-cost"
                if value.parse::<i32>().is_err() || value.starts_with('+') =>
            {
                problems.invalid(&at.key(key), value, "must be a 32bit integer");
            }
            _ => {}
        }
    }
}

/// Checks the spec of a pod (with its name) or of a template (without).
fn spec(at: &At, spec: &Value, pod: Option<&str>, problems: &mut Problems) {
    if !has(spec, "terminationGracePeriodSeconds") {
        problems.required(&at.field("terminationGracePeriodSeconds"), "");
    }
    let volumes = volume::volumes(&at.field("volumes"), spec, pod, problems);
    container::containers(at, spec, &volumes, problems);
    pod_resources(&at.field("resources"), spec, problems);
    host_network(&at.field("containers"), spec, pod.is_some(), problems);
    problems.choice(
        &at.field("restartPolicy"),
        text(spec, "restartPolicy"),
        &RESTART_POLICIES,
    );
    problems.choice(&at.field("dnsPolicy"), text(spec, "dnsPolicy"), &DNS_POLICIES);
    selector::labels(&at.field("nodeSelector"), &spec["nodeSelector"], problems);
    pod_security(&at.field("securityContext"), spec, problems);
    scheduling::affinity(&at.field("affinity"), &spec["affinity"], problems);
    dns_config(&at.field("dnsConfig"), spec, problems);
    gates(at, spec, problems);
    scheduling::topology_spread(&at.field("topologySpreadConstraints"), spec, problems);
    host_users(at, spec, problems);
    identity(at, spec, problems);
    scheduling::tolerations(&at.field("tolerations"), spec, problems);
    for (index, alias) in items(spec, "hostAliases").iter().enumerate() {
        let at = at.field("hostAliases");
        let at = at.index(index);
        problems.invalid_for(
            &at.field("ip"),
            text(alias, "ip"),
            names::address(text(alias, "ip")),
        );
        for (place, name) in items(alias, "hostnames")
            .iter()
            .filter_map(Value::as_str)
            .enumerate()
        {
            problems.invalid_for(
                &at.field("hostnames").index(place),
                name,
                names::dns_subdomain(name),
            );
        }
    }
    for name in ["priorityClassName", "runtimeClassName"] {
        let class = text(spec, name);
        if !class.is_empty() {
            problems.invalid_for(&at.field(name), class, names::dns_subdomain(class));
        }
    }
    if let Some(policy) = spec["preemptionPolicy"].as_str() {
        problems.choice(
            &at.field("preemptionPolicy"),
            policy,
            &["PreemptLowerPriority", "Never"],
        );
    }
    if has(spec, "os") {
        match text(&spec["os"], "name") {
            "" => problems.required(&at.field("os.name"), ""),
            "linux" | "windows" => {}
            other => problems.not_supported(&at.field("os"), other, &["linux", "windows"]),
        }
    }
}

/// Names and limits of the pod itself, in upstream's order.
fn identity(at: &At, spec: &Value, problems: &mut Problems) {
    if let Some(name) = spec["hostnameOverride"].as_str() {
        let at = at.field("hostnameOverride");
        if flag(spec, "setHostnameAsFQDN") {
            problems.forbidden(&at, "may not be specified when setHostnameAsFQDN is true");
        }
        if flag(spec, "hostNetwork") {
            problems.forbidden(&at, "may not be specified when hostNetwork is true");
        }
        if name.len() > 64 {
            problems.too_long(&at, 64);
        }
        problems.invalid_for(&at, name, names::dns_subdomain(name));
    }
    for name in ["serviceAccountName", "nodeName"] {
        let value = text(spec, name);
        if !value.is_empty() {
            problems.invalid_for(&at.field(name), value, names::dns_subdomain(value));
        }
    }
    problems.in_range(at, spec, "activeDeadlineSeconds", 1, i64::from(i32::MAX));
    for name in ["hostname", "subdomain"] {
        let value = text(spec, name);
        if !value.is_empty() {
            problems.invalid_for(&at.field(name), value, names::dns_label(value));
        }
    }
}

fn pod_resources(at: &At, spec: &Value, problems: &mut Problems) {
    let resources = &spec["resources"];
    if !resources.is_object() {
        return;
    }
    if !items(resources, "claims").is_empty() {
        problems.forbidden(
            &at.field("claims"),
            "claims may not be set for Resources at pod-level",
        );
    }
    resource::of_pod(at, resources, problems);
}

/// On the host network a host port must equal its container port; a template may leave it to the pod's defaults.
fn host_network(at: &At, spec: &Value, is_pod: bool, problems: &mut Problems) {
    if !flag(spec, "hostNetwork") {
        return;
    }
    for (index, container) in items(spec, "containers").iter().enumerate() {
        for (place, port) in items(container, "ports").iter().enumerate() {
            let (host, own) = (
                int(port, "hostPort").unwrap_or_default(),
                int(port, "containerPort").unwrap_or_default(),
            );
            if (is_pod || host != 0) && host != own {
                let at = at.index(index);
                let at = at.field("ports");
                let at = at.index(place);
                let at = at.field("hostPort");
                problems.invalid(&at, host, "must match `containerPort` when `hostNetwork` is true");
            }
        }
    }
}

fn dns_config(at: &At, spec: &Value, problems: &mut Problems) {
    let config = &spec["dnsConfig"];
    let servers = items(config, "nameservers");
    if text(spec, "dnsPolicy") == "None" {
        if !config.is_object() {
            return problems.required(at, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return problems.required(&at.field("nameservers"), detail);
        }
    }
    if servers.len() > 3 {
        problems.invalid(
            &at.field("nameservers"),
            servers.to_vec(),
            "must not have more than 3 nameservers",
        );
    }
    for (index, server) in servers.iter().filter_map(Value::as_str).enumerate() {
        problems.invalid_for(
            &at.field("nameservers").index(index),
            server,
            names::address(server),
        );
    }
    let searches = items(config, "searches");
    if searches.len() > 32 {
        problems.invalid(
            &at.field("searches"),
            searches.to_vec(),
            "must not have more than 32 search paths",
        );
    }
    for (index, search) in searches
        .iter()
        .filter_map(Value::as_str)
        .enumerate()
        .filter(|(_, search)| *search != ".")
    {
        let search = search.strip_suffix('.').unwrap_or(search);
        problems.invalid_for(
            &at.field("searches").index(index),
            search,
            names::search_path(search),
        );
    }
    for (index, option) in items(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            problems.required(&at.field("options").index(index), "must not be empty");
        }
    }
}

fn gates(at: &At, spec: &Value, problems: &mut Problems) {
    for (index, gate) in items(spec, "readinessGates").iter().enumerate() {
        let kind = text(gate, "conditionType");
        let at = at.field("readinessGates");
        let at = at.index(index);
        let at = at.field("conditionType");
        problems.invalid_for(&at, kind, names::qualified_name(kind));
    }
    let mut known = Vec::new();
    for (index, gate) in items(spec, "schedulingGates").iter().enumerate() {
        let at = at.field("schedulingGates");
        let (at, name) = (at.index(index), text(gate, "name"));
        problems.invalid_for(&at, name, names::qualified_name(name));
        if known.contains(&name) {
            problems.duplicate(&at, name);
        }
        known.push(name);
    }
}

/// A user namespace excludes the host's other namespaces. Two of these paths are upstream's typos.
fn host_users(at: &At, spec: &Value, problems: &mut Problems) {
    if spec["hostUsers"] != false {
        return;
    }
    for (name, path) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if flag(spec, name) {
            problems.forbidden(&at.field(path), "when `hostUsers` is false");
        }
    }
}

/// Checks a number that an update may only lower, and never below zero.
pub(crate) fn deadline_range(at: &At, seconds: i64, problems: &mut Problems) -> bool {
    let fits = (0..=i64::from(i32::MAX)).contains(&seconds);
    if !fits {
        problems.invalid(at, seconds, &between(0, i64::from(i32::MAX)));
    }
    fits
}
