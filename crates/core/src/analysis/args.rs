//! Args: `{{args.name}}` in a metric, and where their values come from.

use std::collections::BTreeMap;

use serde_json::Value;
use stateward_api::Problem;
use stateward_api::analysis::Metric;
use stateward_api::rolloutplugin::Argument;

/// Values by name.
pub type Values = BTreeMap<String, String>;

/// What an arg of a rollout can be read from.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'s> {
    /// The rollout, whole.
    pub object: &'s Value,
    /// The revision to go back to.
    pub stable: Option<&'s str>,
    /// The revision that is rolled out.
    pub latest: Option<&'s str>,
}

/// The value that a rollout gives an arg.
pub fn given(arg: &Argument, path: &str, sources: Sources<'_>) -> Result<String, Problem> {
    let problem = |field: &str, message: String| Problem {
        field: format!("{path}.{field}"),
        message,
    };
    if let Some(value) = &arg.value {
        return Ok(value.clone());
    }
    let source = arg.value_from.as_ref();
    if let Some(field) = source.and_then(|source| source.field_ref.as_ref()) {
        let path = field.field_path.as_str();
        return field_at(sources.object, path).ok_or_else(|| {
            problem(
                "valueFrom.fieldRef.fieldPath",
                format!("{path:?} is no text, number or bool of this object"),
            )
        });
    }
    if let Some(which) = source.and_then(|source| source.pod_template_hash_value.as_deref()) {
        let revision = match which {
            "Stable" => sources.stable,
            "Latest" => sources.latest,
            other => {
                return Err(problem(
                    "valueFrom.podTemplateHashValue",
                    format!("{other:?} is not Stable or Latest"),
                ));
            }
        };
        let unknown = || {
            problem(
                "valueFrom.podTemplateHashValue",
                format!("there is no {which} revision yet"),
            )
        };
        return revision.map(str::to_owned).ok_or_else(unknown);
    }
    Err(problem(
        "value",
        "is missing; give value, valueFrom.fieldRef or valueFrom.podTemplateHashValue".into(),
    ))
}

/// What stands in an object at `metadata.labels['app']`, `spec.workloadRef.name` and the like.
fn field_at(object: &Value, path: &str) -> Option<String> {
    let mut at = object;
    let mut rest = path;
    while !rest.is_empty() {
        let key;
        (key, rest) = if let Some(quoted) = rest.strip_prefix("['") {
            quoted.split_once("']")?
        } else {
            let plain = rest.strip_prefix('.').unwrap_or(rest);
            plain.split_at(plain.find(['.', '[']).unwrap_or(plain.len()))
        };
        at = at.get(key)?;
    }
    match at {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(bool) => Some(bool.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A metric with its args filled in. What has no value stays as it is, and is told by [`open`].
pub fn fill(metric: &Metric, values: &Values) -> Result<Metric, serde_json::Error> {
    let mut json = serde_json::to_value(metric)?;
    each_text(&mut json, &mut |text| {
        if text.contains("{{") {
            *text = replaced(text, &mut |name| values.get(name).cloned());
        }
    });
    serde_json::from_value(json)
}

/// The names that a metric still asks for.
pub fn open(metric: &Metric) -> Vec<String> {
    let mut names = Vec::new();
    let mut json = serde_json::to_value(metric).unwrap_or_default();
    each_text(&mut json, &mut |text| {
        replaced(text, &mut |name| {
            names.push(name.to_owned());
            None
        });
    });
    names.sort();
    names.dedup();
    names
}

fn each_text(json: &mut Value, change: &mut dyn FnMut(&mut String)) {
    match json {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_text(field, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text with every `{{args.name}}` replaced that has a value. Other pairs of braces are none of ours.
fn replaced(text: &str, value: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let mut new = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let (before, from) = rest.split_at(start);
        new.push_str(before);
        let Some(end) = from.find("}}") else {
            rest = from;
            break;
        };
        let (tag, after) = from.split_at(end + 2);
        let name = tag[2..end].trim().strip_prefix("args.");
        match name.and_then(&mut *value) {
            Some(value) => new.push_str(&value),
            None => new.push_str(tag),
        }
        rest = after;
    }
    new.push_str(rest);
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn metric() -> Metric {
        serde_json::from_value(json!({
            "name": "errors", "count": "{{args.times}}",
            "provider": {
                "web": {"url": "http://{{ args.host }}/{{args.path}}", "headers": [{"key": "a", "value": "{{args.token}}"}]},
            },
        }))
        .unwrap()
    }

    #[test]
    fn args_are_filled_in_and_what_is_missing_is_told() {
        assert_eq!(open(&metric()), ["host", "path", "times", "token"]);
        let values = [("host", "db"), ("path", r#"a"b"#), ("times", "3")];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let filled = fill(&metric(), &values.into()).unwrap();
        assert_eq!(open(&filled), ["token"]);
        assert_eq!(filled.provider.web.as_ref().unwrap().url, r#"http://db/a"b"#);
        assert_eq!(filled.effective_count(), Some(3));
    }

    #[rstest]
    #[case("{{args.a}}{{args.a}}", "11")]
    #[case("{{args.b}}", "{{args.b}}")]
    #[case("{{ $labels.a }} {{args.a}", "{{ $labels.a }} {{args.a}")]
    #[case("{{", "{{")]
    #[case("a}}b{{args.a}}", "a}}b1")]
    fn only_known_args_are_replaced(#[case] text: &str, #[case] expected: &str) {
        let mut value = |name: &str| (name == "a").then(|| "1".to_owned());
        assert_eq!(replaced(text, &mut value), expected);
    }

    #[test]
    fn a_value_is_not_looked_through_for_args() {
        let mut value = |_: &str| Some("{{args.a}}".to_owned());
        assert_eq!(replaced("{{args.a}}", &mut value), "{{args.a}}");
    }

    #[rstest]
    #[case(json!({"value": "x"}), Ok("x"))]
    #[case(json!({"valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app.kubernetes.io/name']"}}}), Ok("db"))]
    #[case(json!({"valueFrom": {"fieldRef": {"fieldPath": "spec.replicas"}}}), Ok("3"))]
    #[case(json!({"valueFrom": {"podTemplateHashValue": "Stable"}}), Ok("db-1"))]
    #[case(json!({"valueFrom": {"podTemplateHashValue": "Latest"}}), Err("a.valueFrom.podTemplateHashValue: there is no Latest revision yet"))]
    #[case(json!({"valueFrom": {"podTemplateHashValue": "Newest"}}), Err(r#"a.valueFrom.podTemplateHashValue: "Newest" is not Stable or Latest"#))]
    #[case(json!({"valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}), Err(r#"a.valueFrom.fieldRef.fieldPath: "metadata.labels" is no text, number or bool of this object"#))]
    #[case(json!({}), Err("a.value: is missing; give value, valueFrom.fieldRef or valueFrom.podTemplateHashValue"))]
    fn an_arg_comes_from_where_it_says(#[case] arg: Value, #[case] expected: Result<&str, &str>) {
        let mut arg = arg;
        arg["name"] = "a".into();
        let arg: Argument = serde_json::from_value(arg).unwrap();
        let object =
            json!({"metadata": {"labels": {"app.kubernetes.io/name": "db"}}, "spec": {"replicas": 3}});
        let sources = Sources {
            object: &object,
            stable: Some("db-1"),
            latest: None,
        };
        let found = given(&arg, "a", sources).map_err(|problem| problem.to_string());
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned));
    }
}
