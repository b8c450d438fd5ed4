//! Scales, and horizontal pod autoscalers: what each metric is, and what it should be.

use serde_json::Value;

use super::sheet::{AGE, Column, NAME, Sheet, age, list, name, number, text};

/// More metrics than this are only counted.
const SHOWN: usize = 2;

pub(super) static AUTOSCALERS: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Reference", "What is scaled."),
        Column::text("Targets", "The metrics, and what they should be."),
        Column::text("MinPods", "The fewest pods."),
        Column::text("MaxPods", "The most pods."),
        Column::text("Replicas", "How many pods there are."),
        AGE,
    ],
    cells: |scaler, now| {
        let least = match scaler.pointer("/spec/minReplicas").and_then(Value::as_i64) {
            Some(least) => least.to_string(),
            None => "<unset>".to_owned(),
        };
        let target = [
            text(scaler, "/spec/scaleTargetRef/kind"),
            text(scaler, "/spec/scaleTargetRef/name"),
        ]
        .join("/");
        vec![
            name(scaler),
            target.into(),
            metrics(scaler).into(),
            least.into(),
            number(scaler, "/spec/maxReplicas").into(),
            number(scaler, "/status/currentReplicas").into(),
            age(scaler, now),
        ]
    },
    conditions: None,
};

/// The part of an object that says how many there are.
pub(super) static SCALES: Sheet = Sheet {
    columns: &[
        NAME,
        Column::integer("Desired", "How many are wanted."),
        Column::integer("Available", "How many there are."),
        AGE,
    ],
    cells: |scale, now| {
        vec![
            name(scale),
            number(scale, "/spec/replicas").into(),
            number(scale, "/status/replicas").into(),
            age(scale, now),
        ]
    },
    conditions: None,
};

fn metrics(scaler: &Value) -> String {
    let wanted = list(scaler, "/spec/metrics");
    if wanted.is_empty() {
        return "<none>".to_owned();
    }
    let found = list(scaler, "/status/currentMetrics");
    let shown: Vec<_> = wanted
        .iter()
        .enumerate()
        .take(SHOWN)
        .map(|(index, metric)| one(metric, found.get(index)))
        .collect();
    let shown = shown.join(", ");
    match wanted.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{shown} + {more} more..."),
        _ => shown,
    }
}

fn one(metric: &Value, found: Option<&Value>) -> String {
    let (field, label) = match text(metric, "/type") {
        "External" => ("external", None),
        "Pods" => ("pods", None),
        "Object" => ("object", None),
        "Resource" => ("resource", Some(text(metric, "/resource/name"))),
        "ContainerResource" => ("containerResource", Some(text(metric, "/containerResource/name"))),
        _ => return "<unknown type>".to_owned(),
    };
    let target = &metric[field]["target"];
    let current = found.map_or(&Value::Null, |found| &found[field]["current"]);
    let average = &target["averageValue"];
    let shown = match (label, average.is_string(), field) {
        (None, true, "pods") => format!("{}/{}", amount(&current["averageValue"]), amount(average)),
        (None, true, _) => format!("{}/{} (avg)", amount(&current["averageValue"]), amount(average)),
        (None, false, _) => format!("{}/{}", amount(&current["value"]), amount(&target["value"])),
        (Some(_), true, _) => format!("{}/{}", amount(&current["averageValue"]), amount(average)),
        (Some(_), false, _) => {
            let percent = |of: &Value, otherwise: &str| match of["averageUtilization"].as_i64() {
                Some(percent) => format!("{percent}%"),
                None => otherwise.to_owned(),
            };
            format!("{}/{}", percent(current, "<unknown>"), percent(target, "<auto>"))
        }
    };
    match label {
        Some(label) => format!("{label}: {shown}"),
        None => shown,
    }
}

fn amount(quantity: &Value) -> &str {
    quantity.as_str().unwrap_or("<unknown>")
}
