//! The stored form of a manager's fields: the text of `fieldsV1`, which is far smaller than the set.

use std::sync::{Arc, LazyLock};

use crate::json::Value;
use parking_lot::{Mutex, MutexGuard};

use super::element::Element;
use super::fields::FieldSet;
use crate::hash::Table;

/// The text of a set of paths. Sets with the same paths have the same text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owned(Arc<str>);

/// Parsed sets by their text. Similar objects have the same owners, so few texts are parsed more than once.
static READ: LazyLock<Mutex<Table<Arc<str>, Arc<FieldSet>>>> = LazyLock::new(Mutex::default);
/// The number of cached sets.
const REMEMBERED: usize = 1024;
/// Longer texts are not cached.
const LONGEST: usize = 64 * 1024;

impl Owned {
    pub(super) fn of(set: FieldSet) -> Self {
        let text = set.text();
        let mut known = known();
        if let Some((text, _)) = known.get_key_value(text.as_str()) {
            return Self(text.clone());
        }
        let text: Arc<str> = text.into();
        remember(&mut known, &text, Arc::new(set));
        Self(text)
    }

    pub(super) fn set(&self) -> Arc<FieldSet> {
        let mut known = known();
        if let Some(set) = known.get(&self.0) {
            return set.clone();
        }
        // It was encoded from a set, so it parses.
        let fields: Value = serde_json::from_str(&self.0).unwrap_or_default();
        let set = Arc::new(FieldSet::read(&fields).unwrap_or_default());
        remember(&mut known, &self.0, set.clone());
        set
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        &*self.0 == "{}"
    }

    /// Removes the paths in any of these sets.
    pub(super) fn subtract(&mut self, others: &[&FieldSet]) {
        if others.iter().all(|other| self.is_foreign_to(other)) {
            return;
        }
        let set = self.set();
        if !others.iter().any(|other| set.meets(other)) {
            return;
        }
        let mut left = FieldSet::clone(&set);
        others.iter().for_each(|other| left.subtract(other));
        *self = Self::of(left);
    }

    /// Adds another set.
    pub(super) fn add(&mut self, other: FieldSet) {
        let set = self.set();
        if !set.covers(&other) {
            let mut all = FieldSet::clone(&set);
            all.add(other);
            *self = Self::of(all);
        }
    }

    /// Whether the text alone shows that the sets are disjoint: it contains none of the fields that the other begins with. A write of the
    /// status need not parse the owners of the spec.
    fn is_foreign_to(&self, other: &FieldSet) -> bool {
        other.first_steps().all(|step| match step {
            Element::Field(name) if name.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                !self.0.contains(&format!("\"f:{name}\""))
            }
            _ => false,
        })
    }
}

fn known() -> MutexGuard<'static, Table<Arc<str>, Arc<FieldSet>>> {
    READ.lock()
}

fn remember(known: &mut Table<Arc<str>, Arc<FieldSet>>, text: &Arc<str>, set: Arc<FieldSet>) {
    if text.len() > LONGEST {
        return;
    }
    if known.len() == REMEMBERED {
        known.clear();
    }
    known.insert(text.clone(), set);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    fn set(fields: &Value) -> FieldSet {
        FieldSet::read(fields).unwrap()
    }

    #[rstest]
    #[case(json!({"f:spec": {"f:a": {}}}), json!({"f:status": {"f:a": {}}}), json!({"f:spec": {"f:a": {}}}))]
    #[case(json!({"f:spec": {"f:status": {}}}), json!({"f:status": {}}), json!({"f:spec": {"f:status": {}}}))]
    #[case(json!({"f:spec": {"f:a": {}, "f:b": {}}}), json!({"f:spec": {"f:a": {}}}), json!({"f:spec": {"f:b": {}}}))]
    #[case(json!({"f:a\"b": {}}), json!({"f:a\"b": {}}), json!({}))]
    #[case(json!({"f:é": {}, "v:1": {}}), json!({"f:é": {}}), json!({"v:1": {}}))]
    fn what_is_taken_out_is_gone(#[case] fields: Value, #[case] other: Value, #[case] left: Value) {
        let mut owned = Owned::of(set(&fields));
        owned.subtract(&[&set(&other)]);
        assert_eq!(owned, Owned::of(set(&left)));
        assert_eq!(*owned.set(), set(&left));
    }

    #[rstest]
    #[case(json!({"f:a": {".": {}, "f:b": {}}}), json!({"f:a": {"f:b": {}}}))]
    #[case(json!({"f:a": {"f:b": {}}}), json!({"f:a": {}}))]
    #[case(json!({}), json!({"f:a": {}}))]
    fn what_is_taken_in_is_there(#[case] fields: Value, #[case] other: Value) {
        let mut owned = Owned::of(set(&fields));
        owned.add(set(&other));
        assert_eq!(*owned.set(), set(&fields).union(&set(&other)));
    }
}
