//! Label selectors as text.

use serde_json::Value;

/// A label selector, or `<none>` when it selects nothing in particular.
pub(super) fn of_selector(selector: Option<&Value>) -> String {
    match requirements(selector).as_str() {
        "" => "<none>".to_owned(),
        text => text.to_owned(),
    }
}

/// The requirements of a label selector, by key.
pub(super) fn requirements(selector: Option<&Value>) -> String {
    let Some(selector) = selector else {
        return String::new();
    };
    let mut all: Vec<(&str, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        all.push((key, format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let values = expression["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let mut values: Vec<_> = values.collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("Exists") => key.to_owned(),
            Some("DoesNotExist") => format!("!{key}"),
            _ => return "<error>".to_owned(),
        };
        all.push((key, text));
    }
    // Labels come before expressions on the same key: the sort keeps their order.
    all.sort_by_key(|(key, _)| *key);
    all.into_iter()
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join(",")
}

/// A map of labels, or `<none>`.
pub(super) fn of_labels(labels: Option<&Value>) -> String {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let labels: Vec<_> = labels
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if labels.is_empty() {
        "<none>".to_owned()
    } else {
        labels.join(",")
    }
}
