//! Scales and HorizontalPodAutoscalers: each metric's current value and target.

use crate::json::Value;

use super::column::Cell::{Made, Number};
use super::column::{AGE, Column, NAME, list, text};

/// More metrics than this are only counted.
const SHOWN: usize = 2;

pub(super) static AUTOSCALERS: &[Column] = &[
    NAME,
    Column::text("Reference", "What is scaled.", Made(target)),
    Column::text(
        "Targets",
        "The metrics, and what they should be.",
        Made(|scaler| metrics(scaler).into()),
    ),
    Column::text(
        "MinPods",
        "The fewest pods.",
        Made(|scaler| match scaler["spec"]["minReplicas"].as_i64() {
            Some(least) => least.to_string().into(),
            None => "<unset>".into(),
        }),
    ),
    Column::text("MaxPods", "The most pods.", Number("/spec/maxReplicas")),
    Column::text(
        "Replicas",
        "How many pods there are.",
        Number("/status/currentReplicas"),
    ),
    AGE,
];

/// The replica columns of an object.
pub(super) static SCALES: &[Column] = &[
    NAME,
    Column::integer("Desired", "How many are wanted.", Number("/spec/replicas")),
    Column::integer("Available", "How many there are.", Number("/status/replicas")),
    AGE,
];

fn target(scaler: &Value) -> Value {
    let target = &scaler["spec"]["scaleTargetRef"];
    format!("{}/{}", text(target, "/kind"), text(target, "/name")).into()
}

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
