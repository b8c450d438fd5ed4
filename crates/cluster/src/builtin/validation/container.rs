//! Validates all kinds of containers.

use crate::json::Value;

use super::security::container_security;
use super::volume::backsteps;
use super::{env, probe, resource};
use crate::builtin::fields::{flag, has, int, items, text};
use crate::builtin::problems::{At, Problems, between};
use crate::names;

pub(crate) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
pub(crate) const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const NOT_FOR_INIT: &str = "may not be set for init containers without restartPolicy=Always";

/// Checks all containers of a pod. `volumes` are the valid ones.
pub(crate) fn containers(at: &At, spec: &Value, volumes: &[&Value], problems: &mut Problems) {
    regular(&at.field("containers"), spec, volumes, problems);
    init(&at.field("initContainers"), spec, volumes, problems);
}

fn regular(at: &At, spec: &Value, volumes: &[&Value], problems: &mut Problems) {
    let containers = items(spec, "containers");
    if containers.is_empty() {
        return problems.required(at, "");
    }
    let grace = int(spec, "terminationGracePeriodSeconds");
    let mut names = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let at = at.index(index);
        common(&at, container, spec, volumes, problems);
        let name = text(container, "name");
        if names.contains(&name) {
            problems.duplicate(&at.field("name"), name);
        }
        names.push(name);
        probe::lifecycle(&at, container, grace, problems);
        probe::probes(&at, container, grace, problems);
        restart_policy(&at, container, problems);
    }
    host_ports(at, containers, problems);
}

fn init(at: &At, spec: &Value, volumes: &[&Value], problems: &mut Problems) {
    let grace = int(spec, "terminationGracePeriodSeconds");
    let mut names: Vec<_> = items(spec, "containers")
        .iter()
        .map(|container| text(container, "name"))
        .collect();
    for (index, container) in items(spec, "initContainers").iter().enumerate() {
        let all = at;
        let at = at.index(index);
        common(&at, container, spec, volumes, problems);
        restart_policy(&at, container, problems);
        let name = text(container, "name");
        if names.contains(&name) {
            problems.duplicate(&at.field("name"), name);
        } else if !name.is_empty() {
            names.push(name);
        }
        host_ports(all, std::slice::from_ref(container), problems);
        if text(container, "restartPolicy") == "Always" {
            probe::lifecycle(&at, container, grace, problems);
            probe::probes(&at, container, grace, problems);
            continue;
        }
        for name in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if has(container, name) {
                problems.forbidden(&at.field(name), NOT_FOR_INIT);
            }
        }
    }
}

/// The rules for every container.
fn common(at: &At, container: &Value, spec: &Value, volumes: &[&Value], problems: &mut Problems) {
    let name = text(container, "name");
    if name.is_empty() {
        problems.required(&at.field("name"), "");
    } else {
        problems.invalid_for(&at.field("name"), name, names::dns_label(name));
    }
    if text(container, "image").is_empty() {
        problems.required(&at.field("image"), "");
    }
    let policy = text(container, "terminationMessagePolicy");
    problems.choice(
        &at.field("terminationMessagePolicy"),
        policy,
        &["File", "FallbackToLogsOnError"],
    );
    ports(&at.field("ports"), container, problems);
    env::validate(at, container, problems);
    mounts(&at.field("volumeMounts"), container, volumes, problems);
    devices(&at.field("volumeDevices"), container, volumes, problems);
    problems.choice(
        &at.field("imagePullPolicy"),
        text(container, "imagePullPolicy"),
        &PULL_POLICIES,
    );
    let claims = items(spec, "resourceClaims");
    resource::validate(&at.field("resources"), &container["resources"], claims, problems);
    resize_policy(&at.field("resizePolicy"), container, spec, problems);
    container_security(&at.field("securityContext"), container, spec, problems);
}

fn ports(at: &At, container: &Value, problems: &mut Problems) {
    let mut known = Vec::new();
    for (index, port) in items(container, "ports").iter().enumerate() {
        let at = at.index(index);
        let name = text(port, "name");
        let complaints = if name.is_empty() {
            Vec::new()
        } else {
            names::port_name(name)
        };
        if !complaints.is_empty() {
            problems.invalid_for(&at.field("name"), name, complaints);
        } else if !name.is_empty() && known.contains(&name) {
            problems.duplicate(&at.field("name"), name);
        } else {
            known.push(name);
        }
        if int(port, "containerPort").unwrap_or_default() == 0 {
            problems.required(&at.field("containerPort"), "");
        }
        for name in ["containerPort", "hostPort"] {
            if let Some(number) =
                int(port, name).filter(|number| *number != 0 && !(1..=65535).contains(number))
            {
                problems.invalid(&at.field(name), number, &between(1, 65535));
            }
        }
        problems.choice(&at.field("protocol"), text(port, "protocol"), &PROTOCOLS);
    }
}

/// A host port can be used only once.
fn host_ports(at: &At, containers: &[Value], problems: &mut Problems) {
    let mut taken = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        for (place, port) in items(container, "ports").iter().enumerate() {
            let Some(number) = int(port, "hostPort").filter(|number| *number != 0) else {
                continue;
            };
            let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if taken.contains(&key) {
                problems.duplicate(
                    &at.index(index).field("ports").index(place).field("hostPort"),
                    key,
                );
            } else {
                taken.push(key);
            }
        }
    }
}

fn mounts(at: &At, container: &Value, volumes: &[&Value], problems: &mut Problems) {
    let devices = items(container, "volumeDevices");
    let mut taken = Vec::new();
    for (index, mount) in items(container, "volumeMounts").iter().enumerate() {
        let (all, at) = (at, at.index(index));
        let (name, path) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            problems.required(&at.field("name"), "");
        }
        if !volumes.iter().any(|volume| text(volume, "name") == name) {
            problems.not_found(&at.field("name"), name);
        }
        if path.is_empty() {
            problems.required(&at.field("mountPath"), "");
        }
        if taken.contains(&path) {
            problems.invalid(&at.field("mountPath"), path, "must be unique");
        }
        taken.push(path);
        if devices.iter().any(|device| text(device, "name") == name) {
            problems.invalid(&at.field("name"), name, "must not already exist in volumeDevices");
        }
        if devices.iter().any(|device| text(device, "devicePath") == path) {
            problems.invalid(
                &at.field("mountPath"),
                path,
                "must not already exist as a path in volumeDevices",
            );
        }
        // Upstream omits the index in the paths from here on.
        sub_paths(all, &at, mount, problems);
        propagation(all, container, mount, problems);
    }
}

fn sub_paths(all: &At, at: &At, mount: &Value, problems: &mut Problems) {
    let (path, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
    let relative = |name: &str, path: &str, problems: &mut Problems| {
        if path.starts_with('/') {
            problems.invalid(&all.field(name), path, "must be a relative path");
        }
        backsteps(&all.field(name), path, problems);
    };
    relative("subPath", path, problems);
    if !expression.is_empty() && !path.is_empty() {
        problems.invalid(
            &at.field("subPathExpr"),
            expression,
            "subPathExpr and subPath are mutually exclusive",
        );
    }
    relative("subPathExpr", expression, problems);
}

fn propagation(all: &At, container: &Value, mount: &Value, problems: &mut Problems) {
    let way = text(mount, "mountPropagation");
    let at = all.field("mountPropagation");
    if has(mount, "mountPropagation") && !PROPAGATIONS.contains(&way) {
        problems.not_supported(&at, way, &PROPAGATIONS);
    }
    if way == "Bidirectional" && !flag(&container["securityContext"], "privileged") {
        problems.forbidden(
            &at,
            "Bidirectional mount propagation is available only to privileged containers",
        );
    }
    let at = all.field("recursiveReadOnly");
    match mount["recursiveReadOnly"].as_str() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !flag(mount, "readOnly") {
                problems.forbidden(&at, "may only be specified when readOnly is true");
            }
            if has(mount, "mountPropagation") && way != "None" {
                problems.forbidden(
                    &at,
                    "may only be specified when mountPropagation is None or not specified",
                );
            }
        }
        Some(other) => problems.not_supported(&at, other, &["Disabled", "Enabled", "IfPossible"]),
    }
}

fn devices(at: &At, container: &Value, volumes: &[&Value], problems: &mut Problems) {
    let mounts = items(container, "volumeMounts");
    let (mut names, mut paths) = (Vec::new(), Vec::new());
    for (index, device) in items(container, "volumeDevices").iter().enumerate() {
        let at = at.index(index);
        let (name, path) = (text(device, "name"), text(device, "devicePath"));
        let (name_at, path_at) = (at.field("name"), at.field("devicePath"));
        if name.is_empty() {
            problems.required(&name_at, "");
        }
        if names.contains(&name) {
            problems.invalid(&name_at, name, "must be unique");
        }
        match volumes.iter().find(|volume| text(volume, "name") == name) {
            None => problems.not_found(&name_at, name),
            Some(volume) if has(volume, "persistentVolumeClaim") || has(volume, "ephemeral") => {}
            Some(_) => {
                let detail =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                problems.invalid(&name_at, name, detail);
            }
        }
        if path.is_empty() {
            problems.required(&path_at, "");
        }
        if paths.contains(&path) {
            problems.invalid(&path_at, path, "must be unique");
        }
        if path.split('/').any(|part| part == "..") {
            problems.invalid(&path_at, path, "can not contain backsteps ('..')");
        } else {
            paths.push(path);
        }
        if mounts.iter().any(|mount| text(mount, "name") == name) {
            problems.invalid(&name_at, name, "must not already exist in volumeMounts");
        }
        if mounts
            .iter()
            .any(|mount| text(mount, "mountPath") == path && !path.is_empty())
        {
            problems.invalid(&path_at, path, "must not already exist as a path in volumeMounts");
        }
        if !name.is_empty() {
            names.push(name);
        }
    }
}

fn resize_policy(at: &At, container: &Value, spec: &Value, problems: &mut Problems) {
    let mut known = Vec::new();
    for (index, policy) in items(container, "resizePolicy").iter().enumerate() {
        let (resource, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if known.contains(&resource) {
            problems.duplicate(&at.index(index), resource);
        }
        known.push(resource);
        problems.choice(at, resource, &["cpu", "memory"]);
        problems.choice(at, restart, &["NotRequired", "RestartContainer"]);
        if text(spec, "restartPolicy") == "Never" && restart != "NotRequired" {
            problems.invalid(
                at,
                restart,
                "must be 'NotRequired' when pod `restartPolicy` is 'Never'",
            );
        }
    }
}

/// A container's own restart policy and its rules.
fn restart_policy(at: &At, container: &Value, problems: &mut Problems) {
    let rules = items(container, "restartPolicyRules");
    match container["restartPolicy"].as_str() {
        None if !rules.is_empty() => {
            problems.required(
                &at.field("restartPolicy"),
                "must specify restartPolicy when restart rules are used",
            );
        }
        None => {}
        Some(policy) if RESTART_POLICIES.contains(&policy) => {}
        Some(policy) => problems.not_supported(&at.field("restartPolicy"), policy, &RESTART_POLICIES),
    }
    for (index, rule) in rules.iter().enumerate() {
        let at = at.field("restartPolicyRules");
        let at = at.index(index);
        let actions = ["Restart", "RestartAllContainers"];
        if !actions.contains(&text(rule, "action")) {
            problems.not_supported(&at.field("action"), text(rule, "action"), &actions);
        }
        if !has(rule, "exitCodes") {
            problems.required(&at.field("exitCodes"), "must be specified");
        } else if !["In", "NotIn"].contains(&text(&rule["exitCodes"], "operator")) {
            let operator = text(&rule["exitCodes"], "operator");
            problems.not_supported(
                &at.field("exitCodes").field("operator"),
                operator,
                &["In", "NotIn"],
            );
        }
    }
}
