//! JSONPath as Kubernetes speaks it: `{.status.conditions[?(@.type=="Ready")].status}`, `{range .items[*]}{.name}{end}`.
//!
//! Not RFC 9535: text and braces mix as in a template, fields need no `$`, and a missing key is an error or nothing as the
//! caller likes. Parsing is in `json_path_parse`.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::json_path_parse;
use crate::go::plain;

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath {
    pub(super) parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Text(String),
    Path(Vec<Step>),
    /// The parts inside, once per value of the path.
    Range(Vec<Step>, Vec<Part>),
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Filter {
        left: Vec<Step>,
        operator: Operator,
        right: Vec<Step>,
    },
    Union(Vec<Vec<Step>>),
    Literal(Value),
}

/// `[from:to:step]`. A lone `[from]` is the slice up to the next index.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slice {
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
    pub(super) lone: bool,
    pub(super) step: Option<i64>,
}

/// How a filter compares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operator {
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A template that is none, or a value that it does not fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct JsonPathError(pub(super) String);

/// What one part of a template gave.
pub(crate) type Found<'v> = Vec<Cow<'v, Value>>;

impl JsonPath {
    /// Reads a template; paths stand in braces.
    pub(crate) fn parse(template: &str) -> Result<Self, JsonPathError> {
        json_path_parse::parse(template)
    }

    /// The values that each part of the template finds. With `lenient`, a missing key finds nothing.
    pub(crate) fn find<'v>(&self, value: &'v Value, lenient: bool) -> Result<Vec<Found<'v>>, JsonPathError> {
        let mut found = Vec::new();
        walk_parts(&self.parts, Cow::Borrowed(value), lenient, &mut found)?;
        Ok(found)
    }

    /// The first value that the template finds; missing keys and misfits find none.
    pub(crate) fn first<'v>(&self, value: &'v Value) -> Option<Cow<'v, Value>> {
        self.find(value, true)
            .ok()?
            .into_iter()
            .next()?
            .into_iter()
            .next()
    }

    /// The template filled in.
    #[cfg(test)]
    pub(crate) fn render(&self, value: &Value, lenient: bool) -> Result<String, JsonPathError> {
        let found = self.find(value, lenient)?;
        Ok(found
            .iter()
            .map(|values| {
                values
                    .iter()
                    .map(|value| printed(value))
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect())
    }
}

/// A value as a template prints it: bare scalars, compact JSON.
pub(crate) fn printed(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Array(_) | Value::Object(_) => crate::go::json(value),
        scalar => plain(scalar),
    }
}

fn walk_parts<'v>(
    parts: &[Part],
    value: Cow<'v, Value>,
    lenient: bool,
    found: &mut Vec<Found<'v>>,
) -> Result<(), JsonPathError> {
    for part in parts {
        match part {
            Part::Text(text) => found.push(vec![Cow::Owned(Value::from(text.as_str()))]),
            Part::Path(steps) => found.push(walk(steps, vec![value.clone()], lenient)?),
            Part::Range(steps, inner) => {
                for value in walk(steps, vec![value.clone()], lenient)? {
                    walk_parts(inner, value, lenient, found)?;
                }
            }
        }
    }
    Ok(())
}

fn walk<'v>(steps: &[Step], values: Found<'v>, lenient: bool) -> Result<Found<'v>, JsonPathError> {
    steps
        .iter()
        .try_fold(values, |values, step| take(step, values, lenient))
}

fn take<'v>(step: &Step, values: Found<'v>, lenient: bool) -> Result<Found<'v>, JsonPathError> {
    match step {
        Step::Field(name) => {
            let asked = !values.is_empty();
            let found: Found<'v> = values
                .into_iter()
                .filter_map(|value| member(value, name))
                .collect();
            if found.is_empty() && asked && !lenient {
                return Err(JsonPathError(format!("{name} is not found")));
            }
            Ok(found)
        }
        Step::Wildcard => Ok(values.into_iter().flat_map(children).collect()),
        Step::Recursive => Ok(values.into_iter().flat_map(descendants).collect()),
        Step::Slice(slice) => {
            let mut found = Vec::new();
            for value in values.into_iter().filter(|value| !value.is_null()) {
                found.extend(cut(slice, value)?);
            }
            Ok(found)
        }
        Step::Filter {
            left,
            operator,
            right,
        } => {
            let mut found = Vec::new();
            for value in values {
                if !value.is_array() {
                    let why = format!("{} is not array or slice and cannot be filtered", plain(&value));
                    return Err(JsonPathError(why));
                }
                for item in children(value) {
                    if passes(&item, left, *operator, right, lenient)? {
                        found.push(item);
                    }
                }
            }
            Ok(found)
        }
        Step::Union(branches) => {
            let mut found = Vec::new();
            for branch in branches {
                found.extend(walk(branch, values.clone(), lenient)?);
            }
            Ok(found)
        }
        Step::Literal(literal) => Ok(values.iter().map(|_| Cow::Owned(literal.clone())).collect()),
    }
}

fn member<'v>(value: Cow<'v, Value>, name: &str) -> Option<Cow<'v, Value>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        Cow::Owned(Value::Object(mut fields)) => fields.remove(name).map(Cow::Owned),
        Cow::Owned(_) => None,
    }
}

fn children(value: Cow<'_, Value>) -> Found<'_> {
    match value {
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Object(fields)) => fields.values().map(Cow::Borrowed).collect(),
        Cow::Owned(Value::Array(items)) => items.into_iter().map(Cow::Owned).collect(),
        Cow::Owned(Value::Object(fields)) => fields.into_iter().map(|(_, value)| Cow::Owned(value)).collect(),
        _ => Vec::new(),
    }
}

/// Every list and object in a value, itself first.
fn descendants(value: Cow<'_, Value>) -> Found<'_> {
    let inner = children(value.clone());
    if inner.is_empty() {
        return Vec::new();
    }
    let mut found = vec![value];
    found.extend(inner.into_iter().flat_map(descendants));
    found
}

fn cut<'v>(slice: &Slice, value: Cow<'v, Value>) -> Result<Found<'v>, JsonPathError> {
    if !value.is_array() {
        let kind = if value.is_object() {
            "map[string]interface {}"
        } else {
            "value"
        };
        return Err(JsonPathError(format!("{kind} is not array or slice")));
    }
    let items = children(value);
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let mut from = slice.from.unwrap_or(0);
    if from < 0 {
        from = from.saturating_add(length);
    }
    let mut to = slice.to.unwrap_or(length);
    if to < 0 || (to == 0 && slice.lone) {
        to = to.saturating_add(length);
    }
    if from == to {
        return Ok(Vec::new());
    }
    let beyond = |index: i64| {
        JsonPathError(format!(
            "array index out of bounds: index {index}, length {length}"
        ))
    };
    if !(0..length).contains(&from) {
        return Err(beyond(from));
    }
    if !(0..=length).contains(&to) {
        return Err(beyond(to.saturating_sub(1)));
    }
    if from > to {
        return Err(JsonPathError(format!(
            "starting index {from} is greater than ending index {to}"
        )));
    }
    let step = slice.step.unwrap_or(1);
    let Ok(step @ 1..) = usize::try_from(step) else {
        return Err(JsonPathError("step must be > 0".into()));
    };
    let (from, to) = (
        usize::try_from(from).unwrap_or(0),
        usize::try_from(to).unwrap_or(0),
    );
    Ok(items.into_iter().take(to).skip(from).step_by(step).collect())
}

fn passes(
    item: &Value,
    left: &[Step],
    operator: Operator,
    right: &[Step],
    lenient: bool,
) -> Result<bool, JsonPathError> {
    let side = |steps: &[Step]| walk(steps, vec![Cow::Borrowed(item)], lenient);
    if operator == Operator::Exists {
        return Ok(side(left).is_ok_and(|found| !found.is_empty()));
    }
    let (left, right) = (side(left)?, side(right)?);
    let (left, right) = match (left.as_slice(), right.as_slice()) {
        ([], _) | (_, []) => return Ok(false),
        ([left], [right]) => (left, right),
        _ => return Err(JsonPathError("can only compare one element at a time".into())),
    };
    let order =
        compare(left, right).ok_or_else(|| JsonPathError("incompatible types for comparison".into()))?;
    Ok(match operator {
        Operator::Exists => true,
        Operator::Equal => order == Ordering::Equal,
        Operator::NotEqual => order != Ordering::Equal,
        Operator::Less => order == Ordering::Less,
        Operator::LessOrEqual => order != Ordering::Greater,
        Operator::Greater => order == Ordering::Greater,
        Operator::GreaterOrEqual => order != Ordering::Less,
    })
}

/// The order of two scalars of one kind; `None` for anything else.
fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
            // A whole number and a float are two kinds.
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    fn object() -> Value {
        json!({
            "metadata": {"name": "w", "labels": {"a.b/c": "x"}},
            "spec": {"replicas": 3, "ratio": 0.5, "on": true, "tags": ["a", "b", "c"], "none": null},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "since": 5}, {"type": "Synced", "status": "False", "since": 9},
            ]},
        })
    }

    #[rstest]
    #[case("{.metadata.name}", "w")]
    #[case("{$.metadata.name}", "w")]
    #[case("{@.metadata['name']}", "w")]
    #[case(r"{.metadata.labels.a\.b/c}", "x")]
    #[case("{.metadata.labels['a\\.b/c']}", "x")]
    #[case("{.spec.replicas} of {.spec.ratio}", "3 of 0.5")]
    #[case("{.spec.on}", "true")]
    #[case("{.spec.none}", "null")]
    #[case("{.spec.tags}", r#"["a","b","c"]"#)]
    #[case("{.spec.tags[0]}", "a")]
    #[case("{.spec.tags[-1]}", "c")]
    #[case("{.spec.tags[-1:]}", "c")]
    #[case("{.spec.tags[1:]}", "b c")]
    #[case("{.spec.tags[::2]}", "a c")]
    #[case("{.spec.tags[*]}", "a b c")]
    #[case("{.spec.tags[0,2]}", "a c")]
    #[case("{.spec['replicas','ratio']}", "3 0.5")]
    #[case(r#"{.status.conditions[?(@.type=="Ready")].status}"#, "True")]
    #[case("{.status.conditions[?(@.type=='Ready')].status}", "True")]
    #[case("{.status.conditions[?(@.since>5)].type}", "Synced")]
    #[case("{.status.conditions[?(@.since>=5)].type}", "Ready Synced")]
    #[case(r#"{.status.conditions[?(@.type!="Ready")].type}"#, "Synced")]
    #[case("{.status.conditions[?(@.since)].type}", "Ready Synced")]
    #[case("{..type}", "Ready Synced")]
    #[case("{.status.conditions[*].type}", "Ready Synced")]
    #[case(
        r#"{range .status.conditions[*]}{.type}={.status}{"\n"}{end}done"#,
        "Ready=True\nSynced=False\ndone"
    )]
    #[case("{.missing.key}", "")]
    fn a_template_is_filled_in_as_kubectl_does(#[case] template: &str, #[case] expected: &str) {
        let path = JsonPath::parse(template).unwrap();
        assert_eq!(path.render(&object(), true).unwrap(), expected);
    }

    #[rstest]
    #[case("{.missing}", "missing is not found")]
    #[case("{.spec.tags[7]}", "array index out of bounds: index 7, length 3")]
    #[case("{.spec[0]}", "map[string]interface {} is not array or slice")]
    fn a_value_that_does_not_fit_is_told(#[case] template: &str, #[case] expected: &str) {
        let path = JsonPath::parse(template).unwrap();
        assert_eq!(path.render(&object(), false).unwrap_err().to_string(), expected);
    }

    #[rstest]
    #[case("{.a", "unclosed action")]
    #[case("{.a[", "unterminated array")]
    #[case("{.a[x]}", "invalid array index x")]
    #[case("{.a[?(@.b==\"c\"]}", "unterminated filter")]
    #[case("{\"a}", "unterminated quoted string")]
    #[case("{.a}{end}", "not in range, nothing to end")]
    #[case("{foo}", "unrecognized identifier foo")]
    fn a_broken_template_is_refused(#[case] template: &str, #[case] expected: &str) {
        assert_eq!(JsonPath::parse(template).unwrap_err().to_string(), expected);
    }

    proptest! {
        #[test]
        fn no_template_breaks_the_reader(template in r#"\{?[-.\[\]?(@='"a0:,*$ !<>\\){}]{0,24}\}?"#) {
            if let Ok(path) = JsonPath::parse(&template) {
                let _ = path.render(&object(), true);
                let _ = path.render(&object(), false);
            }
        }
    }
}
