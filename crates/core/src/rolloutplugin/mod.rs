//! The RolloutPlugin front end: from its spec to a plan, from its status to a memory, and from a decision to its next status.

mod conditions;
mod status;

use jiff::SignedDuration;
use stateward_api::duration;
use stateward_api::rolloutplugin::{Analysis, BrokenPods, RolloutPlugin, RolloutPluginStatus};

use crate::analysis::template::{self, Span, Templates};
use crate::memory::{Activity, Attempt, Beside, Cause, Memory, Rejection, Return, Stable};
use crate::plan::{
    Background, Check, Fingerprint, History, OnBrokenPod, OnFailure, Plan, Share, Step, StepIndex, Weight,
};
use crate::revision::RevisionName;
use crate::world::{Asked, Commands};

pub use self::status::{next_status, stall};

/// What the spec asks for, or everything that is wrong with it; of its analyses as far as that can be told without their
/// templates.
pub fn plan(object: &RolloutPlugin) -> Result<Plan, Vec<String>> {
    plan_with(object, None)
}

/// The same with the templates that there are.
pub fn plan_with(object: &RolloutPlugin, templates: Option<&dyn Templates>) -> Result<Plan, Vec<String>> {
    let mut problems = object.problems();
    for (analysis, path, span) in analyses(object) {
        if let Some(templates) = templates {
            problems.extend(template::problems(analysis, &path, span, templates));
        }
    }
    if !problems.is_empty() {
        return Err(problems.iter().map(ToString::to_string).collect());
    }
    let spec = &object.spec;
    let canary = spec.strategy.canary.clone().unwrap_or_default();
    let steps = canary
        .steps
        .iter()
        .map(|step| match (&step.analysis, &step.pause, step.set_weight) {
            (Some(analysis), ..) => Step::Analysis(check(analysis)),
            (None, Some(pause), _) => {
                let duration = pause.duration.as_ref().map(duration::parse);
                // What could not be read is a problem and was told above.
                Step::Pause(duration.and_then(Result::ok))
            }
            (None, None, weight) => {
                let weight = Weight::new(weight.unwrap_or(0).into());
                Step::Share(weight.map_or(Share::NONE, Share::Percent))
            }
        });
    let on_failure = if spec.aborts_on_failure() {
        OnFailure::Abort
    } else {
        OnFailure::Hold
    };
    let history = spec.analysis.clone().unwrap_or_default();
    let kept = |limit: Option<i32>, otherwise: usize| {
        limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(otherwise)
    };
    Ok(Plan {
        steps: steps.collect(),
        background: canary.analysis.as_ref().map(|background| Background {
            from: StepIndex(count(background.starting_step)),
            check: check(&background.analysis),
        }),
        deadline: SignedDuration::from_secs(spec.deadline_seconds()),
        on_failure,
        on_broken_pod: match spec.broken_pods {
            None => OnBrokenPod::Fail(on_failure),
            Some(BrokenPods::Abort) => OnBrokenPod::Fail(OnFailure::Abort),
            Some(BrokenPods::Hold) => OnBrokenPod::Fail(OnFailure::Hold),
            Some(BrokenPods::Wait) => OnBrokenPod::Wait,
        },
        history: History {
            successful: kept(
                history.successful_run_history_limit,
                History::default().successful,
            ),
            unsuccessful: kept(
                history.unsuccessful_run_history_limit,
                History::default().unsuccessful,
            ),
        },
    })
}

/// The analyses of a rollout, and where they stand in its spec.
fn analyses(object: &RolloutPlugin) -> Vec<(&Analysis, String, Span)> {
    let Some(canary) = &object.spec.strategy.canary else {
        return Vec::new();
    };
    let steps = canary.steps.iter().enumerate().filter_map(|(index, step)| {
        let path = format!("spec.strategy.canary.steps[{index}].analysis");
        Some((step.analysis.as_ref()?, path, Span::Step))
    });
    let beside = canary.analysis.as_ref().map(|background| {
        let path = "spec.strategy.canary.analysis".to_owned();
        (&background.analysis, path, Span::Background)
    });
    steps.chain(beside).collect()
}

/// The analysis that is asked for, and where it stands in the spec.
pub fn analysis(object: &RolloutPlugin, asked: Asked) -> Option<(&Analysis, String, Span)> {
    let canary = object.spec.strategy.canary.as_ref()?;
    let path = match asked {
        Asked::By(step) => {
            canary.steps.get(step.0 as usize)?.analysis.as_ref()?;
            format!("spec.strategy.canary.steps[{}].analysis", step.0)
        }
        Asked::Beside => "spec.strategy.canary.analysis".to_owned(),
    };
    analyses(object).into_iter().find(|(_, here, _)| *here == path)
}

/// Whether anything is measured in a rollout.
pub fn has_analysis(object: &RolloutPlugin) -> bool {
    !analyses(object).is_empty()
}

fn check(analysis: &Analysis) -> Check {
    Check(Fingerprint::of(
        &serde_json::to_string(analysis).unwrap_or_default(),
    ))
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
        pausing: status.controller_pause && !status.background_paused,
        beside: match status.background_started_at {
            None if status.background_waived => Beside::Waived,
            None => Beside::NotYet,
            Some(since) if status.background_paused => Beside::InDoubt(since),
            Some(since) => Beside::Since(since),
        },
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
