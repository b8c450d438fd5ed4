//! The defaults of a container.

use crate::json::{Map, Value};

use super::fields::{each, fill, fill_text, part, text};
use super::image;
use crate::types::quantity::round_list;

/// Fills a container, an init container or an ephemeral one: they share every default.
pub(super) fn container(container: &mut Value) {
    fill_text(
        container,
        "imagePullPolicy",
        pull_policy(text(container, "image")),
    );
    fill_text(container, "terminationMessagePath", "/dev/termination-log");
    fill_text(container, "terminationMessagePolicy", "File");
    for port in each(container, "ports") {
        fill_text(port, "protocol", "TCP");
    }
    for variable in each(container, "env") {
        let Some(source) = part(variable, "valueFrom") else {
            continue;
        };
        field_reference(source);
        if let Some(file) = part(source, "fileKeyRef") {
            fill(file, "optional", false);
        }
    }
    if let Some(resources) = part(container, "resources") {
        round_list(resources.get_mut("limits"));
        round_list(resources.get_mut("requests"));
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(it) = part(container, name) {
            probe(it);
        }
    }
    let Some(lifecycle) = part(container, "lifecycle") else {
        return;
    };
    for name in ["postStart", "preStop"] {
        if let Some(hook) = part(lifecycle, name) {
            http_get(hook);
        }
    }
}

/// Images whose tag can change are always pulled.
pub(super) fn pull_policy(image: &str) -> &'static str {
    if image::tag(image) == Some("latest") {
        "Always"
    } else {
        "IfNotPresent"
    }
}

/// Fills the `fieldRef` of an environment variable or a volume file.
pub(super) fn field_reference(source: &mut Value) {
    if let Some(reference) = part(source, "fieldRef") {
        fill_text(reference, "apiVersion", "v1");
    }
}

fn probe(probe: &mut Value) {
    fill(probe, "timeoutSeconds", 1);
    fill(probe, "periodSeconds", 10);
    fill(probe, "successThreshold", 1);
    fill(probe, "failureThreshold", 3);
    http_get(probe);
    if let Some(grpc) = part(probe, "grpc") {
        fill(grpc, "service", "");
    }
}

fn http_get(handler: &mut Value) {
    if let Some(action) = part(handler, "httpGet") {
        fill_text(action, "path", "/");
        fill_text(action, "scheme", "HTTP");
    }
}

/// Requests default to the limits. Only for pods, never for templates.
pub(super) fn requests_from_limits(container: &mut Value) {
    let Some(resources) = part(container, "resources") else {
        return;
    };
    let Some(limits) = resources["limits"].as_object().cloned() else {
        return;
    };
    fill(resources, "requests", Map::new());
    for (name, limit) in limits {
        fill(&mut resources["requests"], &name, limit);
    }
}

/// On the host network a container port is a host port.
pub(super) fn host_ports(container: &mut Value) {
    for port in each(container, "ports") {
        let Some(number) = port["containerPort"].as_i64().filter(|number| *number != 0) else {
            continue;
        };
        fill(port, "hostPort", number);
    }
}
