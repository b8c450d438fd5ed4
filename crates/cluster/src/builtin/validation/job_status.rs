//! Validates a Job's status. Upstream is strict here: a finished Job stays finished, and its status must say why.

use crate::json::Value;

use super::metadata;
use crate::builtin::fields::{flag, has, int, items, same, text};
use crate::builtin::problems::{At, IMMUTABLE, Problems};

/// Whether a condition is true.
fn is(status: &Value, kind: &str) -> bool {
    items(status, "conditions")
        .iter()
        .any(|one| text(one, "type") == kind && text(one, "status") == "True")
}

fn is_finished(status: &Value) -> bool {
    is(status, "Complete") || is(status, "Failed")
}

/// Checks a changed status. Most rules apply only to what this update changed.
pub(crate) fn update(old: &Value, new: &Value, problems: &mut Problems) {
    metadata::update_of_kind("jobs.batch", old, new, problems);
    let (before, after) = (&old["status"], &new["status"]);
    let at = At::new("status");
    for name in ["active", "succeeded", "failed", "ready", "terminating"] {
        problems.non_negative(&at, after, name);
    }
    let changed = |name: &str| !same(&before[name], &after[name]);
    let turned = |kind: &str| is(before, kind) != is(after, kind);
    outcome(&at, after, &changed, &turned, problems);
    let finish_changed = is_finished(before) != is_finished(after);
    remains(&at, new, &changed, finish_changed, problems);
    indexes(&at, new, &changed, problems);
    if finish_changed || changed("terminating") {
        over_zero(&at, after, "terminating", problems);
    }
    let (ready, active) = (
        int(after, "ready").unwrap_or_default(),
        int(after, "active").unwrap_or_default(),
    );
    if (changed("ready") || changed("active")) && ready > active {
        problems.invalid(
            &at.field("ready"),
            ready,
            "cannot set more ready pods than active",
        );
    }
    for (kind, name) in [("Failed", "Failed"), ("FailureTarget", "FailureTarget")] {
        if is(after, "SuccessCriteriaMet") && is(after, kind) {
            condition(
                &at,
                &format!("cannot set SuccessCriteriaMet=True and {name}=true conditions"),
                problems,
            );
        }
    }
    transitions(&at, old, new, problems);
}

fn condition(at: &At, detail: &str, problems: &mut Problems) {
    problems.invalid_as(&at.field("conditions"), "", detail);
}

/// How and when a Job ended.
fn outcome(
    at: &At,
    after: &Value,
    changed: &impl Fn(&str) -> bool,
    turned: &impl Fn(&str) -> bool,
    problems: &mut Problems,
) {
    let is_complete = is(after, "Complete");
    if (turned("Complete") || turned("Failed")) && is_complete && is(after, "Failed") {
        condition(
            at,
            "cannot set Complete=True and Failed=true conditions",
            problems,
        );
    }
    if (turned("Complete") || turned("FailureTarget")) && is_complete && is(after, "FailureTarget") {
        condition(
            at,
            "cannot set Complete=True and FailureTarget=true conditions",
            problems,
        );
    }
    let time = at.field("completionTime");
    if turned("Complete") || changed("completionTime") {
        if has(after, "completionTime") && !is_complete {
            let detail = "cannot set completionTime when there is no Complete=True condition";
            problems.invalid(&time, after["completionTime"].clone(), detail);
        }
        if !has(after, "completionTime") && is_complete {
            problems.required(&time, "completionTime is required for Complete jobs");
        }
    }
    // Both are UTC with the same precision, so their text sorts like the times.
    let is_early = has(after, "startTime")
        && has(after, "completionTime")
        && text(after, "completionTime") < text(after, "startTime");
    if (changed("startTime") || changed("completionTime")) && is_early {
        problems.invalid(
            &time,
            after["completionTime"].clone(),
            "must be equal to or after `startTime`",
        );
    }
    if (turned("Failed") || changed("failedIndexes")) && is(after, "Failed") && !is(after, "FailureTarget") {
        condition(
            at,
            "cannot set Failed=True condition without the FailureTarget=true condition",
            problems,
        );
    }
    let criteria = turned("Complete") || turned("SuccessCriteriaMet");
    if criteria && is_complete && !is(after, "SuccessCriteriaMet") {
        condition(
            at,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            problems,
        );
    }
}

fn over_zero(at: &At, after: &Value, name: &str, problems: &mut Problems) {
    if let Some(count) = int(after, name).filter(|count| *count > 0 && is_finished(after)) {
        problems.invalid(
            &at.field(name),
            count,
            &format!("{name}>0 is invalid for finished job"),
        );
    }
}

/// What a finished Job must no longer have.
fn remains(
    at: &At,
    new: &Value,
    changed: &impl Fn(&str) -> bool,
    finish_changed: bool,
    problems: &mut Problems,
) {
    let after = &new["status"];
    if finish_changed || changed("active") {
        over_zero(at, after, "active", problems);
    }
    let never_ran = flag(&new["spec"], "suspend") && int(&new["spec"], "completions") == Some(0);
    if (finish_changed || changed("startTime"))
        && !never_ran
        && !has(after, "startTime")
        && is_finished(after)
    {
        problems.required(&at.field("startTime"), "startTime is required for finished job");
    }
    let uncounted = &after["uncountedTerminatedPods"];
    let some = !items(uncounted, "failed").is_empty() || !items(uncounted, "succeeded").is_empty();
    if (finish_changed || changed("uncountedTerminatedPods")) && is_finished(after) && some {
        let shown = |name: &str| {
            if has(uncounted, name) {
                uncounted[name].to_string()
            } else {
                "null".to_owned()
            }
        };
        // The server prints its internal type, whose fields are upper case and never omitted.
        let shown = format!(
            "{{\"Succeeded\":{},\"Failed\":{}}}",
            shown("succeeded"),
            shown("failed")
        );
        problems.invalid_as(
            &at.field("uncountedTerminatedPods"),
            &shown,
            "must be empty for finished job",
        );
    }
}

fn indexes(at: &At, new: &Value, changed: &impl Fn(&str) -> bool, problems: &mut Problems) {
    let after = &new["status"];
    let completed = text(after, "completedIndexes");
    if changed("completedIndexes")
        && !completed.is_empty()
        && text(&new["spec"], "completionMode") != "Indexed"
    {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        problems.invalid(&at.field("completedIndexes"), completed, detail);
    }
    if changed("failedIndexes") && has(after, "failedIndexes") && !has(&new["spec"], "backoffLimitPerIndex") {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        problems.invalid(&at.field("failedIndexes"), text(after, "failedIndexes"), detail);
    }
}

/// Irreversible changes.
fn transitions(at: &At, old: &Value, new: &Value, problems: &mut Problems) {
    let (before, after, spec) = (&old["status"], &new["status"], &new["spec"]);
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if is(before, kind) && !is(after, kind) {
            condition(
                at,
                &format!("cannot disable the terminal {kind}=True condition"),
                problems,
            );
        }
    }
    // An indexed Job can be scaled down together with its completions.
    let can_shrink = text(spec, "completionMode") == "Indexed" && spec["completions"] == spec["parallelism"];
    for name in ["failed", "succeeded"] {
        let count = |status: &Value| int(status, name).unwrap_or_default();
        if count(after) < count(before) && !(name == "succeeded" && can_shrink) {
            problems.invalid(
                &at.field(name),
                count(after),
                &format!("cannot decrease the {name} counter"),
            );
        }
    }
    let both = |name: &str| has(before, name) && has(after, name) && before[name] != after[name];
    if both("completionTime") {
        problems.invalid(
            &at.field("completionTime"),
            after["completionTime"].clone(),
            IMMUTABLE,
        );
    }
    let is_false = |status: &Value| {
        items(status, "conditions")
            .iter()
            .any(|one| text(one, "type") == "Suspended" && text(one, "status") == "False")
    };
    let is_resuming = is(before, "Suspended") && is_false(after);
    let start_changed = has(before, "startTime") && before["startTime"] != after["startTime"];
    if start_changed && !is_resuming && !flag(spec, "suspend") {
        let detail = "field is immutable for unsuspended job once set";
        problems.invalid(&at.field("startTime"), after["startTime"].clone(), detail);
    }
    if is(before, "SuccessCriteriaMet") && !is(after, "SuccessCriteriaMet") {
        condition(
            at,
            "cannot disable the SuccessCriteriaMet=True condition",
            problems,
        );
    }
    if is(before, "Complete") && !is(before, "SuccessCriteriaMet") && is(after, "SuccessCriteriaMet") {
        condition(
            at,
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
            problems,
        );
    }
}
