//! Args: `{{args.name}}` in a metric, and the sources of their values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use stateward_api::Problem;
use stateward_api::analysis::Metric;
use stateward_api::rolloutplugin::Argument;

/// Values by name.
pub type Values = BTreeMap<String, String>;

/// The sources of a rollout's args.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'s> {
    /// The whole rollout object.
    pub object: &'s Value,
    /// The revision to roll back to.
    pub stable: Option<&'s str>,
    /// The revision that is being rolled out.
    pub latest: Option<&'s str>,
}

/// The value of an arg in a rollout.
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

/// The value of a field path such as `metadata.labels['app']` or `spec.workloadRef.name`.
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

/// The most bytes that a field may have once its args are resolved.
pub const LONGEST_FIELD: usize = 64 * 1024;

/// The most bytes that all fields of a run may have once their args are resolved.
pub const LARGEST_RUN: usize = 1024 * 1024;

/// Why the args of a metric cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// One field would be too long.
    #[error("{field}: has {bytes} bytes once its args are filled in; at most {LONGEST_FIELD} are allowed")]
    Field {
        /// The path of the field in the metric.
        field: String,
        /// The length that it would have.
        bytes: usize,
    },
    /// All fields together would be too long.
    #[error("the metrics have more than {LARGEST_RUN} bytes once their args are filled in")]
    Run,
    /// The result is not a metric.
    #[error("is no metric once its args are filled in: {0}")]
    NoMetric(#[from] serde_json::Error),
}

/// Resolves the args of a metric. Args without a value stay as they are; [`open`] lists them.
pub fn fill(metric: &Metric, values: &Values) -> Result<Metric, FillError> {
    fill_within(metric, values, &mut LARGEST_RUN.clone())
}

/// The same within `room` bytes, which it reduces by what it uses. The size is checked before anything is built: a value of a few
/// bytes and a field that names it many times are cheap to write.
pub fn fill_within(metric: &Metric, values: &Values, room: &mut usize) -> Result<Metric, FillError> {
    let mut json = serde_json::to_value(metric)?;
    let mut path = Vec::new();
    fill_texts(&mut json, &mut path, values, room)?;
    Ok(serde_json::from_value(json)?)
}

fn fill_texts(
    json: &mut Value,
    path: &mut Vec<String>,
    values: &Values,
    room: &mut usize,
) -> Result<(), FillError> {
    match json {
        Value::String(text) => {
            let parts = || parts(text, |name| values.get(name).map(String::as_str));
            let bytes = parts().map(str::len).fold(0, usize::saturating_add);
            let open = text.contains("{{");
            if bytes > LONGEST_FIELD && open {
                let field = path.concat();
                return Err(FillError::Field { field, bytes });
            }
            *room = room.checked_sub(bytes).ok_or(FillError::Run)?;
            if open {
                let mut new = String::with_capacity(bytes);
                new.extend(parts());
                *text = new;
            }
            Ok(())
        }
        Value::Array(items) => items.iter_mut().enumerate().try_for_each(|(index, item)| {
            path.push(format!("[{index}]"));
            fill_texts(item, path, values, room)?;
            path.pop();
            Ok(())
        }),
        Value::Object(fields) => fields.iter_mut().try_for_each(|(name, field)| {
            let dot = if path.is_empty() { "" } else { "." };
            path.push(format!("{dot}{name}"));
            fill_texts(field, path, values, room)?;
            path.pop();
            Ok(())
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// The args of a metric that are still unresolved.
pub fn open(metric: &Metric) -> Vec<String> {
    let mut names = BTreeSet::new();
    let json = serde_json::to_value(metric).unwrap_or_default();
    each_text(&json, &mut |text| {
        let asked = parts(text, |name| {
            names.insert(name.to_owned());
            None
        });
        asked.for_each(drop);
    });
    names.into_iter().collect()
}

fn each_text(json: &Value, look: &mut dyn FnMut(&str)) {
    match json {
        Value::String(text) => look(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, look)),
        Value::Object(fields) => fields.values().for_each(|field| each_text(field, look)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The parts of a text with every known `{{args.name}}` replaced. Other pairs of braces are left alone.
fn parts<'t>(text: &'t str, mut value: impl FnMut(&str) -> Option<&'t str>) -> impl Iterator<Item = &'t str> {
    let mut rest = text;
    let mut next = None;
    std::iter::from_fn(move || {
        if let Some(part) = next.take() {
            return Some(part);
        }
        let tag = rest.find("{{").and_then(|start| {
            let end = start + rest[start..].find("}}")?;
            Some((start, end))
        });
        let Some((start, end)) = tag else {
            return (!rest.is_empty()).then(|| std::mem::take(&mut rest));
        };
        let name = rest[start + 2..end].trim().strip_prefix("args.");
        next = Some(name.and_then(&mut value).unwrap_or(&rest[start..end + 2]));
        let before = &rest[..start];
        rest = &rest[end + 2..];
        Some(before)
    })
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
    #[case("é{{args.a}}é{{ args.a }}é", "é1é1é")]
    #[case("", "")]
    fn only_known_args_are_replaced(#[case] text: &str, #[case] expected: &str) {
        let replaced: String = parts(text, |name| (name == "a").then_some("1")).collect();
        assert_eq!(replaced, expected);
    }

    #[test]
    fn a_value_is_not_looked_through_for_args() {
        let replaced: String = parts("{{args.a}}", |_| Some("{{args.a}}")).collect();
        assert_eq!(replaced, "{{args.a}}");
    }

    fn values(bytes: usize) -> Values {
        let values = [("host", "x".repeat(bytes)), ("times", "3".to_owned())];
        values.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Every text of a metric, by path.
    fn texts(json: &Value, path: &str, all: &mut Vec<String>) {
        let dot = if path.is_empty() { "" } else { "." };
        match json {
            Value::String(_) => all.push(path.to_owned()),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(index, item)| texts(item, &format!("{path}[{index}]"), all)),
            Value::Object(fields) => fields
                .iter()
                .for_each(|(name, field)| texts(field, &format!("{path}{dot}{name}"), all)),
            _ => {}
        }
    }

    /// A value of 100 kB that is named 3 000 times took 1.4 GB.
    #[test]
    fn a_field_that_grows_too_long_is_named_and_is_not_made() {
        let whole = json!({
            "name": "errors", "interval": "5s", "initialDelay": "5s", "count": "1", "successCondition": "result", "failureCondition": "result",
            "failureLimit": "1", "inconclusiveLimit": "1", "consecutiveErrorLimit": "1",
            "provider": {
                "web": {
                    "url": "http://db", "method": "POST", "body": "x", "jsonPath": "{$.a}", "jsonBody": {"a": [{"b": "c"}]},
                    "headers": [{"key": "a", "value": "b"}],
                },
                "prometheus": {
                    "address": "http://db", "query": "up", "headers": [{"key": "a", "value": "b"}],
                    "rangeQuery": {"start": "now()", "end": "now()", "step": "1m"},
                },
                "datadog": {"query": "up", "queries": {"a": "up"}, "formula": "a"},
                "newRelic": {"query": "up"}, "graphite": {"query": "up", "address": "a"}, "influxdb": {"query": "up"},
                "wavefront": {"query": "up", "address": "a"}, "skywalking": {"query": "up", "address": "a"},
                "job": {"spec": {"template": {"spec": {"containers": [{"name": "a", "args": ["b"]}]}}}},
            },
        });
        let metric: Metric = serde_json::from_value(whole).unwrap();
        let whole = serde_json::to_value(&metric).unwrap();
        let mut fields = Vec::new();
        texts(&whole, "", &mut fields);
        assert!(fields.len() > 35, "{fields:?}");
        for field in fields {
            let pointer = format!("/{}", field.replace('[', ".").replace(']', "").replace('.', "/"));
            let mut asking = whole.clone();
            *asking.pointer_mut(&pointer).unwrap() = "{{args.host}}".repeat(3_000).into();
            let asking: Metric = serde_json::from_value(asking).unwrap();
            let error = fill(&asking, &values(100_000)).unwrap_err();
            let expected = format!(
                "{field}: has 300000000 bytes once its args are filled in; at most 65536 are allowed"
            );
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_field_may_be_as_long_as_it_may() {
        let filled = fill(&metric(), &values(LONGEST_FIELD - "http:///{{args.path}}".len())).unwrap();
        assert_eq!(filled.provider.web.unwrap().url.len(), LONGEST_FIELD);
        let error = fill(&metric(), &values(LONGEST_FIELD)).unwrap_err();
        assert!(
            error.to_string().starts_with("provider.web.url: has 65557 bytes"),
            "{error}"
        );
    }

    #[test]
    fn all_fields_of_a_run_share_its_room() {
        let mut room = LARGEST_RUN;
        let mut filled = 0;
        let error = loop {
            match fill_within(&metric(), &values(60_000), &mut room) {
                Ok(_) => filled += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(filled, LARGEST_RUN / 60_100);
        let expected = "the metrics have more than 1048576 bytes once their args are filled in";
        assert_eq!(error.to_string(), expected);
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
