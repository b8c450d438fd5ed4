//! The items of a list.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::Value;

/// Items in order. Shared until one is changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct List(Arc<Vec<Value>>);

impl List {
    /// Whether both share the same allocation.
    pub(crate) fn shares(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn into_vec(self) -> Vec<Value> {
        Arc::unwrap_or_clone(self.0)
    }
}

impl Deref for List {
    type Target = Vec<Value>;

    fn deref(&self) -> &Vec<Value> {
        &self.0
    }
}

impl DerefMut for List {
    fn deref_mut(&mut self) -> &mut Vec<Value> {
        Arc::make_mut(&mut self.0)
    }
}

impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        self.shares(other) || self.0 == other.0
    }
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> Self {
        Self(Arc::new(items))
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        Self(Arc::new(items.into_iter().collect()))
    }
}

impl IntoIterator for List {
    type Item = Value;
    type IntoIter = std::vec::IntoIter<Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_vec().into_iter()
    }
}

impl<'l> IntoIterator for &'l List {
    type Item = &'l Value;
    type IntoIter = std::slice::Iter<'l, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'l> IntoIterator for &'l mut List {
    type Item = &'l mut Value;
    type IntoIter = std::slice::IterMut<'l, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
