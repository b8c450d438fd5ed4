//! Encodes values as text.

use std::fmt;

use super::{Name, Value};

/// Compact, as clients get it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        write(&mut out, self);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

/// Appends the text of a value.
pub(crate) fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::String(text) => write_text(out, text),
        // Encoding a valid number into memory cannot fail.
        Value::Number(number) => drop(serde_json::to_writer(out, number)),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(out, item);
            }
            out.push(b']');
        }
        Value::Object(fields) => {
            out.push(b'{');
            for (index, (name, value)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_name(out, name);
                write(out, value);
            }
            out.push(b'}');
        }
    }
}

/// Appends a quoted name and a colon.
pub(crate) fn write_name(out: &mut Vec<u8>, name: &Name) {
    match name.is_known_to_be_plain() {
        true => write_plain(out, name),
        false => write_text(out, name),
    }
    out.push(b':');
}

/// Appends a quoted string. Few need escapes.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    if is_plain(text) {
        write_plain(out, text);
    } else {
        // As above.
        let _ = serde_json::to_writer(out, text);
    }
}

fn write_plain(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 3);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Whether a string needs no escapes.
pub(crate) fn is_plain(text: &str) -> bool {
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let is_special = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
    !words.iter().any(|word| has_special(u64::from_le_bytes(*word))) && !rest.iter().any(is_special)
}

/// Whether one of eight bytes is a control character, a quote or a backslash.
fn has_special(word: u64) -> bool {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = EACH * 0x80;
    // A byte that is less than another borrows into its highest bit, unless that was set before.
    let has_less = |word: u64, than: u8| word.wrapping_sub(EACH * u64::from(than)) & !word & HIGHEST;
    let has = |byte: u8| has_less(word ^ (EACH * u64::from(byte)), 1);
    has_less(word, b' ') | has(b'"') | has(b'\\') != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_plain_wherever_its_bytes_are() {
        for byte in (0..=127u8).map(char::from) {
            for length in 0..20 {
                let text: String = std::iter::repeat_n('é', length / 2)
                    .chain([byte])
                    .chain(std::iter::repeat_n('x', length - length / 2))
                    .collect();
                let quoted = serde_json::to_string(&text).unwrap();
                assert_eq!(is_plain(&text), quoted == format!("\"{text}\""), "{quoted}");
            }
        }
    }
}
