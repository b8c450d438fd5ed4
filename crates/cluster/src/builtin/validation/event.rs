//! Validates Events: they are in the namespace of their object, and new ones name their reporter.

use crate::json::Value;

use crate::builtin::fields::text;
use crate::builtin::problems::{At, IMMUTABLE, Problems};
use crate::names;

/// Like `validate`, for a new Event of `events.k8s.io`, which must not set the deprecated fields.
pub(crate) fn create_of_new_group(object: &Value, problems: &mut Problems) {
    validate(object, "reportingController", problems);
    series(object, problems);
    if !object["eventTime"].is_string() {
        problems.required(&At::new("eventTime"), "");
    }
    let kind = text(object, "type");
    if kind != "Normal" && kind != "Warning" {
        problems.invalid(&At::new("type"), "", &format!("has invalid value: {kind}"));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        if !is_unset(&object[field]) {
            problems.invalid(&At::new(field), "", "needs to be unset");
        }
    }
}

/// Like `validate`, for a changed Event of `events.k8s.io`: only its series may change.
pub(crate) fn update_of_new_group(old: &Value, new: &Value, problems: &mut Problems) {
    validate(new, "reportingController", problems);
    if old["series"] != new["series"] {
        series(new, problems);
    }
    const REFERENCE: &[&str] = &[
        "Kind",
        "Namespace",
        "Name",
        "UID",
        "APIVersion",
        "ResourceVersion",
        "FieldPath",
    ];
    // The field, its name in messages, and the fields of Go's type if that is printed.
    let fixed: [(&str, &str, &[&str]); 14] = [
        ("involvedObject", "involvedObject", REFERENCE),
        ("reason", "reason", &[]),
        ("message", "message", &[]),
        ("source", "source", &["Component", "Host"]),
        ("firstTimestamp", "firstTimestamp", &[]),
        ("lastTimestamp", "lastTimestamp", &[]),
        ("count", "count", &[]),
        // Upstream checks it twice.
        ("reason", "reason", &[]),
        ("type", "type", &[]),
        ("eventTime", "eventTime", &[]),
        ("action", "action", &[]),
        ("related", "related", REFERENCE),
        ("reportingComponent", "reportingController", &[]),
        ("reportingInstance", "reportingInstance", &[]),
    ];
    for (field, called, fields) in fixed {
        let (before, after) = (&old[field], &new[field]);
        if before == after || (is_unset(before) && is_unset(after)) {
            continue;
        }
        let at = At::new(called);
        match (after, fields) {
            (Value::Object(_), fields) => problems.invalid_as(&at, &in_go(after, fields), IMMUTABLE),
            (Value::Null, _) if field == "count" => problems.invalid(&at, 0, IMMUTABLE),
            (Value::Null, _) if !is_time(field) && fields.is_empty() => problems.invalid(&at, "", IMMUTABLE),
            _ => problems.invalid(&at, after.clone(), IMMUTABLE),
        }
    }
}

fn is_time(field: &str) -> bool {
    field.ends_with("Timestamp") || field == "eventTime"
}

fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// A struct as Go prints it without tags: every field, with its Go name.
fn in_go(value: &Value, fields: &[&str]) -> String {
    let shown = fields.iter().map(|name| {
        // `APIVersion` is `apiVersion` in JSON, `UID` is `uid`.
        let known = value.as_object().into_iter().flatten();
        let found = known.clone().find(|(field, _)| field.eq_ignore_ascii_case(name));
        let text = found.and_then(|(_, value)| value.as_str()).unwrap_or_default();
        format!("{name:?}:{}", Value::from(text))
    });
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}

/// A series has a count of at least two.
fn series(object: &Value, problems: &mut Problems) {
    let series = &object["series"];
    if series.is_null() {
        return;
    }
    let at = At::new("series");
    if series["count"].as_i64().unwrap_or(0) < 2 {
        problems.invalid(&at.field("count"), "", "should be at least 2");
    }
    if !series["lastObservedTime"].is_string() {
        problems.required(&at.field("lastObservedTime"), "");
    }
}

/// Checks an Event in the form of the core group; `reporter` is the name of the reporting controller's field in its group.
pub(crate) fn validate(object: &Value, reporter: &str, problems: &mut Problems) {
    let about = text(&object["involvedObject"], "namespace");
    let namespace = text(&object["metadata"], "namespace");
    let at = At::new("involvedObject.namespace");
    if !object["eventTime"].is_string() {
        let expected = if about.is_empty() {
            namespace.is_empty() || namespace == "default"
        } else {
            about == namespace
        };
        if !expected {
            problems.invalid(&at, about, "does not match event.namespace");
        }
        return;
    }
    if about.is_empty() && namespace != "default" && namespace != "kube-system" {
        problems.invalid(&at, about, "does not match event.namespace");
    }
    let controller = text(object, "reportingComponent");
    if controller.is_empty() {
        problems.required(&At::new(reporter), "");
    }
    problems.invalid_for(&At::new(reporter), controller, names::qualified_name(controller));
    for field in ["reportingInstance", "action", "reason"] {
        if text(object, field).is_empty() {
            problems.required(&At::new(field), "");
        }
        at_most(128, object, field, problems);
    }
    at_most(1024, object, "message", problems);
}

fn at_most(limit: usize, object: &Value, field: &str, problems: &mut Problems) {
    if text(object, field).len() > limit {
        let detail = format!("can have at most {limit} characters");
        problems.invalid(&At::new(field), "", &detail);
    }
}
