//! Validates Services and their updates.

use crate::json::Value;

use super::container::PROTOCOLS;
use super::probe::port as port_reference;
use super::{metadata, selector};
use crate::builtin::fields::{has, int, items, text};
use crate::builtin::problems::{At, Problems, between};
use crate::names;

const RESOURCE: &str = "services";
const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const POLICIES: [&str; 2] = ["Cluster", "Local"];

pub(crate) fn create(object: &Value, problems: &mut Problems) {
    // The server checks addresses first, and stops if they are invalid.
    addresses(&At::new("spec"), &object["spec"], &Value::Null, problems);
    if !problems.is_empty() {
        return;
    }
    metadata::of_kind(RESOURCE, object, problems);
    spec(&object["spec"], &Value::Null, problems);
}

pub(crate) fn update(old: &Value, new: &Value, problems: &mut Problems) {
    // Here too the server checks addresses first, and stops if they are invalid.
    let mut early = Problems::default();
    addresses(&At::new("spec"), &new["spec"], &old["spec"], &mut early);
    if !early.is_empty() {
        *problems = early;
        return;
    }
    metadata::update_of_kind(RESOURCE, old, new, problems);
    address_changes(&old["spec"], &new["spec"], problems);
    spec(&new["spec"], &old["spec"], problems);
}

fn is_headless(spec: &Value) -> bool {
    items(spec, "clusterIPs").len() == 1 && items(spec, "clusterIPs")[0] == "None"
}

fn spec(spec: &Value, old: &Value, problems: &mut Problems) {
    let at = At::new("spec");
    let kind = text(spec, "type");
    let ports = items(spec, "ports");
    if ports.is_empty() && !is_headless(spec) && kind != "ExternalName" {
        problems.required(&at.field("ports"), "");
    }
    type_fields(&at, spec, kind, problems);
    let mut known = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        service_port(
            &at.field("ports").index(index),
            port,
            ports.len() > 1,
            &mut known,
            problems,
        );
    }
    selector::labels(&at.field("selector"), &spec["selector"], problems);
    affinity(&at, spec, problems);
    addresses(&at, spec, old, problems);
    let known = items(old, "externalIPs");
    for (index, address) in items(spec, "externalIPs")
        .iter()
        .enumerate()
        .filter(|(_, ip)| !known.contains(ip))
    {
        let address = address.as_str().unwrap_or_default();
        problems.invalid_for(
            &at.field("externalIPs").index(index),
            address,
            names::address(address),
        );
    }
    problems.choice(&at.field("type"), kind, &TYPES);
    node_ports(&at.field("ports"), ports, kind, problems);
    let is_balancer = kind == "LoadBalancer";
    if has(spec, "allocateLoadBalancerNodePorts") && !is_balancer {
        let detail = "may only be used when `type` is 'LoadBalancer'";
        problems.forbidden(&at.field("allocateLoadBalancerNodePorts"), detail);
    }
    if has(spec, "loadBalancerClass") && !is_balancer {
        problems.forbidden(
            &at.field("loadBalancerClass"),
            "may only be used when `type` is 'LoadBalancer'",
        );
    }
    traffic_policies(&at, spec, kind, problems);
}

fn type_fields(at: &At, spec: &Value, kind: &str, problems: &mut Problems) {
    match kind {
        "LoadBalancer" | "NodePort" if is_headless(spec) => {
            let detail = format!("may not be set to 'None' for {kind} services");
            problems.invalid(&at.field("clusterIPs").index(0), "None", &detail);
        }
        "ExternalName" => {
            for name in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if has(spec, name) {
                    problems.forbidden(&at.field(name), "may not be set for ExternalName services");
                }
            }
            let name = text(spec, "externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                problems.required(&at.field("externalName"), "");
            } else {
                problems.invalid_for(&at.field("externalName"), name, names::dns_subdomain(name));
            }
        }
        _ => {}
    }
}

fn service_port<'v>(
    at: &At,
    port: &'v Value,
    needs_name: bool,
    known: &mut Vec<&'v str>,
    problems: &mut Problems,
) {
    let name = text(port, "name");
    if !name.is_empty() {
        problems.invalid_for(&at.field("name"), name, names::dns_label(name));
        if known.contains(&name) {
            problems.duplicate(&at.field("name"), name);
        }
        known.push(name);
    } else if needs_name {
        problems.required(&at.field("name"), "");
    }
    let number = int(port, "port").unwrap_or_default();
    if !(1..=65535).contains(&number) {
        problems.invalid(&at.field("port"), number, &between(1, 65535));
    }
    problems.choice(&at.field("protocol"), text(port, "protocol"), &PROTOCOLS);
    port_reference(&at.field("targetPort"), &port["targetPort"], problems);
    if let Some(protocol) = port["appProtocol"].as_str() {
        problems.invalid_for(
            &at.field("appProtocol"),
            protocol,
            names::qualified_name(protocol),
        );
    }
}

fn affinity(at: &At, spec: &Value, problems: &mut Problems) {
    let affinity = text(spec, "sessionAffinity");
    problems.choice(&at.field("sessionAffinity"), affinity, &["ClientIP", "None"]);
    if affinity == "ClientIP" {
        let seconds = int(&spec["sessionAffinityConfig"]["clientIP"], "timeoutSeconds").unwrap_or_default();
        if !(1..=86_400).contains(&seconds) {
            let at = at.field("sessionAffinityConfig.clientIP.timeoutSeconds");
            problems.invalid(&at, seconds, "must be greater than 0 and less than 86400");
        }
    }
}

/// Checks the addresses of a Service against each other and against their families.
fn addresses(at: &At, spec: &Value, old: &Value, problems: &mut Problems) {
    if text(spec, "type") == "ExternalName" {
        return;
    }
    let (single, list, all) = (
        text(spec, "clusterIP"),
        at.field("clusterIPs"),
        items(spec, "clusterIPs"),
    );
    match (single, all.first()) {
        ("", Some(_)) => problems.invalid(
            &list,
            all.to_vec(),
            "must be empty when `clusterIP` is not specified",
        ),
        ("", None) => {}
        (_, None) => problems.required(&list, ""),
        (single, Some(first)) if first != single => {
            problems.invalid(&list, all.to_vec(), "first value must match `clusterIP`");
        }
        _ => {}
    }
    let families = items(spec, "ipFamilies");
    for (index, family) in families.iter().filter_map(Value::as_str).enumerate() {
        let at = at.field("ipFamilies");
        let at = at.index(index);
        if !["IPv4", "IPv6"].contains(&family) {
            problems.not_supported(&at, family, &["IPv4", "IPv6"]);
        }
        if families[..index].iter().any(|known| known == family) {
            problems.duplicate(&at, family);
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    if let Some(policy) = spec["ipFamilyPolicy"]
        .as_str()
        .filter(|policy| !policies.contains(policy))
    {
        problems.not_supported(&at.field("ipFamilyPolicy"), policy, &policies);
    }
    for (index, address) in all.iter().filter_map(Value::as_str).enumerate() {
        if index == 0 && address == "None" {
            if all.len() > 1 {
                problems.invalid(&list, all.to_vec(), "'None' must be the first and only value");
            }
        } else if !items(old, "clusterIPs").iter().any(|known| known == address) {
            problems.invalid_for(&list.index(index), address, names::address(address));
        }
    }
    if all.len() > 2 {
        problems.invalid(&list, all.to_vec(), "may only hold up to 2 values");
    }
}

fn node_ports(at: &At, ports: &[Value], kind: &str, problems: &mut Problems) {
    let node_port = |port: &Value| int(port, "nodePort").unwrap_or_default();
    for (index, _) in ports
        .iter()
        .enumerate()
        .filter(|(_, port)| kind == "ClusterIP" && node_port(port) != 0)
    {
        problems.forbidden(
            &at.index(index).field("nodePort"),
            "may not be used when `type` is 'ClusterIP'",
        );
    }
    for (index, port) in ports.iter().enumerate().filter(|(_, port)| node_port(port) != 0) {
        let is_same =
            |other: &Value| other["protocol"] == port["protocol"] && node_port(other) == node_port(port);
        if ports[..index].iter().any(is_same) {
            problems.duplicate(&at.index(index).field("nodePort"), node_port(port));
        }
    }
    for (index, port) in ports.iter().enumerate() {
        let is_same = |other: &Value| other["protocol"] == port["protocol"] && other["port"] == port["port"];
        if ports[..index].iter().any(is_same) {
            // The server prints its comparison key, an internal type.
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                port["protocol"], port["port"]
            );
            problems.duplicate_as(&at.index(index), &shown);
        }
    }
}

fn traffic_policies(at: &At, spec: &Value, kind: &str, problems: &mut Problems) {
    let is_external = matches!(kind, "LoadBalancer" | "NodePort") || !items(spec, "externalIPs").is_empty();
    let policy = text(spec, "externalTrafficPolicy");
    let at_external = at.field("externalTrafficPolicy");
    if is_external {
        problems.choice(&at_external, policy, &POLICIES);
    } else if !policy.is_empty() {
        problems.invalid(
            &at_external,
            policy,
            "may only be set for externally-accessible services",
        );
    }
    let needs_port = kind == "LoadBalancer" && policy == "Local";
    if !needs_port && int(spec, "healthCheckNodePort").unwrap_or_default() != 0 {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        problems.invalid(
            &at.field("healthCheckNodePort"),
            spec["healthCheckNodePort"].clone(),
            detail,
        );
    }
    let at_internal = at.field("internalTrafficPolicy");
    match spec["internalTrafficPolicy"].as_str() {
        None if matches!(kind, "ClusterIP" | "LoadBalancer" | "NodePort") => {
            problems.required(&at_internal, "")
        }
        Some(policy) if !POLICIES.contains(&policy) => {
            problems.not_supported(&at_internal, policy, &POLICIES)
        }
        _ => {}
    }
}

/// An allocated address is immutable, unless the Service stops having one.
fn address_changes(old: &Value, new: &Value, problems: &mut Problems) {
    let is_name = |spec: &Value| text(spec, "type") == "ExternalName";
    if is_name(old) || is_name(new) || (is_headless(old) && is_headless(new)) {
        return;
    }
    let (before, after) = (items(old, "clusterIPs"), items(new, "clusterIPs"));
    let at = At::new("spec.clusterIPs");
    if after.is_empty() && !before.is_empty() {
        return problems.invalid(&at.index(0), after.to_vec(), "primary clusterIP can not be unset");
    }
    for (index, (before, now)) in before.iter().zip(after).enumerate() {
        if before != now {
            problems.invalid(&at.index(index), after.to_vec(), "may not change once set");
        }
    }
}

/// Checks the load balancer status.
pub(crate) fn update_status(old: &Value, new: &Value, problems: &mut Problems) {
    metadata::update_of_kind(RESOURCE, old, new, problems);
    let at = At::new("status.loadBalancer.ingress");
    let ingress = items(&new["status"]["loadBalancer"], "ingress");
    if text(&new["spec"], "type") != "LoadBalancer" && !ingress.is_empty() {
        return problems.forbidden(&at, "may only be used when `spec.type` is 'LoadBalancer'");
    }
    for (index, point) in ingress.iter().enumerate() {
        let at = at.index(index);
        let (address, name) = (text(point, "ip"), text(point, "hostname"));
        if !address.is_empty() {
            problems.invalid_for(&at.field("ip"), address, names::address(address));
        }
        match (point["ipMode"].as_str(), address.is_empty()) {
            (None, false) => problems.required(&at.field("ipMode"), "must be specified when `ip` is set"),
            (Some(_), true) => {
                problems.forbidden(&at.field("ipMode"), "may not be specified when `ip` is not set")
            }
            (Some(mode), false) if !["Proxy", "VIP"].contains(&mode) => {
                problems.not_supported(&at.field("ipMode"), mode, &["Proxy", "VIP"]);
            }
            _ => {}
        }
        if !name.is_empty() {
            problems.invalid_for(&at.field("hostname"), name, names::dns_subdomain(name));
            if names::address(name).is_empty() {
                problems.invalid(
                    &at.field("hostname"),
                    name,
                    "must be a DNS name, not an IP address",
                );
            }
        }
    }
}
