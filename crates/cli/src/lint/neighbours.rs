//! What the objects of the files mean to each other. What is not in the files may be in the cluster, so that is only noted.

use serde_json::Value;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_core::analysis::template::Templates;

use super::object::{Known, analyses};
use super::{Document, Finding, Severity};

/// What there is to say about a document beside the others.
pub(super) fn findings(document: &Document, all: &[Document], known: &Known) -> Vec<Finding> {
    match document.text("/kind") {
        "RolloutPlugin" => {
            let mut told = workload(document, all, "spec.workloadRef.name", "/spec/workloadRef/name");
            told.extend(templates(document, known));
            told
        }
        "PhasedRollout" => workload(document, all, "spec.targetRef", "/spec/targetRef"),
        "StatefulSet" => set(document, all),
        _ => Vec::new(),
    }
}

fn is_beside(one: &Document, other: &Document) -> bool {
    let (one, other) = (one.text("/metadata/namespace"), other.text("/metadata/namespace"));
    one == other || one.is_empty() || other.is_empty()
}

/// The set that a rollout names.
fn workload(document: &Document, all: &[Document], field: &str, pointer: &str) -> Vec<Finding> {
    let name = document.text(pointer);
    if name.is_empty() {
        return Vec::new();
    }
    let mut sets = all.iter().filter(|other| other.text("/kind") == "StatefulSet");
    let mut told = Vec::new();
    if !sets.any(|set| set.text("/metadata/name") == name && is_beside(document, set)) {
        let message = format!("StatefulSet {name} is in none of the files");
        told.push(document.finding(Severity::Note, field, message));
    }
    let rival = all.iter().find(|other| {
        let theirs = match other.text("/kind") {
            "RolloutPlugin" => other.text("/spec/workloadRef/name"),
            "PhasedRollout" => other.text("/spec/targetRef"),
            _ => "",
        };
        // The same object in another file is another version of it.
        let itself = ["/kind", "/metadata/name"]
            .iter()
            .all(|at| other.text(at) == document.text(at));
        !itself && theirs == name && is_beside(document, other)
    });
    if let Some(rival) = rival {
        let message = format!(
            "StatefulSet {name} is meant by {} {} too; only one of them can have it",
            rival.text("/kind"),
            rival.text("/metadata/name")
        );
        told.push(document.finding(Severity::Error, field, message));
    }
    told
}

/// The templates that a rollout names.
fn templates(document: &Document, known: &Known) -> Vec<Finding> {
    let Ok(object) = serde_json::from_value::<RolloutPlugin>(document.value.clone()) else {
        return Vec::new();
    };
    let mut told = Vec::new();
    for (path, _, analysis) in analyses(&object) {
        for (index, template) in analysis.templates.iter().enumerate() {
            if known.find(template).is_none() {
                let kind = if template.cluster_scope {
                    "ClusterAnalysisTemplate"
                } else {
                    "AnalysisTemplate"
                };
                let message = format!("{kind} {} is in none of the files", template.template_name);
                let field = format!("{path}.templates[{index}].templateName");
                told.push(document.finding(Severity::Note, &field, message));
            }
        }
    }
    told
}

/// What keeps a set from being rolled, where a rollout of the files is for it.
fn set(document: &Document, all: &[Document]) -> Vec<Finding> {
    let name = document.text("/metadata/name");
    let ours = all.iter().any(|other| {
        let meant = match other.text("/kind") {
            "RolloutPlugin" => other.text("/spec/workloadRef/name"),
            "PhasedRollout" => other.text("/spec/targetRef"),
            _ => "",
        };
        meant == name && is_beside(document, other)
    });
    if !ours || name.is_empty() {
        return Vec::new();
    }
    let mut told = Vec::new();
    let strategy = document.text("/spec/updateStrategy/type");
    if !strategy.is_empty() && strategy != "RollingUpdate" {
        let message = format!("{strategy} cannot be rolled in steps; only RollingUpdate can");
        told.push(document.finding(Severity::Error, "spec.updateStrategy.type", message));
    }
    let partition = document
        .value
        .pointer("/spec/updateStrategy/rollingUpdate/partition");
    if partition.is_some() {
        let field = "spec.updateStrategy.rollingUpdate.partition";
        let message = "is the operator's while it has the set; whoever applies this again contends with it";
        told.push(document.finding(Severity::Warning, field, message));
    }
    let replicas = document.value.pointer("/spec/replicas").and_then(Value::as_i64);
    if replicas == Some(0) {
        let message = "0: without pods a new version is taken on without steps";
        told.push(document.finding(Severity::Warning, "spec.replicas", message));
    }
    told
}
