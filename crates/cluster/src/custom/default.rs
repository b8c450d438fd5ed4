//! Structural defaulting: sets absent fields to the schema's defaults.

use crate::json::Value;

use super::definition::CustomType;
use super::schema::Schema;

/// Sets defaults, on objects from clients and from the store.
pub(crate) fn default(custom: &CustomType, value: &mut Value) {
    fill(value, custom.schema());
}

/// A default value gets its own inner defaults.
pub(super) fn fill(value: &mut Value, schema: &Schema) {
    // Check first: mutable access copies a shared value.
    if is_full(value, schema) {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, known) in &schema.properties {
                let Some(default) = &known.default else { continue };
                let absent = fields
                    .get(name)
                    .is_none_or(|value| value.is_null() && !known.nullable);
                if absent {
                    fields.insert(name.into(), default.clone());
                }
            }
            for (name, value) in fields.iter_mut() {
                match (schema.properties.get(name.as_str()), schema.additional()) {
                    (Some(known), _) => fill(value, known),
                    (None, Some(known)) => fill_element(value, known),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                items.iter_mut().for_each(|item| fill_element(item, inner));
            }
        }
        _ => {}
    }
}

/// Whether there are no defaults to set.
fn is_full(value: &Value, schema: &Schema) -> bool {
    if !schema.inside.defaults {
        return true;
    }
    let is_full_element = |value: &Value, known: &Schema| {
        !(value.is_null() && !known.nullable && known.default.is_some()) && is_full(value, known)
    };
    match value {
        Value::Object(fields) => {
            let mut known = schema.properties.iter();
            known.all(|(name, known)| match fields.get(name) {
                Some(value) => is_full_element(value, known),
                None => known.default.is_none(),
            }) && schema.additional().is_none_or(|known| {
                let mut others = fields
                    .iter()
                    .filter(|(name, _)| !schema.properties.contains_key(name.as_str()));
                others.all(|(_, value)| is_full_element(value, known))
            })
        }
        Value::Array(items) => {
            let inner = schema.items.as_deref();
            inner.is_none_or(|inner| items.iter().all(|item| is_full_element(item, inner)))
        }
        _ => true,
    }
}

/// A null element becomes its default, or stays null, so that validation rejects it.
fn fill_element(value: &mut Value, schema: &Schema) {
    if value.is_null() && !schema.nullable {
        *value = schema.default.clone().unwrap_or(Value::Null);
    }
    fill(value, schema);
}
