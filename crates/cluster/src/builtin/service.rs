//! Services.
//!
//! The server allocates addresses and node ports: it calls [`wants_address`] and sets them with [`give_address`] and [`give_node_ports`],
//! after preparing and before validating.

use std::collections::BTreeMap;

use crate::json::{Map, Value, json};

use super::fields::{
    copy, each, entries, fill, fill_text, flag, has, int, items, made, part, same, set, text, unset,
};

/// How long client affinity lasts, in seconds: three hours.
const AFFINITY_SECONDS: i64 = 10_800;

pub(super) fn default(object: &mut Value) {
    let Some(spec) = made(object, "spec") else { return };
    fill_text(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            unset(spec, "sessionAffinityConfig");
        }
        "ClientIP" if !has(&spec["sessionAffinityConfig"]["clientIP"], "timeoutSeconds") => {
            set(
                spec,
                "sessionAffinityConfig",
                json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}),
            );
        }
        _ => {}
    }
    fill_text(spec, "type", "ClusterIP");
    for port in each(spec, "ports") {
        fill_text(port, "protocol", "TCP");
        if matches!(&port["targetPort"], Value::Null) || port["targetPort"] == 0 || port["targetPort"] == "" {
            copy_port(port);
        }
    }
    if is_external(spec) {
        fill_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(text(spec, "type"), "NodePort" | "LoadBalancer" | "ClusterIP") {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if text(spec, "type") == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
        let balancer = part(object, "status").and_then(|status| part(status, "loadBalancer"));
        for ingress in balancer
            .into_iter()
            .flat_map(|balancer| each(balancer, "ingress"))
        {
            if !text(ingress, "ip").is_empty() {
                fill(ingress, "ipMode", "VIP");
            }
        }
    }
}

fn copy_port(port: &mut Value) {
    let number = port["port"].as_i64().unwrap_or_default();
    set(port, "targetPort", number);
}

/// Whether the Service accepts traffic from outside the cluster.
fn is_external(spec: &Value) -> bool {
    matches!(text(spec, "type"), "LoadBalancer" | "NodePort")
        || (text(spec, "type") == "ClusterIP" && !items(spec, "externalIPs").is_empty())
}

/// The creator cannot set the load balancer status.
pub(super) fn forget_status(object: &mut Value) {
    set(object, "status", json!({"loadBalancer": {}}));
}

pub(super) fn prepare_create(object: &mut Value) {
    forget_status(object);
    let Some(spec) = part(object, "spec") else { return };
    let address = text(spec, "clusterIP").to_owned();
    if !address.is_empty() && items(spec, "clusterIPs").is_empty() {
        set(spec, "clusterIPs", json!([address]));
    }
    families(&Value::Null, spec);
}

/// Sets the address families for a server that has only IPv4.
fn families(old: &Value, spec: &mut Value) {
    if text(spec, "type") == "ExternalName" {
        return;
    }
    let is_free = text(spec, "clusterIP") == "None" && entries(spec, "selector").next().is_none();
    if !has(spec, "ipFamilyPolicy") {
        match &old["ipFamilyPolicy"] {
            // A headless service without a selector may point anywhere, so it has both families.
            Value::Null => set(
                spec,
                "ipFamilyPolicy",
                if is_free {
                    "RequireDualStack"
                } else {
                    "SingleStack"
                },
            ),
            policy => set(spec, "ipFamilyPolicy", policy.clone()),
        }
    }
    if items(spec, "ipFamilies").is_empty() {
        set(spec, "ipFamilies", json!(["IPv4"]));
    }
    if is_free && text(spec, "ipFamilyPolicy") != "SingleStack" && items(spec, "ipFamilies").len() < 2 {
        let other = if items(spec, "ipFamilies")[0] == "IPv4" {
            "IPv6"
        } else {
            "IPv4"
        };
        if let Some(Value::Array(families)) = spec.get_mut("ipFamilies") {
            families.push(other.into());
        }
    }
}

pub(super) fn prepare_update(old: &Value, new: &mut Value) {
    let before = &old["spec"];
    let Some(spec) = part(new, "spec") else { return };
    keep_allocated(before, spec);
    normalize_addresses(before, spec);
    drop_what_the_type_had(before, spec);
    families(before, spec);
    let is_balancer = text(spec, "type") == "LoadBalancer";
    if !is_balancer && let Some(status) = made(new, "status") {
        set(status, "loadBalancer", Map::new());
    }
}

/// An update that omits allocated fields keeps them.
fn keep_allocated(before: &Value, spec: &mut Value) {
    if wants_cluster_ip(before) && wants_cluster_ip(spec) {
        if text(spec, "clusterIP").is_empty() {
            copy(before, spec, "clusterIP");
        }
        if items(spec, "clusterIPs").is_empty() {
            copy(before, spec, "clusterIPs");
        }
    }
    if wants_node_ports(before) && wants_node_ports(spec) {
        let used: Vec<_> = node_ports(before)
            .filter(|port| node_ports(spec).any(|new| new == *port))
            .collect();
        for port in each(spec, "ports") {
            let known = items(before, "ports")
                .iter()
                .rfind(|old| text(old, "name") == text(port, "name"));
            let number = known.and_then(|known| int(known, "nodePort")).unwrap_or_default();
            if int(port, "nodePort").unwrap_or_default() == 0 && number != 0 && !used.contains(&number) {
                set(port, "nodePort", number);
            }
        }
    }
    if wants_health_port(before) && wants_health_port(spec) && !has(spec, "healthCheckNodePort") {
        copy(before, spec, "healthCheckNodePort");
    }
}

/// Keeps `clusterIP` and `clusterIPs` consistent for clients that know only the first.
fn normalize_addresses(before: &Value, spec: &mut Value) {
    let same_list = same(&before["clusterIPs"], &spec["clusterIPs"]);
    let (old, new) = (text(before, "clusterIP"), text(spec, "clusterIP").to_owned());
    if old == new || !same_list {
        return;
    }
    if new.is_empty() {
        unset(spec, "clusterIPs");
    } else {
        set(spec, "clusterIPs", json!([new]));
    }
}

/// A change of type removes fields that only the old type had, if the client left them unchanged.
fn drop_what_the_type_had(before: &Value, spec: &mut Value) {
    let unchanged = |spec: &Value, name: &str| same(&before[name], &spec[name]);
    if wants_cluster_ip(before) && !wants_cluster_ip(spec) {
        if unchanged(spec, "clusterIP") && unchanged(spec, "clusterIPs") {
            unset(spec, "clusterIP");
            unset(spec, "clusterIPs");
        }
        for name in ["ipFamilies", "ipFamilyPolicy"] {
            if unchanged(spec, name) {
                unset(spec, name);
            }
        }
    }
    if wants_node_ports(before) && !wants_node_ports(spec) {
        let known: Vec<_> = node_ports(before).collect();
        if node_ports(spec).all(|port| known.contains(&port)) {
            each(spec, "ports").for_each(|port| drop(unset(port, "nodePort")));
        }
    }
    if wants_health_port(before) && !wants_health_port(spec) && unchanged(spec, "healthCheckNodePort") {
        unset(spec, "healthCheckNodePort");
    }
    let was_balancer = text(before, "type") == "LoadBalancer" && text(spec, "type") != "LoadBalancer";
    for name in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if was_balancer && unchanged(spec, name) {
            unset(spec, name);
        }
    }
    if is_external(before) && !is_external(spec) && unchanged(spec, "externalTrafficPolicy") {
        unset(spec, "externalTrafficPolicy");
    }
}

fn wants_cluster_ip(spec: &Value) -> bool {
    text(spec, "type") != "ExternalName"
}

fn wants_node_ports(spec: &Value) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

fn wants_health_port(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

fn node_ports(spec: &Value) -> impl Iterator<Item = i64> {
    items(spec, "ports")
        .iter()
        .filter_map(|port| int(port, "nodePort"))
        .filter(|port| *port != 0)
}

/// Whether a prepared Service needs a cluster IP.
pub(crate) fn wants_address(service: &Value) -> bool {
    wants_cluster_ip(&service["spec"]) && text(&service["spec"], "clusterIP").is_empty()
}

/// Sets the cluster IP of a Service.
pub(crate) fn give_address(service: &mut Value, address: &str) {
    if let Some(spec) = part(service, "spec") {
        set(spec, "clusterIP", address);
        set(spec, "clusterIPs", json!([address]));
    }
}

/// Sets the missing node ports of a Service, taken from `next`.
pub(crate) fn give_node_ports(service: &mut Value, mut next: impl FnMut() -> u16) {
    let Some(spec) = part(service, "spec").filter(|spec| wants_node_ports(spec)) else {
        return;
    };
    let is_balancer = text(spec, "type") == "LoadBalancer";
    if wants_health_port(spec) && int(spec, "healthCheckNodePort").unwrap_or_default() == 0 {
        set(spec, "healthCheckNodePort", next());
    }
    if is_balancer
        && has(spec, "allocateLoadBalancerNodePorts")
        && !flag(spec, "allocateLoadBalancerNodePorts")
    {
        return;
    }
    // One node port serves all protocols of a port.
    let mut known: BTreeMap<i64, i64> = items(spec, "ports")
        .iter()
        .filter_map(|port| {
            Some((
                int(port, "port")?,
                int(port, "nodePort").filter(|number| *number != 0)?,
            ))
        })
        .collect();
    for port in each(spec, "ports").filter(|port| int(port, "nodePort").unwrap_or_default() == 0) {
        let own = int(port, "port").unwrap_or_default();
        let number = *known.entry(own).or_insert_with(|| i64::from(next()));
        set(port, "nodePort", number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_given_out() {
        let ports = json!([{"port": 80, "nodePort": 31000}, {"port": 81}]);
        let mut service = json!({"spec": {"type": "NodePort", "ports": ports}});
        assert!(wants_address(&service));
        give_address(&mut service, "10.0.0.7");
        assert!(!wants_address(&service));
        give_node_ports(&mut service, || 32000);
        let numbers: Vec<_> = node_ports(&service["spec"]).collect();
        assert_eq!(numbers, [31000, 32000]);
        assert_eq!(service["spec"]["clusterIPs"], json!(["10.0.0.7"]));
    }

    #[test]
    fn headless_services_and_names_want_no_address() {
        assert!(!wants_address(
            &json!({"spec": {"type": "ClusterIP", "clusterIP": "None"}})
        ));
        assert!(!wants_address(&json!({"spec": {"type": "ExternalName"}})));
    }
}
