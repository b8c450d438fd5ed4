//! The difference between two values of one shape, as sets of paths.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::json::Value;

use super::super::element::{Element, same};
use super::super::fields::FieldSet;
use super::form::{Form, element_of, fields, forms, items};
use crate::types::{ListKind, Shape};

/// The changes of a write.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) removed: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) added: FieldSet,
}

impl Comparison {
    /// The comparison without paths at or below the dotted paths of `reset`.
    pub(crate) fn without(mut self, reset: &[&str]) -> Self {
        for set in [&mut self.removed, &mut self.modified, &mut self.added] {
            reset.iter().for_each(|path| set.discard_path(path));
        }
        self
    }
}

/// Compares two values of one shape.
pub(crate) fn compare(old: &Value, new: &Value, shape: Shape<'_>) -> Comparison {
    let mut found = Found::default();
    visit(&mut found, Some(old), Some(new), shape);
    found.comparison
}

/// The same as bytes with the changed paths and how each changed, without values: equal for two writes that change the same paths in the
/// same way.
pub(crate) fn trace(old: &Value, new: &Value, shape: Shape<'_>) -> Vec<u8> {
    let mut trace = Trace(Vec::with_capacity(1024));
    visit(&mut trace, Some(old), Some(new), shape);
    trace.0
}

/// Whether two lists have the same items in the same order, as those of a status mostly do: each with a string as its only key, and without
/// duplicates.
fn are_aligned(old: &[Value], new: &[Value], shape: Shape<'_>) -> bool {
    let ListKind::Map([key]) = shape.list() else {
        return false;
    };
    let mut names = Vec::with_capacity(new.len());
    old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| {
            let [old, new] = [old, new].map(|item| item.get(key).and_then(Value::as_str));
            let is_first = old == new && new.is_some_and(|new| !names.contains(&new));
            names.extend(new);
            is_first
        })
}

/// How a path was changed.
#[derive(Clone, Copy)]
enum How {
    Removed,
    Modified,
    Added,
}

/// Receives the changes during a walk.
trait Witness {
    fn enter(&mut self, element: &Element);

    fn leave(&mut self);

    /// Something changed at the current path.
    fn note(&mut self, how: How);
}

/// Collects the paths into sets.
#[derive(Default)]
struct Found {
    at: Vec<Element>,
    comparison: Comparison,
}

impl Witness for Found {
    fn enter(&mut self, element: &Element) {
        self.at.push(element.clone());
    }

    fn leave(&mut self) {
        self.at.pop();
    }

    fn note(&mut self, how: How) {
        let set = match how {
            How::Removed => &mut self.comparison.removed,
            How::Modified => &mut self.comparison.modified,
            How::Added => &mut self.comparison.added,
        };
        set.insert(&self.at);
    }
}

/// Encodes the walk.
struct Trace(Vec<u8>);

impl Witness for Trace {
    fn enter(&mut self, element: &Element) {
        // Quoted, so that no name is ambiguous with what follows it.
        element.write(&mut self.0);
    }

    fn leave(&mut self) {
        self.0.push(b'<');
    }

    fn note(&mut self, how: How) {
        self.0.push(match how {
            How::Removed => b'-',
            How::Modified => b'~',
            How::Added => b'+',
        });
    }
}

fn visit(witness: &mut impl Witness, old: Option<&Value>, new: Option<&Value>, shape: Shape<'_>) {
    let mut is_leaf = false;
    for form in forms(shape, old, new) {
        is_leaf = match form {
            Form::Scalar => true,
            Form::List => {
                let (old, new) = (items(old).unwrap_or_default(), items(new).unwrap_or_default());
                (old.is_empty() && new.is_empty()) || shape.list() == ListKind::Atomic
            }
            Form::Map => {
                let is_empty = |value| fields(value).is_none_or(crate::json::Map::is_empty);
                (is_empty(old) && is_empty(new)) || shape.is_atomic_map()
            }
        };
        match form {
            _ if is_leaf => leaf(witness, old, new),
            Form::Map => visit_fields(witness, old, new, shape),
            _ => visit_items(
                witness,
                items(old).unwrap_or_default(),
                items(new).unwrap_or_default(),
                shape,
            ),
        }
    }
    if !is_leaf {
        match (old, new) {
            (None, _) => witness.note(How::Added),
            (_, None) => witness.note(How::Removed),
            _ => {}
        }
    }
}

fn leaf(witness: &mut impl Witness, old: Option<&Value>, new: Option<&Value>) {
    match (old, new) {
        (None, _) => witness.note(How::Added),
        (_, None) => witness.note(How::Removed),
        (Some(old), Some(new)) if !same(old, new) => witness.note(How::Modified),
        _ => {}
    }
}

fn visit_fields(witness: &mut impl Witness, old: Option<&Value>, new: Option<&Value>, shape: Shape<'_>) {
    let [mut old, mut new] = [old, new].map(|value| fields(value).into_iter().flatten().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (Some((old, _)), Some((new, _))) => old.cmp(new),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return,
        };
        let old = old.next_if(|_| order.is_le());
        let new = new.next_if(|_| order.is_ge());
        let Some((name, _)) = old.or(new) else { return };
        let (old, new) = (old.map(|(_, value)| value), new.map(|(_, value)| value));
        // Most values are unchanged, and need no walk.
        if old != new {
            step(witness, &Element::field(name), old, new, shape.member(name));
        }
    }
}

fn visit_items(witness: &mut impl Witness, old: &[Value], new: &[Value], shape: Shape<'_>) {
    if old == new {
        return;
    }
    if are_aligned(old, new, shape) {
        for (old, new) in old.iter().zip(new).filter(|(old, new)| old != new) {
            if let Ok(element) = element_of(shape, new) {
                step(witness, &element, Some(old), Some(new), shape.element());
            }
        }
        return;
    }
    let mut pairs: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for item in old {
        if let Ok(element) = element_of(shape, item) {
            pairs.entry(element).or_default().0.push(item);
        }
    }
    for item in new {
        if let Ok(element) = element_of(shape, item) {
            pairs.entry(element).or_default().1.push(item);
        }
    }
    for (element, (old, new)) in &pairs {
        let item = shape.element();
        match (old.as_slice(), new.as_slice()) {
            ([] | [_], [] | [_]) => {
                step(witness, element, old.first().copied(), new.first().copied(), item);
            }
            // Duplicates are one value, whatever their number.
            ([_, _, ..], [_, _, ..]) => {
                if old.len() != new.len() || old.iter().zip(new).any(|(old, new)| !same(old, new)) {
                    note(witness, element, How::Modified);
                }
            }
            ([_, _, ..], rest) => {
                if let [new] = rest {
                    step(witness, element, None, Some(new), item);
                }
                note(witness, element, How::Removed);
            }
            (rest, _) => {
                if let [old] = rest {
                    step(witness, element, Some(old), None, item);
                }
                note(witness, element, How::Added);
            }
        }
    }
}

fn step(
    witness: &mut impl Witness,
    element: &Element,
    old: Option<&Value>,
    new: Option<&Value>,
    shape: Shape<'_>,
) {
    witness.enter(element);
    visit(witness, old, new, shape);
    witness.leave();
}

fn note(witness: &mut impl Witness, element: &Element, how: How) {
    witness.enter(element);
    witness.note(how);
    witness.leave();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn a_trace_tells_places_and_ways_apart_but_not_values() {
        let traced = |old: Value, new: Value| trace(&old, &new, Shape::Unknown);
        let different = [
            traced(json!({}), json!({})),
            traced(json!({"a": 1}), json!({"a": 2})),
            traced(json!({"a": 1}), json!({})),
            traced(json!({}), json!({"a": 1})),
            traced(json!({"b": 1}), json!({"b": 2})),
            traced(json!({"a": {"b": 1}}), json!({"a": {"b": 2}})),
            traced(json!({"a": 1, "b": 1}), json!({"a": 2, "b": 2})),
            traced(json!({"a": 1, "a\"~<": 1}), json!({"a": 2, "a\"~<": 2})),
        ];
        for (index, one) in different.iter().enumerate() {
            assert!(
                !different[..index].contains(one),
                "number {index} is as one before"
            );
        }
        assert_eq!(
            traced(json!({"a": "x"}), json!({"a": "y"})),
            traced(json!({"a": "y"}), json!({"a": "z"}))
        );
    }
}
