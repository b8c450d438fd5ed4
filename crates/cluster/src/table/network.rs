//! Services, Ingresses and their endpoints.

use std::collections::BTreeSet;

use crate::json::Value;

use super::column::Cell::{Made, Text, TextOr};
use super::column::{AGE, Column, NAME, SELECTOR, list, number, text, text_or};
use super::selector::of_labels;

/// The maximum number of addresses or ports in a cell; the rest are counted.
const SHOWN: usize = 3;

pub(super) static SERVICES: &[Column] = &[
    NAME,
    Column::text("Type", "How the service is reached.", Text("/spec/type")),
    Column::text(
        "Cluster-IP",
        "The service's address inside.",
        TextOr("/spec/clusterIPs/0", "<none>"),
    ),
    Column::text(
        "External-IP",
        "The service's addresses outside.",
        Made(|service| external(service).into()),
    ),
    Column::text(
        "Port(s)",
        "The service's ports.",
        Made(|service| ports(service).into()),
    ),
    AGE,
    SELECTOR.showing(Made(|service| {
        of_labels(service.pointer("/spec/selector")).into()
    })),
];

pub(super) static ENDPOINTS: &[Column] = &[
    NAME,
    Column::text(
        "Endpoints",
        "The addresses behind the service.",
        Made(|endpoints| addresses(endpoints).into()),
    ),
    AGE,
];

pub(super) static ENDPOINT_SLICES: &[Column] = &[
    NAME,
    Column::text(
        "AddressType",
        "What kind of addresses these are.",
        Text("/addressType"),
    ),
    Column::text("Ports", "The ports of every address.", Made(slice_ports)),
    Column::text("Endpoints", "The addresses.", Made(slice_addresses)),
    AGE,
];

fn slice_ports(slice: &Value) -> Value {
    let ports = list(slice, "/ports")
        .iter()
        .map(|port| match port["port"].as_i64() {
            Some(number) => number.to_string(),
            None => port["name"].as_str().unwrap_or("*").to_owned(),
        });
    unset_or(some(ports.collect())).into()
}

fn slice_addresses(slice: &Value) -> Value {
    let endpoints = list(slice, "/endpoints")
        .iter()
        .flat_map(|endpoint| list(endpoint, "/addresses"));
    let addresses = endpoints.filter_map(Value::as_str).map(str::to_owned);
    unset_or(some(addresses.collect())).into()
}

fn external(service: &Value) -> String {
    let own: Vec<_> = list(service, "/spec/externalIPs")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let or = |ips: Vec<&str>, otherwise: &str| {
        if ips.is_empty() {
            otherwise.to_owned()
        } else {
            ips.join(",")
        }
    };
    match text(service, "/spec/type") {
        "ClusterIP" | "NodePort" => or(own, "<none>"),
        "LoadBalancer" => {
            let ingress = list(service, "/status/loadBalancer/ingress").iter();
            let given = ingress
                .map(|one| text_or(one, "/ip", text(one, "/hostname")))
                .filter(|one| !one.is_empty());
            let given: BTreeSet<_> = given.collect();
            or(given.into_iter().chain(own).collect(), "<pending>")
        }
        "ExternalName" => text(service, "/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn ports(service: &Value) -> String {
    let ports = list(service, "/spec/ports").iter().map(|port| {
        let (own, protocol) = (number(port, "/port"), text(port, "/protocol"));
        match number(port, "/nodePort") {
            node @ 1.. => format!("{own}:{node}/{protocol}"),
            _ => format!("{own}/{protocol}"),
        }
    });
    let ports: Vec<_> = ports.collect();
    if ports.is_empty() {
        "<none>".to_owned()
    } else {
        ports.join(",")
    }
}

fn addresses(endpoints: &Value) -> String {
    let subsets = list(endpoints, "/subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let ips = || {
            list(subset, "/addresses")
                .iter()
                .map(|address| text(address, "/ip"))
        };
        let ports = list(subset, "/ports");
        if ports.is_empty() {
            all.extend(ips().map(str::to_owned));
        }
        for port in ports.iter().map(|port| number(port, "/port")) {
            all.extend(ips().map(|ip| {
                if ip.contains(':') {
                    format!("[{ip}]:{port}")
                } else {
                    format!("{ip}:{port}")
                }
            }));
        }
    }
    some(all)
}

/// The first few of a list, and the number of the others.
fn some(all: Vec<String>) -> String {
    let shown = all
        .iter()
        .take(SHOWN)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(",");
    match all.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{shown} + {more} more..."),
        _ => shown,
    }
}

fn unset_or(text: String) -> String {
    if text.is_empty() {
        "<unset>".to_owned()
    } else {
        text
    }
}
