//! JSONPath in the dialect of Kubernetes: `.status.conditions[?(@.type=="Ready")].status`.
//!
//! Not RFC 9535: fields need no `$`, and a missing key is nothing rather than an error. `parse` reads paths; `template` renders text with
//! embedded paths, as kubectl prints it. In flow a path and a value; out flow the matching parts of the value. Imports nothing of
//! Kubernetes.

mod parse;
mod template;

use std::cell::Cell;
use std::cmp::Ordering;

use serde_json::Value;

pub use self::template::{Template, TemplateError};

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
    numbers: Numbers,
}

/// Whether filters compare whole numbers and floats with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Numbers {
    /// They are distinct, as in Kubernetes objects.
    #[default]
    Apart,
    /// They are the same, as in JSON.
    Together,
}

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

/// Parts of a value, or literals of the path. Nothing is copied, however often it is found.
type Found<'v> = Vec<&'v Value>;

impl JsonPath {
    /// Parses a path; `None` if it is invalid.
    pub fn parse(path: &str) -> Option<Self> {
        let numbers = Numbers::default();
        parse::steps(path).map(|steps| Self { steps, numbers })
    }

    /// Sets how filters compare numbers.
    pub fn comparing(mut self, numbers: Numbers) -> Self {
        self.numbers = numbers;
        self
    }

    /// The first match in the value; `None` also if the value's type does not fit the path.
    pub fn first<'v>(&'v self, value: &'v Value) -> Option<&'v Value> {
        self.all(value)?.into_iter().next()
    }

    /// Every match in the value; `None` if the value's type does not fit the path.
    pub fn all<'v>(&'v self, value: &'v Value) -> Option<Vec<&'v Value>> {
        let walk = Walk {
            numbers: self.numbers,
            left: Cell::new(BUDGET),
        };
        walk.along(&self.steps, vec![value])
    }
}

/// The maximum number of values that a walk visits. Paths come from users, and a few steps such as `..[*]..[*]` find the same values over
/// and over.
const BUDGET: usize = 1_000_000;

/// A walk along a path. Fails with `None` if a value does not fit its step, or at too many values.
struct Walk {
    numbers: Numbers,
    left: Cell<usize>,
}

impl Walk {
    fn along<'v>(&self, steps: &'v [Step], values: Found<'v>) -> Option<Found<'v>> {
        steps
            .iter()
            .try_fold(values, |values, step| self.take(step, values))
    }

    fn take<'v>(&self, step: &'v Step, values: Found<'v>) -> Option<Found<'v>> {
        let mut found = Vec::new();
        match step {
            Step::Field(name) => {
                self.spend(values.len())?;
                found.extend(
                    values
                        .into_iter()
                        .filter_map(|value| value.as_object()?.get(name)),
                );
            }
            Step::Wildcard => {
                for value in values {
                    found.extend(self.children(value)?);
                }
            }
            Step::Recursive => {
                for value in values {
                    self.descend(value, &mut found)?;
                }
            }
            Step::Slice(slice) => {
                for value in values.into_iter().filter(|value| !value.is_null()) {
                    found.extend(self.cut(slice, value)?);
                }
            }
            Step::Filter {
                left,
                operator,
                right,
            } => {
                for value in values {
                    if !value.is_array() {
                        return None;
                    }
                    for item in self.children(value)? {
                        if self.passes(item, left, *operator, right)? {
                            found.push(item);
                        }
                    }
                }
            }
            Step::Union(branches) => {
                for branch in branches {
                    self.spend(values.len())?;
                    found.extend(self.along(branch, values.clone())?);
                }
            }
            Step::Literal(literal) => {
                self.spend(values.len())?;
                found.extend(values.iter().map(|_| literal));
            }
        }
        Some(found)
    }

    fn spend(&self, values: usize) -> Option<()> {
        self.left.set(self.left.get().checked_sub(values)?);
        Some(())
    }

    fn children<'v>(&self, value: &'v Value) -> Option<Found<'v>> {
        self.spend(1 + width(value))?;
        Some(children(value))
    }

    /// Every list and object in a value, itself first.
    fn descend<'v>(&self, value: &'v Value, found: &mut Found<'v>) -> Option<()> {
        let inner = self.children(value)?;
        if !inner.is_empty() {
            found.push(value);
        }
        inner.into_iter().try_for_each(|value| self.descend(value, found))
    }

    fn cut<'v>(&self, slice: &Slice, value: &'v Value) -> Option<Found<'v>> {
        if !value.is_array() {
            return None;
        }
        let items = self.children(value)?;
        let (from, to, step) = slice.bounds(items.len())?;
        Some(items.into_iter().take(to).skip(from).step_by(step).collect())
    }

    fn passes<'v>(
        &self,
        item: &'v Value,
        left: &'v [Step],
        operator: Operator,
        right: &'v [Step],
    ) -> Option<bool> {
        let side = |steps: &'v [Step]| self.along(steps, vec![item]);
        if operator == Operator::Exists {
            return Some(side(left).is_some_and(|found| !found.is_empty()));
        }
        let (left, right) = (side(left)?, side(right)?);
        let order = match (left.as_slice(), right.as_slice()) {
            ([], _) | (_, []) => return Some(false),
            ([left], [right]) => compare(left, right, self.numbers)?,
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
}

impl Slice {
    /// The start, end and step in a list of this length.
    fn bounds(&self, length: usize) -> Option<(usize, usize, usize)> {
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let mut from = self.from.unwrap_or(0);
        if from < 0 {
            from = from.saturating_add(length);
        }
        let mut to = self.to.unwrap_or(length);
        if to < 0 || (to == 0 && self.lone) {
            to = to.saturating_add(length);
        }
        if from == to {
            return Some((0, 0, 1));
        }
        if !(0..length).contains(&from) || !(0..=length).contains(&to) || from > to {
            return None;
        }
        let step = usize::try_from(self.step.unwrap_or(1))
            .ok()
            .filter(|step| *step > 0)?;
        Some((usize::try_from(from).ok()?, usize::try_from(to).ok()?, step))
    }
}

fn children(value: &Value) -> Found<'_> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}

fn width(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    }
}

/// The order of two scalars of one kind; `None` for anything else.
fn compare(left: &Value, right: &Value, numbers: Numbers) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
            _ if numbers == Numbers::Together => left.as_f64()?.partial_cmp(&right.as_f64()?),
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
        assert_eq!(json!(path.all(&object).unwrap()), expected);
        assert_eq!(path.first(&object), found.first());
    }

    #[rstest]
    #[case(".spec.tags[7]")]
    #[case(".spec[0]")]
    #[case(".spec[?(@.a)]")]
    fn a_value_that_does_not_fit_has_nothing(#[case] path: &str) {
        let path = JsonPath::parse(path).unwrap();
        assert_eq!(path.all(&object()), None);
    }

    #[test]
    fn whole_numbers_and_floats_are_compared_where_they_are_one_kind() {
        let path = JsonPath::parse("$[?(@.v>0.5)].v").unwrap();
        let list = json!([{"v": 0.7}, {"v": 1}, {"v": 0}]);
        assert_eq!(path.all(&list), None);
        let path = path.comparing(Numbers::Together);
        assert_eq!(json!(path.all(&list).unwrap()), json!([0.7, 1]));
    }

    #[test]
    fn a_path_that_finds_everything_over_and_over_finds_nothing() {
        let nested = (0..100).fold(json!(1), |inner, _| json!([inner, 1, 2, 3]));
        assert!(JsonPath::parse("..[*]").unwrap().all(&nested).is_some());
        assert_eq!(
            JsonPath::parse("..[*]..[*]..[*]..[*]").unwrap().all(&nested),
            None
        );
    }

    /// A literal is found once for every value before it.
    #[test]
    fn a_literal_is_never_copied() {
        let items = json!({"items": vec![0; 1_000]});
        let path = JsonPath::parse(&format!(".items[*]['{}','b']", "a".repeat(1_000)));
        assert!(path.is_some_and(|path| path.all(&items).is_some_and(|found| found.is_empty())));
        let path = JsonPath::parse(&format!(r#".items[*]"{}""#, "a".repeat(1_000))).unwrap();
        let found = path.all(&items).unwrap();
        assert_eq!(found.len(), 1_000);
        assert!(found.iter().all(|literal| std::ptr::eq(*literal, found[0])));
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
