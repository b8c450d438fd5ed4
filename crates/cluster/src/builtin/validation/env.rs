//! Validates environment variables and their sources.

use crate::json::Value;

use crate::builtin::fields::{has, items, text};
use crate::builtin::problems::{At, Problems};
use crate::names;

/// The pod fields available to the environment.
const POD_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// The pod fields available to a file.
const FILE_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const SIZES: [&str; 13] = [
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];

/// Checks `env` and `envFrom` of a container.
pub(crate) fn validate(at: &At, container: &Value, problems: &mut Problems) {
    for (index, variable) in items(container, "env").iter().enumerate() {
        let at = at.field("env");
        let at = at.index(index);
        let name = text(variable, "name");
        if name.is_empty() {
            problems.required(&at.field("name"), "");
        } else {
            problems.invalid_for(&at.field("name"), name, names::variable_name(name));
        }
        if has(variable, "valueFrom") {
            value_from(&at.field("valueFrom"), variable, problems);
        }
    }
    let all = at.field("envFrom");
    for (index, source) in items(container, "envFrom").iter().enumerate() {
        let at = all.index(index);
        let prefix = text(source, "prefix");
        problems.invalid_for(&at.field("prefix"), prefix, names::variable_name(prefix));
        let given: Vec<_> = ["configMapRef", "secretRef"]
            .into_iter()
            .filter(|name| has(source, name))
            .collect();
        for kind in &given {
            let name = text(&source[kind], "name");
            let at = at.field(kind);
            let at = at.field("name");
            if name.is_empty() {
                problems.required(&at, "");
            } else {
                problems.invalid_for(&at, name, names::dns_subdomain(&names::mask_trailing_dash(name)));
            }
        }
        match given.len() {
            0 => problems.invalid(&all, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => problems.invalid(&all, "", "may not have more than one field specified at a time"),
        }
    }
}

fn value_from(at: &At, variable: &Value, problems: &mut Problems) {
    let source = &variable["valueFrom"];
    let mut sources = 0;
    for name in [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ] {
        let (at, reference) = (at.field(name), &source[name]);
        if !reference.is_object() {
            continue;
        }
        sources += 1;
        match name {
            "fieldRef" => pod_field(&at, reference, &POD_FIELDS, problems),
            "resourceFieldRef" => resource_field(&at, reference, false, problems),
            "fileKeyRef" => file_key(&at, reference, problems),
            _ => key(&at, reference, problems),
        }
    }
    if sources == 0 {
        let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        problems.invalid(at, "", detail);
    } else if !text(variable, "value").is_empty() {
        problems.invalid(at, "", "may not be specified when `value` is not empty");
    } else if sources > 1 {
        problems.invalid(at, "", "may not have more than one field specified at a time");
    }
}

fn key(at: &At, reference: &Value, problems: &mut Problems) {
    let (name, key) = (text(reference, "name"), text(reference, "key"));
    problems.invalid_for(&at.field("name"), name, names::dns_subdomain(name));
    if key.is_empty() {
        problems.required(&at.field("key"), "");
    } else {
        problems.invalid_for(&at.field("key"), key, names::config_key(key));
    }
}

fn file_key(at: &At, reference: &Value, problems: &mut Problems) {
    for name in ["key", "volumeName", "path"] {
        if text(reference, name).is_empty() {
            problems.required(&at.field(name), "");
        }
    }
}

/// A field of the pod for a file.
pub(crate) fn file_field(at: &At, reference: &Value, problems: &mut Problems) {
    pod_field(at, reference, &FILE_FIELDS, problems);
}

fn pod_field(at: &At, reference: &Value, allowed: &[&str], problems: &mut Problems) {
    for name in ["apiVersion", "fieldPath"] {
        if text(reference, name).is_empty() {
            return problems.required(&at.field(name), "");
        }
    }
    let path = text(reference, "fieldPath");
    let version = text(reference, "apiVersion");
    if version != "v1" {
        let detail = format!("error converting fieldPath: unsupported pod version: {version}");
        return problems.invalid(&at.field("fieldPath"), path, &detail);
    }
    let keyed = path.strip_suffix("']").and_then(|rest| rest.split_once("['"));
    match keyed {
        Some(("metadata.annotations", key)) => problems.invalid_for(
            at,
            &key.to_lowercase(),
            names::qualified_name(&key.to_lowercase()),
        ),
        Some(("metadata.labels", key)) => problems.invalid_for(at, key, names::qualified_name(key)),
        _ if !POD_FIELDS.contains(&path) && !FILE_FIELDS.contains(&path) => {
            let detail = format!("error converting fieldPath: field label not supported: {path}");
            problems.invalid(&at.field("fieldPath"), path, &detail);
        }
        _ if !allowed.contains(&path) => problems.not_supported(&at.field("fieldPath"), path, allowed),
        _ => {}
    }
}

/// A resource of a container; a file must name the container.
pub(crate) fn resource_field(at: &At, reference: &Value, for_file: bool, problems: &mut Problems) {
    let resource = text(reference, "resource");
    let is_huge = resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-");
    if for_file && text(reference, "containerName").is_empty() {
        problems.required(&at.field("containerName"), "");
    } else if resource.is_empty() {
        problems.required(&at.field("resource"), "");
    } else if !RESOURCES.contains(&resource) && !is_huge {
        problems.not_supported(&at.field("resource"), resource, &RESOURCES);
    }
    let divisor = text(reference, "divisor");
    if divisor.is_empty() || divisor == "0" {
        return;
    }
    let what = match resource {
        "limits.cpu" | "requests.cpu" => {
            if !["1", "1m"].contains(&divisor) {
                let detail = "only divisor's values 1m and 1 are supported with the cpu resource";
                problems.invalid(&at.field("divisor"), resource, detail);
            }
            return;
        }
        "limits.memory" | "requests.memory" => "memory",
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => "local ephemeral storage",
        _ if is_huge => "hugepages",
        _ => return,
    };
    if !SIZES.contains(&divisor) {
        let detail = format!(
            "only divisor's values {} are supported with the {what} resource",
            SIZES.join(", ")
        );
        problems.invalid(&at.field("divisor"), resource, &detail);
    }
}
