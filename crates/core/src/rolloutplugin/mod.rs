//! The RolloutPlugin front end: from its spec to a plan, from its status to a memory, and from a decision to its next status.

mod conditions;
mod status;

use jiff::SignedDuration;
use stateward_api::duration;
use stateward_api::rolloutplugin::{RolloutPlugin, RolloutPluginStatus};

use crate::memory::{Activity, Attempt, Cause, Memory, Rejection, Return, Stable};
use crate::plan::{Fingerprint, OnFailure, Plan, Share, Step, StepIndex, Weight};
use crate::revision::RevisionName;
use crate::world::Commands;

pub use self::status::{next_status, stall};

/// What the spec asks for, or everything that is wrong with it.
pub fn plan(object: &RolloutPlugin) -> Result<Plan, Vec<String>> {
    let problems = object.problems();
    if !problems.is_empty() {
        return Err(problems.iter().map(ToString::to_string).collect());
    }
    let spec = &object.spec;
    let canary = spec.strategy.canary.clone().unwrap_or_default();
    let steps = canary
        .steps
        .iter()
        .map(|step| match (&step.pause, step.set_weight) {
            (Some(pause), _) => {
                let duration = pause.duration.as_ref().map(duration::parse);
                // What could not be read is a problem and was told above.
                Step::Pause(duration.and_then(Result::ok))
            }
            (None, weight) => {
                let weight = Weight::new(weight.unwrap_or(0).into());
                Step::Share(weight.map_or(Share::NONE, Share::Percent))
            }
        });
    Ok(Plan {
        steps: steps.collect(),
        deadline: SignedDuration::from_secs(spec.deadline_seconds()),
        on_failure: if spec.aborts_on_failure() {
            OnFailure::Abort
        } else {
            OnFailure::Hold
        },
    })
}

/// What was asked for through the status subresource.
pub fn commands(status: &RolloutPluginStatus) -> Commands {
    Commands {
        promote: status.controller_pause && status.pause_conditions.is_empty(),
        promote_full: status.promote_full,
        abort: status.abort,
        retry: status.restart,
    }
}

/// What the status remembers.
pub fn memory(status: &RolloutPluginStatus) -> Memory {
    Memory {
        workload: status.workload_uid.clone(),
        setting: status.workload_setting.clone(),
        stable: stable(status),
        activity: returning(status)
            .map(Activity::Returning)
            .or_else(|| attempt(status).map(Activity::Rolling))
            .unwrap_or_default(),
        rejected: rejection(status),
        retries: count(status.restart_count),
        retried_at: status.restarted_at,
    }
}

fn stable(status: &RolloutPluginStatus) -> Option<Stable> {
    Some(Stable {
        revision: RevisionName::from_api(status.stable_revision.as_ref()?),
        template: Fingerprint::from_api(status.stable_template_hash.as_ref()?),
    })
}

fn attempt(status: &RolloutPluginStatus) -> Option<Attempt> {
    let entered = status.current_step_started_at?;
    Some(Attempt {
        target: RevisionName::from_api(status.updated_revision.as_ref()?),
        step: StepIndex(count(status.current_step_index)),
        steps: Fingerprint::from_api(status.current_step_hash.clone()?),
        entered,
        progressed: status.progressed_at.unwrap_or(entered),
        reached: count(status.reached_replicas),
        floor: count(status.floor_replicas),
        excused: status
            .excused_pods
            .iter()
            .map(|index| count(Some(*index)))
            .collect(),
        held: status.manual_pause,
        pausing: status.controller_pause,
    })
}

fn returning(status: &RolloutPluginStatus) -> Option<Return> {
    Some(Return {
        from: RevisionName::from_api(status.returning_from.as_ref()?),
        cause: match status.returning.as_deref()? {
            "PutBack" => Cause::PutBack,
            "ScaledToZero" => Cause::ScaledToZero,
            _ => Cause::Aborted,
        },
        since: status.returning_since?,
    })
}

fn rejection(status: &RolloutPluginStatus) -> Option<Rejection> {
    Some(Rejection {
        revision: RevisionName::from_api(status.aborted_revision.as_ref()?),
        at: status.aborted_at?,
        reason: status.aborted_reason.clone().unwrap_or_default(),
        replaced: status.aborted_template_replaced,
    })
}

/// A count that was written down; what never was, or was edited to be less than nothing, is 0.
fn count(number: Option<i32>) -> u32 {
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}
