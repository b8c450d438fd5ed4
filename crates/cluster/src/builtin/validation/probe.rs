//! Probes and lifecycle hooks.

use crate::json::Value;

use crate::builtin::fields::{has, int, items, text};
use crate::builtin::problems::{At, Problems, between};
use crate::names;

/// Checks the hooks of a container. `grace` is the pod's termination grace period.
pub(crate) fn lifecycle(at: &At, container: &Value, grace: Option<i64>, problems: &mut Problems) {
    let hooks = &container["lifecycle"];
    for name in ["postStart", "preStop"] {
        if has(hooks, name) {
            handler(&at.field("lifecycle").field(name), &hooks[name], grace, problems);
        }
    }
}

/// Checks the three probes of a container.
pub(crate) fn probes(at: &At, container: &Value, grace: Option<i64>, problems: &mut Problems) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let (at, probe) = (at.field(name), &container[name]);
        if !probe.is_object() {
            continue;
        }
        handler(&at, probe, grace, problems);
        for number in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            problems.non_negative(&at, probe, number);
        }
        let period = int(probe, "terminationGracePeriodSeconds");
        let period_at = at.field("terminationGracePeriodSeconds");
        if let Some(period) = period.filter(|period| *period <= 0) {
            problems.invalid(&period_at, period, "must be greater than 0");
        }
        if name == "readinessProbe" {
            if let Some(period) = period {
                problems.invalid(&period_at, period, "must not be set for readinessProbes");
            }
        } else if let Some(threshold) = int(probe, "successThreshold").filter(|threshold| *threshold != 1) {
            problems.invalid(&at.field("successThreshold"), threshold, "must be 1");
        }
    }
}

/// Exactly one handler must be set.
fn handler(at: &At, handler: &Value, grace: Option<i64>, problems: &mut Problems) {
    let mut found = false;
    for name in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let (at, action) = (at.field(name), &handler[name]);
        if !action.is_object() {
            continue;
        }
        if found {
            problems.forbidden(&at, "may not specify more than 1 handler type");
            continue;
        }
        found = true;
        match name {
            "exec" if items(action, "command").is_empty() => problems.required(&at.field("command"), ""),
            "httpGet" => http_get(&at, action, problems),
            "tcpSocket" | "grpc" => port(&at.field("port"), &action["port"], problems),
            "sleep" => sleep(&at, action, grace, problems),
            _ => {}
        }
    }
    if !found {
        problems.required(at, "must specify a handler type");
    }
}

fn http_get(at: &At, action: &Value, problems: &mut Problems) {
    if text(action, "path").is_empty() {
        problems.required(&at.field("path"), "");
    }
    port(&at.field("port"), &action["port"], problems);
    if !["HTTP", "HTTPS"].contains(&text(action, "scheme")) {
        problems.not_supported(&at.field("scheme"), text(action, "scheme"), &["HTTP", "HTTPS"]);
    }
    for header in items(action, "httpHeaders") {
        let name = text(header, "name");
        problems.invalid_for(&at.field("httpHeaders"), name, names::http_header(name));
    }
}

fn sleep(at: &At, action: &Value, grace: Option<i64>, problems: &mut Problems) {
    let seconds = int(action, "seconds").unwrap_or_default();
    if let Some(grace) = grace.filter(|grace| !(0..=*grace).contains(&seconds)) {
        let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        problems.invalid(at, seconds, &detail);
    }
}

/// A port by number or by name.
pub(crate) fn port(at: &At, port: &Value, problems: &mut Problems) {
    match port {
        Value::String(name) => problems.invalid_for(at, name, names::port_name(name)),
        port => {
            let number = port.as_i64().unwrap_or_default();
            if !(1..=65535).contains(&number) {
                problems.invalid(at, number, &between(1, 65535));
            }
        }
    }
}
