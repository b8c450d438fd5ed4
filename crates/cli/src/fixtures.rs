//! Rollouts for tests.

use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::{Value, json};
use stateward_api::phasedrollout::PhasedRollout;
use stateward_api::rollout::{AttemptState, RolloutStatus, TakenCommand};
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
        "status": with_state(status),
    });
    serde_json::from_value(object).unwrap()
}

/// A status with the state that the operator would have recorded with it.
pub(crate) fn with_state(mut status: Value) -> Value {
    if let Some(began) = status.get("currentStepStartedAt").cloned() {
        let rollout = json!({
            "revision": status["updatedRevision"], "stepIndex": status["currentStepIndex"],
            "stepsHash": status["currentStepHash"], "stepReplicas": status["replicas"], "stepStartedAt": began,
            "progressedAt": began, "pausedAtStep": status["controllerPause"].as_bool().unwrap_or_default(),
        });
        status["state"] = json!({"workloadUid": "w-1", "rollout": rollout});
    }
    status
}

/// A status with a rollout in progress: what it remembers of it.
pub(crate) fn attempt(rollout: &mut Rollout) -> &mut AttemptState {
    let status = rollout.status.as_mut().unwrap();
    status.state.rollout.as_mut().unwrap()
}

/// The same rollout at another step.
pub(crate) fn at_step(mut rollout: Rollout, step: i32) -> Rollout {
    attempt(&mut rollout).step_index = step;
    rollout.status.as_mut().unwrap().current_step_index = Some(step);
    rollout
}

/// The status of a rollout that has ended.
pub(crate) fn ended(status: &mut RolloutStatus) {
    status.current_step_started_at = None;
    status.state.rollout = None;
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
        "status": with_state(json!({
            "observedGeneration": 1, "phase": "Rolling", "message": "step 1 of 5: 1 of 3 in a row succeeded",
            "currentStepIndex": step, "currentStepHash": "h", "currentStepStartedAt": "2026-01-01T00:09:40Z",
            "replicas": pods, "stableRevision": "web-1", "currentRevision": "web-1", "updatedRevision": "web-2",
            "rollingPodStatus": {"status": "WaitForChecks", "partition": pods, "consecutiveSuccessfulChecks": 1},
        })),
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
            "message": "step 2 of 4: paused; continue with: kubectl stateward promote db -n prod --revision db-2",
            "summary": "step 2 of 4: paused",
            "commands": [{"verb": "promote", "revision": "db-2", "effect": "continue"}],
            "currentStepIndex": 1, "step": "2/4", "currentStepHash": "h", "currentStepStartedAt": "2026-01-01T00:06:50Z",
            "controllerPause": true,
            "pauseConditions": [{"reason": "CanaryPauseStep", "startTime": "2026-01-01T00:06:50Z"}],
            "stableRevision": "db-1", "currentRevision": "db-1", "updatedRevision": "db-2",
            "replicas": 5, "updatedReplicas": 1, "readyReplicas": 5, "availableReplicas": 5,
        }),
    )
}

/// A verb, its arguments, the revision that it is for, and its effect.
pub(crate) type Suggested<'s> = (&'s str, &'s [&'s str], Option<&'s str>, &'s str);

/// The same rollout with this message, and these commands at its end.
pub(crate) fn suggesting(mut rollout: Rollout, summary: &str, commands: &[Suggested<'_>]) -> Rollout {
    let status = rollout.status.get_or_insert_default();
    status.summary = summary.to_owned();
    let command = |(verb, arguments, revision, effect): &Suggested<'_>| json!({"verb": verb, "arguments": arguments, "revision": revision, "effect": effect});
    status.commands = serde_json::from_value(commands.iter().map(command).collect()).unwrap();
    status.message = summary.to_owned();
    let commands =
        crate::views::hint::suggested(&status.commands.clone(), &rollout, "kubectl stateward -n prod");
    rollout.status.get_or_insert_default().message += &commands;
    rollout
}

/// At the first step, from `db-1` to `db-2`.
pub(crate) fn stepping() -> Rollout {
    let mut object = at_step(paused(), 0);
    attempt(&mut object).paused_at_step = false;
    let status = object.status.as_mut().unwrap();
    status.step = Some("1/4".into());
    status.controller_pause = false;
    status.pause_conditions.clear();
    (status.phase, status.reason) = ("Progressing".into(), "RolloutPluginProgressing".into());
    suggesting(
        object,
        "step 1 of 4: 20 % to db-2: waiting for pod db-4 to be Ready",
        &[],
    )
}

/// At the first step, with a new pod that crashes.
pub(crate) fn broken() -> Rollout {
    let mut object = stepping();
    let status = object.status.as_mut().unwrap();
    status.phase = "Failed".into();
    let stalled = json!([{
        "type": "Stalled", "status": "True", "reason": "PodBroken", "message": "", "lastTransitionTime": NOW,
    }]);
    status.conditions = serde_json::from_value(stalled).unwrap();
    let crashing =
        json!([{"name": "db-4", "revision": "db-2", "ready": false, "reason": "CrashLoopBackOff"}]);
    status.pods = serde_json::from_value(crashing).unwrap();
    let abort = ("abort", [].as_slice(), Some("db-2"), "roll back");
    suggesting(object, "pod db-4 is broken on db-2: CrashLoopBackOff", &[abort])
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
            "state": {
                "rollback": {"fromRevision": "queue-2", "cause": "Aborted", "startedAt": "2026-01-01T00:08:50Z"},
                "rejected": {"revision": "queue-2", "rejectedAt": "2026-01-01T00:08:50Z", "message": "aborted by a user"},
            },
            "stableRevision": "queue-1", "currentRevision": "queue-1", "updatedRevision": "queue-2",
            "replicas": 5, "updatedReplicas": 1, "readyReplicas": 4, "availableReplicas": 4,
        }),
    )
}

/// A finished rollback from `queue-2`.
pub(crate) fn aborted() -> Rollout {
    let mut object = returning();
    let status = object.status.as_mut().unwrap();
    status.state.rollback = None;
    status.reason = "RolledBack".into();
    let summary = "queue-2 was rejected (aborted by a user) and every pod is back on the stable version; change the template to roll out another";
    suggesting(object, summary, &[("retry", &[], Some("queue-2"), "retry it")])
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
