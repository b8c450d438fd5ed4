//! Structural defaulting: filling in what the schema says an absent field is.

use crate::json::Value;

use super::definition::CustomType;
use super::schema::Schema;

/// Fills in defaults, on what clients write and on what the store gives back.
pub(crate) fn default(custom: &CustomType, value: &mut Value) {
    fill(value, custom.schema());
}

/// A default that is put in place gets its own inner defaults.
pub(super) fn fill(value: &mut Value, schema: &Schema) {
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

/// A null element becomes its default, or stays null for validation to refuse.
fn fill_element(value: &mut Value, schema: &Schema) {
    if value.is_null() && !schema.nullable {
        *value = schema.default.clone().unwrap_or(Value::Null);
    }
    fill(value, schema);
}
