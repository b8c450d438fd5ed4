//! A pod as one line of a tree.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;

/// The cells of a pod in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodRow {
    pub(crate) name: String,
    pub(crate) ordinal: u32,
    pub(crate) revision: Option<String>,
    /// `Ready`, or why it is not.
    pub(crate) state: String,
    pub(crate) restarts: i32,
    pub(crate) created: Option<Timestamp>,
}

impl PodRow {
    /// `None` for a pod that has no ordinal.
    pub(crate) fn of(pod: &Pod) -> Option<Self> {
        let name = pod.name_any();
        let ordinal = name.rsplit_once('-')?.1.parse().ok()?;
        Some(Self {
            ordinal,
            revision: pod.labels().get("controller-revision-hash").cloned(),
            state: state(pod),
            restarts: containers(pod).map(|container| container.restart_count).sum(),
            created: pod.metadata.creation_timestamp.as_ref().map(|time| time.0),
            name,
        })
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.state == "Ready"
    }
}

fn containers(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let all = status.and_then(|status| status.container_statuses.as_ref());
    all.into_iter().flatten()
}

/// The most informative reason, in one word.
fn state(pod: &Pod) -> String {
    if pod.metadata.deletion_timestamp.is_some() {
        return "Terminating".into();
    }
    let status = pod.status.clone().unwrap_or_default();
    let ready = status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    if ready {
        return "Ready".into();
    }
    let initial = status.init_container_statuses.iter().flatten();
    let reason = initial.chain(containers(pod)).find_map(|container| {
        let state = container.state.as_ref()?;
        let waiting = state.waiting.as_ref().and_then(|waiting| waiting.reason.clone());
        waiting.or_else(|| state.terminated.as_ref()?.reason.clone())
    });
    let unschedulable = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")
        .and_then(|condition| condition.reason.clone());
    status
        .reason
        .or(reason)
        .or(unschedulable)
        .or(match status.phase.as_deref() {
            Some("Running") => Some("NotReady".into()),
            Some(phase) => Some(phase.to_owned()),
            None => None,
        })
        .unwrap_or_else(|| "Pending".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case(json!({}), "Pending")]
    #[case(json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}), "Unschedulable")]
    #[case(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}), "Ready")]
    #[case(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}), "NotReady")]
    #[case(json!({"phase": "Running", "containerStatuses": [
        {"name": "db", "image": "", "imageID": "", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    ]}), "CrashLoopBackOff")]
    #[case(json!({"phase": "Failed", "reason": "Evicted"}), "Evicted")]
    fn a_pod_is_told_in_one_word(#[case] status: Value, #[case] expected: &str) {
        let pod = json!({"metadata": {"name": "db-3", "labels": {"controller-revision-hash": "db-1"}}, "status": status});
        let row = PodRow::of(&serde_json::from_value(pod).unwrap()).unwrap();
        assert_eq!((row.state.as_str(), row.ordinal), (expected, 3));
    }

    #[test]
    fn a_pod_that_is_on_its_way_out_is_terminating() {
        let pod = json!({
            "metadata": {"name": "db-3", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        let row = PodRow::of(&serde_json::from_value(pod).unwrap()).unwrap();
        assert_eq!(row.state, "Terminating");
    }
}
