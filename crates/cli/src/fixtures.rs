//! Rollouts for tests.

use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::{Value, json};
use stateward_api::phasedrollout::PhasedRollout;
use stateward_api::rollout::TakenCommand;
use stateward_api::rolloutplugin::RolloutPlugin;

use crate::rollout::Rollout;

use crate::views::pod_row::PodRow;

/// The current time of the tests.
pub(crate) const NOW: &str = "2026-01-01T00:10:00Z";

/// A rollout with four steps and this status.
pub(crate) fn rollout(name: &str, status: Value) -> Rollout {
    plugin(name, status).into()
}

/// The same as a typed object.
pub(crate) fn plugin(name: &str, status: Value) -> RolloutPlugin {
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutPlugin",
        "metadata": {
            "name": name, "namespace": "prod", "uid": "u-1", "generation": 1, "resourceVersion": "10",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name},
            "plugin": {"name": "statefulset"},
            "strategy": {"canary": {"steps": [
                {"setWeight": 20}, {"pause": {}}, {"setWeight": 60}, {"pause": {"duration": "5m"}},
            ]}},
        },
        "status": status,
    });
    serde_json::from_value(object).unwrap()
}

/// A PhasedRollout for this number of pods at this step.
pub(crate) fn phased(pods: i32, step: i32) -> Rollout {
    let object = json!({
        "apiVersion": "sts.plus/v1alpha1", "kind": "PhasedRollout",
        "metadata": {"name": "web", "namespace": "prod", "uid": "u-2", "generation": 1},
        "spec": {
            "targetRef": "web",
            "check": {"successThreshold": 3, "query": {"expr": "errors", "url": "prometheus:9090"}},
        },
        "status": {
            "observedGeneration": 1, "phase": "Rolling", "message": "step 1 of 5: 1 of 3 in a row succeeded",
            "currentStepIndex": step, "currentStepHash": "h", "currentStepStartedAt": "2026-01-01T00:09:40Z",
            "stepReplicas": pods, "replicas": pods,
            "stableRevision": "web-1", "currentRevision": "web-1", "updatedRevision": "web-2",
            "rollingPodStatus": {"status": "WaitForChecks", "partition": pods, "consecutiveSuccessfulChecks": 1},
        },
    });
    let object: PhasedRollout = serde_json::from_value(object).unwrap();
    object.into()
}

/// Paused at step 2, from `db-1` to `db-2`.
pub(crate) fn paused() -> Rollout {
    rollout(
        "db",
        json!({
            "observedGeneration": 1, "phase": "Paused", "reason": "RolloutPluginPaused",
            "message": "step 2 of 4: paused; go on with: kubectl stateward promote db -n prod --revision db-2",
            "currentStepIndex": 1, "step": "2/4", "currentStepHash": "h", "currentStepStartedAt": "2026-01-01T00:06:50Z",
            "controllerPause": true,
            "pauseConditions": [{"reason": "CanaryPauseStep", "startTime": "2026-01-01T00:06:50Z"}],
            "stableRevision": "db-1", "currentRevision": "db-1", "updatedRevision": "db-2",
            "replicas": 5, "updatedReplicas": 1, "readyReplicas": 5, "availableReplicas": 5,
        }),
    )
}

/// At the first step, from `db-1` to `db-2`.
pub(crate) fn stepping() -> Rollout {
    let mut object = paused();
    let status = object.status.as_mut().unwrap();
    (status.current_step_index, status.step) = (Some(0), Some("1/4".into()));
    status.controller_pause = false;
    status.pause_conditions.clear();
    (status.phase, status.reason) = ("Progressing".into(), "RolloutPluginProgressing".into());
    status.message = "step 1 of 4: 20 % to db-2: waiting for pod db-4 to be Ready".into();
    object
}

/// At the first step, with a new pod that crashes.
pub(crate) fn broken() -> Rollout {
    let mut object = stepping();
    let status = object.status.as_mut().unwrap();
    status.phase = "Failed".into();
    status.message = "pod db-4 is broken on db-2: CrashLoopBackOff; go back with: kubectl stateward abort db -n prod --revision db-2".into();
    let stalled = json!([{
        "type": "Stalled", "status": "True", "reason": "PodBroken", "message": "", "lastTransitionTime": NOW,
    }]);
    status.conditions = serde_json::from_value(stalled).unwrap();
    let crashing =
        json!([{"name": "db-4", "revision": "db-2", "ready": false, "reason": "CrashLoopBackOff"}]);
    status.pods = serde_json::from_value(crashing).unwrap();
    object
}

/// Commands that a rollout of four steps carried out.
pub(crate) fn commands(taken: &[(&str, i32, i32, Option<&str>)]) -> Vec<TakenCommand> {
    let command = |(command, from, to, by): &(&str, i32, i32, Option<&str>)| json!({"command": command, "fromStep": from, "toStep": to, "by": by, "at": NOW});
    serde_json::from_value(taken.iter().map(command).collect()).unwrap()
}

/// No rollout in progress.
pub(crate) fn at_rest() -> Rollout {
    rollout(
        "cache",
        json!({
            "observedGeneration": 1, "phase": "Successful", "reason": "RolloutPluginCompleted",
            "message": "every pod runs cache-1", "currentStepIndex": 4, "step": "4/4",
            "stableRevision": "cache-1", "currentRevision": "cache-1", "updatedRevision": "cache-1",
            "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        }),
    )
}

/// A rollback from `queue-2` to `queue-1` in progress.
pub(crate) fn returning() -> Rollout {
    rollout(
        "queue",
        json!({
            "observedGeneration": 1, "phase": "Failed", "reason": "RollingBack",
            "message": "queue-2 was rejected (aborted by a user): returning every pod to queue-1, 4 of 5 are there",
            "currentStepIndex": 0, "aborted": true, "abortedRevision": "queue-2", "abortedReason": "aborted by a user",
            "abortedAt": "2026-01-01T00:08:50Z",
            "returning": "Aborted", "returningFrom": "queue-2", "returningSince": "2026-01-01T00:08:50Z",
            "stableRevision": "queue-1", "currentRevision": "queue-1", "updatedRevision": "queue-2",
            "replicas": 5, "updatedReplicas": 1, "readyReplicas": 4, "availableReplicas": 4,
        }),
    )
}

/// A finished rollback from `queue-2`.
pub(crate) fn aborted() -> Rollout {
    let mut object = returning();
    let status = object.status.as_mut().unwrap();
    (status.returning, status.returning_from, status.returning_since) = (None, None, None);
    status.reason = "RolledBack".into();
    status.message = "queue-2 was rejected (aborted by a user) and every pod is back on the stable version; change the template, or: kubectl stateward retry queue -n prod --revision queue-2".into();
    object
}

/// A finished rollback after which the stable template had to be restored.
pub(crate) fn replaced() -> Rollout {
    let mut object = aborted();
    let status = object.status.as_mut().unwrap();
    status.updated_revision.clone_from(&status.stable_revision);
    status.aborted_template_replaced = true;
    object
}

/// A rollout that no operator has seen.
pub(crate) fn unseen() -> Rollout {
    let mut object = rollout("new", json!({}));
    object.status = None;
    object
}

/// A StatefulSet with five replicas, from `NAME-1` to `NAME-2`.
pub(crate) fn set(name: &str, partition: i32) -> StatefulSet {
    let set = json!({
        "metadata": {"name": name, "namespace": "prod", "generation": 3},
        "spec": {
            "replicas": 5, "serviceName": name, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
        },
        "status": {
            "observedGeneration": 3, "replicas": 5, "readyReplicas": 5,
            "currentRevision": format!("{name}-1"), "updateRevision": format!("{name}-2"),
        },
    });
    serde_json::from_value(set).unwrap()
}

/// Ready pods with these revisions.
pub(crate) fn pods(set: &str, revisions: &[&str]) -> Vec<PodRow> {
    let pod = |(ordinal, revision): (usize, &&str)| PodRow {
        name: format!("{set}-{ordinal}"),
        ordinal: ordinal as u32,
        revision: Some((*revision).to_owned()),
        state: "Ready".into(),
        restarts: 0,
        created: "2026-01-01T00:05:00Z".parse().ok(),
    };
    revisions.iter().enumerate().map(pod).collect()
}
