//! Parses JSON with duplicate fields: Go takes the last one and warns.
//!
//! If the type is known, Go decodes the second value into the first, so that two objects are merged.

use std::cell::RefCell;
use std::fmt;

use crate::json::{self, Map, Value};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// How duplicate objects are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DuplicateKeys {
    /// The second is merged into the first.
    Merged,
    /// The last one counts.
    Replaced,
}

/// The value of some JSON, and the paths of its duplicate fields, in the order of their appearance.
pub(super) fn read(bytes: &[u8], twice: DuplicateKeys) -> Result<(Value, Vec<String>), serde_json::Error> {
    // Duplicates are rare.
    if let Ok((value, false)) = json::read(bytes) {
        return Ok((value, Vec::new()));
    }
    let (value, found) = find(bytes, twice)?;
    let mut told = Vec::new();
    for Found { path, .. } in found {
        // Report each path once.
        if !told.contains(&path) {
            told.push(path);
        }
    }
    Ok((value, told))
}

/// Only the paths of duplicate fields; none if it is not valid JSON.
pub(super) fn names(bytes: &[u8]) -> Vec<String> {
    let found = find(bytes, DuplicateKeys::Replaced).map(|(_, found)| found);
    found
        .unwrap_or_default()
        .into_iter()
        .map(|found| found.name)
        .collect()
}

fn find(bytes: &[u8], twice: DuplicateKeys) -> Result<(Value, Vec<Found>), serde_json::Error> {
    let found = RefCell::default();
    let reader = Reader { found: &found, twice };
    let mut source = serde_json::Deserializer::from_slice(bytes);
    let value = reader.deserialize(&mut source)?;
    source.end()?;
    Ok((value, found.into_inner()))
}

/// A duplicate field.
struct Found {
    path: String,
    name: String,
}

/// The duplicate fields of a JSON patch: in itself, and so in the resulting object.
pub(super) fn in_json_patch(patch: &Value, paths: &[String]) -> Vec<String> {
    let own = paths
        .iter()
        .map(|path| format!("json patch duplicate field {path:?}"));
    let made = paths.iter().filter_map(|path| {
        let (index, rest) = path.strip_prefix('[')?.split_once("].value")?;
        let target = patch[index.parse::<usize>().ok()?]["path"].as_str()?;
        let target: Vec<_> = target.trim_start_matches('/').split('/').collect();
        Some(format!("duplicate field {:?}", target.join(".") + rest))
    });
    own.chain(made).collect()
}

#[derive(Clone, Copy)]
struct Reader<'r> {
    found: &'r RefCell<Vec<Found>>,
    twice: DuplicateKeys,
}

impl Reader<'_> {
    fn count(&self) -> usize {
        self.found.borrow().len()
    }

    /// Prefixes the paths that were found in an inner value.
    fn prefix(&self, from: usize, way: impl Fn() -> String) {
        for Found { path, .. } in &mut self.found.borrow_mut()[from..] {
            let dot = if path.starts_with('[') { "" } else { "." };
            *path = format!("{}{dot}{path}", way());
        }
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let before = self.count();
            let Some(item) = source.next_element_seed(self)? else {
                return Ok(items.into());
            };
            self.prefix(before, || format!("[{}]", items.len()));
            items.push(item);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = source.next_key::<String>()? {
            if fields.contains_key(&name) {
                self.found.borrow_mut().push(Found {
                    path: name.clone(),
                    name: name.clone(),
                });
            }
            let before = self.count();
            let value = source.next_value_seed(self)?;
            self.prefix(before, || name.clone());
            match (self.twice, fields.get_mut(&name)) {
                (DuplicateKeys::Merged, Some(first)) => merge(first, value),
                _ => drop(fields.insert(name.into(), value)),
            }
        }
        Ok(fields.into())
    }
}

fn merge(into: &mut Value, value: Value) {
    match (into, value) {
        (Value::Object(into), Value::Object(fields)) => {
            for (name, value) in fields {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, value) => *into = value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    /// From the real server.
    #[test]
    fn what_is_said_twice_is_named_and_the_last_counts() {
        let text = br#"{"metadata":{"name":"a","name":"b"},"data":{"a":"1","a":"2"},"data":{"b":"3"},"l":[{"x":1,"x":2}]}"#;
        let (value, paths) = read(text, DuplicateKeys::Merged).unwrap();
        assert_eq!(paths, ["metadata.name", "data.a", "data", "l[0].x"]);
        assert_eq!(
            value,
            json!({"metadata": {"name": "b"}, "data": {"a": "2", "b": "3"}, "l": [{"x": 2}]})
        );
        let (value, _) = read(text, DuplicateKeys::Replaced).unwrap();
        assert_eq!(value["data"], json!({"b": "3"}));
    }

    #[test]
    fn a_json_patch_names_itself_and_what_comes_of_it() {
        let patch = json!([{"op": "add", "path": "/data", "value": {"a": "6"}}]);
        assert_eq!(
            in_json_patch(&patch, &["[0].value.a".to_owned(), "[0].op".to_owned()]),
            [
                r#"json patch duplicate field "[0].value.a""#,
                r#"json patch duplicate field "[0].op""#,
                r#"duplicate field "data.a""#
            ]
        );
    }
}
