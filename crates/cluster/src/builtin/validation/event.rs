//! Events: what they are about lives where they live, and new ones say who saw it.

use serde_json::Value;

use crate::builtin::fields::text;
use crate::builtin::problems::{At, Problems};
use crate::names;

/// As `validate`, for a new Event of `events.k8s.io`, which must do without what that group has left behind.
pub(crate) fn create_of_new_group(object: &Value, problems: &mut Problems) {
    validate(object, "reportingController", problems);
    if !object["eventTime"].is_string() {
        problems.required(&At::new("eventTime"), "");
    }
    let kind = text(object, "type");
    if kind != "Normal" && kind != "Warning" {
        problems.invalid(&At::new("type"), "", &format!("has invalid value: {kind}"));
    }
}

/// Checks an Event in the core group's dress; `reporter` is what its group calls the controller that saw it.
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
    }
}
