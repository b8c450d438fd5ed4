//! HorizontalPodAutoscalers.

use crate::json::{Value, json};

use super::fields::{fill, int, items, made, part, set, text};
use super::problems::{At, Problems};
use crate::names;

pub(super) fn default(object: &mut Value) {
    let Some(spec) = made(object, "spec") else { return };
    fill(spec, "minReplicas", 1);
    if items(spec, "metrics").is_empty() {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        set(
            spec,
            "metrics",
            json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
        );
    }
    let Some(behavior) = part(spec, "behavior") else {
        return;
    };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    if let Some(up) = made(behavior, "scaleUp") {
        fill(up, "stabilizationWindowSeconds", 0);
        fill(up, "selectPolicy", "Max");
        fill(up, "policies", json!([pods, percent]));
    }
    if let Some(down) = made(behavior, "scaleDown") {
        fill(down, "selectPolicy", "Max");
        fill(down, "policies", json!([percent]));
    }
}

pub(super) fn prepare_create(object: &mut Value) {
    set(
        object,
        "status",
        json!({"desiredReplicas": 0, "currentMetrics": null}),
    );
}

pub(super) fn validate(object: &Value, problems: &mut Problems) {
    let (at, spec) = (At::new("spec"), &object["spec"]);
    let (least, most) = (
        int(spec, "minReplicas"),
        int(spec, "maxReplicas").unwrap_or_default(),
    );
    if let Some(least) = least.filter(|least| *least < 1) {
        problems.invalid(
            &at.field("minReplicas"),
            least,
            "must be greater than or equal to 1",
        );
    }
    if most < 1 {
        problems.required(&at.field("maxReplicas"), "must be set and greater than 0");
    }
    if least.is_some_and(|least| most < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        problems.invalid(&at.field("maxReplicas"), most, detail);
    }
    let (at, target) = (at.field("scaleTargetRef"), &spec["scaleTargetRef"]);
    for name in ["kind", "name"] {
        let value = text(target, name);
        if value.is_empty() {
            problems.required(&at.field(name), "");
        } else {
            problems.invalid_for(&at.field(name), value, names::path_segment(value));
        }
    }
    let version = text(target, "apiVersion");
    let is_old = version == "v1" && text(target, "kind") == "ReplicationController";
    if !is_old && !version.contains('/') {
        problems.invalid(
            &at.field("apiVersion"),
            version,
            "apiVersion must specify API group",
        );
    }
    let outside = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if least == Some(0) && !items(spec, "metrics").iter().any(outside) {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        problems.forbidden(&At::new("spec.metrics"), detail);
    }
}
