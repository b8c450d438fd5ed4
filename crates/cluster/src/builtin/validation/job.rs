//! Validates Jobs and their updates.

use crate::json::{Map, Value, json};

use super::{metadata, pod, selector};
use crate::builtin::fields::{copy, each, flag, has, int, items, made, same, text, unset};
use crate::builtin::problems::{At, IMMUTABLE, Problems, in_order};
use crate::names;
use crate::selector::label_selector_matches;

const RESOURCE: &str = "jobs.batch";
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const MOST_INDEXES: i64 = 100_000;

pub(crate) fn create(object: &Value, problems: &mut Problems) {
    metadata::of_kind(RESOURCE, object, problems);
    generated_selector(object, problems);
    spec(&At::new("spec"), &object["spec"], problems);
    let completions = int(&object["spec"], "completions").filter(|completions| *completions > 0);
    if let Some(completions) = completions.filter(|_| is_indexed(&object["spec"])) {
        let name = text(&object["metadata"], "name");
        let pod = format!("{name}-{}", completions - 1);
        if !names::dns_label(&pod).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {pod}");
            problems.invalid(&At::new("metadata.name"), name, &detail);
        }
    }
}

fn is_indexed(spec: &Value) -> bool {
    text(spec, "completionMode") == "Indexed"
}

/// A generated selector must match the generated labels.
fn generated_selector(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    if flag(spec, "manualSelector") || !spec["selector"].is_object() {
        return;
    }
    let (name, uid) = (
        text(&object["metadata"], "name"),
        text(&object["metadata"], "uid"),
    );
    if uid.is_empty() {
        problems.required(&At::new("metadata.uid"), "");
    }
    let expected = json!({
        "controller-uid": uid, "job-name": name,
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
    });
    let at = At::new("spec.template.metadata.labels");
    let labels = &spec["template"]["metadata"]["labels"];
    for key in [
        "controller-uid",
        "job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
    ] {
        let wanted = text(&expected, key);
        match labels.get(key).and_then(Value::as_str) {
            None => problems.required(&at.key(key), &format!("must be '{wanted}'")),
            Some(found) if found != wanted => {
                problems.invalid(&at.key(key), labels.clone(), &format!("must be '{wanted}'"))
            }
            Some(_) => {}
        }
    }
    if selector::is_usable(&spec["selector"]) && !label_selector_matches(&spec["selector"], &expected) {
        let shown = in_order(&spec["selector"]);
        problems.invalid_as(&At::new("spec.selector"), &shown, "`selector` not auto-generated");
    }
}

fn spec(at: &At, spec: &Value, problems: &mut Problems) {
    without_selector(at, spec, problems);
    let selector = &spec["selector"];
    if selector.is_object() {
        selector::validate(&at.field("selector"), selector, problems);
    } else {
        problems.required(&at.field("selector"), "");
    }
    if selector::is_usable(selector)
        && !label_selector_matches(selector, &spec["template"]["metadata"]["labels"])
    {
        let labels = spec["template"]["metadata"]["labels"].clone();
        let detail = "`selector` does not match template `labels`";
        problems.invalid(&at.field("template.metadata.labels"), labels, detail);
    }
}

/// The rules for a Job and for a CronJob's template.
fn without_selector(at: &At, spec: &Value, problems: &mut Problems) {
    let numbers = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ];
    for name in numbers
        .into_iter()
        .chain(["backoffLimitPerIndex", "maxFailedIndexes"])
    {
        problems.non_negative(at, spec, name);
    }
    if has(spec, "maxFailedIndexes") && !has(spec, "backoffLimitPerIndex") {
        problems.required(
            &at.field("backoffLimitPerIndex"),
            "when maxFailedIndexes is specified",
        );
    }
    completion_mode(at, spec, problems);
    if has(spec, "podFailurePolicy") {
        let rules = items(&spec["podFailurePolicy"], "rules");
        let at = at.field("podFailurePolicy.rules");
        if rules.len() > 20 {
            problems.too_many(&at, rules.len(), 20);
        }
        for (index, rule) in rules.iter().enumerate() {
            failure_rule(&at.index(index), rule, spec, problems);
        }
    }
    let policy = text(spec, "podReplacementPolicy");
    let allowed: &[&str] = if has(spec, "podFailurePolicy") {
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    if has(spec, "podReplacementPolicy") && !allowed.contains(&policy) {
        problems.not_supported(&at.field("podReplacementPolicy"), policy, allowed);
    }
    pod::template(&at.field("template"), &spec["template"], problems);
    let at = at.field("template.spec.restartPolicy");
    match text(&spec["template"]["spec"], "restartPolicy") {
        "Always" | "" => problems.required(&at, "valid values: \"OnFailure\", \"Never\""),
        "Never" => {}
        "OnFailure" if has(spec, "podFailurePolicy") => {
            problems.invalid(
                &at,
                "OnFailure",
                "only \"Never\" is supported when podFailurePolicy is specified",
            );
        }
        "OnFailure" => {}
        other => problems.not_supported(&at, other, &["OnFailure", "Never"]),
    }
}

fn completion_mode(at: &At, spec: &Value, problems: &mut Problems) {
    let mode = text(spec, "completionMode");
    if has(spec, "completionMode") && !["NonIndexed", "Indexed"].contains(&mode) {
        problems.not_supported(&at.field("completionMode"), mode, &["NonIndexed", "Indexed"]);
    }
    let failed = int(spec, "maxFailedIndexes");
    if mode == "Indexed" {
        let completions = int(spec, "completions");
        if completions.is_none() {
            problems.required(&at.field("completions"), "when completion mode is Indexed");
        }
        if let Some(parallelism) = int(spec, "parallelism").filter(|parallelism| *parallelism > MOST_INDEXES)
        {
            let detail =
                format!("must be less than or equal to {MOST_INDEXES} when completion mode is Indexed");
            problems.invalid(&at.field("parallelism"), parallelism, &detail);
        }
        if let Some(failed) =
            failed.filter(|failed| completions.is_some_and(|completions| *failed > completions))
        {
            problems.invalid(
                &at.field("maxFailedIndexes"),
                failed,
                "must be less than or equal to completions",
            );
        }
        if let Some(failed) = failed.filter(|failed| *failed > MOST_INDEXES) {
            let detail = format!("must be less than or equal to {MOST_INDEXES}");
            problems.invalid(&at.field("maxFailedIndexes"), failed, &detail);
        }
    } else if mode == "NonIndexed" || mode.is_empty() {
        for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(number) = int(spec, name) {
                problems.invalid(&at.field(name), number, "requires indexed completion mode");
            }
        }
    }
}

fn failure_rule(at: &At, rule: &Value, spec: &Value, problems: &mut Problems) {
    match text(rule, "action") {
        "" => problems.required(
            &at.field("action"),
            "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]",
        ),
        "FailIndex" if !has(spec, "backoffLimitPerIndex") => {
            problems.invalid(
                &at.field("action"),
                "FailIndex",
                "requires the backoffLimitPerIndex to be set",
            );
        }
        action if !ACTIONS.contains(&action) => problems.not_supported(&at.field("action"), action, &ACTIONS),
        _ => {}
    }
    let (codes, conditions) = (&rule["onExitCodes"], items(rule, "onPodConditions"));
    if codes.is_object() {
        exit_codes(&at.field("onExitCodes"), codes, spec, problems);
    }
    for (index, condition) in conditions.iter().enumerate() {
        let at = at.field("onPodConditions");
        let at = at.index(index);
        let kind = text(condition, "type");
        problems.invalid_for(&at.field("type"), kind, names::qualified_name(kind));
        let allowed = ["False", "True", "Unknown"];
        match text(condition, "status") {
            "" => problems.required(
                &at.field("status"),
                "valid values: [\"False\" \"True\" \"Unknown\"]",
            ),
            status if !allowed.contains(&status) => {
                problems.not_supported(&at.field("status"), status, &allowed)
            }
            _ => {}
        }
    }
    match (codes.is_object(), conditions.is_empty()) {
        (true, false) => problems.invalid_as(
            at,
            "",
            "specifying both OnExitCodes and OnPodConditions is not supported",
        ),
        (false, true) => problems.invalid_as(
            at,
            "",
            "specifying one of OnExitCodes and OnPodConditions is required",
        ),
        _ => {}
    }
}

fn exit_codes(at: &At, codes: &Value, spec: &Value, problems: &mut Problems) {
    let operator = text(codes, "operator");
    match operator {
        "" => problems.required(&at.field("operator"), "valid values: [\"In\" \"NotIn\"]"),
        "In" | "NotIn" => {}
        other => problems.not_supported(&at.field("operator"), other, &["In", "NotIn"]),
    }
    let pod = &spec["template"]["spec"];
    let known = |name: &str| {
        items(pod, "containers")
            .iter()
            .chain(items(pod, "initContainers"))
            .any(|it| text(it, "name") == name)
    };
    if let Some(name) = codes["containerName"].as_str().filter(|name| !known(name)) {
        let detail = "must be one of the container or initContainer names in the pod template";
        problems.invalid(&at.field("containerName"), name, detail);
    }
    let (at, values) = (at.field("values"), items(codes, "values"));
    if values.is_empty() {
        problems.invalid(&at, json!([]), "at least one value is required");
    } else if values.len() > 255 {
        problems.too_many(&at, values.len(), 255);
    }
    for (index, value) in values.iter().enumerate() {
        if operator == "In" && *value == 0 {
            problems.invalid(&at.index(index), 0, "must not be 0 for the In operator");
        }
        if values[..index].contains(value) {
            problems.duplicate(&at.index(index), value.clone());
        }
    }
    if !values.is_sorted_by_key(Value::as_i64) {
        problems.invalid(&at, values.to_vec(), "must be ordered");
    }
}

pub(crate) fn update(old: &Value, new: &Value, problems: &mut Problems) {
    create(new, problems);
    metadata::update_of_kind(RESOURCE, old, new, problems);
    let at = At::new("spec");
    let (before, after) = (&old["spec"], &new["spec"]);
    spec(&at, after, problems);
    if before["completions"] != after["completions"] {
        let completions = after["completions"].clone();
        if !is_indexed(after) {
            problems.invalid(&at.field("completions"), completions, IMMUTABLE);
        } else if !completions.is_null() && completions != after["parallelism"] {
            let detail = "can only be modified in tandem with spec.parallelism";
            problems.invalid(&at.field("completions"), completions, detail);
        }
    }
    if !same(&before["selector"], &after["selector"]) {
        problems.invalid_as(&at.field("selector"), &in_order(&after["selector"]), IMMUTABLE);
    }
    template_update(&at.field("template"), old, new, problems);
    for name in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        if same(&before[name], &after[name]) {
            continue;
        }
        // Policies are printed as internal types too.
        match &after[name] {
            Value::Object(_) => problems.invalid_as(&at.field(name), "", IMMUTABLE),
            value => problems.invalid(&at.field(name), value.clone(), IMMUTABLE),
        }
    }
}

/// The template is immutable; while a Job is suspended and has no pods, its scheduling fields and resources may still change.
fn template_update(at: &At, old: &Value, new: &Value, problems: &mut Problems) {
    let status = &old["status"];
    let is_suspended = items(status, "conditions")
        .iter()
        .any(|condition| text(condition, "type") == "Suspended" && text(condition, "status") == "True");
    let is_open = flag(&old["spec"], "suspend")
        && (!has(status, "startTime") || is_suspended)
        && int(status, "active").unwrap_or_default() == 0;
    let (before, after) = (&old["spec"]["template"], &new["spec"]["template"]);
    // The server prints its whole internal type here; the field is enough for us.
    if !is_open {
        if !same(before, after) {
            problems.invalid_as(at, "", IMMUTABLE);
        }
        return;
    }
    let mut pod = before["spec"].clone();
    open_fields(&mut pod, &after["spec"]);
    if !same(&pod, &after["spec"]) {
        problems.invalid_as(&at.field("spec"), "", IMMUTABLE);
    }
}

fn open_fields(pod: &mut Value, after: &Value) {
    for name in ["nodeSelector", "tolerations", "schedulingGates"] {
        copy(after, pod, name);
    }
    if let Some(affinity) = made(pod, "affinity") {
        copy(&after["affinity"], affinity, "nodeAffinity");
        // An affinity that consists only of this may be added and removed with it.
        if !has(after, "affinity") && affinity.as_object().is_some_and(Map::is_empty) {
            unset(pod, "affinity");
        }
    }
    for list in ["containers", "initContainers"] {
        for (container, changed) in each(pod, list).zip(items(after, list)) {
            if text(container, "name") == text(changed, "name") {
                copy(changed, container, "resources");
            }
        }
    }
}

/// Checks a CronJob; of its schedule only that it is set.
pub(crate) fn cron_job(object: &Value, is_new: bool, problems: &mut Problems) {
    let (at, cron) = (At::new("spec"), &object["spec"]);
    metadata::of_kind("cronjobs.batch", object, problems);
    if text(cron, "schedule").is_empty() {
        problems.required(&at.field("schedule"), "");
    }
    problems.non_negative(&at, cron, "startingDeadlineSeconds");
    problems.choice(
        &at.field("concurrencyPolicy"),
        text(cron, "concurrencyPolicy"),
        &["Allow", "Forbid", "Replace"],
    );
    without_selector(
        &at.field("jobTemplate.spec"),
        &cron["jobTemplate"]["spec"],
        problems,
    );
    problems.non_negative(&at, cron, "successfulJobsHistoryLimit");
    problems.non_negative(&at, cron, "failedJobsHistoryLimit");
    let name = text(&object["metadata"], "name");
    if is_new && name.len() > 52 {
        problems.invalid(
            &At::new("metadata.name"),
            name,
            "must be no more than 52 characters",
        );
    }
}
