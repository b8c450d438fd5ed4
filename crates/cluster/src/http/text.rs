//! Encodes objects for clients, with their `managedFields` in place.

use std::ops::Range;

use crate::json::{Map, Name, Value, write_name, write_text};

use crate::patch::Managers;

pub(super) use crate::json::write;

const MANAGED_FIELDS: &str = "managedFields";

/// The encoded text of any JSON.
pub(super) fn of(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    write(&mut out, value);
    out
}

/// Appends an object in a resource's form, which may differ from the stored one, and returns the range of its spec. A cached text of the
/// spec is copied.
pub(super) fn write_object(
    out: &mut Vec<u8>,
    shown: &Value,
    managers: &Managers,
    spec: Option<&[u8]>,
) -> Range<usize> {
    write_fields(out, shown, managers, spec, |_| true)
}

/// Appends the items of a list. Those of a built-in kind omit the type that the list has.
pub(super) fn write_items<'o>(
    out: &mut Vec<u8>,
    items: impl Iterator<Item = (std::borrow::Cow<'o, Value>, &'o Managers)>,
    typed: bool,
) {
    out.push(b'[');
    for (index, (shown, managers)) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_fields(out, &shown, managers, None, |name| {
            !typed || !matches!(name, "kind" | "apiVersion")
        });
    }
    out.push(b']');
}

fn write_fields(
    out: &mut Vec<u8>,
    shown: &Value,
    managers: &Managers,
    spec: Option<&[u8]>,
    wanted: impl Fn(&str) -> bool,
) -> Range<usize> {
    let mut place = 0..0;
    let Value::Object(fields) = shown else {
        write(out, shown);
        return place;
    };
    let mut entries = Entries::begin(out);
    for (name, value) in fields.iter().filter(|(name, _)| wanted(name)) {
        let out = entries.next_of(name);
        match (name.as_str(), value, spec) {
            ("metadata", Value::Object(metadata), _) => write_metadata(out, metadata, managers),
            ("spec", value, spec) => {
                let begin = out.len();
                match spec {
                    Some(known) => out.extend_from_slice(known),
                    None => write(out, value),
                }
                place = begin..out.len();
            }
            _ => write(out, value),
        }
    }
    entries.end();
    place
}

fn write_metadata(out: &mut Vec<u8>, metadata: &Map, managers: &Managers) {
    // In the real server's order for built-in kinds: some clients read no further than the version.
    const FIRST: [&str; 5] = ["name", "generateName", "namespace", "uid", "resourceVersion"];
    let mut entries = Entries::begin(out);
    for name in FIRST {
        if let Some(value) = metadata.get(name) {
            write(entries.next(name), value);
        }
    }
    let rest = metadata
        .iter()
        .filter(|(name, _)| !FIRST.contains(&name.as_str()));
    for (name, value) in rest {
        write(entries.next_of(name), value);
    }
    if let Some(managed) = managers.text() {
        entries.next(MANAGED_FIELDS).extend_from_slice(managed.as_bytes());
    }
    entries.end();
}

/// The entries of a map, one after the other.
pub(super) struct Entries<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Entries<'o> {
    pub(super) fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    /// Writes the separator and this name; its value goes next.
    pub(super) fn next(&mut self, name: &str) -> &mut Vec<u8> {
        self.separate();
        write_text(self.out, name);
        self.out.push(b':');
        self.out
    }

    /// The same for a name of a map.
    fn next_of(&mut self, name: &Name) -> &mut Vec<u8> {
        self.separate();
        write_name(self.out, name);
        self.out
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
    }

    pub(super) fn end(self) {
        self.out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use crate::object::Object;
    use crate::patch::managed::{self, Write};
    use crate::types::Shape;
    use rstest::rstest;

    #[rstest]
    #[case(json!({"a": 1, "metadata": {"labels": {}, "name": "x"}, "z": null}))]
    #[case(json!({"metadata": {"labels": {"a\"b": "<é>"}}}))]
    #[case(json!({"metadata": {}}))]
    #[case(json!({"metadata": {}, "spec": {"a": [1]}, "status": {}}))]
    fn the_text_of_an_object_is_that_of_the_whole(#[case] mut value: Value) {
        let write = Write {
            manager: "m\"m",
            subresource: "",
            api_version: "v1",
            kind: "Thing",
            reset: &[],
            now: "2026-01-01T00:00:00Z",
        };
        let managers = managed::update(None, &mut value, &write, Shape::Unknown);
        let object = Object::new(value, managers);
        let mut out = Vec::new();
        let spec = write_object(&mut out, &object, &object.managers, None);
        assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), object.whole());
        let mut again = Vec::new();
        write_object(&mut again, &object, &object.managers, Some(&out[spec]));
        assert_eq!(again, out);
    }
}
