//! Values as text.

use std::fmt;

use super::Value;

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
        // A number that is one always has a text, and a list of bytes takes all.
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
                write_text(out, name);
                out.push(b':');
                write(out, value);
            }
            out.push(b'}');
        }
    }
}

/// Appends a text in quotes. Few have anything in them that must be escaped.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    if !is_plain(text) {
        // As above.
        let _ = serde_json::to_writer(out, text);
        return;
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Whether a text is the same in quotes.
pub(crate) fn is_plain(text: &str) -> bool {
    let is_special = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    // Not `any`: that would look at one byte at a time.
    !text.bytes().fold(false, |found, byte| found | is_special(byte))
}
