//! Validates metadata on creation and update.

use crate::json::Value;

use super::selector;
use crate::builtin::fields::{entries, flag, has, int, items, text};
use crate::builtin::problems::{At, IMMUTABLE, NEGATIVE, Problems, in_order};
use crate::names;

/// The limit for all annotations of an object together, keys and values.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The naming rule of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    Subdomain,
    Label,
    /// Any valid URL path segment.
    PathSegment,
}

impl NameRule {
    /// The rule of a kind.
    pub(crate) fn of(resource: &str) -> Self {
        match resource {
            "statefulsets.apps" | "services" | "namespaces" => Self::Label,
            resource if resource.ends_with(".rbac.authorization.k8s.io") => Self::PathSegment,
            "events" | "events.events.k8s.io" => Self::PathSegment,
            _ => Self::Subdomain,
        }
    }

    fn complaints(self, name: &str) -> Vec<String> {
        match self {
            Self::Subdomain => names::dns_subdomain(name),
            Self::Label => names::dns_label(name),
            Self::PathSegment => names::path_segment(name),
        }
    }

    fn complaints_about_prefix(self, prefix: &str) -> Vec<String> {
        match self {
            Self::PathSegment => names::path_segment_prefix(prefix),
            rule => rule.complaints(&names::mask_trailing_dash(prefix)),
        }
    }
}

/// The kinds whose finalizers must have a domain. Newer kinds lack that rule.
fn has_strict_finalizers(resource: &str) -> bool {
    !matches!(
        resource,
        "leases.coordination.k8s.io" | "customresourcedefinitions.apiextensions.k8s.io" | "events"
    )
}

/// Checks metadata by the kind's own rules: its name, and finalizers with a domain.
pub(crate) fn of_kind(resource: &str, object: &Value, problems: &mut Problems) {
    let metadata = &object["metadata"];
    validate(
        metadata,
        is_namespaced(resource, metadata),
        NameRule::of(resource),
        &Value::Null,
        problems,
    );
    if has_strict_finalizers(resource) {
        finalizer_domains(metadata, problems);
    }
}

/// Checks metadata by the rules for every kind. What is unchanged since `before` was valid then.
pub(crate) fn of_any(resource: &str, before: &Value, object: &Value, problems: &mut Problems) {
    let metadata = &object["metadata"];
    if is_as_stored(&before["metadata"], metadata) {
        return;
    }
    validate(
        metadata,
        is_namespaced(resource, metadata),
        NameRule::PathSegment,
        &before["metadata"],
        problems,
    );
}

/// Checks the metadata of a custom object: finalizers need no domain.
/// An unknown kind is namespaced if its object has a namespace.
pub(crate) fn of_custom(resource: &str, object: &Value, problems: &mut Problems) {
    let metadata = &object["metadata"];
    validate(
        metadata,
        is_namespaced(resource, metadata),
        NameRule::Subdomain,
        &Value::Null,
        problems,
    );
}

fn is_namespaced(resource: &str, metadata: &Value) -> bool {
    !crate::builtin::metadata::is_cluster_scoped(resource)
        && (!text(metadata, "namespace").is_empty() || crate::builtin::is_known(resource))
}

fn validate(metadata: &Value, namespaced: bool, rule: NameRule, before: &Value, problems: &mut Problems) {
    let at = At::new("metadata");
    let (name, prefix) = (text(metadata, "name"), text(metadata, "generateName"));
    if !prefix.is_empty() {
        problems.invalid_for(
            &at.field("generateName"),
            prefix,
            rule.complaints_about_prefix(prefix),
        );
    }
    if name.is_empty() {
        problems.required(&at.field("name"), "name or generateName is required");
    } else {
        problems.invalid_for(&at.field("name"), name, rule.complaints(name));
    }
    let namespace = text(metadata, "namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => problems.required(&at.field("namespace"), ""),
        (true, false) => problems.invalid_for(&at.field("namespace"), namespace, names::dns_label(namespace)),
        (false, false) => problems.forbidden(&at.field("namespace"), "not allowed on this type"),
        (false, true) => {}
    }
    if let Some(generation) = int(metadata, "generation").filter(|generation| *generation < 0) {
        problems.invalid(&at.field("generation"), generation, NEGATIVE);
    }
    changed_labels(&at, before, metadata, problems);
    annotations(&at.field("annotations"), metadata, problems);
    changed_owners(&at, before, metadata, problems);
    finalizers(&at.field("finalizers"), metadata, problems);
}

/// Checks the annotations of an object or of a template.
pub(crate) fn annotations(at: &At, metadata: &Value, problems: &mut Problems) {
    let mut size = 0;
    for (key, value) in entries(metadata, "annotations") {
        problems.invalid_for(at, key, names::qualified_name(&key.to_lowercase()));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_LIMIT {
        problems.too_long(at, ANNOTATIONS_LIMIT);
    }
}

fn owners(at: &At, metadata: &Value, problems: &mut Problems) {
    let mut controller: Option<String> = None;
    for owner in items(metadata, "ownerReferences") {
        let (group, version) = match text(owner, "apiVersion").split_once('/') {
            Some((group, version)) if !version.contains('/') => (group, version),
            Some(_) => ("", ""),
            None => ("", text(owner, "apiVersion")),
        };
        if version.is_empty() {
            problems.invalid(
                &at.field("apiVersion"),
                text(owner, "apiVersion"),
                "version must not be empty",
            );
        }
        for name in ["kind", "name", "uid"] {
            if text(owner, name).is_empty() {
                problems.invalid(&at.field(name), "", "must not be empty");
            }
        }
        let kind = text(owner, "kind");
        if (group, version, kind) == ("", "v1", "Event") {
            problems.invalid_as(
                at,
                &in_order(owner),
                "/v1, Kind=Event is disallowed from being an owner",
            );
        }
        if !flag(owner, "controller") {
            continue;
        }
        let this = format!("{kind}/{}", text(owner, "name"));
        match &controller {
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                );
                problems.invalid_as(at, &in_order(&metadata["ownerReferences"]), &detail);
            }
            None => controller = Some(this),
        }
    }
}

fn finalizers(at: &At, metadata: &Value, problems: &mut Problems) {
    let all: Vec<_> = items(metadata, "finalizers")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for finalizer in &all {
        problems.invalid_for(at, finalizer, names::qualified_name(finalizer));
    }
    if all.contains(&ORPHAN) && all.contains(&FOREGROUND) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        problems.invalid(at, metadata["finalizers"].clone(), &detail);
    }
}

fn finalizer_domains(metadata: &Value, problems: &mut Problems) {
    let at = At::new("metadata.finalizers");
    for (index, finalizer) in items(metadata, "finalizers")
        .iter()
        .filter_map(Value::as_str)
        .enumerate()
    {
        finalizer_domain(&at.index(index), finalizer, problems);
    }
}

/// A finalizer is one of the server's own or has a domain.
pub(crate) fn finalizer_domain(at: &At, finalizer: &str, problems: &mut Problems) {
    if !finalizer.contains('/') && !["kubernetes", ORPHAN, FOREGROUND].contains(&finalizer) {
        problems.invalid(
            at,
            finalizer,
            "name is neither a standard finalizer name nor is it fully qualified",
        );
    }
}

/// Checks an update of metadata by the kind's own rules.
pub(crate) fn update_of_kind(resource: &str, old: &Value, new: &Value, problems: &mut Problems) {
    update_of_any(old, new, problems);
    if has_strict_finalizers(resource) && !is_as_stored(&old["metadata"], &new["metadata"]) {
        finalizer_domains(&new["metadata"], problems);
    }
}

/// Whether metadata equals the stored one, which was valid.
fn is_as_stored(before: &Value, after: &Value) -> bool {
    after.is_object() && before.shares(after)
}

/// Checks an update of metadata by the rules for every kind.
pub(crate) fn update_of_any(old: &Value, new: &Value, problems: &mut Problems) {
    let at = At::new("metadata");
    let (before, after) = (&old["metadata"], &new["metadata"]);
    if is_as_stored(before, after) {
        return;
    }
    if has(before, "deletionTimestamp") {
        new_finalizers(&at, before, after, problems);
    }
    if text(after, "resourceVersion").is_empty() {
        problems.invalid(
            &at.field("resourceVersion"),
            "",
            "must be specified for an update",
        );
    }
    for name in ["name", "namespace", "uid"] {
        if text(before, name) != text(after, name) {
            problems.invalid(&at.field(name), text(after, name), IMMUTABLE);
        }
    }
    for name in [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        if before[name] != after[name] {
            problems.invalid(&at.field(name), after[name].clone(), IMMUTABLE);
        }
    }
    changed_labels(&at, before, after, problems);
    annotations(&at.field("annotations"), after, problems);
    changed_owners(&at, before, after, problems);
}

fn changed_labels(at: &At, before: &Value, after: &Value, problems: &mut Problems) {
    if before["labels"] != after["labels"] {
        selector::labels(&at.field("labels"), &after["labels"], problems);
    }
}

fn changed_owners(at: &At, before: &Value, after: &Value, problems: &mut Problems) {
    if before["ownerReferences"] != after["ownerReferences"] {
        owners(&at.field("ownerReferences"), after, problems);
    }
}

/// An object that is being deleted takes no new finalizers.
fn new_finalizers(at: &At, before: &Value, after: &Value, problems: &mut Problems) {
    let known = items(before, "finalizers");
    let mut added: Vec<_> = items(after, "finalizers")
        .iter()
        .filter(|it| !known.contains(it))
        .filter_map(Value::as_str)
        .collect();
    added.sort_unstable();
    added.dedup();
    if !added.is_empty() {
        let list: Vec<_> = added.iter().map(|finalizer| format!("{finalizer:?}")).collect();
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            list.join(", ")
        );
        problems.forbidden(&at.field("finalizers"), &detail);
    }
}
