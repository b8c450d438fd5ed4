//! Pods: the only kind whose status is computed.

use crate::json::{Value, json};
use jiff::Timestamp;

use super::age::since;
use super::column::Cell::{Made, TextOr, Timed};
use super::column::{AGE, Column, NAME, condition, is_set, list, number, text, text_or};

pub(super) static PODS: &[Column] = &[
    NAME,
    Column::text(
        "Ready",
        "How many of the pod's containers are ready.",
        Made(ready),
    ),
    Column::text(
        "Status",
        "What the pod is doing, or what keeps it from it.",
        Made(|pod| summary(pod).reason.into()),
    ),
    Column::text(
        "Restarts",
        "How often the pod's containers were restarted, and when last.",
        Timed(restarts),
    ),
    AGE,
    Column::wide(
        "IP",
        "The pod's address.",
        TextOr("/status/podIPs/0/ip", "<none>"),
    ),
    Column::wide(
        "Node",
        "The node that the pod runs on.",
        TextOr("/spec/nodeName", "<none>"),
    ),
    Column::wide(
        "Nominated Node",
        "The node that is being cleared for the pod.",
        TextOr("/status/nominatedNodeName", "<none>"),
    ),
    Column::wide(
        "Readiness Gates",
        "How many of the pod's readiness gates are open.",
        Made(|pod| readiness_gates(pod).into()),
    ),
];

/// The condition of a finished pod's row, by which clients can skip it.
pub(super) fn ended(pod: &Value) -> Option<Value> {
    let (reason, message) = match text(pod, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

fn ready(pod: &Value) -> Value {
    let Summary { ready, total, .. } = summary(pod);
    format!("{ready}/{total}").into()
}

fn restarts(pod: &Value, now: Timestamp) -> Value {
    match summary(pod).restarts {
        Restarts {
            count: count @ 1..,
            last: Some(last),
        } => format!("{count} ({} ago)", since(last, now)).into(),
        Restarts { count, .. } => count.to_string().into(),
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| {
        gate["conditionType"]
            .as_str()
            .and_then(|kind| condition(pod, kind))
            == Some("True")
    });
    format!("{}/{}", open.count(), gates.len())
}

struct Summary<'p> {
    reason: String,
    ready: usize,
    total: usize,
    restarts: Restarts<'p>,
}

/// The restarts, and the time of the last one.
#[derive(Clone, Copy, Default)]
struct Restarts<'p> {
    count: i64,
    last: Option<&'p str>,
}

impl<'p> Restarts<'p> {
    fn add(&mut self, container: &'p Value) {
        self.count = self.count.saturating_add(number(container, "/restartCount"));
        let finished = text(container, "/lastState/terminated/finishedAt");
        // All timestamps have the same format, so they sort as text.
        if !finished.is_empty() && self.last.is_none_or(|last| last < finished) {
            self.last = Some(finished);
        }
    }
}

fn summary(pod: &Value) -> Summary<'_> {
    let mut reason = text_or(pod, "/status/reason", text(pod, "/status/phase")).to_owned();
    let gated = |c: &Value| c["type"] == "PodScheduled" && c["reason"] == "SchedulingGated";
    if list(pod, "/status/conditions").iter().any(gated) {
        reason = "SchedulingGated".to_owned();
    }
    let sidecars = list(pod, "/spec/initContainers")
        .iter()
        .filter(|container| container["restartPolicy"] == "Always");
    let total = list(pod, "/spec/containers").len() + sidecars.count();

    let init = initialization(pod);
    let mut ready = init.ready;
    let mut restarts = init.all;
    let initializing = init.reason.is_some();
    if let Some(init_reason) = init.reason {
        reason = init_reason;
    }
    if !initializing || condition(pod, "Initialized") == Some("True") {
        restarts = init.sidecars;
        ready += run(pod, &mut reason, &mut restarts);
    }
    if is_set(pod, "/metadata/deletionTimestamp") {
        if text(pod, "/status/reason") == "NodeLost" {
            reason = "Unknown".to_owned();
        } else if !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") {
            reason = "Terminating".to_owned();
        }
    }
    Summary {
        reason,
        ready,
        total,
        restarts,
    }
}

struct Initialization<'p> {
    /// The state of the pod's initialization; `None` when it is complete.
    reason: Option<String>,
    ready: usize,
    all: Restarts<'p>,
    /// The restarts of sidecars.
    sidecars: Restarts<'p>,
}

fn initialization(pod: &Value) -> Initialization<'_> {
    let specs = list(pod, "/spec/initContainers");
    let mut found = Initialization {
        reason: None,
        ready: 0,
        all: Restarts::default(),
        sidecars: Restarts::default(),
    };
    for (index, container) in list(pod, "/status/initContainerStatuses").iter().enumerate() {
        let is_sidecar = specs
            .iter()
            .any(|spec| spec["name"] == container["name"] && spec["restartPolicy"] == "Always");
        found.all.add(container);
        if is_sidecar {
            found.sidecars.add(container);
        }
        let terminated = container
            .pointer("/state/terminated")
            .filter(|state| !state.is_null());
        let waiting = text(container, "/state/waiting/reason");
        if terminated.is_some_and(|state| number(state, "/exitCode") == 0) {
            continue;
        }
        if is_sidecar && container["started"] == true {
            found.ready += usize::from(container["ready"] == true);
            continue;
        }
        found.reason = Some(match terminated {
            Some(state) => format!("Init:{}", end_of(state)),
            None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
            None => format!("Init:{index}/{}", specs.len()),
        });
        break;
    }
    found
}

/// Reads the containers, last to first. Returns how many are ready.
fn run<'p>(pod: &'p Value, reason: &mut String, restarts: &mut Restarts<'p>) -> usize {
    let mut ready = 0;
    let mut failure = None;
    for container in list(pod, "/status/containerStatuses").iter().rev() {
        restarts.add(container);
        let waiting = text(container, "/state/waiting/reason");
        if !waiting.is_empty() {
            *reason = waiting.to_owned();
        } else if let Some(state) = container
            .pointer("/state/terminated")
            .filter(|state| !state.is_null())
        {
            *reason = end_of(state);
            if number(state, "/exitCode") != 0 {
                failure = Some(reason.clone());
            }
        } else if container["ready"] == true && is_set(container, "/state/running") {
            ready += 1;
        }
    }
    // A completed container does not decide the status while others run.
    if reason == "Completed" {
        if ready > 0 && has_ready(pod) {
            *reason = "Running".to_owned();
        } else if let Some(failure) = failure {
            *reason = failure;
        } else if ready > 0 {
            *reason = "NotReady".to_owned();
        }
    }
    ready
}

fn has_ready(pod: &Value) -> bool {
    list(pod, "/status/conditions")
        .iter()
        .any(|c| c["type"] == "Ready" && c["status"] == "True")
}

/// The reason why a container ended.
fn end_of(state: &Value) -> String {
    match (
        text(state, "/reason"),
        number(state, "/signal"),
        number(state, "/exitCode"),
    ) {
        ("", 0, code) => format!("ExitCode:{code}"),
        ("", signal, _) => format!("Signal:{signal}"),
        (reason, ..) => reason.to_owned(),
    }
}
