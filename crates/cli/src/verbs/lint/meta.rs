//! Rules for all objects: name, namespace, labels; and for a workload, that its selector matches its own pods. The API server checks
//! these without a schema.

use serde_json::{Map, Value};
use stateward_api::Problem;

use crate::input::name::{is_label, is_subdomain};

/// The problems of an object's metadata.
pub(super) fn problems(value: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    let metadata = &value["metadata"];
    let is_named = |field: &str| metadata[field].as_str().is_some_and(|name| !name.is_empty());
    if !is_named("name") && !is_named("generateName") {
        problems.push(problem("metadata.name", "is missing"));
    }
    // Roles may be called `system:node`.
    let is_a_role = value["apiVersion"]
        .as_str()
        .is_some_and(|version| version.starts_with("rbac."));
    if let Some(name) = metadata["name"].as_str()
        && !name.is_empty()
        && !is_a_role
        && !is_subdomain(name)
    {
        problems.push(problem(
            "metadata.name",
            format!("{name:?} is not of at most 253 lower-case letters, digits, - and ., with a letter or digit at both ends"),
        ));
    }
    if let Some(namespace) = metadata["namespace"].as_str()
        && !is_label(namespace)
    {
        problems.push(problem(
            "metadata.namespace",
            format!(
                "{namespace:?} is not of at most 63 lower-case letters, digits and -, with a letter or digit at both ends"
            ),
        ));
    }
    problems.extend(texts(metadata, "metadata"));
    problems.extend(texts(
        &value["spec"]["template"]["metadata"],
        "spec.template.metadata",
    ));
    let selects = ["StatefulSet", "Deployment", "DaemonSet", "ReplicaSet"];
    let has_pods = value["spec"]["template"].is_object();
    if has_pods && value["apiVersion"] == "apps/v1" && selects.iter().any(|kind| value["kind"] == *kind) {
        problems.extend(selector(&value["spec"]));
    }
    problems
}

fn problem(field: impl Into<String>, message: impl Into<String>) -> Problem {
    Problem {
        field: field.into(),
        message: message.into(),
    }
}

/// Labels and annotations.
fn texts(metadata: &Value, path: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for kind in ["labels", "annotations"] {
        let Some(entries) = metadata[kind].as_object() else {
            continue;
        };
        for (key, value) in entries {
            let field = format!("{path}.{kind}.{key}");
            if !is_key(key) {
                problems.push(problem(
                    &field,
                    format!("{key:?} is not a key, which is NAME or DOMAIN/NAME; a NAME is {WORD}"),
                ));
            }
            match value {
                Value::String(text) if kind == "labels" && !text.is_empty() && !is_word(text) => {
                    problems.push(problem(&field, format!("{text:?} is neither empty nor {WORD}")));
                }
                // The schema reports values that are not strings.
                _ => {}
            }
        }
    }
    problems
}

/// The format of labels and of the names of their keys.
const WORD: &str = "of at most 63 letters, digits, -, _ and ., with a letter or digit at both ends";

fn is_word(text: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let mut chars = text.chars();
    text.len() <= 63 && chars.clone().all(inner) && ends(chars.next()) && ends(text.chars().next_back())
}

fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        // The prefix of an annotation key may contain capitals.
        Some((domain, name)) => is_subdomain(&domain.to_ascii_lowercase()) && is_word(name),
        None => is_word(key),
    }
}

/// Problems of a selector that does not match its own template.
fn selector(spec: &Value) -> Vec<Problem> {
    let (selector, nothing) = (&spec["selector"], Map::new());
    let labels = spec["template"]["metadata"]["labels"]
        .as_object()
        .unwrap_or(&nothing);
    let there = |key: &str| labels.get(key);
    let mut problems = Vec::new();
    let mut missing = |field: String, what: String| {
        problems.push(problem(
            field,
            format!("{what} does not match spec.template.metadata.labels"),
        ));
    };
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    for (key, value) in wanted {
        // The schema reports values that are not strings.
        let matches = there(key).is_some_and(|label| label == value || !label.is_string());
        if let Some(value) = value.as_str().filter(|_| !matches) {
            missing(
                format!("spec.selector.matchLabels.{key}"),
                format!("{key}={value}"),
            );
        }
    }
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    for (index, expression) in expressions.enumerate() {
        let key = expression["key"].as_str().unwrap_or_default();
        let among = |value: &Value| {
            let values = expression["values"].as_array();
            values.is_some_and(|values| values.contains(value))
        };
        let matches = match expression["operator"].as_str() {
            Some("In") => there(key).is_some_and(among),
            Some("NotIn") => !there(key).is_some_and(among),
            Some("Exists") => there(key).is_some(),
            Some("DoesNotExist") => there(key).is_none(),
            _ => continue,
        };
        if !matches {
            let field = format!("spec.selector.matchExpressions[{index}]");
            let operator = expression["operator"].as_str().unwrap_or_default();
            let values = expression
                .get("values")
                .map_or_else(String::new, |values| format!(" {values}"));
            missing(field, format!("{key} {operator}{values}"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(json!({"metadata": {"name": "db.x-1", "namespace": "prod"}}), &[])]
    #[case(json!({"metadata": {"generateName": "db-"}}), &[])]
    #[case(json!({"metadata": {"name": "Bad_Name", "namespace": "a.b"}}), &["metadata.name", "metadata.namespace"])]
    #[case(json!({"metadata": {}}), &["metadata.name"])]
    #[case(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "system:db"}}), &[])]
    #[case(json!({"metadata": {"name": "db", "labels": {"app": "db", "a.b/c": "", "x": "V_1.2"}}}), &[])]
    #[case(json!({"metadata": {"name": "db", "labels": {"app": "not this", "-a": "x", "n": 1}}}), &["metadata.labels.-a", "metadata.labels.app"])]
    #[case(json!({"metadata": {"name": "db", "annotations": {"a": "what you like, really"}}}), &[])]
    fn what_the_server_refuses_is_found(#[case] value: Value, #[case] expected: &[&str]) {
        let mut fields: Vec<_> = problems(&value)
            .into_iter()
            .map(|problem| problem.field)
            .collect();
        fields.sort();
        assert_eq!(fields, expected);
    }

    fn set(selector: Value) -> Vec<String> {
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {
            "selector": selector, "template": {"metadata": {"labels": {"app": "db"}}},
        }});
        let found = problems(&set).into_iter();
        found
            .map(|problem| format!("{}: {}", problem.field, problem.message))
            .collect()
    }

    #[test]
    fn a_selector_means_the_pods_of_its_own_template() {
        assert!(set(json!({"matchLabels": {"app": "db"}})).is_empty());
        assert_eq!(
            set(json!({"matchLabels": {"app": "web"}})),
            ["spec.selector.matchLabels.app: app=web does not match spec.template.metadata.labels"]
        );
        let expression = |operator: &str, values: &[&str]| {
            set(json!({"matchExpressions": [{"key": "app", "operator": operator, "values": values}]}))
                .is_empty()
        };
        assert!(expression("In", &["db", "web"]) && !expression("In", &["web"]));
        assert!(expression("NotIn", &["web"]) && !expression("NotIn", &["db"]));
        assert!(expression("Exists", &[]) && !expression("DoesNotExist", &[]));
    }
}
