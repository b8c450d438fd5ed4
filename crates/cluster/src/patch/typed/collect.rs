//! Collects the leaves and items of a value: the fields that a manager owns after applying it.

use std::collections::BTreeMap;

use crate::json::Value;

use super::super::element::Element;
use super::super::fields::FieldSet;
use super::form::{Form, element_of, fields, form, is_named, items};
use crate::types::{ListKind, Shape};

/// The paths in `value`.
pub(crate) fn collect(value: &Value, shape: Shape<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    visit(&mut set, &mut Vec::new(), value, shape);
    set
}

fn visit(set: &mut FieldSet, path: &mut Vec<Element>, value: &Value, shape: Shape<'_>) {
    match form(shape, value) {
        Form::Scalar => set.insert(path),
        Form::List if shape.list() == ListKind::Atomic => set.insert(path),
        Form::List => visit_items(set, path, items(Some(value)).unwrap_or_default(), shape),
        Form::Map if shape.is_atomic_map() => set.insert(path),
        Form::Map => {
            for (name, value) in fields(Some(value)).into_iter().flatten() {
                path.push(Element::field(name));
                visit(set, path, value, shape.member(name));
                // A field of a struct is owned through its leaves, a key of a map is owned itself.
                let is_empty = value.is_null() || value.as_object().is_some_and(crate::json::Map::is_empty);
                if is_empty || !is_named(shape, name) {
                    set.insert(path);
                }
                path.pop();
            }
        }
    }
}

fn visit_items(set: &mut FieldSet, path: &mut Vec<Element>, list: &[Value], shape: Shape<'_>) {
    let mut by_element: BTreeMap<Element, Vec<&Value>> = BTreeMap::new();
    for item in list {
        if let Ok(element) = element_of(shape, item) {
            by_element.entry(element).or_default().push(item);
        }
    }
    for (element, items) in by_element {
        path.push(element);
        // Parts of duplicate items cannot be owned.
        if let [item] = items.as_slice() {
            visit(set, path, item, shape.element());
        }
        set.insert(path);
        path.pop();
    }
}
