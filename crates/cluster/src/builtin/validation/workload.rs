//! Validates Deployments, DaemonSets and ReplicaSets, and the counts of rolling updates.

use crate::json::Value;

use super::{metadata, pod, selector};
use crate::builtin::fields::{has, int, same, text};
use crate::builtin::problems::{At, IMMUTABLE, NEGATIVE, Problems, in_order};
use crate::names;

/// Checks a new workload of one of the three kinds.
pub(crate) fn create(resource: &str, object: &Value, problems: &mut Problems) {
    metadata::of_kind(resource, object, problems);
    spec(resource, &object["spec"], problems);
}

pub(crate) fn update(resource: &str, old: &Value, new: &Value, problems: &mut Problems) {
    metadata::update_of_kind(resource, old, new, problems);
    spec(resource, &new["spec"], problems);
    if !same(&old["spec"]["selector"], &new["spec"]["selector"]) {
        problems.invalid_as(
            &At::new("spec.selector"),
            &in_order(&new["spec"]["selector"]),
            IMMUTABLE,
        );
    }
}

fn spec(resource: &str, spec: &Value, problems: &mut Problems) {
    let at = At::new("spec");
    match resource {
        "deployments.apps" => {
            problems.non_negative(&at, spec, "replicas");
            selector_and_template(&at, spec, "deployment", "ReplicaSet", problems);
            deployment_strategy(&at.field("strategy"), &spec["strategy"], problems);
            problems.non_negative(&at, spec, "minReadySeconds");
            problems.non_negative(&at, spec, "revisionHistoryLimit");
            problems.non_negative(&at, spec, "progressDeadlineSeconds");
            let deadline = int(spec, "progressDeadlineSeconds");
            let ready = int(spec, "minReadySeconds").unwrap_or_default();
            if let Some(deadline) = deadline.filter(|deadline| *deadline <= ready) {
                problems.invalid(
                    &at.field("progressDeadlineSeconds"),
                    deadline,
                    "must be greater than minReadySeconds",
                );
            }
        }
        "daemonsets.apps" => {
            selector_and_template(&at, spec, "daemonset", "DaemonSet", problems);
            problems.non_negative(&at, spec, "minReadySeconds");
            daemon_strategy(&at.field("updateStrategy"), &spec["updateStrategy"], problems);
            problems.non_negative(&at, spec, "revisionHistoryLimit");
        }
        _ => {
            problems.non_negative(&at, spec, "replicas");
            problems.non_negative(&at, spec, "minReadySeconds");
            selector_and_template(&at, spec, "deployment", "ReplicaSet", problems);
        }
    }
}

fn selector_and_template(at: &At, spec: &Value, noun: &str, kind: &str, problems: &mut Problems) {
    let (at_selector, selector) = (at.field("selector"), &spec["selector"]);
    let empty = format!("empty selector is invalid for {noun}");
    if selector.is_object() {
        selector::validate(&at_selector, selector, problems);
        if kind != "DaemonSet" && selector::is_empty(selector) {
            problems.invalid_as(&at_selector, "{}", &empty);
        }
        if kind != "DaemonSet" && !selector::is_usable(selector) {
            return problems.invalid_as(&at_selector, &in_order(selector), "invalid label selector");
        }
    } else if kind != "DaemonSet" {
        // For a DaemonSet without a selector, upstream reports only the mismatch.
        problems.required(&at_selector, "");
    }
    if selector::is_usable(selector) {
        selector::of_template(at, spec, problems);
    }
    if kind == "DaemonSet" && selector.is_object() && selector::is_empty(selector) {
        problems.invalid_as(&at_selector, "{}", &empty);
    }
    let template = &spec["template"];
    let at = at.field("template");
    pod::template(&at, template, problems);
    if text(&template["spec"], "restartPolicy") != "Always" {
        let policy = text(&template["spec"], "restartPolicy");
        problems.not_supported(&at.field("spec.restartPolicy"), policy, &["Always"]);
    }
    if has(&template["spec"], "activeDeadlineSeconds") {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        problems.forbidden(&at.field("spec.activeDeadlineSeconds"), &detail);
    }
}

fn deployment_strategy(at: &At, strategy: &Value, problems: &mut Problems) {
    let rolling = &strategy["rollingUpdate"];
    let inner = at.field("rollingUpdate");
    match text(strategy, "type") {
        "Recreate" if rolling.is_object() => {
            problems.forbidden(&inner, "may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let (unavailable, surge) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
            count_or_percent(&inner.field("maxUnavailable"), unavailable, problems);
            count_or_percent(&inner.field("maxSurge"), surge, problems);
            if is_nothing(unavailable) && is_nothing(surge) {
                let detail = "may not be 0 when `maxSurge` is 0";
                problems.invalid(&inner.field("maxUnavailable"), unavailable.clone(), detail);
            }
            at_most_all(&inner.field("maxUnavailable"), unavailable, problems);
        }
        other => {
            let shown = format!(
                "{{\"Type\":{},\"RollingUpdate\":{}}}",
                Value::from(other),
                internal(rolling)
            );
            problems.not_supported_as(at, &shown, &["Recreate", "RollingUpdate"]);
        }
    }
}

fn daemon_strategy(at: &At, strategy: &Value, problems: &mut Problems) {
    let rolling = &strategy["rollingUpdate"];
    let inner = at.field("rollingUpdate");
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let (unavailable, surge) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
            count_or_percent(&inner.field("maxUnavailable"), unavailable, problems);
            count_or_percent(&inner.field("maxSurge"), surge, problems);
            at_most_all(&inner.field("maxUnavailable"), unavailable, problems);
            at_most_all(&inner.field("maxSurge"), surge, problems);
            match (is_nothing(unavailable), is_nothing(surge)) {
                (true, true) => {
                    problems.required(&inner.field("maxUnavailable"), "cannot be 0 when maxSurge is 0")
                }
                (false, false) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    problems.invalid(&inner.field("maxSurge"), surge.clone(), detail);
                }
                _ => {}
            }
        }
        other => {
            let shown = format!(
                "{{\"Type\":{},\"RollingUpdate\":{}}}",
                Value::from(other),
                internal(rolling)
            );
            problems.not_supported_as(at, &shown, &["RollingUpdate", "OnDelete"]);
        }
    }
}

/// The block of an unknown strategy, in the form of the server's internal type.
fn internal(rolling: &Value) -> String {
    let number = |name: &str| {
        if has(rolling, name) {
            rolling[name].to_string()
        } else {
            "0".to_owned()
        }
    };
    match rolling {
        Value::Null => "null".to_owned(),
        _ => format!(
            "{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}",
            number("maxUnavailable"),
            number("maxSurge")
        ),
    }
}

/// A non-negative count, or a percentage.
pub(crate) fn count_or_percent(at: &At, value: &Value, problems: &mut Problems) {
    match value {
        Value::String(text) => problems.invalid_for(at, text, names::percent(text)),
        value => {
            if let Some(count) = value.as_i64().filter(|count| *count < 0) {
                problems.invalid(at, count, NEGATIVE);
            }
        }
    }
}

/// Whether a count or percentage is zero.
pub(crate) fn is_nothing(value: &Value) -> bool {
    number(value) == 0
}

fn number(value: &Value) -> i64 {
    match value {
        Value::String(text) => text
            .strip_suffix('%')
            .and_then(|digits| digits.parse().ok())
            .unwrap_or_default(),
        value => value.as_i64().unwrap_or_default(),
    }
}

/// A percentage must not exceed 100%.
pub(crate) fn at_most_all(at: &At, value: &Value, problems: &mut Problems) {
    if value.as_str().is_some_and(|text| names::percent(text).is_empty()) && number(value) > 100 {
        problems.invalid(at, value.clone(), "must not be greater than 100%");
    }
}
