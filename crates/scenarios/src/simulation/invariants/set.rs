//! What the operator writes to a set.

use serde_json::Value;
use stateward_cluster::Commit;
use stateward_core::memory::Activity;

use super::Replay;
use super::world::Set;

/// The annotation with a set's claim.
const CLAIM: &str = "stateward.dev/managed-by";
/// Keeps the user's partition when a rollout is deleted before its end.
const LEFT: &str = "stateward.dev/left";
/// The claim annotation of sts-plus-operator.
const PEER_CLAIM: &str = "sts.plus/phasedRollout";

impl Replay {
    pub(super) fn apply_set(&mut self, commit: &Commit, by_us: bool) {
        let name = &commit.name;
        if commit.deleted {
            self.sets.remove(name);
            return;
        }
        let mut set = Set::of(commit);
        let before = self
            .sets
            .get(name)
            .filter(|before| before.uid == set.uid)
            .cloned();
        if let Some(before) = &before {
            set.follow(before, by_us);
        }
        let written = by_us
            && before.as_ref().is_none_or(|before| {
                before.object["spec"] != set.object["spec"] || before.claim != set.claim
            });
        self.sets.insert(name.clone(), set.clone());
        if !written {
            return;
        }
        let allowed = self
            .holder(name)
            .and_then(|rollout| rollout.allowed(set.replicas));
        if let Some(set) = self.sets.get_mut(name) {
            set.grant(allowed.unwrap_or(0));
        }
        if let Some(before) = &before {
            self.check_fields(name, &set, before);
            self.check_claim(name, &set, before);
        }
        // A write that releases a set restores the user's partition, so these checks do not apply.
        if let Some(before) = before.filter(|_| !set.claim.is_empty()) {
            self.check_observed(name, &set, &before);
            self.check_identity(name, &set);
            self.check_release(name, &set, &before);
        }
    }

    /// 2: the operator never releases more than the recorded step allows, and 6: no more during a manual pause.
    fn check_release(&mut self, name: &str, set: &Set, before: &Set) {
        let Some(rollout) = self.holder(name).filter(|rollout| !rollout.suspended).cloned() else {
            return;
        };
        let released = set.released();
        let was = (set.replicas - before.partition).max(0);
        if released <= was {
            return;
        }
        match (&rollout.memory.activity, rollout.allowed(set.replicas)) {
            (Activity::Rolling(attempt), Some(allowed)) => {
                if released > allowed {
                    self.breaks(format!(
                        "2: {released} pods of {name} released at step {}, which allows {allowed}",
                        attempt.step.0
                    ));
                }
                if attempt.paused_by_user {
                    self.breaks(format!(
                        "6: {released} pods of {name} released while paused, {was} before"
                    ));
                }
            }
            // The rollback of a version that Kubernetes took for the stable one goes through the template.
            (Activity::RollingBack(_), _) => {}
            // The object is deleted after an abort, and the stable template replaces the rejected one.
            (Activity::Idle, _)
                if rollout.deleting
                    && set.object["spec"]["template"] != before.object["spec"]["template"] => {}
            (activity, _) => self.breaks(format!(
                "16: {released} pods of {name} released while {activity:?}"
            )),
        }
    }

    /// 17: the operator writes the partition and the claim, and during a rollback the template. Nothing else.
    fn check_fields(&mut self, name: &str, set: &Set, before: &Set) {
        // During a rollback, and when the object is deleted after one.
        let restores = self.holder(name).is_some_and(|rollout| {
            matches!(rollout.memory.activity, Activity::RollingBack(_))
                || rollout.deleting && rollout.memory.rejected.is_some()
        });
        let theirs = |set: &Set| {
            let mut spec = set.object["spec"].clone();
            let mut annotations = set.object["metadata"]["annotations"].clone();
            if let Some(spec) = spec.as_object_mut() {
                spec.remove("updateStrategy");
                if restores {
                    spec.remove("template");
                }
            }
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.remove(CLAIM);
                annotations.remove(LEFT);
                // The other operator's annotation goes with the object that it names.
                annotations.remove(PEER_CLAIM);
            }
            if annotations.as_object().is_some_and(serde_json::Map::is_empty) {
                annotations = Value::Null;
            }
            (spec, annotations, set.object["metadata"]["labels"].clone())
        };
        if theirs(set) != theirs(before) {
            self.breaks(format!("17: more of {name} was written than is ours"));
        }
    }

    /// 25: a claim is taken only from an object that is gone.
    fn check_claim(&mut self, name: &str, set: &Set, before: &Set) {
        if before.claim.is_empty() || set.claim.is_empty() || before.claim == set.claim {
            return;
        }
        let lives = |rollout: &&super::Rollout| before.claim.ends_with(&format!("/{}", rollout.uid));
        if self.rollouts.values().any(|rollout| lives(&rollout)) {
            self.breaks(format!(
                "25: {name} was taken from {} by {}",
                before.claim, set.claim
            ));
        }
    }

    /// 26: the operator writes only to a set whose controller has observed its spec, unless the write only takes pods back.
    fn check_observed(&mut self, name: &str, set: &Set, before: &Set) {
        let template = |set: &Set| set.object["spec"]["template"].clone();
        let takes_back = set.partition > before.partition && template(set) == template(before);
        if before.observed < before.generation && !takes_back {
            self.breaks(format!(
                "26: {name} was written at generation {} with {} observed",
                before.generation, before.observed
            ));
        }
    }

    /// 27: what the operator remembers of a set is never used for another of the same name.
    fn check_identity(&mut self, name: &str, set: &Set) {
        let remembered = self
            .holder(name)
            .map(|rollout| rollout.memory.workload.clone().unwrap_or_default());
        if remembered.is_some_and(|remembered| remembered != set.uid) {
            self.breaks(format!("27: {name} was written on the memory of another set"));
        }
    }
}

impl Set {
    /// Carries over the state of the previous commit.
    fn follow(&mut self, before: &Self, by_us: bool) {
        let share = |set: &Self| (set.replicas, set.partition);
        let template = |set: &Self| set.object["spec"]["template"].clone();
        let moved =
            share(self) != share(before) || (template(self) != template(before) && before.released() > 0);
        self.unanswered = before.unanswered || (moved && !by_us);
        self.granted = before.granted;
        self.granting = before.granting.filter(|_| by_us || !moved);
        if let Some((generation, allowed)) = self.granting
            && self.observed >= generation
        {
            self.granting = None;
            self.granted = allowed;
            self.unanswered = false;
        }
    }

    /// Records our write, at a step that allows this many pods.
    fn grant(&mut self, allowed: i64) {
        self.granting = Some((self.generation, allowed));
        self.granted = self.granted.max(allowed);
    }
}
