//! Objects with just the fields that the invariants need.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use stateward_api::phasedrollout::{PhasedRollout, RollingPodStatus};
use stateward_api::rollout::RolloutStatus;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_cluster::{Commit, Shown};
use stateward_core::memory::{Activity, Attempt, Memory};
use stateward_core::plan::{Plan, pod_by_pod};
use stateward_core::world::{Commands, NoWorkload};
use stateward_core::{phasedrollout, record, rolloutplugin};

/// The resource of PhasedRollouts in commits.
pub(super) const PHASED: &str = "phasedrollouts.sts.plus";

/// A set.
#[derive(Clone)]
pub(super) struct Set {
    pub(super) uid: String,
    pub(super) generation: i64,
    pub(super) observed: i64,
    pub(super) replicas: i64,
    pub(super) partition: i64,
    pub(super) start: i64,
    pub(super) min_ready: SignedDuration,
    pub(super) claim: String,
    /// The revision that Kubernetes gives to pods outside the share.
    pub(super) current: String,
    pub(super) object: Shown,
    /// Another client has changed the partition, and our reaction is not in force yet.
    pub(super) unanswered: bool,
    /// The most pods that a recorded step allowed at our last write of a partition that may still be in force.
    pub(super) granted: i64,
    /// Our last write: its generation, and the pods that its step allowed.
    pub(super) granting: Option<(i64, i64)>,
}

impl Set {
    pub(super) fn of(commit: &Commit) -> Self {
        let object = &commit.object;
        let (spec, status, meta) = (&object["spec"], &object["status"], &object["metadata"]);
        let number = |value: &Value, default| value.as_i64().unwrap_or(default);
        Self {
            uid: text(&meta["uid"]),
            generation: number(&meta["generation"], 0),
            observed: number(&status["observedGeneration"], 0),
            replicas: number(&spec["replicas"], 1),
            partition: number(&spec["updateStrategy"]["rollingUpdate"]["partition"], 0),
            start: number(&spec["ordinals"]["start"], 0),
            min_ready: SignedDuration::from_secs(number(&spec["minReadySeconds"], 0)),
            claim: text(&meta["annotations"]["stateward.dev/managed-by"]),
            current: text(&status["currentRevision"]),
            object: object.clone(),
            unanswered: false,
            granted: 0,
            granting: None,
        }
    }

    /// Pods released, from the highest ordinal down.
    pub(super) fn released(&self) -> i64 {
        (self.replicas - self.partition).max(0)
    }
}

/// A pod.
#[derive(Clone)]
pub(super) struct Pod {
    pub(super) uid: String,
    pub(super) set: String,
    /// Its index in the set, from 0.
    pub(super) index: i64,
    pub(super) revision: String,
    pub(super) ready_since: Option<Timestamp>,
    pub(super) leaving: bool,
    /// When its deletion was requested.
    pub(super) asked_to_leave: Option<Timestamp>,
}

impl Pod {
    pub(super) fn of(commit: &Commit, start: impl FnOnce(&str) -> i64) -> Self {
        let object = &commit.object;
        let ready = object["status"]["conditions"].as_array().and_then(|conditions| {
            conditions
                .iter()
                .find(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        });
        let set = text(&object["metadata"]["ownerReferences"][0]["name"]);
        let ordinal = commit.name.rsplit_once('-').and_then(|(_, at)| at.parse().ok());
        Self {
            uid: text(&object["metadata"]["uid"]),
            index: ordinal.unwrap_or(0_i64) - start(&set),
            set,
            revision: text(&object["metadata"]["labels"]["controller-revision-hash"]),
            ready_since: ready.map(|ready| {
                let since = ready["lastTransitionTime"].as_str();
                since.and_then(|since| since.parse().ok()).unwrap_or_default()
            }),
            leaving: !object["metadata"]["deletionTimestamp"].is_null(),
            asked_to_leave: object["metadata"]["deletionTimestamp"].as_str().and_then(|last| {
                let grace = object["metadata"]["deletionGracePeriodSeconds"]
                    .as_i64()
                    .unwrap_or(0);
                let last: Timestamp = last.parse().ok()?;
                last.checked_sub(SignedDuration::from_secs(grace)).ok()
            }),
        }
    }

    /// Ready for at least the set's `minReadySeconds` at that time.
    pub(super) fn available(&self, min_ready: SignedDuration, then: Timestamp) -> bool {
        let at = self.ready_since.map(|since| since.saturating_add(min_ready));
        at.is_some_and(|at| at.is_ok_and(|at| at <= then))
    }

    pub(super) fn ready(&self) -> bool {
        self.ready_since.is_some()
    }
}

/// A RolloutPlugin or a PhasedRollout.
#[derive(Clone)]
pub(super) struct Rollout {
    pub(super) uid: String,
    pub(super) set: String,
    pub(super) generation: Option<i64>,
    pub(super) memory: Memory,
    pub(super) commands: Commands,
    pub(super) plan: Option<Plan>,
    pub(super) status: RolloutStatus,
    pub(super) deleting: bool,
    /// Whether the set is left to Kubernetes.
    pub(super) suspended: bool,
    /// Of a PhasedRollout: how many checks in a row it requires, and those of its gate.
    pub(super) checks: Option<(i32, RollingPodStatus)>,
}

impl Rollout {
    pub(super) fn of(commit: &Commit) -> Option<Self> {
        if commit.resource.as_ref() == PHASED {
            return Self::phased(commit);
        }
        let object: RolloutPlugin = serde_json::from_value(Value::clone(&commit.object)).ok()?;
        let status = object.status.clone().unwrap_or_default();
        Some(Self {
            uid: object.metadata.uid.clone().unwrap_or_default(),
            set: object.spec.workload_ref.name.clone(),
            generation: object.metadata.generation,
            memory: record::memory(&status),
            commands: record::commands(&status),
            plan: rolloutplugin::plan(&object).ok(),
            status,
            deleting: object.metadata.deletion_timestamp.is_some(),
            suspended: false,
            checks: None,
        })
    }

    fn phased(commit: &Commit) -> Option<Self> {
        let object: PhasedRollout = serde_json::from_value(Value::clone(&commit.object)).ok()?;
        let status = object.status.clone().unwrap_or_default();
        let missing = Err(NoWorkload::Missing(String::new()));
        let plan = phasedrollout::plan(&object, &missing).ok();
        let counted = status
            .rollout
            .step_replicas
            .and_then(|pods| u32::try_from(pods).ok());
        let threshold = object.spec.check.success_threshold;
        Some(Self {
            uid: object.metadata.uid.clone().unwrap_or_default(),
            set: object.spec.target_ref.clone(),
            generation: object.metadata.generation,
            memory: record::memory(&status.rollout),
            commands: record::commands(&status.rollout),
            plan: plan.map(|plan| Plan {
                steps: pod_by_pod(counted.unwrap_or(0)),
                ..plan
            }),
            status: status.rollout,
            deleting: object.metadata.deletion_timestamp.is_some(),
            suspended: object.spec.skips_checks(),
            checks: Some((threshold, status.rolling_pod_status.unwrap_or_default())),
        })
    }

    pub(super) fn stable(&self) -> Option<&str> {
        let stable = self.memory.stable.as_ref();
        stable.map(|stable| stable.revision.as_str())
    }

    pub(super) fn attempt(&self) -> Option<&Attempt> {
        match &self.memory.activity {
            Activity::Rolling(attempt) => Some(attempt),
            Activity::Idle | Activity::RollingBack(_) => None,
        }
    }

    /// The pods that the recorded step allows to be updated.
    pub(super) fn allowed(&self, replicas: i64) -> Option<i64> {
        let (attempt, plan) = self.attempt().zip(self.plan.as_ref())?;
        let replicas = u32::try_from(replicas).unwrap_or(0);
        let share = plan.share_at(attempt.step).of(replicas);
        Some(share.max(attempt.min_updated.min(replicas)).into())
    }
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
