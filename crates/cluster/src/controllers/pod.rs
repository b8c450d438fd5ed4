//! The fields of pods that controllers read.

use std::cmp::Ordering;

use crate::json::Value;
use jiff::Timestamp;

use super::moment;
use crate::object;

pub(crate) const PODS: &str = "pods";

pub(crate) fn phase(pod: &Value) -> &str {
    pod["status"]["phase"].as_str().unwrap_or_default()
}

pub(crate) fn condition<'p>(pod: &'p Value, kind: &str) -> Option<&'p Value> {
    pod["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == kind)
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|condition| condition["status"] == "True")
}

/// Whether its containers have ended for good.
pub(crate) fn is_terminal(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether it is running or pending.
pub(crate) fn is_active(pod: &Value) -> bool {
    !is_terminal(pod) && !object::is_terminating(pod)
}

/// Whether it is being deleted while its containers may still run.
pub(crate) fn is_stopping(pod: &Value) -> bool {
    !is_terminal(pod) && object::is_terminating(pod)
}

pub(crate) fn node(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

/// The order in which surplus active pods are deleted: the least valuable first.
pub(crate) fn by_loss(one: &Value, other: &Value) -> Ordering {
    let unassigned = |pod: &Value| node(pod).is_empty();
    let restarts = |pod: &Value| most_restarts(pod);
    (unassigned(other).cmp(&unassigned(one)))
        .then_with(|| stage(one).cmp(&stage(other)))
        .then_with(|| is_ready(one).cmp(&is_ready(other)))
        .then_with(|| {
            if is_ready(one) {
                youngest_first(ready_since(one), ready_since(other))
            } else {
                Ordering::Equal
            }
        })
        .then_with(|| restarts(other).cmp(&restarts(one)))
        .then_with(|| youngest_first(created(one), created(other)))
}

/// The rank of an active pod's phase; anything unknown counts as the first.
fn stage(pod: &Value) -> u8 {
    match phase(pod) {
        "Unknown" => 1,
        "Running" => 2,
        _ => 0,
    }
}

fn ready_since(pod: &Value) -> Option<Timestamp> {
    moment::read(&condition(pod, "Ready")?["lastTransitionTime"])
}

fn created(pod: &Value) -> Option<Timestamp> {
    moment::read(&pod["metadata"]["creationTimestamp"])
}

fn youngest_first(one: Option<Timestamp>, other: Option<Timestamp>) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => other.cmp(&one),
        (one, other) => one.is_some().cmp(&other.is_some()),
    }
}

/// The most restarts of an ordinary container, then of a sidecar.
fn most_restarts(pod: &Value) -> (i64, i64) {
    let sidecars = || sidecar_names(pod);
    let statuses = |field: &str| pod["status"][field].as_array().into_iter().flatten();
    let restarts = |status: &Value| status["restartCount"].as_i64().unwrap_or(0);
    let ordinary = statuses("containerStatuses").map(restarts).max().unwrap_or(0);
    let sidecar = statuses("initContainerStatuses")
        .filter(|status| sidecars().any(|name| status["name"] == name))
        .map(restarts)
        .max();
    (ordinary, sidecar.unwrap_or(0))
}

/// The init containers that keep running next to the ordinary ones.
pub(crate) fn sidecar_names(pod: &Value) -> impl Iterator<Item = &str> {
    let containers = pod["spec"]["initContainers"].as_array().into_iter().flatten();
    containers
        .filter(|container| container["restartPolicy"] == "Always")
        .filter_map(|container| container["name"].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    #[rstest]
    #[case::unassigned_before_assigned(json!({}), json!({"spec": {"nodeName": "n"}}))]
    #[case::pending_before_running(json!({"status": {"phase": "Pending"}}), json!({"status": {"phase": "Running"}}))]
    #[case::unready_before_ready(json!({}), ready("2026-01-01T00:00:00Z"))]
    #[case::ready_for_less_time_first(ready("2026-01-02T00:00:00Z"), ready("2026-01-01T00:00:00Z"))]
    #[case::more_restarts_first(restarted(3), restarted(1))]
    #[case::younger_first(
        json!({"metadata": {"creationTimestamp": "2026-01-02T00:00:00Z"}}),
        json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}})
    )]
    fn the_pod_with_less_to_lose_goes_first(#[case] first: Value, #[case] second: Value) {
        assert_eq!(by_loss(&first, &second), Ordering::Less);
        assert_eq!(by_loss(&second, &first), Ordering::Greater);
    }

    fn ready(since: &str) -> Value {
        json!({"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}]}})
    }

    fn restarted(times: i64) -> Value {
        json!({"status": {"containerStatuses": [{"restartCount": times}]}})
    }
}
