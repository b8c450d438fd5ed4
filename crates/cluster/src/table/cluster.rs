//! Nodes, namespaces, events, leases, configuration and access.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::age::since;
use super::sheet::{AGE, Column, NAME, Sheet, age, list, name, number, text, text_or};

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE: &str = "kubernetes.io/role";

pub(super) static NODES: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Status", "Whether the node is ready for pods."),
        Column::text("Roles", "What the node is for."),
        AGE,
        Column::text("Version", "The version of the node's kubelet."),
        Column::wide("Internal-IP", "The node's address inside."),
        Column::wide("External-IP", "The node's address outside."),
        Column::wide("OS-Image", "The node's operating system."),
        Column::wide("Kernel-Version", "The node's kernel."),
        Column::wide("Container-Runtime", "What runs the node's containers."),
    ],
    cells: nodes,
    conditions: None,
};

fn nodes(node: &Value, now: Timestamp) -> Vec<Value> {
    let ready = list(node, "/status/conditions")
        .iter()
        .rev()
        .find(|condition| condition["type"] == "Ready");
    let mut status = match ready {
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let labels = node
        .pointer("/metadata/labels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let roles: BTreeSet<_> = labels
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None if key == ROLE => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles: Vec<_> = roles.into_iter().collect();
    let address = |kind: &str| {
        let found = list(node, "/status/addresses")
            .iter()
            .find(|address| address["type"] == kind);
        Value::from(found.map_or("<none>", |address| text(address, "/address")))
    };
    let info = |field: &str| text_or(node, &format!("/status/nodeInfo/{field}"), "<unknown>").to_owned();
    let mut kernel = info("kernelVersion");
    match text(node, "/status/nodeInfo/architecture") {
        "" => {}
        architecture => kernel.push_str(&format!(" ({architecture})")),
    }
    vec![
        name(node),
        status.into(),
        if roles.is_empty() {
            "<none>".into()
        } else {
            roles.join(",").into()
        },
        age(node, now),
        text(node, "/status/nodeInfo/kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage").into(),
        kernel.into(),
        info("containerRuntimeVersion").into(),
    ]
}

pub(super) static NAMESPACES: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Status", "Whether the namespace is in use or going."),
        AGE,
    ],
    cells: |namespace, now| {
        vec![
            name(namespace),
            text(namespace, "/status/phase").into(),
            age(namespace, now),
        ]
    },
    conditions: None,
};

pub(super) static EVENTS: Sheet = Sheet {
    columns: &[
        Column::text("Last Seen", "How long ago it happened last."),
        Column::text("Type", "Whether it matters."),
        Column::text("Reason", "What happened, in a word."),
        Column::text("Object", "To what it happened."),
        Column::wide("Subobject", "To which part of it."),
        Column::wide("Source", "Who reports it."),
        Column::text("Message", "What happened."),
        Column::wide("First Seen", "How long ago it happened first."),
        Column::wide("Count", "How often it happened."),
        NAME.when_wide(),
    ],
    cells: events,
    conditions: None,
};

/// The two groups spell the same event differently.
fn events(event: &Value, now: Timestamp) -> Vec<Value> {
    let either = |old: &str, new: &str| match text(event, old) {
        "" => text(event, new).to_owned(),
        text => text.to_owned(),
    };
    let first = match either("/firstTimestamp", "/deprecatedFirstTimestamp").as_str() {
        "" => since(text(event, "/eventTime"), now),
        first => since(first, now),
    };
    let mut last = match either("/lastTimestamp", "/deprecatedLastTimestamp").as_str() {
        "" => first.clone(),
        last => since(last, now),
    };
    let mut count = number(event, "/count")
        .max(number(event, "/deprecatedCount"))
        .max(1);
    if let Some(series) = event.get("series").filter(|series| !series.is_null()) {
        last = since(text(series, "/lastObservedTime"), now);
        count = number(series, "/count");
    }
    let about = |field: &str| {
        either(
            &format!("/involvedObject/{field}"),
            &format!("/regarding/{field}"),
        )
    };
    let object = match (about("kind").to_lowercase(), about("name")) {
        (kind, name) if name.is_empty() => kind,
        (kind, name) => format!("{kind}/{name}"),
    };
    let part = |field: &str, reporting: &str| {
        let source = either(&format!("/source/{field}"), &format!("/deprecatedSource/{field}"));
        if source.is_empty() {
            text(event, reporting).to_owned()
        } else {
            source
        }
    };
    let component = match part("component", "/reportingComponent") {
        component if component.is_empty() => text(event, "/reportingController").to_owned(),
        component => component,
    };
    let source = match part("host", "/reportingInstance") {
        host if host.is_empty() => component,
        host => format!("{component}, {host}"),
    };
    vec![
        last.into(),
        text(event, "/type").into(),
        text(event, "/reason").into(),
        object.into(),
        about("fieldPath").into(),
        source.into(),
        either("/message", "/note").trim().into(),
        first.into(),
        count.into(),
        name(event),
    ]
}

pub(super) static LEASES: Sheet = Sheet {
    columns: &[NAME, Column::text("Holder", "Who has the lease."), AGE],
    cells: |lease, now| {
        vec![
            name(lease),
            text(lease, "/spec/holderIdentity").into(),
            age(lease, now),
        ]
    },
    conditions: None,
};

pub(super) static CONFIG_MAPS: Sheet = Sheet {
    columns: &[NAME, Column::text("Data", "How many entries there are."), AGE],
    cells: |map, now| {
        vec![
            name(map),
            (entries(map, "data") + entries(map, "binaryData")).into(),
            age(map, now),
        ]
    },
    conditions: None,
};

pub(super) static SECRETS: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Type", "What the secret is for."),
        Column::text("Data", "How many entries there are."),
        AGE,
    ],
    cells: |secret, now| {
        vec![
            name(secret),
            text(secret, "/type").into(),
            entries(secret, "data").into(),
            age(secret, now),
        ]
    },
    conditions: None,
};

pub(super) static SERVICE_ACCOUNTS: Sheet = Sheet {
    columns: &[NAME, AGE],
    cells: |account, now| vec![name(account), age(account, now)],
    conditions: None,
};

pub(super) static QUOTAS: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Request", "What may be requested, and what is."),
        Column::text("Limit", "What may be the limit, and what is."),
        AGE,
    ],
    cells: |quota, now| {
        let hard = quota
            .pointer("/status/hard")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let used = |resource: &str| {
            text_or(
                quota,
                &format!("/status/used/{}", resource.replace('/', "~1")),
                "0",
            )
        };
        let lines = hard.map(|(resource, hard)| {
            let line = format!(
                "{resource}: {}/{}",
                used(resource),
                hard.as_str().unwrap_or_default()
            );
            (resource.starts_with("limits."), line)
        });
        let (limits, requests): (Vec<_>, Vec<_>) = lines.partition(|(is_limit, _)| *is_limit);
        let joined = |lines: Vec<(bool, String)>| {
            Value::from(
                lines
                    .into_iter()
                    .map(|(_, line)| line)
                    .collect::<Vec<_>>()
                    .join(", "),
            )
        };
        vec![name(quota), joined(requests), joined(limits), age(quota, now)]
    },
    conditions: None,
};

pub(super) static PRIORITY_CLASSES: Sheet = Sheet {
    columns: &[
        NAME,
        Column::integer("Value", "How important the pods are."),
        Column::boolean("Global-Default", "Whether pods without a class get this one."),
        AGE,
        Column::text("PreemptionPolicy", "Whether the pods may push others out."),
    ],
    cells: |class, now| {
        vec![
            name(class),
            number(class, "/value").into(),
            class["globalDefault"].as_bool().unwrap_or_default().into(),
            age(class, now),
            text(class, "/preemptionPolicy").into(),
        ]
    },
    conditions: None,
};

pub(super) static ROLE_BINDINGS: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Role", "What is allowed."),
        AGE,
        Column::wide("Users", "The users it is allowed to."),
        Column::wide("Groups", "The groups it is allowed to."),
        Column::wide("ServiceAccounts", "The service accounts it is allowed to."),
    ],
    cells: |binding, now| {
        let role = format!(
            "{}/{}",
            text(binding, "/roleRef/kind"),
            text(binding, "/roleRef/name")
        );
        let subjects = |kind: &str| {
            let subjects = list(binding, "/subjects")
                .iter()
                .filter(|subject| subject["kind"] == kind);
            let named = subjects.map(|subject| match kind {
                "ServiceAccount" => format!("{}/{}", text(subject, "/namespace"), text(subject, "/name")),
                _ => text(subject, "/name").to_owned(),
            });
            Value::from(named.collect::<Vec<_>>().join(", "))
        };
        vec![
            name(binding),
            role.into(),
            age(binding, now),
            subjects("User"),
            subjects("Group"),
            subjects("ServiceAccount"),
        ]
    },
    conditions: None,
};

fn entries(object: &Value, field: &str) -> usize {
    object[field].as_object().map_or(0, |entries| entries.len())
}
