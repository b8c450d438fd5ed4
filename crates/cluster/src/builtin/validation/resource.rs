//! Validates requests and limits.

use crate::json::Value;

use crate::builtin::fields::{entries, has, items, text};
use crate::builtin::problems::{At, NEGATIVE, Problems};
use crate::names;
use stateward_schema::Quantity;

/// The native resources of a container.
const CONTAINER: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Native resource names, including those for quotas.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Without a domain, or with a Kubernetes domain.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// With another domain, and short enough for the prefix that quotas add.
fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Native resources can be overcommitted, except huge pages.
fn is_overcommitted(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Checks the resources of a container.
pub(crate) fn validate(at: &At, resources: &Value, claims: &[Value], problems: &mut Problems) {
    let (limits, requests) = (at.field("limits"), at.field("requests"));
    for (name, limit) in entries(resources, "limits") {
        amount(&limits.key(name), name, limit, problems);
    }
    for (name, request) in entries(resources, "requests") {
        amount(&requests.key(name), name, request, problems);
        against_limit(&limits, &requests, name, request, resources, problems);
    }
    let named = |name: &str| {
        entries(resources, "limits")
            .chain(entries(resources, "requests"))
            .any(|(known, _)| known == name)
    };
    let huge = entries(resources, "limits")
        .chain(entries(resources, "requests"))
        .any(|(name, _)| is_huge_page(name));
    if huge && !named("cpu") && !named("memory") {
        problems.forbidden(at, "HugePages require cpu or memory");
    }
    for (index, claim) in items(resources, "claims").iter().enumerate() {
        let at = at.field("claims");
        let (at, name) = (at.index(index), text(claim, "name"));
        if name.is_empty() {
            problems.required(&at, "");
        } else if !claims.iter().any(|known| text(known, "name") == name) {
            problems.not_found(&at, name);
        }
    }
}

/// Checks pod-level resources, of which few are supported.
pub(crate) fn of_pod(at: &At, resources: &Value, problems: &mut Problems) {
    for list in ["limits", "requests"] {
        for (name, value) in entries(resources, list) {
            let at = at.field(list);
            let at = at.key(name);
            if !["cpu", "memory"].contains(&name) && !is_huge_page(name) {
                problems.not_supported(&at, name, &["cpu", "hugepages-", "memory"]);
            }
            quantity(&at, name, value, problems);
        }
    }
    for (name, request) in entries(resources, "requests") {
        against_limit(
            &at.field("limits"),
            &at.field("requests"),
            name,
            request,
            resources,
            problems,
        );
    }
}

fn amount(at: &At, name: &str, amount: &Value, problems: &mut Problems) {
    resource_name(at, name, problems);
    quantity(at, name, amount, problems);
    let worth = Quantity::of(amount.as_str());
    if is_huge_page(name) && !worth.is_multiple_of(Quantity::of(Some(&name["hugepages-".len()..]))) {
        let shown = amount.as_str().unwrap_or_default();
        problems.invalid(
            at,
            shown,
            &format!("{shown} is not positive integer multiple of {name}"),
        );
    }
}

fn resource_name(at: &At, name: &str, problems: &mut Problems) {
    let complaints = names::qualified_name(name);
    let is_qualified = complaints.is_empty();
    problems.invalid_for(at, name, complaints);
    if name.contains('/') {
        if !is_native(name) && !is_extended(name) {
            problems.invalid(at, name, "doesn't follow extended resource name standard");
        }
        return;
    }
    if is_qualified && !STANDARD.contains(&name) && !is_huge_page(name.trim_start_matches("requests.")) {
        problems.invalid(at, name, "must be a standard resource type or fully qualified");
    }
    if !CONTAINER.contains(&name) && !is_huge_page(name) {
        problems.invalid(at, name, "must be a standard resource for containers");
    }
}

/// Checks a quantity: not negative, and whole if the resource is indivisible.
pub(crate) fn quantity(at: &At, name: &str, amount: &Value, problems: &mut Problems) {
    let worth = Quantity::of(amount.as_str());
    if worth.is_negative() {
        problems.invalid(at, amount.clone(), NEGATIVE);
    }
    if is_extended(name) && !worth.is_whole() {
        problems.invalid(at, amount.clone(), "must be an integer");
    }
}

fn against_limit(
    limits: &At,
    requests: &At,
    name: &str,
    request: &Value,
    resources: &Value,
    problems: &mut Problems,
) {
    let limit = &resources["limits"][name];
    if !has(&resources["limits"], name) {
        if !is_overcommitted(name) {
            problems.required(limits, "Limit must be set for non overcommitable resources");
        }
        return;
    }
    let (asked, most) = (Quantity::of(request.as_str()), Quantity::of(limit.as_str()));
    let shown = limit.as_str().unwrap_or_default();
    if asked != most && !is_overcommitted(name) {
        problems.invalid(
            requests,
            request.clone(),
            &format!("must be equal to {name} limit of {shown}"),
        );
    } else if asked > most {
        problems.invalid(
            requests,
            request.clone(),
            &format!("must be less than or equal to {name} limit of {shown}"),
        );
    }
}
