//! The operator's checks of an object.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;
use stateward_api::Problem;
use stateward_api::analysis::{
    AnalysisRun, AnalysisTemplate, AnalysisTemplateSpec, ClusterAnalysisTemplate, TemplateRef, validate,
};
use stateward_api::phasedrollout::PhasedRollout;
use stateward_api::rolloutplugin::{Analysis, RolloutPlugin};
use stateward_core::analysis::judge;
use stateward_core::analysis::template::{self, Span, Templates};

/// All templates of the files, by cluster scope and name.
pub(super) type Known = BTreeMap<(bool, String), AnalysisTemplateSpec>;

/// The template in an object, with its key.
pub(super) fn template(kind: &str, readable: &Value) -> Option<((bool, String), AnalysisTemplateSpec)> {
    let name = readable["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    match kind {
        "AnalysisTemplate" => {
            let template: AnalysisTemplate = serde_json::from_value(readable.clone()).ok()?;
            Some(((false, name), template.spec))
        }
        "ClusterAnalysisTemplate" => {
            let template: ClusterAnalysisTemplate = serde_json::from_value(readable.clone()).ok()?;
            Some(((true, name), template.spec.0))
        }
        _ => None,
    }
}

/// All problems of an object, as far as it can be read.
pub(super) fn problems(
    kind: &str,
    readable: &Value,
    known: &Known,
) -> Result<Vec<Problem>, serde_json::Error> {
    match kind {
        "RolloutPlugin" => judged(readable, |object: RolloutPlugin| {
            rollout(&object, readable, known)
        }),
        "PhasedRollout" => judged(readable, |object: PhasedRollout| object.problems()),
        "AnalysisTemplate" => judged(readable, |object: AnalysisTemplate| metrics(&object.spec)),
        "ClusterAnalysisTemplate" => judged(readable, |object: ClusterAnalysisTemplate| {
            metrics(&object.spec.0)
        }),
        "AnalysisRun" => judged(readable, |object: AnalysisRun| {
            template::filled(&object.spec).err().unwrap_or_default()
        }),
        _ => Ok(Vec::new()),
    }
}

fn judged<K: DeserializeOwned>(
    readable: &Value,
    judge: impl FnOnce(K) -> Vec<Problem>,
) -> Result<Vec<Problem>, serde_json::Error> {
    serde_json::from_value(readable.clone()).map(judge)
}

fn metrics(spec: &AnalysisTemplateSpec) -> Vec<Problem> {
    // A template that includes others may have no metrics of its own.
    let mut problems = if spec.templates.is_empty() || !spec.metrics.is_empty() {
        validate::problems(&spec.metrics, "spec.metrics")
    } else {
        Vec::new()
    };
    problems.extend(judge::problems(&spec.metrics, "spec.metrics"));
    problems
}

/// The analyses of a rollout with their paths.
pub(super) fn analyses(object: &RolloutPlugin) -> Vec<(String, Span, Analysis)> {
    let Some(canary) = &object.spec.strategy.canary else {
        return Vec::new();
    };
    let beside = canary.analysis.iter().map(|beside| {
        let path = "spec.strategy.canary.analysis".to_owned();
        (path, Span::Background, beside.analysis.clone())
    });
    let of_steps = canary.steps.iter().enumerate().filter_map(|(index, step)| {
        let path = format!("spec.strategy.canary.steps[{index}].analysis");
        Some((path, Span::Step, step.analysis.clone()?))
    });
    beside.chain(of_steps).collect()
}

fn rollout(object: &RolloutPlugin, value: &Value, known: &Known) -> Vec<Problem> {
    let mut problems = object.problems();
    for (path, span, analysis) in analyses(object) {
        if is_complete(&analysis, known) {
            problems.extend(template::problems(&analysis, &path, span, known, &|| {
                value.clone()
            }));
        }
    }
    problems
}

/// Whether all templates of an analysis are in the files. Missing ones may be in the cluster, so they cannot be checked.
pub(super) fn is_complete(analysis: &Analysis, known: &Known) -> bool {
    let mut templates = analysis.templates.iter();
    templates.all(|template| has_all(known, template, 0))
}

/// Whether a template and all that it includes are in the files.
fn has_all(known: &Known, template: &TemplateRef, depth: usize) -> bool {
    const DEEPEST: usize = 16;
    known.find(template).is_some_and(|found| {
        depth > DEEPEST
            || found
                .templates
                .iter()
                .all(|inner| has_all(known, inner, depth + 1))
    })
}
