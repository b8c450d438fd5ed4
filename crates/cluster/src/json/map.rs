//! The fields of an object, sorted by name.

use std::sync::Arc;

use super::{Name, Value};

/// Fields by name. Shared until one is changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Map(Arc<Vec<(Name, Value)>>);

/// Up to here, linear search by length and content is faster than binary search.
const FEW: usize = 24;

impl Map {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Fields that are sorted already, without duplicate names.
    pub(crate) fn of_sorted(fields: Vec<(Name, Value)>) -> Self {
        debug_assert!(fields.is_sorted_by(|(left, _), (right, _)| left < right));
        Self(Arc::new(fields))
    }

    /// Whether both share the same allocation.
    pub(crate) fn shares(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The index of the field of this name, or where to insert it.
    #[inline(never)]
    fn search(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.as_str().cmp(name))
    }

    fn find(&self, name: &str) -> Option<usize> {
        match self.0.len() {
            ..=FEW => self.0.iter().position(|(known, _)| known.is(name)),
            _ => self.search(name).ok(),
        }
    }

    fn fields(&mut self) -> &mut Vec<(Name, Value)> {
        Arc::make_mut(&mut self.0)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.find(name).map(|at| &self.0[at].1)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let at = self.find(name)?;
        Some(&mut self.fields()[at].1)
    }

    pub(crate) fn contains_key(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Inserts a field. An equal value changes nothing.
    pub(crate) fn insert(&mut self, name: Name, value: Value) -> Option<Value> {
        match self.search(&name) {
            Ok(at) if self.0[at].1.shares(&value) => Some(value),
            Ok(at) => Some(std::mem::replace(&mut self.fields()[at].1, value)),
            Err(at) => {
                self.fields().insert(at, (name, value));
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.find(name)?;
        Some(self.fields().remove(at).1)
    }

    pub(crate) fn entry(&mut self, name: impl AsRef<str> + Into<Name>) -> Entry<'_> {
        match self.search(name.as_ref()) {
            Ok(at) => Entry::Occupied(&mut self.fields()[at].1),
            Err(at) => Entry::Vacant {
                at,
                name: name.into(),
                map: self,
            },
        }
    }

    pub(crate) fn iter(&self) -> Iter<'_> {
        let field: fn(&(Name, Value)) -> (&Name, &Value) = |(name, value)| (name, value);
        self.0.iter().map(field)
    }

    pub(crate) fn iter_mut(&mut self) -> IterMut<'_> {
        let field: fn(&mut (Name, Value)) -> (&Name, &mut Value) = |(name, value)| (name, value);
        self.fields().iter_mut().map(field)
    }

    pub(crate) fn keys(&self) -> impl DoubleEndedIterator<Item = &Name> + Clone {
        self.0.iter().map(|(name, _)| name)
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + Clone {
        self.0.iter().map(|(_, value)| value)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.fields().iter_mut().map(|(_, value)| value)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    pub(crate) fn retain(&mut self, mut wanted: impl FnMut(&Name, &mut Value) -> bool) {
        self.fields().retain_mut(|(name, value)| wanted(name, value));
    }
}

type Iter<'m> = std::iter::Map<
    std::slice::Iter<'m, (Name, Value)>,
    for<'f> fn(&'f (Name, Value)) -> (&'f Name, &'f Value),
>;

type IterMut<'m> = std::iter::Map<
    std::slice::IterMut<'m, (Name, Value)>,
    for<'f> fn(&'f mut (Name, Value)) -> (&'f Name, &'f mut Value),
>;

/// A field that may be missing.
pub(crate) enum Entry<'m> {
    Occupied(&'m mut Value),
    Vacant { map: &'m mut Map, at: usize, name: Name },
}

impl<'m> Entry<'m> {
    pub(crate) fn or_insert(self, value: Value) -> &'m mut Value {
        self.or_insert_with(|| value)
    }

    pub(crate) fn or_insert_with(self, value: impl FnOnce() -> Value) -> &'m mut Value {
        match self {
            Self::Occupied(there) => there,
            Self::Vacant { map, at, name } => {
                let fields = map.fields();
                fields.insert(at, (name, value()));
                &mut fields[at].1
            }
        }
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.shares(other) || self.0 == other.0
    }
}

impl FromIterator<(Name, Value)> for Map {
    /// Of two fields with the same name the last counts.
    fn from_iter<I: IntoIterator<Item = (Name, Value)>>(fields: I) -> Self {
        let mut fields: Vec<_> = fields.into_iter().collect();
        if !fields.is_sorted_by(|(left, _), (right, _)| left < right) {
            fields.sort_by(|(left, _), (right, _)| left.cmp(right));
            fields.dedup_by(|later, first| {
                let is_same = later.0 == first.0;
                if is_same {
                    std::mem::swap(later, first);
                }
                is_same
            });
        }
        Self::of_sorted(fields)
    }
}

impl FromIterator<(String, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(fields: I) -> Self {
        fields
            .into_iter()
            .map(|(name, value)| (Name::from(name), value))
            .collect()
    }
}

impl Extend<(Name, Value)> for Map {
    fn extend<I: IntoIterator<Item = (Name, Value)>>(&mut self, fields: I) {
        for (name, value) in fields {
            self.insert(name, value);
        }
    }
}

impl IntoIterator for Map {
    type Item = (Name, Value);
    type IntoIter = std::vec::IntoIter<(Name, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

impl<'m> IntoIterator for &'m mut Map {
    type Item = (&'m Name, &'m mut Value);
    type IntoIter = IterMut<'m>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<'m> IntoIterator for &'m Map {
    type Item = (&'m Name, &'m Value);
    type IntoIter = Iter<'m>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
