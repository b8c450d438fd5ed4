//! What the operator records about a rollout.

use stateward_api::analysis::Phase;
use stateward_cluster::Commit;
use stateward_core::memory::{Activity, Attempt, Rejection};
use stateward_core::plan::Step;
use stateward_core::step_run_name;

use super::Replay;
use super::world::Rollout;

impl Replay {
    pub(super) fn apply_rollout(&mut self, commit: &Commit, by_us: bool) {
        let name = &commit.name;
        let key = (commit.resource.to_string(), name.clone());
        if commit.deleted {
            self.rollouts.remove(&key);
            return;
        }
        let Some(rollout) = Rollout::of(commit) else {
            return;
        };
        let before = self.rollouts.get(&key);
        let before = before.filter(|before| before.uid == rollout.uid).cloned();
        self.told.rollout(&rollout.uid);
        if by_us
            && let Some(before) = &before
            && before.status != rollout.status
        {
            self.check_generation(name, &rollout);
            self.check_steps(name, before, &rollout);
            self.check_target(name, before, &rollout);
            self.check_rejection(name, before, &rollout);
            self.check_arrival(name, before, &rollout);
            self.check_stable(name, before, &rollout);
            self.check_phase(name, before, &rollout);
        }
        self.rollouts.insert(key, rollout);
    }

    /// 31: a status refers to the spec that it was decided on.
    fn check_generation(&mut self, name: &str, after: &Rollout) {
        let conditions = &after.status.conditions;
        let about = conditions.iter().map(|condition| condition.observed_generation);
        let mut about = about.chain([after.status.observed_generation]);
        if about.any(|generation| generation != after.generation) {
            self.breaks(format!(
                "31: the status of {name} is about generation {:?}, and was decided on {:?}",
                after.status.observed_generation, after.generation
            ));
        }
    }

    /// 2: a step follows the one before it, and only once its pods are updated and have been Ready for long enough; none is left out. 7: a
    /// pause lasts its time, or ends when a user ends it.
    fn check_steps(&mut self, name: &str, before: &Rollout, after: &Rollout) {
        let (Some(old), Some(new), Some(plan)) = (before.attempt(), after.attempt(), &before.plan) else {
            return;
        };
        if old.target != new.target || old.steps != new.steps || new.step == old.step {
            return;
        }
        let promoted = before.commands.promote_full && new.step == plan.end();
        if promoted {
            return;
        }
        // A PhasedRollout may go back to the previous gate, or finds its place again after scaling.
        if plan.by_pod && (new.step < old.step || new.counted != old.counted) {
            return;
        }
        if new.step != old.step.next() {
            self.breaks(format!(
                "2: {name} went from step {} to {}",
                old.step.0, new.step.0
            ));
        }
        match plan.step(old.step) {
            // A user may skip the current step. In a PhasedRollout that is the checks of a gate, and nothing else.
            Some(_) if before.commands.skip && !plan.by_pod => {}
            Some(Step::Share(_)) => self.check_gate(name, before, old, new),
            // A user may end a pause while the set is being scaled: its pods passed their gate before.
            Some(Step::Pause(_)) if before.commands.promote => {}
            Some(Step::Pause(Some(duration))) if new.entered.duration_since(old.entered) >= duration => {}
            Some(Step::Pause(_)) => self.breaks(format!(
                "7: {name} left the pause at step {} after {:#} and without a word from anybody",
                old.step.0,
                new.entered.duration_since(old.entered)
            )),
            // A user may skip checks, and nothing else.
            Some(Step::Analysis(_)) if (before.commands.promote || before.commands.skip) && plan.by_pod => {
                self.check_gate(name, before, old, new);
            }
            Some(Step::Analysis(_)) if before.commands.promote && old.paused_at_step => {}
            Some(Step::Analysis(_)) if let Some((threshold, checks)) = &before.checks => {
                let gate = step_run_name(name, old);
                // The last check is recorded together with its consequence.
                let missing = threshold - checks.consecutive_successful_checks;
                if checks.gate != gate || missing > 1 {
                    self.breaks(format!(
                        "48: {name} left the gate {gate} with {} checks in a row of {threshold} on record for {:?}",
                        checks.consecutive_successful_checks, checks.gate
                    ));
                }
            }
            Some(Step::Analysis(_)) => {
                let run = step_run_name(name, old);
                if self.runs.get(&run) != Some(&Phase::Successful) {
                    self.breaks(format!(
                        "46: {name} left the analysis at step {} though its run {run} is {:?}",
                        old.step.0,
                        self.runs.get(&run)
                    ));
                }
            }
            None => {}
        }
    }

    fn check_gate(&mut self, name: &str, before: &Rollout, old: &Attempt, new: &Attempt) {
        let Some(set) = self.sets.get(&before.set) else {
            return;
        };
        let due = before.plan.as_ref().map_or(0, |plan| {
            let replicas = u32::try_from(set.replicas).unwrap_or(0);
            plan.share_at(old.step).of(replicas)
        });
        let there = self
            .on(&before.set, old.target.as_str())
            .filter(|pod| pod.available(set.min_ready, new.entered));
        let there = there.count() as u32;
        if there < due {
            self.breaks(format!(
                "2: {name} left step {} with {there} of {due} pods new and Ready",
                old.step.0
            ));
        }
    }

    /// Whether a rollout had completed before its template changed again: Kubernetes' status shows it.
    fn ended_unseen(&self, before: &Rollout, after: &Rollout) -> bool {
        let (Some(old), Some(new)) = (before.attempt(), after.attempt()) else {
            return false;
        };
        let done = before.plan.as_ref().is_some_and(|plan| old.step == plan.end());
        let current = self.sets.get(&before.set).map(|set| set.current.as_str());
        done && old.target != new.target
            && after.stable() == Some(old.target.as_str())
            && current == Some(old.target.as_str())
    }

    /// 14: another version begins at the first step, and the stable version stays the same.
    fn check_target(&mut self, name: &str, before: &Rollout, after: &Rollout) {
        let (Some(old), Some(new)) = (before.attempt(), after.attempt()) else {
            return;
        };
        let same_set = before.memory.workload == after.memory.workload;
        if old.target == new.target || !same_set {
            return;
        }
        let baseline = before.stable() == after.stable() || self.ended_unseen(before, after);
        if new.step.0 != 0 || !baseline {
            self.breaks(format!(
                "14: {name} turned from {} to {} at step {}, with {:?} stable and {:?} before",
                old.target,
                new.target,
                new.step.0,
                after.stable(),
                before.stable()
            ));
        }
    }

    /// 5: only the version being rolled out is rejected.
    fn check_rejection(&mut self, name: &str, before: &Rollout, after: &Rollout) {
        let Some(rejected) = &after.memory.rejected else {
            return;
        };
        let same = |known: &Rejection| (&known.revision, known.at) == (&rejected.revision, rejected.at);
        if before.memory.rejected.as_ref().is_some_and(same) {
            return;
        }
        let rolled = before.attempt().map(|attempt| &attempt.target);
        if rolled != Some(&rejected.revision) {
            self.breaks(format!(
                "5: {name} turned {} down while {rolled:?} was rolled",
                rejected.revision
            ));
        }
    }

    /// 10: a rollback ends with every pod Ready on the stable version, and that version is unchanged.
    fn check_arrival(&mut self, name: &str, before: &Rollout, after: &Rollout) {
        let (Activity::RollingBack(_), Activity::Idle) = (&before.memory.activity, &after.memory.activity)
        else {
            return;
        };
        if before.memory.workload != after.memory.workload {
            return;
        }
        let (Some(old), Some(new)) = (&before.memory.stable, &after.memory.stable) else {
            return;
        };
        if old.template != new.template {
            self.breaks(format!("10: {name} came back to another version than it left"));
        }
        self.check_all_on("10", name, after);
    }

    /// 11: a version becomes stable only when every pod runs it and is Ready, and 12: never by scaling to zero.
    fn check_stable(&mut self, name: &str, before: &Rollout, after: &Rollout) {
        let (Some(old), Some(new)) = (before.stable(), after.stable()) else {
            return;
        };
        // Another workload, or one without pods, is adopted as it is; this check is about the end of a rollout.
        let rolled = before
            .attempt()
            .is_some_and(|attempt| attempt.target.as_str() == new);
        if old == new || !rolled || before.memory.workload != after.memory.workload {
            return;
        }
        if self.ended_unseen(before, after) {
            return;
        }
        let replicas = self.sets.get(&after.set).map(|set| set.replicas);
        if replicas == Some(0) {
            self.breaks(format!("12: {name} took {new} for stable without a single pod"));
        }
        self.check_all_on("11", name, after);
    }

    /// 30: a status reports success only when every pod runs the stable version and is Ready.
    fn check_phase(&mut self, name: &str, before: &Rollout, after: &Rollout) {
        let healthy = |rollout: &Rollout| {
            let conditions = &rollout.status.conditions;
            rollout.status.phase == "Successful"
                || conditions
                    .iter()
                    .any(|one| matches!(one.kind.as_str(), "Healthy" | "Ready") && one.status == "True")
        };
        if healthy(after) && !healthy(before) {
            self.check_all_on("30", name, after);
        }
    }

    fn check_all_on(&mut self, number: &str, name: &str, after: &Rollout) {
        let (Some(stable), Some(set)) = (after.stable(), self.sets.get(&after.set)) else {
            return;
        };
        let there = self.on(&after.set, stable).filter(|pod| pod.ready()).count() as i64;
        if there < set.replicas {
            self.breaks(format!(
                "{number}: {name} says that it is done with {there} of {} pods Ready on {stable}",
                set.replicas
            ));
        }
    }
}
