//! JSONPath as Kubernetes speaks it in definitions: `.status.conditions[?(@.type=="Ready")].status`.
//!
//! Not RFC 9535: fields need no `$`, and a missing key is nothing rather than an error. Reading one is in [`parse`].

mod parse;

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

/// A path that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath(Vec<Step>);

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
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
struct Slice {
    from: Option<i64>,
    to: Option<i64>,
    lone: bool,
    step: Option<i64>,
}

/// How a filter compares.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

type Found<'v> = Vec<Cow<'v, Value>>;

impl JsonPath {
    /// `None` for what is no path.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        parse::steps(path).map(Self)
    }

    /// The first value that the path finds; a value that it does not fit has none.
    pub(crate) fn first<'v>(&self, value: &'v Value) -> Option<Cow<'v, Value>> {
        walk(&self.0, vec![Cow::Borrowed(value)])?.into_iter().next()
    }
}

/// `None` when a value does not fit its step.
fn walk<'v>(steps: &[Step], values: Found<'v>) -> Option<Found<'v>> {
    steps.iter().try_fold(values, |values, step| take(step, values))
}

fn take<'v>(step: &Step, values: Found<'v>) -> Option<Found<'v>> {
    Some(match step {
        Step::Field(name) => values
            .into_iter()
            .filter_map(|value| member(value, name))
            .collect(),
        Step::Wildcard => values.into_iter().flat_map(children).collect(),
        Step::Recursive => values.into_iter().flat_map(descendants).collect(),
        Step::Slice(slice) => {
            let mut found = Vec::new();
            for value in values.into_iter().filter(|value| !value.is_null()) {
                found.extend(cut(slice, value)?);
            }
            found
        }
        Step::Filter {
            left,
            operator,
            right,
        } => {
            let mut found = Vec::new();
            for value in values {
                if !value.is_array() {
                    return None;
                }
                for item in children(value) {
                    if passes(&item, left, *operator, right)? {
                        found.push(item);
                    }
                }
            }
            found
        }
        Step::Union(branches) => {
            let mut found = Vec::new();
            for branch in branches {
                found.extend(walk(branch, values.clone())?);
            }
            found
        }
        Step::Literal(literal) => values.iter().map(|_| Cow::Owned(literal.clone())).collect(),
    })
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

fn cut<'v>(slice: &Slice, value: Cow<'v, Value>) -> Option<Found<'v>> {
    if !value.is_array() {
        return None;
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
        return Some(Vec::new());
    }
    if !(0..length).contains(&from) || !(0..=length).contains(&to) || from > to {
        return None;
    }
    let step = usize::try_from(slice.step.unwrap_or(1))
        .ok()
        .filter(|step| *step > 0)?;
    let (from, to) = (usize::try_from(from).ok()?, usize::try_from(to).ok()?);
    Some(items.into_iter().take(to).skip(from).step_by(step).collect())
}

fn passes(item: &Value, left: &[Step], operator: Operator, right: &[Step]) -> Option<bool> {
    let side = |steps: &[Step]| walk(steps, vec![Cow::Borrowed(item)]);
    if operator == Operator::Exists {
        return Some(side(left).is_some_and(|found| !found.is_empty()));
    }
    let (left, right) = (side(left)?, side(right)?);
    let order = match (left.as_slice(), right.as_slice()) {
        ([], _) | (_, []) => return Some(false),
        ([left], [right]) => compare(left, right)?,
        _ => return None,
    };
    Some(match operator {
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
    #[case(".metadata.name", json!(["w"]))]
    #[case("$.metadata.name", json!(["w"]))]
    #[case("@.metadata['name']", json!(["w"]))]
    #[case(r".metadata.labels.a\.b/c", json!(["x"]))]
    #[case(".metadata.labels['a\\.b/c']", json!(["x"]))]
    #[case(".spec.on", json!([true]))]
    #[case(".spec.none", json!([null]))]
    #[case(".spec.tags", json!([["a", "b", "c"]]))]
    #[case(".spec.tags[0]", json!(["a"]))]
    #[case(".spec.tags[-1]", json!(["c"]))]
    #[case(".spec.tags[-1:]", json!(["c"]))]
    #[case(".spec.tags[1:]", json!(["b", "c"]))]
    #[case(".spec.tags[::2]", json!(["a", "c"]))]
    #[case(".spec.tags[*]", json!(["a", "b", "c"]))]
    #[case(".spec.tags[0,2]", json!(["a", "c"]))]
    #[case(".spec['replicas','ratio']", json!([3, 0.5]))]
    #[case(r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"]))]
    #[case(".status.conditions[?(@.type=='Ready')].status", json!(["True"]))]
    #[case(".status.conditions[?(@.since>5)].type", json!(["Synced"]))]
    #[case(".status.conditions[?(@.since>=5)].type", json!(["Ready", "Synced"]))]
    #[case(r#".status.conditions[?(@.type!="Ready")].type"#, json!(["Synced"]))]
    #[case(".status.conditions[?(@.since)].type", json!(["Ready", "Synced"]))]
    #[case("..type", json!(["Ready", "Synced"]))]
    #[case(".status.conditions[*].type", json!(["Ready", "Synced"]))]
    #[case(".missing.key", json!([]))]
    fn a_path_finds_what_it_finds_upstream(#[case] path: &str, #[case] expected: Value) {
        let path = JsonPath::parse(path).unwrap();
        let (object, found) = (object(), expected.as_array().unwrap());
        let all = walk(&path.0, vec![Cow::Borrowed(&object)]).unwrap();
        assert_eq!(json!(all), expected);
        assert_eq!(path.first(&object).as_deref(), found.first());
    }

    #[rstest]
    #[case(".spec.tags[7]")]
    #[case(".spec[0]")]
    #[case(".spec[?(@.a)]")]
    fn a_value_that_does_not_fit_has_nothing(#[case] path: &str) {
        let path = JsonPath::parse(path).unwrap();
        assert_eq!(walk(&path.0, vec![Cow::Borrowed(&object())]), None);
    }

    #[rstest]
    #[case(".a[")]
    #[case(".a[x]")]
    #[case(".a[?(@.b==\"c\"]")]
    #[case("\"a")]
    #[case("foo")]
    fn a_broken_path_is_none(#[case] path: &str) {
        assert_eq!(JsonPath::parse(path), None);
    }

    proptest! {
        #[test]
        fn no_path_breaks_the_reader(path in r#"[-.\[\]?(@='"a0:,*$ !<>\\){}]{0,24}"#) {
            if let Some(path) = JsonPath::parse(&path) {
                let _ = path.first(&object());
            }
        }
    }
}
