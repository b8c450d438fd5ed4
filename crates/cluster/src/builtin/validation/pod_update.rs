//! Validates updates of a pod and of its status.

use crate::json::Value;

use super::metadata;
use super::pod;
use super::scheduling::tolerations;
use crate::builtin::Endpoint;
use crate::builtin::fields::{copy, entries, has, int, items, same, set, text};
use crate::builtin::problems::{At, IMMUTABLE, Problems};
use crate::names;

/// Upstream's message, without the diff of Go structs that it appends.
const OTHER_FIELDS: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Checks a changed pod.
pub(crate) fn update(old: &Value, new: &Value, endpoint: Endpoint, problems: &mut Problems) {
    metadata::update_of_kind("pods", old, new, problems);
    if endpoint == Endpoint::Status {
        annotation_changes(old, new, problems);
        return status(old, new, problems);
    }
    pod::metadata_and_spec(new, problems);
    annotation_changes(old, new, problems);
    spec(&old["spec"], &new["spec"], problems);
}

fn annotation_changes(old: &Value, new: &Value, problems: &mut Problems) {
    const MIRROR: &str = "kubernetes.io/config.mirror";
    let at = At::new("metadata.annotations");
    let of = |object: &Value| object["metadata"]["annotations"][MIRROR].clone();
    match (of(old), of(new)) {
        (before, after) if before == after => {}
        (Value::Null, _) => problems.forbidden(&at.key(MIRROR), "may not add mirror pod annotation"),
        _ => problems.forbidden(&at.key(MIRROR), "may not remove or update mirror pod annotation"),
    }
    pod::annotations(&at, &new["metadata"], &new["spec"], problems);
}

fn spec(old: &Value, new: &Value, problems: &mut Problems) {
    let at = At::new("spec");
    for list in ["containers", "initContainers"] {
        if items(old, list).len() != items(new, list).len() {
            return problems.forbidden(&at.field(list), "pod updates may not add or remove containers");
        }
        for (index, container) in items(new, list).iter().enumerate() {
            let at = at.field(list);
            let at = at.index(index);
            let (at, image) = (at.field("image"), text(container, "image"));
            if image.is_empty() {
                problems.required(&at, "");
            }
            if image.trim() != image {
                problems.invalid(&at, image, "must not have leading or trailing whitespace");
            }
        }
    }
    let deadline = at.field("activeDeadlineSeconds");
    match (
        int(old, "activeDeadlineSeconds"),
        int(new, "activeDeadlineSeconds"),
    ) {
        (before, Some(after)) => {
            if !pod::deadline_range(&deadline, after, problems) {
                return;
            }
            if before.is_some_and(|before| before < after) {
                return problems.invalid(&deadline, after, "must be less than or equal to previous value");
            }
        }
        (Some(_), None) => {
            problems.invalid(
                &deadline,
                Value::Null,
                "must not update from a positive integer to nil value",
            );
        }
        (None, None) => {}
    }
    only_added_tolerations(&at.field("tolerations"), old, new, problems);
    only_removed_gates(&at.field("schedulingGates"), old, new, problems);
    only_added_node_labels(&at.field("nodeSelector"), old, new, problems);
    if !same(old, &with_allowed_changes_undone(old, new)) {
        problems.forbidden(&at, OTHER_FIELDS);
    }
}

fn only_added_tolerations(at: &At, old: &Value, new: &Value, problems: &mut Problems) {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        crate::builtin::fields::unset(&mut toleration, "tolerationSeconds");
        toleration
    };
    let kept: Vec<_> = items(new, "tolerations").iter().map(without_seconds).collect();
    if items(old, "tolerations")
        .iter()
        .any(|toleration| !kept.contains(&without_seconds(toleration)))
    {
        return problems.forbidden(
            at,
            "existing toleration can not be modified except its tolerationSeconds",
        );
    }
    tolerations(at, new, problems);
}

fn only_removed_gates(at: &At, old: &Value, new: &Value, problems: &mut Problems) {
    for (index, gate) in items(new, "schedulingGates").iter().enumerate() {
        if !items(old, "schedulingGates").contains(gate) {
            let detail = format!(
                "only deletion is allowed, but found new scheduling gate '{}'",
                text(gate, "name")
            );
            problems.forbidden(&at.index(index).field("name"), &detail);
        }
    }
}

/// The new spec with every allowed change undone, so that any remaining difference is an error.
fn with_allowed_changes_undone(old: &Value, new: &Value) -> Value {
    let mut spec = new.clone();
    for list in ["containers", "initContainers"] {
        for (container, before) in crate::builtin::fields::each(&mut spec, list).zip(items(old, list)) {
            copy(before, container, "image");
        }
    }
    for name in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        copy(old, &mut spec, name);
    }
    if int(old, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0)
        && int(new, "terminationGracePeriodSeconds") == Some(1)
    {
        copy(old, &mut spec, "terminationGracePeriodSeconds");
    }
    if is_gated(old) {
        copy(old, &mut spec, "nodeSelector");
    }
    spec
}

/// A gated pod's node constraints may still be narrowed.
fn is_gated(old: &Value) -> bool {
    !items(old, "schedulingGates").is_empty()
}

fn only_added_node_labels(at: &At, old: &Value, new: &Value, problems: &mut Problems) {
    let kept = |(key, value): (&str, &Value)| new["nodeSelector"].get(key) == Some(value);
    if is_gated(old) && !entries(old, "nodeSelector").all(kept) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        problems.invalid(at, new["nodeSelector"].clone(), detail);
    }
}

fn status(old: &Value, new: &Value, problems: &mut Problems) {
    let at = At::new("status");
    let (before, after) = (&old["status"], &new["status"]);
    let all_at = at.field("conditions");
    for (index, condition) in items(after, "conditions").iter().enumerate() {
        let (at, kind) = (all_at.index(index), text(condition, "type"));
        if let Some(generation) = int(condition, "observedGeneration").filter(|generation| *generation < 0) {
            problems.invalid(
                &at.field("observedGeneration"),
                generation,
                "must be a non-negative integer",
            );
        }
        if !["PodScheduled", "Ready", "Initialized"].contains(&kind) {
            let faults = names::qualified_name(kind);
            if !faults.is_empty() {
                problems.invalid_for(&at.field("Type"), kind, faults);
            }
        }
    }
    nominated_node(&at, old, after, problems);
    if let Some(generation) = int(after, "observedGeneration").filter(|generation| *generation < 0) {
        problems.invalid(
            &at.field("observedGeneration"),
            generation,
            "must be a non-negative integer",
        );
    }
    if text(before, "qosClass") != text(after, "qosClass") {
        problems.invalid(&at.field("qosClass"), text(after, "qosClass"), IMMUTABLE);
    }
    for (list, containers) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
    ] {
        terminated_stays(
            &at,
            before,
            after,
            list,
            items(&old["spec"], containers),
            &old["spec"],
            problems,
        );
    }
    addresses(&at, before, after, problems);
}

fn nominated_node(at: &At, old: &Value, after: &Value, problems: &mut Problems) {
    let (before, name) = (
        text(&old["status"], "nominatedNodeName"),
        text(after, "nominatedNodeName"),
    );
    if name.is_empty() || name == before {
        return;
    }
    let at = at.field("nominatedNodeName");
    problems.invalid_for(&at, name, names::dns_subdomain(name));
    if !text(&old["spec"], "nodeName").is_empty() {
        problems.forbidden(&at, "may not be set on pods that are already bound to a node");
    }
}

/// A terminated container that must not restart stays terminated.
fn terminated_stays(
    at: &At,
    before: &Value,
    after: &Value,
    list: &str,
    containers: &[Value],
    spec: &Value,
    problems: &mut Problems,
) {
    for (index, old) in items(before, list)
        .iter()
        .enumerate()
        .filter(|(_, old)| has(&old["state"], "terminated"))
    {
        let name = text(old, "name");
        let Some(new) = items(after, list).iter().find(|new| text(new, "name") == name) else {
            continue;
        };
        if has(&new["state"], "terminated") {
            continue;
        }
        let code = int(&old["state"]["terminated"], "exitCode").unwrap_or_default();
        let container = containers
            .iter()
            .find(|container| text(container, "name") == name);
        if !container.is_some_and(|container| may_restart(container, spec, code)) {
            problems.forbidden(
                &at.field(list).index(index).field("state"),
                "may not be transitioned to non-terminated state",
            );
        }
    }
}

fn may_restart(container: &Value, spec: &Value, code: i64) -> bool {
    for rule in items(container, "restartPolicyRules") {
        let codes = &rule["exitCodes"];
        let listed = items(codes, "values").iter().any(|value| *value == code);
        let applies = if text(codes, "operator") == "In" {
            listed
        } else {
            !listed
        };
        if has(rule, "exitCodes") && applies {
            return true;
        }
    }
    let policy = match text(container, "restartPolicy") {
        "" => text(spec, "restartPolicy"),
        policy => policy,
    };
    policy == "Always" || (policy == "OnFailure" && code != 0)
}

fn addresses(at: &At, before: &Value, after: &Value, problems: &mut Problems) {
    for (list, name) in [("podIPs", "podIP"), ("hostIPs", "hostIP")] {
        let known = items(before, list);
        let all = items(after, list);
        let at = at.field(list);
        if list == "hostIPs" && !all.is_empty() && text(&all[0], "ip") != text(after, name) {
            problems.invalid(
                &at.index(0).field("ip"),
                text(&all[0], "ip"),
                "must be equal to `hostIP`",
            );
        }
        for (index, address) in all
            .iter()
            .enumerate()
            .filter(|(_, address)| !known.contains(address))
        {
            let address = text(address, "ip");
            problems.invalid_for(&at.index(index), address, names::address(address));
        }
        let is_v6 = |address: &Value| text(address, "ip").contains(':');
        if all.len() > 2 || (all.len() == 2 && is_v6(&all[0]) == is_v6(&all[1])) {
            let mut shown = Value::from(all.to_vec());
            for one in shown.as_array_mut().into_iter().flatten() {
                // The server prints its internal type here, whose field is upper case.
                let ip = one["ip"].clone();
                *one = crate::json::json!({});
                set(one, "IP", ip);
            }
            problems.invalid(&at, shown, "may specify no more than one IP for each IP family");
        }
    }
}
