//! Services and where they lead.

use std::collections::BTreeSet;

use serde_json::Value;

use super::selector::{of_labels, of_selector};
use super::sheet::{AGE, Column, NAME, SELECTOR, Sheet, age, list, name, number, text, text_or};

/// More addresses or ports than this are only counted.
const SHOWN: usize = 3;

pub(super) static SERVICES: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Type", "How the service is reached."),
        Column::text("Cluster-IP", "The service's address inside."),
        Column::text("External-IP", "The service's addresses outside."),
        Column::text("Port(s)", "The service's ports."),
        AGE,
        SELECTOR,
    ],
    cells: |service, now| {
        vec![
            name(service),
            text(service, "/spec/type").into(),
            text_or(service, "/spec/clusterIPs/0", "<none>").into(),
            external(service).into(),
            ports(service).into(),
            age(service, now),
            of_labels(service.pointer("/spec/selector")).into(),
        ]
    },
    conditions: None,
};

pub(super) static ENDPOINTS: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Endpoints", "The addresses behind the service."),
        AGE,
    ],
    cells: |endpoints, now| vec![name(endpoints), addresses(endpoints).into(), age(endpoints, now)],
    conditions: None,
};

pub(super) static ENDPOINT_SLICES: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("AddressType", "What kind of addresses these are."),
        Column::text("Ports", "The ports of every address."),
        Column::text("Endpoints", "The addresses."),
        AGE,
    ],
    cells: |slice, now| {
        let ports = list(slice, "/ports")
            .iter()
            .map(|port| match port["port"].as_i64() {
                Some(number) => number.to_string(),
                None => port["name"].as_str().unwrap_or("*").to_owned(),
            });
        let endpoints = list(slice, "/endpoints")
            .iter()
            .flat_map(|endpoint| list(endpoint, "/addresses"));
        let endpoints = endpoints.filter_map(Value::as_str).map(str::to_owned);
        vec![
            name(slice),
            text(slice, "/addressType").into(),
            unset_or(some(ports.collect())).into(),
            unset_or(some(endpoints.collect())).into(),
            age(slice, now),
        ]
    },
    conditions: None,
};

pub(super) static NETWORK_POLICIES: Sheet = Sheet {
    columns: &[NAME, Column::text("Pod-Selector", "Which pods are meant."), AGE],
    cells: |policy, now| {
        vec![
            name(policy),
            of_selector(policy.pointer("/spec/podSelector")).into(),
            age(policy, now),
        ]
    },
    conditions: None,
};

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

/// The first few of a list, and how many more there are.
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
