//! Merges an applied configuration into a live value.

use std::collections::{BTreeMap, BTreeSet};

use crate::json::{Map, Name, Value};

use super::super::element::Element;
use super::form::{Form, element_of, fields, forms, items};
use crate::types::{ListKind, Shape};

/// `live` with everything in `config`. Nothing is removed. `None` if neither has anything.
pub(crate) fn join(live: Option<&Value>, config: Option<&Value>, shape: Shape<'_>) -> Option<Value> {
    // If the two have different forms, the configuration's wins.
    match forms(shape, live, config).last()? {
        Form::Scalar => config.or(live).cloned(),
        Form::List => {
            let (old, new) = (items(live).unwrap_or_default(), items(config).unwrap_or_default());
            if shape.list() == ListKind::Atomic || (old.is_empty() && new.is_empty()) {
                return config.or(live).cloned();
            }
            let joined = join_items(old, new, shape);
            (!joined.is_empty()).then_some(joined.into())
        }
        Form::Map => {
            let (old, new) = (fields(live), fields(config));
            let is_empty = |fields: Option<&Map>| fields.is_none_or(Map::is_empty);
            if shape.is_atomic_map() || (is_empty(old) && is_empty(new)) {
                return config.or(live).cloned();
            }
            let joined = join_fields(old, new, shape);
            (!joined.is_empty()).then_some(Value::Object(joined))
        }
    }
}

fn join_fields(live: Option<&Map>, config: Option<&Map>, shape: Shape<'_>) -> Map {
    let names: BTreeSet<&Name> = live.into_iter().chain(config).flat_map(Map::keys).collect();
    let joined = names.into_iter().filter_map(|name| {
        let live = live.and_then(|fields| fields.get(name));
        let config = config.and_then(|fields| fields.get(name));
        Some((name.clone(), join(live, config, shape.member(name))?))
    });
    joined.collect()
}

/// Shared items come in the order of the configuration, items of one side keep their place relative to those.
fn join_items(live: &[Value], config: &[Value], shape: Shape<'_>) -> Vec<Value> {
    let (left, right) = (Index::of(live, shape), Index::of(config, shape));
    let mut shared = right
        .order
        .iter()
        .filter(|(element, _)| left.items.contains_key(element))
        .peekable();
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let mut out = Vec::new();
    let both = |element| join(left.get(element), right.get(element), shape.element());
    let (mut at_left, mut at_right) = (0, 0);
    loop {
        let next = (left.order.get(at_left), right.order.get(at_right));
        if next == (None, None) {
            return out;
        }
        if let (Some((ours, _)), Some((theirs, _))) = next {
            if ours == theirs {
                done.insert(theirs);
                out.extend(both(theirs));
                (at_left, at_right) = (at_left + 1, at_right + 1);
                shared.next();
                continue;
            }
            // Both have it, but another shared item comes first.
            if right.items.contains_key(ours) && shared.peek().is_some_and(|(next, _)| next != ours) {
                at_left += 1;
                continue;
            }
        }
        if let Some((ours, item)) = next.0 {
            if !right.items.contains_key(ours) {
                out.extend(join(Some(item), None, shape.element()));
                at_left += 1;
                continue;
            }
            if done.contains(ours) {
                at_left += 1;
            }
        }
        if let Some((theirs, _)) = next.1 {
            done.insert(theirs);
            out.extend(both(theirs));
            at_right += 1;
            shared.next_if(|(next, _)| next == theirs);
        }
    }
}

/// The items of a list, in order and by identity.
struct Index<'v> {
    order: Vec<(Element, &'v Value)>,
    /// Null for a duplicate item: it is replaced, not merged.
    items: BTreeMap<Element, &'v Value>,
}

impl<'v> Index<'v> {
    fn of(list: &'v [Value], shape: Shape<'_>) -> Self {
        let order: Vec<_> = list
            .iter()
            .filter_map(|item| Some((element_of(shape, item).ok()?, item)))
            .collect();
        let mut items = BTreeMap::new();
        for (element, item) in &order {
            items
                .entry(element.clone())
                .and_modify(|seen| *seen = &Value::Null)
                .or_insert(*item);
        }
        Self { order, items }
    }

    fn get(&self, element: &Element) -> Option<&'v Value> {
        self.items.get(element).copied()
    }
}
