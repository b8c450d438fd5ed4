//! Set and map lists: no duplicates.

use std::collections::BTreeMap;

use crate::json::{Map, Value};

use super::decode::{inside, joined};
use super::fault;
use super::schema::{ListType, Schema};
use crate::status::FieldError;

/// The duplicates in every set and map list of an object. Each is reported once, at its second position.
pub(super) fn duplicates(value: &Value, schema: &Schema, at: &str, errors: &mut Vec<FieldError>) {
    if !schema.inside.keyed_lists {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(known) = schema.additional() {
                    duplicates(value, known, &inside(at, name), errors);
                }
                if let Some(known) = schema.properties.get(name.as_str()) {
                    duplicates(value, known, &joined(at, name), errors);
                }
            }
        }
        Value::Array(items) => {
            match &schema.list {
                ListType::Atomic => {}
                ListType::Set => {
                    let repeated = repeated(items.iter());
                    let told = repeated.into_iter().filter_map(|index| {
                        let item = items.get(index)?;
                        Some(fault::duplicate(format!("{at}[{index}]"), Some(item)))
                    });
                    errors.extend(told);
                }
                ListType::Map(keys) => map_duplicates(items, keys, at, errors),
            }
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    duplicates(item, inner, &inside(at, index.to_string()), errors);
                }
            }
        }
        _ => {}
    }
}

fn map_duplicates(items: &[Value], keys: &[String], at: &str, errors: &mut Vec<FieldError>) {
    if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
        let detail = "must be an object for an array of list-type map";
        errors.push(fault::invalid(format!("{at}[{index}]"), items.get(index), detail));
        return;
    }
    let chosen: Vec<Value> = items
        .iter()
        .map(|item| {
            let present = keys
                .iter()
                .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
            Value::Object(present.collect::<Map>())
        })
        .collect();
    let told = repeated(chosen.iter()).into_iter().filter_map(|index| {
        let key = chosen.get(index)?;
        Some(fault::duplicate(format!("{at}[{index}]"), Some(key)))
    });
    errors.extend(told);
}

/// The indexes of values that occur for the second time.
fn repeated<'v>(values: impl Iterator<Item = &'v Value>) -> Vec<usize> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut places = Vec::new();
    for (index, value) in values.enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            places.push(index);
        }
    }
    places
}
