//! Serialization with serde.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Map, Name, Number, Value};

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl Serialize for Map {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (name, value) in self {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(items) => items.as_slice().serialize(serializer),
            Self::Object(fields) => fields.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Letters;

        impl Visitor<'_> for Letters {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                Ok(name.into())
            }
        }

        source.deserialize_str(Letters)
    }
}

impl<'de> Deserialize<'de> for Map {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Map;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_unit<E>(self) -> Result<Map, E> {
                Ok(Map::new())
            }

            fn visit_map<A: MapAccess<'de>>(self, source: A) -> Result<Map, A::Error> {
                fields(source, Reader(&Notes::default()))
            }
        }

        source.deserialize_map(Fields)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Reader(&Notes::default()))
    }
}

/// Parses JSON, and returns whether any object in it has duplicate fields.
pub(crate) fn read(bytes: &[u8]) -> Result<(Value, bool), serde_json::Error> {
    // Validated as a whole, so that not every string must be validated.
    match std::str::from_utf8(bytes) {
        Ok(text) => read_from(serde_json::Deserializer::from_str(text)),
        Err(_) => read_from(serde_json::Deserializer::from_slice(bytes)),
    }
}

fn read_from<'de>(
    mut source: serde_json::Deserializer<impl serde_json::de::Read<'de>>,
) -> Result<(Value, bool), serde_json::Error> {
    let notes = Notes::default();
    let value = Reader(&notes).deserialize(&mut source)?;
    source.end()?;
    Ok((value, notes.twice.get()))
}

/// State kept during parsing.
#[derive(Default)]
struct Notes {
    /// Whether there was a duplicate field.
    twice: Cell<bool>,
    /// The fields of all incomplete maps, those of the innermost last. A map is created once their number is known.
    fields: RefCell<Vec<(Name, Value)>>,
}

#[derive(Clone, Copy)]
struct Reader<'r>(&'r Notes);

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

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
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

    fn visit_i128<E: Error>(self, value: i128) -> Result<Value, E> {
        let number = Number::from_i128(value);
        number
            .map(Value::Number)
            .ok_or_else(|| E::custom("JSON number out of range"))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Value, E> {
        let number = Number::from_u128(value);
        number
            .map(Value::Number)
            .ok_or_else(|| E::custom("JSON number out of range"))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = source.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Array(items.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, source: A) -> Result<Value, A::Error> {
        fields(source, self).map(Value::Object)
    }
}

fn fields<'de, A: MapAccess<'de>>(mut source: A, reader: Reader<'_>) -> Result<Map, A::Error> {
    let Reader(notes) = reader;
    let outer = notes.fields.borrow().len();
    while let Some(name) = source.next_key()? {
        let value = source.next_value_seed(reader)?;
        notes.fields.borrow_mut().push((name, value));
    }
    let fields: Vec<_> = notes.fields.borrow_mut().drain(outer..).collect();
    let said = fields.len();
    let fields: Map = fields.into_iter().collect();
    if fields.len() < said {
        notes.twice.set(true);
    }
    Ok(fields)
}
