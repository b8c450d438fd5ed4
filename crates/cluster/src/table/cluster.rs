//! Nodes, namespaces, events, leases, configuration and access.

use std::collections::BTreeSet;

use crate::json::Value;
use jiff::Timestamp;

use super::age::since;
use super::column::Cell::{Made, Text, TextOr, Timed};
use super::column::{AGE, Column, NAME, list, number, text, text_or};

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE: &str = "kubernetes.io/role";

pub(super) static NODES: &[Column] = &[
    NAME,
    Column::text("Status", "Whether the node is ready for pods.", Made(node_status)),
    Column::text("Roles", "What the node is for.", Made(roles)),
    AGE,
    Column::text(
        "Version",
        "The version of the node's kubelet.",
        Text("/status/nodeInfo/kubeletVersion"),
    ),
    Column::wide(
        "Internal-IP",
        "The node's address inside.",
        Made(|node| address(node, "InternalIP")),
    ),
    Column::wide(
        "External-IP",
        "The node's address outside.",
        Made(|node| address(node, "ExternalIP")),
    ),
    Column::wide(
        "OS-Image",
        "The node's operating system.",
        TextOr("/status/nodeInfo/osImage", "<unknown>"),
    ),
    Column::wide("Kernel-Version", "The node's kernel.", Made(kernel)),
    Column::wide(
        "Container-Runtime",
        "What runs the node's containers.",
        TextOr("/status/nodeInfo/containerRuntimeVersion", "<unknown>"),
    ),
];

fn node_status(node: &Value) -> Value {
    let ready = list(node, "/status/conditions")
        .iter()
        .rev()
        .find(|condition| condition["type"] == "Ready");
    let status = match ready {
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if node["spec"]["unschedulable"] == true {
        format!("{status},SchedulingDisabled").into()
    } else {
        status.into()
    }
}

fn roles(node: &Value) -> Value {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: BTreeSet<_> = labels
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None if key == ROLE => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        return "<none>".into();
    }
    roles.into_iter().collect::<Vec<_>>().join(",").into()
}

fn address(node: &Value, kind: &str) -> Value {
    let mut addresses = list(node, "/status/addresses").iter();
    let found = addresses.find(|address| address["type"] == kind);
    found.map_or("<none>", |address| text(address, "/address")).into()
}

fn kernel(node: &Value) -> Value {
    let kernel = text_or(node, "/status/nodeInfo/kernelVersion", "<unknown>");
    match text(node, "/status/nodeInfo/architecture") {
        "" => kernel.into(),
        architecture => format!("{kernel} ({architecture})").into(),
    }
}

pub(super) static NAMESPACES: &[Column] = &[
    NAME,
    Column::text(
        "Status",
        "Whether the namespace is in use or going.",
        Text("/status/phase"),
    ),
    AGE,
];

pub(super) static EVENTS: &[Column] = &[
    Column::text("Last Seen", "How long ago it happened last.", Timed(last_seen)),
    Column::text("Type", "Whether it matters.", Text("/type")),
    Column::text("Reason", "What happened, in a word.", Text("/reason")),
    Column::text("Object", "To what it happened.", Made(involved)),
    Column::wide(
        "Subobject",
        "To which part of it.",
        Made(|event| about(event, "fieldPath").into()),
    ),
    Column::wide("Source", "Who reports it.", Made(source)),
    Column::text(
        "Message",
        "What happened.",
        Made(|event| either(event, "/message", "/note").trim().into()),
    ),
    Column::wide("First Seen", "How long ago it happened first.", Timed(first_seen)),
    Column::wide("Count", "How often it happened.", Made(count)),
    NAME.when_wide(),
];

/// The two groups have different field names for the same event.
fn either<'e>(event: &'e Value, old: &str, new: &str) -> &'e str {
    text_or(event, old, text(event, new))
}

fn about<'e>(event: &'e Value, field: &str) -> &'e str {
    either(
        event,
        &format!("/involvedObject/{field}"),
        &format!("/regarding/{field}"),
    )
}

fn involved(event: &Value) -> Value {
    match (about(event, "kind").to_lowercase(), about(event, "name")) {
        (kind, "") => kind.into(),
        (kind, name) => format!("{kind}/{name}").into(),
    }
}

fn first_seen(event: &Value, now: Timestamp) -> Value {
    let first = match either(event, "/firstTimestamp", "/deprecatedFirstTimestamp") {
        "" => text(event, "/eventTime"),
        first => first,
    };
    since(first, now).into()
}

fn last_seen(event: &Value, now: Timestamp) -> Value {
    let last = match &event["series"] {
        Value::Null => either(event, "/lastTimestamp", "/deprecatedLastTimestamp"),
        series => return since(text(series, "/lastObservedTime"), now).into(),
    };
    match last {
        "" => first_seen(event, now),
        last => since(last, now).into(),
    }
}

fn count(event: &Value) -> Value {
    match &event["series"] {
        Value::Null => number(event, "/count")
            .max(number(event, "/deprecatedCount"))
            .max(1)
            .into(),
        series => number(series, "/count").into(),
    }
}

fn source(event: &Value) -> Value {
    let part = |field: &str, reporting: &str| match either(
        event,
        &format!("/source/{field}"),
        &format!("/deprecatedSource/{field}"),
    ) {
        "" => text(event, reporting),
        source => source,
    };
    let component = match part("component", "/reportingComponent") {
        "" => text(event, "/reportingController"),
        component => component,
    };
    match part("host", "/reportingInstance") {
        "" => component.into(),
        host => format!("{component}, {host}").into(),
    }
}

pub(super) static LEASES: &[Column] = &[
    NAME,
    Column::text("Holder", "Who has the lease.", Text("/spec/holderIdentity")),
    AGE,
];

pub(super) static CONFIG_MAPS: &[Column] = &[
    NAME,
    Column::text(
        "Data",
        "How many entries there are.",
        Made(|map| (entries(map, "data") + entries(map, "binaryData")).into()),
    ),
    AGE,
];

pub(super) static SECRETS: &[Column] = &[
    NAME,
    Column::text("Type", "What the secret is for.", Text("/type")),
    Column::text(
        "Data",
        "How many entries there are.",
        Made(|secret| entries(secret, "data").into()),
    ),
    AGE,
];

pub(super) static SERVICE_ACCOUNTS: &[Column] = &[NAME, AGE];

pub(super) static QUOTAS: &[Column] = &[
    NAME,
    Column::text(
        "Request",
        "What may be requested, and what is.",
        Made(|quota| quotas(quota, |resource| !resource.starts_with("limits."))),
    ),
    Column::text(
        "Limit",
        "What may be the limit, and what is.",
        Made(|quota| quotas(quota, |resource| resource.starts_with("limits."))),
    ),
    AGE,
];

pub(super) static ROLE_BINDINGS: &[Column] = &[
    NAME,
    Column::text("Role", "What is allowed.", Made(role)),
    AGE,
    Column::wide(
        "Users",
        "The users it is allowed to.",
        Made(|binding| subjects(binding, "User")),
    ),
    Column::wide(
        "Groups",
        "The groups it is allowed to.",
        Made(|binding| subjects(binding, "Group")),
    ),
    Column::wide(
        "ServiceAccounts",
        "The service accounts it is allowed to.",
        Made(|binding| subjects(binding, "ServiceAccount")),
    ),
];

/// The limits of some resources, and their usage.
fn quotas(quota: &Value, is_meant: fn(&str) -> bool) -> Value {
    let hard = quota["status"]["hard"].as_object().into_iter().flatten();
    let lines = hard
        .filter(|(resource, _)| is_meant(resource))
        .map(|(resource, hard)| {
            let used = quota["status"]["used"][resource].as_str();
            let used = used.filter(|used| !used.is_empty()).unwrap_or("0");
            format!("{resource}: {used}/{}", hard.as_str().unwrap_or_default())
        });
    lines.collect::<Vec<_>>().join(", ").into()
}

fn role(binding: &Value) -> Value {
    let role = &binding["roleRef"];
    format!("{}/{}", text(role, "/kind"), text(role, "/name")).into()
}

fn subjects(binding: &Value, kind: &str) -> Value {
    let subjects = list(binding, "/subjects").iter();
    let named = subjects
        .filter(|subject| subject["kind"] == kind)
        .map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text(subject, "/namespace"), text(subject, "/name")),
            _ => text(subject, "/name").to_owned(),
        });
    named.collect::<Vec<_>>().join(", ").into()
}

fn entries(object: &Value, field: &str) -> usize {
    object[field].as_object().map_or(0, |entries| entries.len())
}
