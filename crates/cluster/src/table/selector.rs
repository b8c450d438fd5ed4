//! Label selectors as text.

use crate::json::Value;

use crate::selector::LabelSelector;

/// A label selector, or `<none>` if it has no requirements.
pub(super) fn of_selector(selector: Option<&Value>) -> String {
    or_none(requirements(selector))
}

/// The requirements of a label selector, by key.
pub(super) fn requirements(selector: Option<&Value>) -> String {
    LabelSelector::of(selector.unwrap_or(&Value::Null))
        .map_or_else(|_| "<error>".to_owned(), |selector| selector.to_string())
}

/// A map of labels, or `<none>`.
pub(super) fn of_labels(labels: Option<&Value>) -> String {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let labels: Vec<_> = labels
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    or_none(labels.join(","))
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        "<none>".to_owned()
    } else {
        text
    }
}
