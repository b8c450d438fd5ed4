//! Compiles the spec of a RolloutPlugin to a plan.

use jiff::SignedDuration;
use stateward_api::duration;
use stateward_api::rolloutplugin::{Analysis, BrokenPods, RolloutPlugin};

use crate::analysis::template::{self, Span, Templates};
use crate::plan::{
    Background, Check, Fingerprint, History, OnBrokenPod, OnFailure, Plan, Share, Step, StepIndex, Weight,
};
use crate::world::RunFor;

/// The plan, or everything that is wrong with the spec; analyses are checked only as far as possible without their templates.
pub fn plan(object: &RolloutPlugin) -> Result<Plan, Vec<String>> {
    plan_with(object, None)
}

/// The same with the available templates.
pub fn plan_with(object: &RolloutPlugin, templates: Option<&dyn Templates>) -> Result<Plan, Vec<String>> {
    let mut problems = object.problems();
    for (analysis, path, span) in analyses(object) {
        if let Some(templates) = templates {
            let whole = || serde_json::to_value(object).unwrap_or_default();
            problems.extend(template::problems(analysis, &path, span, templates, &whole));
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
                // An invalid duration was reported above.
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
        by_pod: false,
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
        on_failed_check: OnFailure::Abort,
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

/// The analyses of a rollout, and their paths in its spec.
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

/// The analysis for a run, and its path in the spec.
pub fn analysis(object: &RolloutPlugin, run_for: RunFor) -> Option<(&Analysis, String, Span)> {
    let canary = object.spec.strategy.canary.as_ref()?;
    let path = match run_for {
        RunFor::Step(step) => {
            canary.steps.get(step.0 as usize)?.analysis.as_ref()?;
            format!("spec.strategy.canary.steps[{}].analysis", step.0)
        }
        RunFor::Background => "spec.strategy.canary.analysis".to_owned(),
    };
    analyses(object).into_iter().find(|(_, here, _)| *here == path)
}

/// Whether a rollout has any analysis.
pub fn has_analysis(object: &RolloutPlugin) -> bool {
    !analyses(object).is_empty()
}

fn check(analysis: &Analysis) -> Check {
    Check(Fingerprint::of(
        &serde_json::to_string(analysis).unwrap_or_default(),
    ))
}

/// A count; 0 if it is missing or negative.
fn count(number: Option<i32>) -> u32 {
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}
