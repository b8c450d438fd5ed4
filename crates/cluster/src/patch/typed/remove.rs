//! Removes paths from a value.

use crate::json::Value;

use super::super::element::Element;
use super::super::fields::FieldSet;
use super::form::{Form, element_of, form};
use crate::types::{ListKind, Shape};

/// `value` without the fields and items of `gone`. A value that becomes empty, or that can only be removed as a whole, becomes null.
pub(crate) fn remove(value: &Value, gone: &FieldSet, shape: Shape<'_>) -> Value {
    match (form(shape, value), value) {
        (Form::Scalar, scalar) => scalar.clone(),
        (Form::List, Value::Array(items)) if shape.list() != ListKind::Atomic => {
            let kept: Vec<_> = items
                .iter()
                .filter_map(|item| keep_item(item, gone, shape))
                .collect();
            if kept.is_empty() { Value::Null } else { kept.into() }
        }
        (Form::Map, Value::Object(fields)) if !shape.is_atomic_map() => {
            let kept: crate::json::Map = fields
                .iter()
                .filter_map(|(name, value)| {
                    let element = Element::field(name);
                    Some((name.clone(), keep(value, &element, gone, shape.member(name))?))
                })
                .collect();
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Object(kept)
            }
        }
        _ => Value::Null,
    }
}

fn keep_item(item: &Value, gone: &FieldSet, list: Shape<'_>) -> Option<Value> {
    match element_of(list, item) {
        Ok(element) => keep(item, &element, gone, list.element()),
        Err(_) => Some(item.clone()),
    }
}

fn keep(value: &Value, element: &Element, gone: &FieldSet, shape: Shape<'_>) -> Option<Value> {
    if gone.has(std::slice::from_ref(element)) {
        return None;
    }
    Some(match gone.below(element) {
        Some(below) => remove(value, below, shape),
        None => value.clone(),
    })
}
