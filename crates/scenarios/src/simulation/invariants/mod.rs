//! What must hold after every commit. The numbers are those of `docs/design/invariants.md`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_cluster::{Commit, Commits};
use stateward_core::memory::{Activity, Memory};
use stateward_core::plan::{Plan, Step};
use stateward_core::rolloutplugin;

use crate::harness::OPERATOR;

/// Reads the commits of a run in their order and says which broke an invariant.
pub(crate) struct Checker {
    cluster: Arc<stateward_cluster::Cluster>,
    commits: Commits,
}

/// The world as the commits have made it so far.
#[derive(Default)]
struct Replay {
    sets: BTreeMap<String, Set>,
    pods: BTreeMap<String, Pod>,
    rollouts: BTreeMap<String, Rollout>,
    broken: Vec<String>,
}

#[derive(Clone)]
struct Set {
    replicas: i64,
    partition: i64,
    claim: String,
    /// The revision that Kubernetes gives to pods outside the share.
    current: String,
}

#[derive(Clone)]
struct Pod {
    uid: String,
    set: String,
    revision: String,
    ready: bool,
    leaving: bool,
}

#[derive(Clone)]
struct Rollout {
    set: String,
    memory: Memory,
    plan: Option<Plan>,
    promoted: bool,
}

impl Checker {
    pub(crate) fn of(cluster: Arc<stateward_cluster::Cluster>) -> Self {
        let commits = cluster.commits();
        Self { cluster, commits }
    }

    /// Everything that was broken in `namespace` so far.
    pub(crate) fn broken(&mut self, namespace: &str) -> Vec<String> {
        let audit = self.cluster.audit();
        let ours = audit.iter().filter(|entry| entry.user == OPERATOR);
        let mut replay = Replay::default();
        for entry in ours.clone() {
            replay.check_request(&entry.verb, &entry.resource, &entry.name);
        }
        let written: BTreeMap<u64, &str> = ours
            .filter_map(|entry| Some((entry.revision?, entry.verb.as_str())))
            .collect();
        for commit in self
            .commits
            .by_ref()
            .filter(|commit| commit.namespace == namespace)
        {
            let by_us = written.contains_key(&commit.revision);
            replay.apply(&commit, by_us);
        }
        replay.broken
    }
}

/// What these commits have broken, each with whether it is the operator's.
pub(super) fn broken<'a>(commits: impl Iterator<Item = (&'a Commit, bool)>) -> Vec<String> {
    let mut replay = Replay::default();
    for (commit, by_us) in commits {
        replay.apply(commit, by_us);
    }
    replay.broken
}

impl Replay {
    fn breaks(&mut self, what: String) {
        if !self.broken.contains(&what) {
            self.broken.push(what);
        }
    }

    /// 18: we never delete what holds a user's data.
    fn check_request(&mut self, verb: &str, resource: &str, name: &str) {
        if verb.starts_with("delete") && resource != "pods" {
            self.breaks(format!("18: the operator asked to {verb} {resource} {name}"));
        }
    }

    fn apply(&mut self, commit: &Commit, by_us: bool) {
        match commit.resource.as_ref() {
            "statefulsets.apps" => self.apply_set(commit, by_us),
            "pods" => self.apply_pod(commit, by_us),
            "rolloutplugins.argoproj.io" => self.apply_rollout(commit),
            _ => {}
        }
    }

    fn apply_set(&mut self, commit: &Commit, by_us: bool) {
        if commit.deleted {
            self.sets.remove(&commit.name);
            return;
        }
        let spec = &commit.object["spec"];
        let set = Set {
            replicas: spec["replicas"].as_i64().unwrap_or(1),
            partition: spec["updateStrategy"]["rollingUpdate"]["partition"]
                .as_i64()
                .unwrap_or(0),
            claim: text(&commit.object["metadata"]["annotations"]["stateward.dev/managed-by"]),
            current: text(&commit.object["status"]["currentRevision"]),
        };
        let before = self.sets.insert(commit.name.clone(), set.clone());
        if by_us {
            self.check_release(&commit.name, &set, before.as_ref());
        }
    }

    /// 2: we never release more than the recorded step allows, and 6: no more while paused by hand.
    fn check_release(&mut self, name: &str, set: &Set, before: Option<&Set>) {
        let Some(rollout) = self
            .rollouts
            .values()
            .find(|rollout| rollout.set == name)
            .cloned()
        else {
            return;
        };
        let released = set.replicas - set.partition;
        let was = before.map_or(0, |before| set.replicas - before.partition);
        if released.max(0) <= was.max(0) || set.claim.is_empty() {
            return;
        }
        match (&rollout.memory.activity, &rollout.plan) {
            (Activity::Rolling(attempt), Some(plan)) => {
                let replicas = u32::try_from(set.replicas).unwrap_or(0);
                let allowed = plan
                    .share_at(attempt.step)
                    .of(replicas)
                    .max(attempt.floor.min(replicas));
                if released > i64::from(allowed) {
                    self.breaks(format!(
                        "2: {released} pods of {name} released at step {}, which allows {allowed}",
                        attempt.step.0
                    ));
                }
                if attempt.held {
                    self.breaks(format!(
                        "6: {released} pods of {name} released while paused, {was} before"
                    ));
                }
            }
            // The way back of a version that Kubernetes took for the stable one goes over the template.
            (Activity::Returning(_), _) => {}
            (activity, _) => self.breaks(format!(
                "2: {released} pods of {name} released while {activity:?}"
            )),
        }
    }

    fn apply_pod(&mut self, commit: &Commit, by_us: bool) {
        let object = &commit.object;
        let conditions = object["status"]["conditions"].as_array();
        let ready = conditions.is_some_and(|conditions| {
            conditions
                .iter()
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        });
        let pod = Pod {
            uid: text(&object["metadata"]["uid"]),
            set: text(&object["metadata"]["ownerReferences"][0]["name"]),
            revision: text(&object["metadata"]["labels"]["controller-revision-hash"]),
            ready,
            leaving: !object["metadata"]["deletionTimestamp"].is_null(),
        };
        let before = self.pods.get(&commit.name).cloned();
        let born = before.as_ref().is_none_or(|before| before.uid != pod.uid) && !commit.deleted;
        if commit.deleted {
            self.pods.remove(&commit.name);
        } else {
            self.pods.insert(commit.name.clone(), pod.clone());
        }
        if born {
            self.check_birth(&commit.name, &pod);
        }
        let leaves = before.as_ref().is_some_and(|before| !before.leaving) && (pod.leaving || commit.deleted);
        if by_us
            && leaves
            && let Some(before) = before
        {
            self.check_removal(&commit.name, &before);
        }
    }

    /// 9: once it is on record that a version is turned down, no pod of it is made, unless a user made room for it.
    fn check_birth(&mut self, name: &str, pod: &Pod) {
        let Some(rollout) = self.rollouts.values().find(|rollout| rollout.set == pod.set) else {
            return;
        };
        let Some(set) = self.sets.get(&pod.set) else {
            return;
        };
        let Activity::Returning(back) = &rollout.memory.activity else {
            return;
        };
        // Where Kubernetes has forgotten the stable version, the guard gives what it remembers.
        let guarded = set.partition >= set.replicas && set.current != back.from.as_str();
        if guarded && back.from.as_str() == pod.revision {
            self.breaks(format!(
                "9: pod {name} was made on {} after that was turned down",
                pod.revision
            ));
        }
    }

    /// 19: a pod that serves is removed only while all others are there and Ready.
    fn check_removal(&mut self, name: &str, pod: &Pod) {
        let Some(set) = self.sets.get(&pod.set) else {
            return;
        };
        let others = self.pods.iter().filter(|(other, _)| *other != name);
        let well = others.filter(|(_, other)| other.set == pod.set && other.ready && !other.leaving);
        let well = well.count() as i64;
        if pod.ready && well < set.replicas - 1 {
            self.breaks(format!(
                "19: pod {name} was removed while only {well} others were Ready"
            ));
        }
        let stable = self
            .rollouts
            .values()
            .find(|rollout| rollout.set == pod.set)
            .and_then(|rollout| rollout.memory.stable.as_ref());
        if pod.ready && stable.is_some_and(|stable| stable.revision.as_str() == pod.revision) {
            self.breaks(format!(
                "19: pod {name} was removed although it runs the stable version"
            ));
        }
    }

    fn apply_rollout(&mut self, commit: &Commit) {
        if commit.deleted {
            self.rollouts.remove(&commit.name);
            return;
        }
        let Ok(object) = serde_json::from_value::<RolloutPlugin>(commit.object.as_ref().clone()) else {
            return;
        };
        let status = object.status.clone().unwrap_or_default();
        let before = self.rollouts.get(&commit.name).cloned();
        let rollout = Rollout {
            set: object.spec.workload_ref.name.clone(),
            memory: rolloutplugin::memory(&status),
            plan: rolloutplugin::plan(&object).ok(),
            promoted: status.promote_full || before.as_ref().is_some_and(|before| before.promoted),
        };
        if let Some(before) = &before {
            self.check_steps(&commit.name, before, &rollout);
            self.check_stable(&commit.name, before, &rollout);
        }
        self.rollouts.insert(commit.name.clone(), rollout);
    }

    /// 2: a step follows the one before it, and only where its pods are new and Ready; none is left out.
    fn check_steps(&mut self, name: &str, before: &Rollout, after: &Rollout) {
        let (Activity::Rolling(old), Activity::Rolling(new)) =
            (&before.memory.activity, &after.memory.activity)
        else {
            return;
        };
        if old.target != new.target || old.steps != new.steps || new.step <= old.step || after.promoted {
            return;
        }
        if new.step != old.step.next() {
            self.breaks(format!(
                "2: {name} went from step {} to {}",
                old.step.0, new.step.0
            ));
        }
        let Some((plan, set)) = before.plan.as_ref().zip(self.sets.get(&before.set)) else {
            return;
        };
        // A user may end a pause while the set is being scaled: its pods passed their gate before.
        if !matches!(plan.step(old.step), Some(Step::Share(_))) {
            return;
        }
        let due = plan
            .share_at(old.step)
            .of(u32::try_from(set.replicas).unwrap_or(0));
        let there = self.pods.values().filter(|pod| {
            pod.set == before.set && pod.revision == old.target.as_str() && pod.ready && !pod.leaving
        });
        let there = there.count() as u32;
        if there < due {
            self.breaks(format!(
                "2: {name} left step {} with {there} of {due} pods new and Ready",
                old.step.0
            ));
        }
    }

    /// 11: a version becomes the stable one only when every pod runs it and is Ready.
    fn check_stable(&mut self, name: &str, before: &Rollout, after: &Rollout) {
        let (Some(old), Some(new)) = (&before.memory.stable, &after.memory.stable) else {
            return;
        };
        let Some(set) = self.sets.get(&after.set) else {
            return;
        };
        // Another workload, or one without pods, is taken on as it is; this is about the end of a rollout.
        let rolled =
            matches!(&before.memory.activity, Activity::Rolling(attempt) if attempt.target == new.revision);
        if old.revision == new.revision || !rolled {
            return;
        }
        let there = self.pods.values().filter(|pod| {
            pod.set == after.set && pod.revision == new.revision.as_str() && pod.ready && !pod.leaving
        });
        let there = there.count() as i64;
        if there < set.replicas {
            self.breaks(format!(
                "11: {name} took {} for stable with {there} of {} pods on it",
                new.revision, set.replicas
            ));
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
