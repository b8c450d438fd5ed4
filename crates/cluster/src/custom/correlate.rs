//! Finds the old value for each part of an object, for ratcheting and transition rules.
//!
//! An error in an unchanged part is ignored, so that a schema can become stricter while old objects remain.

use crate::json::{Name, Value};

use super::schema::{ListType, Schema};

/// The part of the old object that corresponds to the current part of the new one.
#[derive(Clone, Copy)]
pub(super) struct Before<'v> {
    pub(super) value: &'v Value,
    /// The structural schema here, which defines how lists are matched.
    schema: &'v Schema,
}

impl<'v> Before<'v> {
    pub(super) fn new(value: &'v Value, schema: &'v Schema) -> Self {
        Self { value, schema }
    }

    /// The part at a field, if both objects have it and the schema declares it.
    pub(super) fn member(self, name: &str) -> Option<Self> {
        Some(Self {
            value: self.value.as_object()?.get(name)?,
            schema: self.schema.member(name)?,
        })
    }

    /// The part at an element of the new list. Only map lists can be matched by element.
    pub(super) fn element(self, item: &Value) -> Option<Self> {
        let value = matching(self.schema, self.value, item)?;
        Some(Self {
            value,
            schema: self.schema.items.as_deref()?,
        })
    }

    /// Whether nothing changed here. The order of map lists does not matter.
    pub(super) fn is_same(self, new: &Value) -> bool {
        match (self.value, new) {
            (Value::Array(old), Value::Array(new)) if matches!(self.schema.list, ListType::Map(_)) => {
                let same = |item: &Value| self.element(item).is_some_and(|before| before.is_same(item));
                old.len() == new.len() && new.iter().all(same)
            }
            (Value::Object(old), Value::Object(new)) => {
                let same = |(name, item): (&Name, &Value)| {
                    self.member(name).is_some_and(|before| before.is_same(item))
                };
                old.len() == new.len() && new.iter().all(same)
            }
            (old, new) => old == new,
        }
    }
}

/// The element of an old map list with the same keys as `item`.
pub(super) fn matching<'v>(schema: &Schema, old: &'v Value, item: &Value) -> Option<&'v Value> {
    let ListType::Map(keys) = &schema.list else {
        return None;
    };
    if keys.is_empty() || schema.kind != "array" {
        return None;
    }
    let key = |value: &Value| {
        let scalar = |key: &String| {
            value
                .get(key)
                .filter(|v| !v.is_null() && !v.is_object() && !v.is_array())
                .cloned()
        };
        keys.iter().map(scalar).collect::<Option<Vec<_>>>()
    };
    let wanted = key(item)?;
    old.as_array()?
        .iter()
        .find(|candidate| key(candidate).is_some_and(|key| key == wanted))
}

/// The old value with its set and map lists in the order of the new one, where they are equal: to a rule they are equal then.
pub(super) fn aligned(old: &Value, new: &Value, schema: &Schema) -> Value {
    match (old, new) {
        (Value::Object(fields), Value::Object(new)) => {
            let aligned = fields
                .iter()
                .map(|(name, old)| match (new.get(name), schema.member(name)) {
                    (Some(new), Some(known)) => (name.clone(), aligned(old, new, known)),
                    _ => (name.clone(), old.clone()),
                });
            Value::Object(aligned.collect())
        }
        (Value::Array(items), Value::Array(new))
            if schema.list != ListType::Atomic && items.len() == new.len() =>
        {
            let inner = schema.items.as_deref();
            let counterpart = |item: &Value| match &schema.list {
                ListType::Map(_) => {
                    let old = matching(schema, old, item)?;
                    Some(inner.map_or_else(|| old.clone(), |inner| aligned(old, item, inner)))
                }
                _ => items.contains(item).then(|| item.clone()),
            };
            let all: Option<Vec<_>> = new.iter().map(counterpart).collect();
            all.map_or_else(|| old.clone(), Value::from)
        }
        _ => old.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    #[rstest]
    #[case(json!({"set": ["a", "b"]}), json!({"set": ["b", "a"]}), true)]
    #[case(json!({"set": ["a", "b"]}), json!({"set": ["b", "c"]}), false)]
    #[case(json!({"map": [{"k": "a", "v": 1}, {"k": "b"}]}), json!({"map": [{"k": "b"}, {"k": "a", "v": 1}]}), true)]
    #[case(json!({"map": [{"k": "a", "v": 1}, {"k": "b"}]}), json!({"map": [{"k": "b"}, {"k": "a", "v": 2}]}), false)]
    #[case(json!({"list": ["a", "b"]}), json!({"list": ["b", "a"]}), false)]
    fn sets_and_maps_are_equal_in_any_order(#[case] old: Value, #[case] new: Value, #[case] same: bool) {
        let text = json!({"type": "string"});
        let schema = Schema::read(&json!({"type": "object", "properties": {
            "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
            "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": text, "v": {"type": "integer"}}}},
            "list": {"type": "array", "items": text},
        }}));
        assert_eq!(aligned(&old, &new, &schema) == new, same);
    }
}
