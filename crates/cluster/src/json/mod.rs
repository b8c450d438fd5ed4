//! JSON that is cheap to copy, used by the whole crate.
//!
//! A Kubernetes object is written again and again with few changes, and its old states stay alive in logs and caches. So maps, lists and
//! strings are shared: a copy is a reference count, a change copies only the maps on the path to it, and two values that share an
//! allocation are known to be equal without comparing their contents. Otherwise this is `serde_json::Value`, with its names and
//! conventions.

mod convert;
mod list;
mod literal;
mod map;
mod name;
mod serde;
mod text;

use std::ops::{Index, IndexMut};
use std::sync::Arc;

pub(crate) use list::List;
pub(crate) use literal::{ToJson, json};
pub(crate) use map::Map;
pub(crate) use name::{Name, know};
pub(crate) use serde::read;
pub(crate) use serde_json::Number;
pub(crate) use text::{is_plain, write, write_name, write_text};

/// Any JSON.
#[derive(Clone, Debug, Default)]
pub(crate) enum Value {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    String(Arc<str>),
    Array(List),
    Object(Map),
}

static NULL: Value = Value::Null;

impl Value {
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::Number(_))
    }

    pub(crate) fn is_string(&self) -> bool {
        matches!(self, Self::String(_))
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self, Self::Array(_))
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn as_number(&self) -> Option<&Number> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    pub(crate) fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    pub(crate) fn as_f64(&self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_array(&self) -> Option<&Vec<Value>> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_object(&self) -> Option<&Map> {
        match self {
            Self::Object(fields) => Some(fields),
            _ => None,
        }
    }

    pub(crate) fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Self::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// The field of this name, or the item at this index.
    pub(crate) fn get(&self, place: impl Place) -> Option<&Value> {
        place.find(self)
    }

    pub(crate) fn get_mut(&mut self, place: impl Place) -> Option<&mut Value> {
        place.find_mut(self)
    }

    /// The value at a JSON pointer (RFC 6901).
    pub(crate) fn pointer(&self, pointer: &str) -> Option<&Value> {
        steps(pointer)?.try_fold(self, |value, step| match value {
            Self::Object(fields) => fields.get(&step),
            Self::Array(items) => items.get(index(&step)?),
            _ => None,
        })
    }

    pub(crate) fn pointer_mut(&mut self, pointer: &str) -> Option<&mut Value> {
        steps(pointer)?.try_fold(self, |value, step| match value {
            Self::Object(fields) => fields.get_mut(&step),
            Self::Array(items) => items.get_mut(index(&step)?),
            _ => None,
        })
    }

    /// Whether both share the same allocation: not only equal, but stored once.
    pub(crate) fn shares(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(left), Self::Array(right)) => left.shares(right),
            (Self::Object(left), Self::Object(right)) => left.shares(right),
            (Self::String(left), Self::String(right)) => Arc::ptr_eq(left, right),
            (Self::Null, Self::Null) => true,
            (Self::Bool(left), Self::Bool(right)) => left == right,
            (Self::Number(left), Self::Number(right)) => left == right,
            _ => false,
        }
    }
}

fn steps(pointer: &str) -> Option<impl Iterator<Item = String>> {
    let steps = match pointer.strip_prefix('/') {
        Some(steps) => Some(steps),
        None if pointer.is_empty() => None,
        None => return None,
    };
    let steps = steps.map(|steps| steps.split('/'));
    Some(
        steps
            .into_iter()
            .flatten()
            .map(|step| step.replace("~1", "/").replace("~0", "~")),
    )
}

fn index(step: &str) -> Option<usize> {
    let is_plain = !step.starts_with('+') && (step.len() == 1 || !step.starts_with('0'));
    step.parse().ok().filter(|_| is_plain)
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(left), Self::Array(right)) => left == right,
            (Self::Object(left), Self::Object(right)) => left == right,
            (Self::String(left), Self::String(right)) => left == right,
            (Self::Null, Self::Null) => true,
            (Self::Bool(left), Self::Bool(right)) => left == right,
            (Self::Number(left), Self::Number(right)) => left == right,
            _ => false,
        }
    }
}

/// A step into a value.
pub(crate) trait Place {
    fn find<'v>(&self, value: &'v Value) -> Option<&'v Value>;
    fn find_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value>;
    /// The value at this step, created if it is missing.
    fn make<'v>(&self, value: &'v mut Value) -> &'v mut Value;
}

impl Place for str {
    #[inline]
    fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        value.as_object()?.get(self)
    }

    fn find_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        value.as_object_mut()?.get_mut(self)
    }

    fn make<'v>(&self, value: &'v mut Value) -> &'v mut Value {
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
        match value {
            Value::Object(fields) => fields.entry(self).or_insert(Value::Null),
            other => panic!("cannot access field {self:?} of {other}"),
        }
    }
}

impl Place for String {
    fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        Place::find(self.as_str(), value)
    }

    fn find_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        self.as_str().find_mut(value)
    }

    fn make<'v>(&self, value: &'v mut Value) -> &'v mut Value {
        self.as_str().make(value)
    }
}

impl Place for Name {
    fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        Place::find(self.as_str(), value)
    }

    fn find_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        self.as_str().find_mut(value)
    }

    fn make<'v>(&self, value: &'v mut Value) -> &'v mut Value {
        self.as_str().make(value)
    }
}

impl Place for usize {
    fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        value.as_array()?.get(*self)
    }

    fn find_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        value.as_array_mut()?.get_mut(*self)
    }

    fn make<'v>(&self, value: &'v mut Value) -> &'v mut Value {
        match value.as_array_mut().and_then(|items| items.get_mut(*self)) {
            Some(item) => item,
            None => panic!("no item {self}"),
        }
    }
}

impl<P: Place + ?Sized> Place for &P {
    #[inline]
    fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        (**self).find(value)
    }

    fn find_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        (**self).find_mut(value)
    }

    fn make<'v>(&self, value: &'v mut Value) -> &'v mut Value {
        (**self).make(value)
    }
}

/// Null if there is nothing.
impl<P: Place> Index<P> for Value {
    type Output = Value;

    #[inline]
    fn index(&self, place: P) -> &Value {
        place.find(self).unwrap_or(&NULL)
    }
}

/// Creates a missing field.
impl<P: Place> IndexMut<P> for Value {
    fn index_mut(&mut self, place: P) -> &mut Value {
        place.make(self)
    }
}

#[cfg(test)]
mod tests;
