//! What is wrong with an object: by its schema, and by what the operator says of its spec.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use stateward_api::Problem;
use stateward_api::analysis::{
    AnalysisRun, AnalysisTemplate, AnalysisTemplateSpec, ClusterAnalysisTemplate, TemplateRef, validate,
};
use stateward_api::phasedrollout::PhasedRollout;
use stateward_api::rolloutplugin::{Analysis, RolloutPlugin};
use stateward_core::analysis::judge;
use stateward_core::analysis::template::{self, Span, Templates};

/// Every template of the files, by whether it is for the whole cluster, and name.
pub(super) type Known = BTreeMap<(bool, String), AnalysisTemplateSpec>;

/// The definition of a kind, if it is one of ours.
pub(super) fn definition(kind: &str) -> Option<CustomResourceDefinition> {
    let mut definitions = stateward_api::definitions().into_iter();
    definitions.find(|definition| definition.spec.names.kind == kind)
}

/// What is wrong with a kind that nobody serves but that was meant to be one of ours: the group is ours alone, or it is written
/// almost as one of ours is.
pub(super) fn misspelt(value: &Value) -> Option<Problem> {
    let (group, _) = value["apiVersion"].as_str()?.split_once('/')?;
    let kind = value["kind"].as_str()?;
    let definitions = stateward_api::definitions();
    let of_the_group: Vec<_> = definitions
        .iter()
        .filter(|definition| definition.spec.group == group)
        .map(|definition| definition.spec.names.kind.as_str())
        .collect();
    let closest = of_the_group.iter().min_by_key(|known| distance(kind, known))?;
    let alike = distance(kind, closest) <= ALIKE;
    // Argo Rollouts and others have kinds of their own in the group that they share with us.
    (alike || group == OURS_ALONE).then(|| Problem {
        field: "kind".into(),
        message: format!("{kind} is no kind of {group}; {closest} is"),
    })
}

/// In this group there is nobody but us.
const OURS_ALONE: &str = "sts.plus";

/// A kind that differs in no more letters is misspelt. `Rollout` and `Experiment` are not.
const ALIKE: usize = 2;

/// How many letters have to be changed, left out or put in; large and small ones are the same.
fn distance(one: &str, other: &str) -> usize {
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<_>>();
    let (one, other) = (letters(one), letters(other));
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.iter().enumerate() {
        let mut before = std::mem::replace(&mut row[0], index + 1);
        for (at, known) in other.iter().enumerate() {
            let changed = before + usize::from(letter != known);
            before = row[at + 1];
            row[at + 1] = changed.min(before + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

/// Everything that is wrong with an object of ours.
pub(super) fn problems(definition: &CustomResourceDefinition, value: &Value, known: &Known) -> Vec<Problem> {
    let spec = &definition.spec;
    let Some(version) = spec.versions.first() else {
        return Vec::new();
    };
    let wanted = format!("{}/{}", spec.group, version.name);
    if value["apiVersion"] != wanted.as_str() {
        return vec![Problem {
            field: "apiVersion".into(),
            message: format!("{} is not {wanted}", value["apiVersion"]),
        }];
    }
    let mut problems = Vec::new();
    let named = ["name", "generateName"]
        .iter()
        .any(|name| value["metadata"][name].is_string());
    if !named {
        problems.push(Problem {
            field: "metadata.name".into(),
            message: "is missing".into(),
        });
    }
    let schema = version
        .schema
        .as_ref()
        .and_then(|schema| schema.open_api_v3_schema.as_ref());
    let schema = schema
        .and_then(|schema| serde_json::to_value(schema).ok())
        .unwrap_or_default();
    let by_schema = super::schema::problems(&schema, value);
    let by_operator = match spec.names.kind.as_str() {
        "RolloutPlugin" => judged(value, |object: RolloutPlugin| rollout(&object, value, known)),
        "PhasedRollout" => judged(value, |object: PhasedRollout| object.problems()),
        "AnalysisTemplate" => judged(value, |object: AnalysisTemplate| metrics(&object.spec)),
        "ClusterAnalysisTemplate" => judged(value, |object: ClusterAnalysisTemplate| metrics(&object.spec.0)),
        "AnalysisRun" => judged(value, |object: AnalysisRun| {
            template::filled(&object.spec).err().unwrap_or_default()
        }),
        _ => Ok(Vec::new()),
    };
    match by_operator {
        // The operator's words where both have some.
        Ok(told) => {
            let silent = |problem: &Problem| told.iter().all(|told| told.field != problem.field);
            problems.extend(by_schema.into_iter().filter(silent));
            problems.extend(told);
        }
        Err(_) if !by_schema.is_empty() => problems.extend(by_schema),
        Err(why) => problems.push(Problem {
            field: "spec".into(),
            message: format!("cannot be read: {why}"),
        }),
    }
    problems
}

fn judged<K: DeserializeOwned>(
    value: &Value,
    judge: impl FnOnce(K) -> Vec<Problem>,
) -> Result<Vec<Problem>, serde_json::Error> {
    // Without its status: that is for the server to say.
    let mut value = value.clone();
    if let Value::Object(fields) = &mut value {
        fields.remove("status");
        let metadata = fields
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        // What is no text there is told by itself, and no reason not to read the rest.
        for texts in ["labels", "annotations"] {
            if let Some(texts) = metadata.get_mut(texts).and_then(Value::as_object_mut) {
                texts.retain(|_, text| text.is_string());
            }
        }
    }
    serde_json::from_value(value).map(judge)
}

fn metrics(spec: &AnalysisTemplateSpec) -> Vec<Problem> {
    // One that takes in others may have none of its own.
    let mut problems = if spec.templates.is_empty() || !spec.metrics.is_empty() {
        validate::problems(&spec.metrics, "spec.metrics")
    } else {
        Vec::new()
    };
    problems.extend(judge::problems(&spec.metrics, "spec.metrics"));
    problems
}

/// The analyses of a rollout and where they stand.
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
        // What is not in the files may well be in the cluster, and nothing can be said of it.
        if analysis
            .templates
            .iter()
            .all(|template| has_all(known, template, 0))
        {
            problems.extend(template::problems(&analysis, &path, span, known, &|| {
                value.clone()
            }));
        }
    }
    problems
}

/// Whether a template and all that it takes in are in the files.
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

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(
        "argoproj.io/v1alpha1",
        "RolloutPlugins",
        Some("RolloutPlugins is no kind of argoproj.io; RolloutPlugin is")
    )]
    #[case(
        "argoproj.io/v1alpha1",
        "rolloutplugin",
        Some("rolloutplugin is no kind of argoproj.io; RolloutPlugin is")
    )]
    #[case(
        "argoproj.io/v1alpha1",
        "AnalysisTemplat",
        Some("AnalysisTemplat is no kind of argoproj.io; AnalysisTemplate is")
    )]
    #[case(
        "sts.plus/v1alpha1",
        "Rollout",
        Some("Rollout is no kind of sts.plus; PhasedRollout is")
    )]
    #[case("argoproj.io/v1alpha1", "Rollout", None)]
    #[case("argoproj.io/v1alpha1", "Application", None)]
    #[case("argoproj.io/v1alpha1", "Experiment", None)]
    #[case("apps/v1", "RolloutPlugins", None)]
    #[case("v1", "Service", None)]
    fn a_kind_that_was_meant_to_be_ours_is_told(
        #[case] version: &str,
        #[case] kind: &str,
        #[case] expected: Option<&str>,
    ) {
        let found = misspelt(&json!({"apiVersion": version, "kind": kind}));
        assert_eq!(found.map(|problem| problem.message).as_deref(), expected);
    }
}
