//! Jobs, and the CronJobs that create them.

use crate::json::{Value, json};

use super::fields::{each, entries, fill, fill_text, flag, has, made, part, set, text};
use super::pod_defaults::template;

/// Both forms of each label: clients still select by the old ones.
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

pub(super) fn default(object: &mut Value) {
    let Some(spec) = made(object, "spec") else { return };
    // A Job with parallelism alone is a work queue, whose completions stay unset.
    if !has(spec, "parallelism") {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    let limit = if has(spec, "backoffLimitPerIndex") {
        i64::from(i32::MAX)
    } else {
        6
    };
    fill(spec, "backoffLimit", limit);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    let replacement = if has(spec, "podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    fill(spec, "podReplacementPolicy", replacement);
    fill(spec, "manualSelector", false);
    nested(spec);
}

/// The defaults that a CronJob's template gets too.
fn nested(spec: &mut Value) {
    template(spec);
    for rule in part(spec, "podFailurePolicy")
        .into_iter()
        .flat_map(|policy| each(policy, "rules"))
    {
        for condition in each(rule, "onPodConditions") {
            fill_text(condition, "status", "True");
        }
    }
}

pub(super) fn default_cron_job(object: &mut Value) {
    let Some(spec) = made(object, "spec") else { return };
    fill_text(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
    if let Some(template) = made(spec, "jobTemplate").and_then(|template| made(template, "spec")) {
        nested(template);
    }
}

/// Gives the Job a selector that matches no other Job's pods. Needs the UID, so it comes after system metadata.
pub(super) fn prepare_create(object: &mut Value) {
    let (name, uid) = (
        text(&object["metadata"], "name").to_owned(),
        text(&object["metadata"], "uid").to_owned(),
    );
    set(object, "status", json!({}));
    if let Some(spec) = part(object, "spec").filter(|spec| !flag(spec, "manualSelector")) {
        generate_selector(spec, &name, &uid);
    }
    take_labels(object);
}

fn generate_selector(spec: &mut Value, name: &str, uid: &str) {
    let labels = made(spec, "template")
        .and_then(|it| made(it, "metadata"))
        .and_then(|it| made(it, "labels"));
    let Some(labels) = labels else { return };
    for label in NAME_LABELS {
        fill(labels, label, name);
    }
    for label in UID_LABELS {
        fill(labels, label, uid);
    }
    if let Some(matching) = made(spec, "selector").and_then(|selector| made(selector, "matchLabels")) {
        fill(matching, UID_LABELS[1], uid);
    }
}

/// A Job without labels gets those of its template. Upstream defaults this on every read, so the generated labels are among them: it comes
/// after preparing, not with the other defaults.
pub(super) fn take_labels(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if let Some(metadata) = made(object, "metadata").filter(|_| labels.is_object())
        && entries(metadata, "labels").next().is_none()
    {
        set(metadata, "labels", labels);
    }
}
