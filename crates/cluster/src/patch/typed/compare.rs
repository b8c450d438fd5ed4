//! The difference between two values of one shape, as sets of paths.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::json::Value;

use super::super::element::{Element, same};
use super::super::fields::{FieldSet, Node};
use super::form::{Form, element_of, fields, forms, items};
use crate::types::{ListKind, Shape};

/// What a write changed.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) removed: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) added: FieldSet,
}

impl Comparison {
    /// The comparison without what is at or below the dotted paths of `reset`.
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
    found.visit(Some(old), Some(new), shape);
    Comparison {
        removed: found.removed.children,
        modified: found.modified.children,
        added: found.added.children,
    }
}

/// Whether two lists have the same items in the same places, as those of a status mostly do: each with a text for the
/// only key, and no two with the same.
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

/// What a write changed at one place and below.
#[derive(Default)]
struct Found {
    removed: Node,
    modified: Node,
    added: Node,
}

impl Found {
    fn visit(&mut self, old: Option<&Value>, new: Option<&Value>, shape: Shape<'_>) {
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
                _ if is_leaf => self.leaf(old, new),
                Form::Map => self.visit_fields(old, new, shape),
                _ => self.visit_items(
                    items(old).unwrap_or_default(),
                    items(new).unwrap_or_default(),
                    shape,
                ),
            }
        }
        if !is_leaf {
            match (old, new) {
                (None, _) => self.added.member = true,
                (_, None) => self.removed.member = true,
                _ => {}
            }
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.added.member = true,
            (_, None) => self.removed.member = true,
            (Some(old), Some(new)) if !same(old, new) => self.modified.member = true,
            _ => {}
        }
    }

    fn visit_fields(&mut self, old: Option<&Value>, new: Option<&Value>, shape: Shape<'_>) {
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
            // Most of what is written is as it was, and a step there would find nothing.
            if old != new {
                self.step(Element::field(name), old, new, shape.member(name));
            }
        }
    }

    fn visit_items(&mut self, old: &[Value], new: &[Value], shape: Shape<'_>) {
        if old == new {
            return;
        }
        if are_aligned(old, new, shape) {
            for (old, new) in old.iter().zip(new).filter(|(old, new)| old != new) {
                if let Ok(element) = element_of(shape, new) {
                    self.step(element, Some(old), Some(new), shape.element());
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
        for (element, (old, new)) in pairs {
            let item = shape.element();
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => self.step(element, old.first().copied(), new.first().copied(), item),
                // Duplicates are one value, however many there are.
                ([_, _, ..], [_, _, ..]) => {
                    if old.len() != new.len() || old.iter().zip(&new).any(|(old, new)| !same(old, new)) {
                        self.modified.children.insert(&[element]);
                    }
                }
                ([_, _, ..], rest) => {
                    if let [new] = rest {
                        self.step(element.clone(), None, Some(new), item);
                    }
                    self.removed.children.insert(&[element]);
                }
                (rest, _) => {
                    if let [old] = rest {
                        self.step(element.clone(), Some(old), None, item);
                    }
                    self.added.children.insert(&[element]);
                }
            }
        }
    }

    fn step(&mut self, element: Element, old: Option<&Value>, new: Option<&Value>, shape: Shape<'_>) {
        let mut below = Self::default();
        below.visit(old, new, shape);
        let Self {
            removed,
            modified,
            added,
        } = below;
        self.removed.children.put(&element, removed);
        self.modified.children.put(&element, modified);
        self.added.children.put(&element, added);
    }
}
