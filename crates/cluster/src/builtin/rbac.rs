//! Roles and their bindings.

use crate::json::Value;

use super::fields::{each, fill_text, items, made, same, text};
use super::problems::{At, Problems};
use super::validation;
use crate::names;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn default_binding(object: &mut Value) {
    if let Some(role) = made(object, "roleRef") {
        fill_text(role, "apiGroup", GROUP);
    }
    for subject in each(object, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            fill_text(subject, "apiGroup", GROUP);
        }
    }
}

/// Checks a Role, or a ClusterRole, which may also have URLs.
pub(super) fn validate_role(resource: &str, object: &Value, problems: &mut Problems) {
    validation::metadata::of_kind(resource, object, problems);
    let is_namespaced = resource.starts_with("roles.");
    for (index, rule) in items(object, "rules").iter().enumerate() {
        let at = At::new("rules");
        let at = at.index(index);
        if items(rule, "verbs").is_empty() {
            problems.required(&at.field("verbs"), "verbs must contain at least one value");
        }
        let urls = items(rule, "nonResourceURLs");
        if !urls.is_empty() {
            let others = ["apiGroups", "resources", "resourceNames"];
            let detail = if is_namespaced {
                "namespaced rules cannot apply to non-resource URLs"
            } else if others.iter().any(|name| !items(rule, name).is_empty()) {
                "rules cannot apply to both regular resources and non-resource URLs"
            } else {
                continue;
            };
            problems.invalid(&at.field("nonResourceURLs"), urls.to_vec(), detail);
            continue;
        }
        if items(rule, "apiGroups").is_empty() {
            problems.required(
                &at.field("apiGroups"),
                "resource rules must supply at least one api group",
            );
        }
        if items(rule, "resources").is_empty() {
            problems.required(
                &at.field("resources"),
                "resource rules must supply at least one resource",
            );
        }
    }
}

/// Checks a RoleBinding or a ClusterRoleBinding.
pub(super) fn validate_binding(resource: &str, object: &Value, problems: &mut Problems) {
    validation::metadata::of_kind(resource, object, problems);
    let (at, role) = (At::new("roleRef"), &object["roleRef"]);
    if text(role, "apiGroup") != GROUP {
        problems.not_supported(&at.field("apiGroup"), text(role, "apiGroup"), &[GROUP]);
    }
    let kinds: &[&str] = if resource.starts_with("rolebindings.") {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    if !kinds.contains(&text(role, "kind")) {
        problems.not_supported(&at.field("kind"), text(role, "kind"), kinds);
    }
    let name = text(role, "name");
    if name.is_empty() {
        problems.required(&at.field("name"), "");
    } else {
        problems.invalid_for(&at.field("name"), name, names::path_segment(name));
    }
    for (index, subject) in items(object, "subjects").iter().enumerate() {
        validate_subject(&At::new("subjects").index(index), subject, resource, problems);
    }
}

fn validate_subject(at: &At, subject: &Value, resource: &str, problems: &mut Problems) {
    let (kind, name, group) = (
        text(subject, "kind"),
        text(subject, "name"),
        text(subject, "apiGroup"),
    );
    if name.is_empty() {
        problems.required(&at.field("name"), "");
    }
    match kind {
        "ServiceAccount" => {
            if !name.is_empty() {
                problems.invalid_for(&at.field("name"), name, names::dns_subdomain(name));
            }
            if !group.is_empty() {
                problems.not_supported(&at.field("apiGroup"), group, &[""]);
            }
            if resource.starts_with("clusterrolebindings.") && text(subject, "namespace").is_empty() {
                problems.required(&at.field("namespace"), "");
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                problems.not_supported(&at.field("apiGroup"), group, &[GROUP]);
            }
        }
        other => problems.not_supported(&at.field("kind"), other, &["ServiceAccount", "User", "Group"]),
    }
}

pub(super) fn validate_binding_update(resource: &str, old: &Value, new: &Value, problems: &mut Problems) {
    validate_binding(resource, new, problems);
    validation::metadata::update_of_kind(resource, old, new, problems);
    if !same(&old["roleRef"], &new["roleRef"]) {
        let role = &new["roleRef"];
        // The server prints its internal type, whose fields are upper case.
        let shown = format!(
            "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
            role["apiGroup"], role["kind"], role["name"]
        );
        problems.invalid_as(&At::new("roleRef"), &shown, "cannot change roleRef");
    }
}
