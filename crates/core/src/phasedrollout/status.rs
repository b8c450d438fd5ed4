//! The status of a PhasedRollout.

use stateward_api::phasedrollout::{PhasedRollout, PhasedRolloutStatus, RollingPodStatus};
use stateward_api::rollout::{Condition, RolloutStatus};

use super::check::{tries_left, word};
use super::checks;
use crate::engine::release_of;
use crate::memory::Activity;
use crate::plan::Step;
use crate::record;
use crate::world::{Decision, Phase, Reason, World};

/// The status that records a decision. `None` when nothing is worth a write.
pub fn next_status(
    object: &PhasedRollout,
    world: &World,
    decision: &Decision,
) -> Option<PhasedRolloutStatus> {
    let old = object.status.clone().unwrap_or_default();
    let new = status(object, world, decision)?;
    let differs = if record::rides_along(world, decision) {
        outline(&new) != outline(&old)
    } else {
        new != old
    };
    differs.then_some(new)
}

/// The status for a decision, whether or not it is worth a write. `None` when there is nothing to report yet.
pub fn status(object: &PhasedRollout, world: &World, decision: &Decision) -> Option<PhasedRolloutStatus> {
    let old = object.status.clone().unwrap_or_default();
    let generation = object.metadata.generation;
    let report = decision.report.as_ref()?;
    let mut shared = record::compose(&old.rollout, generation, world, decision)?;
    shared.phase = phase_word(report.phase, report.reason, &decision.memory.activity).into();
    shared.reason = record::of_phased_rollout(&shared.reason);
    for condition in &mut shared.conditions {
        condition.reason = record::of_phased_rollout(&condition.reason);
    }
    let updated = updated(&shared.phase);
    let before = old.rollout.conditions.iter();
    let before = before
        .filter(|before| before.kind == "Updated" && before.status == updated)
        .map(|before| before.last_transition_time)
        .next();
    shared.conditions.push(Condition {
        kind: "Updated".into(),
        status: updated.into(),
        reason: shared.phase.clone(),
        message: report.message.clone(),
        last_transition_time: before.unwrap_or(world.now),
        observed_generation: generation,
    });
    let mut new = PhasedRolloutStatus {
        rollout: shared,
        success_on: Some(object.success_on()),
        taken_over: object.is_taken_over(),
        ..old.clone()
    };
    tell_times(&mut new, world, decision);
    new.rolling_pod_status = rolling_pod(object, &old, world, decision);
    Some(new)
}

/// The part of a status that is worth a write of its own while pods are replaced.
fn outline(status: &PhasedRolloutStatus) -> PhasedRolloutStatus {
    let mut outline = status.clone();
    outline.rollout = record::outline(&status.rollout);
    if let Some(record) = &mut outline.rolling_pod_status {
        record.status.clear();
        record.partition = 0;
    }
    outline
}

/// The phase as sts-plus-operator names it, if it has one.
fn phase_word(phase: Phase, reason: Reason, activity: &Activity) -> &'static str {
    match (reason, phase) {
        (Reason::WorkloadMissing, _) => "ErrorSTSNotFound",
        (Reason::WorkloadUnfit | Reason::WorkloadClaimed, _) => "ErrorCannotManage",
        (Reason::Suspended, _) => "Suspended",
        (_, Phase::Successful) => "Updated",
        (_, Phase::Paused) => "Paused",
        (_, Phase::Failed) => "Failed",
        (_, Phase::Progressing) if matches!(activity, Activity::Rolling(_)) => "Rolling",
        (_, Phase::Progressing) => "Progressing",
    }
}

/// The phase of a status as RolloutPlugins name it.
pub fn plain_phase(status: &RolloutStatus) -> &str {
    let done = |condition: &Condition| condition.kind == "Completed" && condition.status == "True";
    match status.phase.as_str() {
        "Suspended" if !status.conditions.iter().any(done) => "Progressing",
        "Updated" | "Suspended" => "Successful",
        "Rolling" | "ErrorSTSNotFound" => "Progressing",
        "ErrorCannotManage" => "Failed",
        other => other,
    }
}

fn updated(phase: &str) -> &'static str {
    match phase {
        "Updated" => "True",
        "Rolling" | "Paused" | "Failed" => "False",
        _ => "Unknown",
    }
}

fn tell_times(new: &mut PhasedRolloutStatus, world: &World, decision: &Decision) {
    let target = |activity: &Activity| match activity {
        Activity::Rolling(attempt) => Some(attempt.target.to_string()),
        Activity::Idle | Activity::RollingBack(_) => None,
    };
    let (before, after) = (target(&world.memory.activity), target(&decision.memory.activity));
    if after.is_some() && before != after {
        new.rollout_start_time = Some(world.now);
        new.rollout_end_time = None;
        new.update_revision = after;
    }
    // Not when a rollback begins: the rollout ends when the rollback is complete.
    if world.memory.activity != Activity::Idle && decision.memory.activity == Activity::Idle {
        new.rollout_end_time = Some(world.now);
    }
}

/// The pod that is being updated, and the checks before the next.
fn rolling_pod(
    object: &PhasedRollout,
    old: &PhasedRolloutStatus,
    world: &World,
    decision: &Decision,
) -> Option<RollingPodStatus> {
    let (Activity::Rolling(attempt), Ok(plan), Ok(workload)) =
        (&decision.memory.activity, &world.plan, &world.workload)
    else {
        return None;
    };
    let check = &object.spec.check;
    let known = checks(old, &world.object, attempt).cloned();
    let mut record = known.clone().unwrap_or_default();
    record.partition = i32::try_from(i64::from(workload.replicas) - workload.released).unwrap_or(i32::MAX);
    record.status = match (plan.step(attempt.step), known) {
        (Some(Step::Analysis(_)), Some(known)) => word(object, &known, world.now),
        (Some(Step::Analysis(_)), None) => "WaitForAllPodsToBeAvailable",
        (Some(Step::Share(share)), _) => {
            let released = release_of(attempt, share.of(workload.replicas), workload.replicas);
            let mut released = workload.first_released(released)..workload.replicas;
            let there = |index| workload.at(index).is_some_and(|pod| pod.runs(&attempt.target));
            if released.all(there) {
                "WaitForAllPodsToBeAvailable"
            } else {
                "WaitForPodToBeUpdated"
            }
        }
        (Some(Step::Pause(_)) | None, _) => "WaitForPodToBeUpdated",
    }
    .into();
    if !record.gate.is_empty() {
        record.tries_left = tries_left(check, &record);
    }
    Some(record)
}
