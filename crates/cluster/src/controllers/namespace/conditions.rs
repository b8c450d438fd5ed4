//! The conditions of a namespace that is being deleted.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::json::{Value, json};
use jiff::Timestamp;

use crate::access::ResourceInfo;
use crate::controllers::moment;
use crate::object;

/// The findings of one round of deletions.
#[derive(Default)]
pub(super) struct Findings {
    /// `configmaps. has 1 resource instances`, by resource.
    remaining: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
    errors: Vec<String>,
}

impl Findings {
    pub(super) fn note(&mut self, info: &ResourceInfo, left: &[Arc<Value>]) {
        if !left.is_empty() {
            // The core group's name is empty, and its dot stays.
            let dot = if info.resource.contains('.') { "" } else { "." };
            self.remaining
                .insert(format!("{}{dot}", info.resource), left.len());
        }
        for finalizer in left.iter().flat_map(|object| object::finalizers(object)) {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    pub(super) fn fail(&mut self, error: String) {
        self.errors.push(error);
    }

    pub(super) fn errors(&self) -> &[String] {
        &self.errors
    }

    pub(super) fn has_remaining(&self) -> bool {
        !self.remaining.is_empty()
    }
}

/// The five conditions: type, reason and message without problems.
const FINE: [(&str, &str, &str); 5] = [
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    (
        "NamespaceContentRemaining",
        "ContentRemoved",
        "All content successfully removed",
    ),
    (
        "NamespaceFinalizersRemaining",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
];

pub(super) struct Conditions(Vec<Value>);

impl Conditions {
    pub(super) fn read(namespace: &Value) -> Self {
        Self(
            namespace["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default(),
        )
    }

    pub(super) fn to_value(&self) -> Value {
        self.0.clone().into()
    }

    /// Returns whether anything changed. While pods remain the totals are not updated: the other resources were not listed.
    pub(super) fn update(&mut self, findings: &Findings, only_pods: bool, now: Timestamp) -> bool {
        let mut changed = false;
        for (kind, reason, message) in FINE {
            let trouble = trouble(kind, findings, only_pods);
            let (status, reason, message) = match &trouble {
                Some((reason, message)) => ("True", *reason, message.as_str()),
                None => ("False", reason, message),
            };
            changed |= self.set(kind, status, reason, message, now);
        }
        changed
    }

    fn set(&mut self, kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> bool {
        let mut new = json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": moment::shown(now),
        });
        let Some(old) = self.0.iter_mut().find(|condition| condition["type"] == kind) else {
            self.0.push(new);
            return true;
        };
        if old["status"] == status {
            new["lastTransitionTime"] = old["lastTransitionTime"].clone();
        }
        let changed = *old != new;
        *old = new;
        changed
    }
}

fn trouble(kind: &str, findings: &Findings, only_pods: bool) -> Option<(&'static str, String)> {
    let Findings {
        remaining,
        finalizers,
        errors,
    } = findings;
    match kind {
        "NamespaceDeletionContentFailure" if !errors.is_empty() => {
            let mut errors = errors.clone();
            errors.sort_unstable();
            let (count, errors) = (errors.len(), errors.join(", "));
            let message = format!("Failed to delete all resource types, {count} remaining: {errors}");
            Some(("ContentDeletionFailed", message))
        }
        "NamespaceContentRemaining" if !only_pods && !remaining.is_empty() => {
            let list = sentences(remaining, |resource, count| {
                format!("{resource} has {count} resource instances")
            });
            Some((
                "SomeResourcesRemain",
                format!("Some resources are remaining: {list}"),
            ))
        }
        "NamespaceFinalizersRemaining" if !only_pods && !finalizers.is_empty() => {
            let list = sentences(finalizers, |finalizer, count| {
                format!("{finalizer} in {count} resource instances")
            });
            Some((
                "SomeFinalizersRemain",
                format!("Some content in the namespace has finalizers remaining: {list}"),
            ))
        }
        _ => None,
    }
}

fn sentences(counts: &BTreeMap<String, usize>, sentence: impl Fn(&str, usize) -> String) -> String {
    let mut sentences: Vec<_> = counts
        .iter()
        .map(|(name, count)| sentence(name, *count))
        .collect();
    sentences.sort_unstable();
    sentences.join(", ")
}
