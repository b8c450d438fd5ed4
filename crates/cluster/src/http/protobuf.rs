//! Decodes objects in protobuf, which kubectl's imperative `create` sends.
//!
//! The envelope names the kind; the table of types has every field's number. So this decodes any built-in type without code per type, and
//! rejects what is not built in or not well formed. Written by hand because the crates need the `.proto` files or generated types, and the
//! table has all of it already.

use crate::json::{List, Map, Value};
use base64::Engine;

use crate::status::Status;
use crate::types::{Field, Kind, builtin};

/// Every Kubernetes protobuf document begins with these.
const MAGIC: &[u8] = b"k8s\0";
/// Deeper than any type nests, and well within the stack.
const DEEPEST: usize = 40;

/// Decodes a document: magic, envelope, object.
pub(super) fn decode(bytes: &[u8]) -> Result<Value, Status> {
    read(bytes).map_err(|Malformed(why)| {
        Status::unsupported_media_type(format!(
            "the body of the request could not be read as protobuf: {why}"
        ))
    })
}

/// Why a document cannot be decoded.
struct Malformed(String);

type Read<T> = Result<T, Malformed>;

fn read(bytes: &[u8]) -> Read<Value> {
    let envelope = bytes
        .strip_prefix(MAGIC)
        .ok_or_else(|| malformed("it does not begin with k8s\\0"))?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for (number, wire) in fields(envelope)? {
        match (number, wire) {
            // runtime.Unknown: typeMeta, raw
            (1, Wire::Bytes(meta)) => {
                for (number, wire) in fields(meta)? {
                    match (number, wire) {
                        (1, Wire::Bytes(text)) => api_version = utf8(text)?,
                        (2, Wire::Bytes(text)) => kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let name = stateward_schema::type_name(group, version, &kind);
    let mut object = message(&name, raw, 0)?;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

/// One field in wire format.
#[derive(Clone, Copy)]
enum Wire<'b> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'b [u8]),
}

fn fields(mut bytes: &[u8]) -> Read<Vec<(u64, Wire<'_>)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Wire::Varint(varint(&mut bytes)?),
            1 => {
                let (eight, rest) = bytes
                    .split_first_chunk::<8>()
                    .ok_or_else(|| malformed("it ends inside a number"))?;
                bytes = rest;
                Wire::Fixed64(u64::from_le_bytes(*eight))
            }
            2 => {
                let length =
                    usize::try_from(varint(&mut bytes)?).map_err(|_| malformed("a length is too long"))?;
                if length > bytes.len() {
                    return Err(malformed("a length reaches past its end"));
                }
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Wire::Bytes(value)
            }
            other => return Err(malformed(&format!("wire type {other} is not used by Kubernetes"))),
        };
        fields.push((key >> 3, value));
    }
    Ok(fields)
}

fn varint(bytes: &mut &[u8]) -> Read<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes
            .split_first()
            .ok_or_else(|| malformed("it ends inside a number"))?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(malformed("a number does not end"))
}

/// A message of a built-in type.
fn message(name: &str, bytes: &[u8], depth: usize) -> Read<Value> {
    let described =
        builtin(name).ok_or_else(|| malformed(&format!("the type {name} is not built in; send JSON")))?;
    let mut out = Map::new();
    let by_number: Vec<(&String, &Field)> = described.fields.iter().collect();
    group(&by_number, 0, bytes, depth, &mut out)?;
    Ok(Value::Object(out))
}

/// The fields of one message, or of a struct that JSON inlines: `level` is the depth in `wire` paths.
fn group(known: &[(&String, &Field)], level: usize, bytes: &[u8], depth: usize, out: &mut Map) -> Read<()> {
    if depth > DEEPEST {
        return Err(malformed("it nests too deep"));
    }
    for (number, wire) in fields(bytes)? {
        let here: Vec<_> = known
            .iter()
            .copied()
            .filter(|(_, field)| field.wire.get(level).is_some_and(|tag| u64::from(*tag) == number))
            .collect();
        let Some((name, field)) = here.first().copied() else {
            continue;
        };
        if field.wire.len() > level + 1 {
            let Wire::Bytes(inlined) = wire else {
                return Err(malformed("a message is no message"));
            };
            group(&here, level + 1, inlined, depth + 1, out)?;
            continue;
        }
        add(out, name, &field.kind, wire, depth)?;
    }
    Ok(())
}

/// Sets a field, or appends to it if it is repeated.
fn add(out: &mut Map, name: &str, kind: &Kind, wire: Wire<'_>, depth: usize) -> Read<()> {
    match kind {
        Kind::List(element) => {
            let value = value(element, wire, depth)?;
            match out.entry(name).or_insert_with(|| Value::Array(List::default())) {
                Value::Array(items) => items.push(value),
                other => *other = vec![value].into(),
            }
        }
        Kind::Map(element) => {
            let Wire::Bytes(entry) = wire else {
                return Err(malformed("a map entry is no message"));
            };
            let (mut key, mut item) = (String::new(), None);
            for (number, wire) in fields(entry)? {
                match (number, wire) {
                    (1, Wire::Bytes(text)) => key = utf8(text)?,
                    (2, wire) => item = Some(value(element, wire, depth)?),
                    _ => {}
                }
            }
            let item = item.unwrap_or_else(|| Value::from(""));
            match out.entry(name).or_insert_with(|| Value::Object(Map::new())) {
                Value::Object(items) => items.insert(key.into(), item),
                other => std::mem::replace(other, Value::Object(Map::from_iter([(key, item)]))).into(),
            };
        }
        kind => {
            out.insert(name.into(), value(kind, wire, depth)?);
        }
    }
    Ok(())
}

fn value(kind: &Kind, wire: Wire<'_>, depth: usize) -> Read<Value> {
    Ok(match (kind, wire) {
        (Kind::String, Wire::Bytes(text)) => utf8(text)?.into(),
        (Kind::Bool, Wire::Varint(number)) => (number != 0).into(),
        // Negative numbers are encoded as their 64-bit two's complement.
        (Kind::Int32 | Kind::Int64 | Kind::Uint8, Wire::Varint(number)) => number.cast_signed().into(),
        (Kind::Float, Wire::Fixed64(bits)) => f64::from_bits(bits).into(),
        (Kind::Bytes, Wire::Bytes(bytes)) => base64::engine::general_purpose::STANDARD.encode(bytes).into(),
        (Kind::Struct(name), Wire::Bytes(bytes)) => message(name, bytes, depth + 1)?,
        (Kind::Time | Kind::MicroTime, Wire::Bytes(bytes)) => time(bytes)?,
        (Kind::Quantity, Wire::Bytes(bytes)) => first_text(bytes)?.into(),
        (Kind::IntOrString, Wire::Bytes(bytes)) => int_or_string(bytes)?,
        (Kind::Any, Wire::Bytes(bytes)) => {
            let raw = fields(bytes)?
                .into_iter()
                .find_map(|(number, wire)| match (number, wire) {
                    (1, Wire::Bytes(raw)) => Some(raw),
                    _ => None,
                });
            serde_json::from_slice(raw.unwrap_or(b"null"))
                .map_err(|error| malformed(&format!("embedded JSON: {error}")))?
        }
        (kind, _) => return Err(malformed(&format!("a {kind:?} is written as something else"))),
    })
}

/// Seconds and nanoseconds; without either there is no time.
fn time(bytes: &[u8]) -> Read<Value> {
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    for (number, wire) in fields(bytes)? {
        match (number, wire) {
            (1, Wire::Varint(value)) => seconds = value.cast_signed(),
            (2, Wire::Varint(value)) => {
                nanos = i32::try_from(value).map_err(|_| malformed("nanoseconds out of range"))?
            }
            _ => {}
        }
    }
    if seconds == 0 && nanos == 0 {
        return Ok(Value::Null);
    }
    let time = jiff::Timestamp::new(seconds, nanos).map_err(|error| malformed(&error.to_string()))?;
    Ok(time.to_string().into())
}

fn int_or_string(bytes: &[u8]) -> Read<Value> {
    let (mut is_text, mut number, mut text) = (false, 0_i64, String::new());
    for (field, wire) in fields(bytes)? {
        match (field, wire) {
            (1, Wire::Varint(kind)) => is_text = kind == 1,
            (2, Wire::Varint(value)) => number = value.cast_signed(),
            (3, Wire::Bytes(value)) => text = utf8(value)?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

fn first_text(bytes: &[u8]) -> Read<String> {
    for (number, wire) in fields(bytes)? {
        if let (1, Wire::Bytes(text)) = (number, wire) {
            return utf8(text);
        }
    }
    Ok("0".to_owned())
}

fn utf8(bytes: &[u8]) -> Read<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| malformed("a text is not UTF-8"))
}

fn malformed(why: &str) -> Malformed {
    Malformed(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use proptest::prelude::*;

    /// What `kubectl create configmap c --from-literal=a=1` sends, byte for byte.
    #[test]
    fn a_config_map_is_read() {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(b"\x0a\x0f\x0a\x02v1\x12\x09ConfigMap");
        let raw = b"\x0a\x03\x0a\x01c\x12\x06\x0a\x01a\x12\x011";
        bytes.extend([0x12, raw.len() as u8]);
        bytes.extend(raw);
        let read = decode(&bytes).unwrap();
        assert_eq!(
            read,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}})
        );
    }

    #[test]
    fn what_is_not_built_in_is_refused() {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(b"\x0a\x0e\x0a\x05x/v1b\x12\x05Thing");
        assert_eq!(decode(&bytes).unwrap_err().code(), 415);
        assert_eq!(decode(b"{}").unwrap_err().code(), 415);
    }

    proptest! {
        #[test]
        fn no_document_is_a_panic(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = MAGIC.to_vec();
            bytes.extend(b"\x0a\x09\x0a\x02v1\x12\x03Pod\x12");
            bytes.push(tail.len() as u8);
            bytes.extend(&tail);
            let _ = decode(&bytes);
            let _ = decode(&tail);
        }
    }
}
