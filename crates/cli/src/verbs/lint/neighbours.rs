//! References between the objects of the files. A missing object may be in the cluster, so it is only a note.

use serde_json::Value;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_core::analysis::template::Templates;

use super::near::nearest;
use super::object::{Known, analyses};
use super::{Document, Finding, Severity};

/// The findings for a document among the others.
pub(super) fn findings(document: &Document, all: &[Document], known: &Known) -> Vec<Finding> {
    match document.text("/kind") {
        "RolloutPlugin" => {
            let mut found = workload(document, all, "spec.workloadRef.name", "/spec/workloadRef/name");
            found.extend(templates(document, known));
            found
        }
        "PhasedRollout" => workload(document, all, "spec.targetRef", "/spec/targetRef"),
        "StatefulSet" if is_a_set(document) => set(document, all),
        _ => Vec::new(),
    }
}

/// Whether it is a StatefulSet of apps/v1: other groups have that kind too.
fn is_a_set(document: &Document) -> bool {
    document.text("/kind") == "StatefulSet" && document.text("/apiVersion") == "apps/v1"
}

fn is_beside(one: &Document, other: &Document) -> bool {
    let (one, other) = (one.text("/metadata/namespace"), other.text("/metadata/namespace"));
    one == other || one.is_empty() || other.is_empty()
}

/// The name of the StatefulSet of a rollout; empty for other kinds.
fn rolled(document: &Document) -> &str {
    match document.text("/kind") {
        "RolloutPlugin" => document.text("/spec/workloadRef/name"),
        "PhasedRollout" => document.text("/spec/targetRef"),
        _ => "",
    }
}

/// The findings for the StatefulSet that a rollout refers to.
fn workload(document: &Document, all: &[Document], field: &str, pointer: &str) -> Vec<Finding> {
    let name = document.text(pointer);
    if name.is_empty() {
        return Vec::new();
    }
    let sets = all
        .iter()
        .filter(|other| is_a_set(other) && is_beside(document, other));
    let names: Vec<_> = sets.map(|set| set.text("/metadata/name")).collect();
    let mut found = Vec::new();
    if !names.contains(&name) {
        found.push(document.finding(Severity::Note, field, absent("StatefulSet", name, names)));
    }
    let rival = all.iter().find(|other| {
        // The same object in another file is another version of it.
        let itself = ["/kind", "/metadata/name"]
            .iter()
            .all(|at| other.text(at) == document.text(at));
        !itself && rolled(other) == name && is_beside(document, other)
    });
    if let Some(rival) = rival {
        let message = format!(
            "StatefulSet {name} is meant by {} {} too; only one of them can have it",
            rival.text("/kind"),
            rival.text("/metadata/name")
        );
        found.push(document.finding(Severity::Error, field, message));
    }
    found
}

fn absent<'n>(kind: &str, name: &str, there: impl IntoIterator<Item = &'n str>) -> String {
    let hint = nearest(name, there).map_or_else(String::new, |near| format!("; did you mean {near}"));
    format!("{kind} {name} is in none of the files{hint}")
}

/// The findings for the templates that a rollout refers to.
fn templates(document: &Document, known: &Known) -> Vec<Finding> {
    let Ok(object) = serde_json::from_value::<RolloutPlugin>(document.checked.readable.clone()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (path, _, analysis) in analyses(&object) {
        for (index, template) in analysis.templates.iter().enumerate() {
            if template.template_name.is_empty() || known.find(template).is_some() {
                continue;
            }
            let kind = if template.cluster_scope {
                "ClusterAnalysisTemplate"
            } else {
                "AnalysisTemplate"
            };
            let there = known
                .keys()
                .filter(|(of_all, _)| *of_all == template.cluster_scope);
            let message = absent(
                kind,
                &template.template_name,
                there.map(|(_, name)| name.as_str()),
            );
            let field = format!("{path}.templates[{index}].templateName");
            found.push(document.finding(Severity::Note, &field, message));
        }
    }
    found
}

/// What prevents a StatefulSet from being rolled out by a rollout in the files.
fn set(document: &Document, all: &[Document]) -> Vec<Finding> {
    let name = document.text("/metadata/name");
    let rollout = all
        .iter()
        .find(|other| rolled(other) == name && is_beside(document, other));
    let Some(rollout) = rollout.filter(|_| !name.is_empty()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let strategy = document.text("/spec/updateStrategy/type");
    if !strategy.is_empty() && strategy != "RollingUpdate" {
        let message = format!("{strategy} cannot be rolled in steps; only RollingUpdate can");
        found.push(document.finding(Severity::Error, "spec.updateStrategy.type", message));
    }
    let field = "spec.updateStrategy.rollingUpdate.partition";
    let partition = document
        .value
        .pointer("/spec/updateStrategy/rollingUpdate/partition");
    if let Some(partition) = partition.filter(|partition| !partition.is_null())
        && !is_left_to_kubernetes(rollout)
    {
        let message = format!(
            "{} {} sets the partition of this StatefulSet; a Git tool that keeps applying {partition} fights the operator and can \
             release pods that no step has released; leave this field out of the manifest",
            rollout.text("/kind"),
            rollout.text("/metadata/name"),
        );
        found.push(document.finding(Severity::Warning, field, message));
    }
    let replicas = document.value.pointer("/spec/replicas").and_then(Value::as_i64);
    if replicas == Some(0) {
        let message = "0: without pods a new version is adopted without steps";
        found.push(document.finding(Severity::Warning, "spec.replicas", message));
    }
    found
}

/// Whether a rollout leaves its StatefulSet to Kubernetes, by the field or its alias.
pub(super) fn is_left_to_kubernetes(rollout: &Document) -> bool {
    let is_true = |field: &str| rollout.value["spec"][field] == true;
    rollout.text("/kind") == "PhasedRollout" && (is_true("skipCheck") || is_true("standardRollingUpdate"))
}
