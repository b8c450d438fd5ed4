//! Label selectors: what they may say, and what they match.

use serde_json::Value;

use super::fields::{entries, items, text};
use super::names;
use super::problems::{At, Problems};

/// Checks a set of labels, of which upstream names the set and not the key.
pub(super) fn labels(at: &At, labels: &Value, problems: &mut Problems) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        problems.invalid_for(at, key, names::qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        problems.invalid_for(at, value, names::label_value(value));
    }
}

/// Checks a selector that is there.
pub(super) fn validate(at: &At, selector: &Value, problems: &mut Problems) {
    labels(&at.field("matchLabels"), &selector["matchLabels"], problems);
    for (index, requirement) in items(selector, "matchExpressions").iter().enumerate() {
        expression(&at.field("matchExpressions").index(index), requirement, problems);
    }
}

fn expression(at: &At, requirement: &Value, problems: &mut Problems) {
    let values = items(requirement, "values");
    match text(requirement, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            problems.required(
                &at.field("values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            );
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            problems.forbidden(&at.field("values"), detail);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        operator => problems.invalid(&at.field("operator"), operator, "not a valid selector operator"),
    }
    let key = text(requirement, "key");
    problems.invalid_for(&at.field("key"), key, names::qualified_name(key));
    for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
        problems.invalid_for(&at.field("values").index(index), value, names::label_value(value));
    }
}

/// Whether a selector can be used at all: upstream parses it and refuses what does not parse.
pub(super) fn is_usable(selector: &Value) -> bool {
    let mut problems = Problems::default();
    validate(&At::new(""), selector, &mut problems);
    problems.is_empty()
}

/// Whether a selector says nothing, and so matches everything.
pub(super) fn is_empty(selector: &Value) -> bool {
    entries(selector, "matchLabels").next().is_none() && items(selector, "matchExpressions").is_empty()
}

/// Whether a selector matches a set of labels. One that is not there matches nothing.
pub(super) fn matches(selector: &Value, labels: &Value) -> bool {
    if !selector.is_object() {
        return false;
    }
    let value = |key: &str| labels.get(key).and_then(Value::as_str);
    entries(selector, "matchLabels")
        .all(|(key, wanted)| value(key) == Some(wanted.as_str().unwrap_or_default()))
        && items(selector, "matchExpressions").iter().all(|requirement| {
            let found = value(text(requirement, "key"));
            let listed =
                found.is_some_and(|found| items(requirement, "values").iter().any(|value| value == found));
            match text(requirement, "operator") {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

/// Checks the selector of a workload and that its template carries the labels it asks for.
pub(super) fn of_template(at: &At, spec: &Value, problems: &mut Problems) {
    let (selector, labels) = (&spec["selector"], &spec["template"]["metadata"]["labels"]);
    if !matches(selector, labels) {
        let detail = "`selector` does not match template `labels`";
        problems.invalid(&at.field("template.metadata.labels"), labels.clone(), detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(json!({"matchLabels": {"a": "1"}}), true)]
    #[case(json!({"matchLabels": {"a": "2"}}), false)]
    #[case(json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}), true)]
    #[case(json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}), false)]
    #[case(json!({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}), true)]
    #[case(json!({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}), true)]
    #[case(json!({"matchExpressions": [{"key": "b", "operator": "Exists"}]}), false)]
    #[case(json!({}), true)]
    #[case(Value::Null, false)]
    fn a_selector_matches_by_its_terms(#[case] selector: Value, #[case] expected: bool) {
        assert_eq!(matches(&selector, &json!({"a": "1"})), expected);
    }
}
