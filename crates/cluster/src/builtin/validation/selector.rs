//! Validates label selectors.

use crate::json::Value;

use crate::builtin::fields::{items, text};
use crate::builtin::problems::{At, Problems};
use crate::names;
use crate::selector::{LabelSelector, label_selector_matches};

/// Checks a set of labels; upstream names the set and not the key.
pub(crate) fn labels(at: &At, labels: &Value, problems: &mut Problems) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        problems.invalid_for(at, key, names::qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        problems.invalid_for(at, value, names::label_value(value));
    }
}

/// Checks a selector, if it is set.
pub(crate) fn validate(at: &At, selector: &Value, problems: &mut Problems) {
    labels(&at.field("matchLabels"), &selector["matchLabels"], problems);
    for (index, requirement) in items(selector, "matchExpressions").iter().enumerate() {
        let at = at.field("matchExpressions");
        let at = at.index(index);
        operator(&at, requirement, problems);
        key_and_values(&at, requirement, true, problems);
    }
}

/// Checks that an operator is known and has the right number of values.
pub(crate) fn operator(at: &At, requirement: &Value, problems: &mut Problems) {
    let has_values = !items(requirement, "values").is_empty();
    match text(requirement, "operator") {
        "In" | "NotIn" if !has_values => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            problems.required(&at.field("values"), detail);
        }
        "Exists" | "DoesNotExist" if has_values => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            problems.forbidden(&at.field("values"), detail);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        operator => problems.invalid(&at.field("operator"), operator, "not a valid selector operator"),
    }
}

pub(crate) fn key_and_values(at: &At, requirement: &Value, check_values: bool, problems: &mut Problems) {
    let key = text(requirement, "key");
    problems.invalid_for(&at.field("key"), key, names::qualified_name(key));
    let values = items(requirement, "values").iter().filter_map(Value::as_str);
    for (index, value) in values.enumerate().filter(|_| check_values) {
        problems.invalid_for(&at.field("values").index(index), value, names::label_value(value));
    }
}

/// Whether a selector parses: upstream rejects what does not.
pub(crate) fn is_usable(selector: &Value) -> bool {
    LabelSelector::of(selector).is_ok()
}

/// Whether a selector is empty, and so matches everything.
pub(crate) fn is_empty(selector: &Value) -> bool {
    LabelSelector::of(selector).is_ok_and(|selector| selector.is_empty())
}

/// Checks the selector of a workload and that its template's labels match.
pub(crate) fn of_template(at: &At, spec: &Value, problems: &mut Problems) {
    let (selector, labels) = (&spec["selector"], &spec["template"]["metadata"]["labels"]);
    if !label_selector_matches(selector, labels) {
        let detail = "`selector` does not match template `labels`";
        problems.invalid(&at.field("template.metadata.labels"), labels.clone(), detail);
    }
}
