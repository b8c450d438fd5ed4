//! Go's messages for JSON that does not parse.

/// The message for a body with this `error`.
pub(crate) fn of(bytes: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    for literal in ["null", "true", "false"] {
        let text = bytes.trim_ascii_start();
        let same = text
            .iter()
            .zip(literal.as_bytes())
            .take_while(|(given, wanted)| given == wanted)
            .count();
        if (1..literal.len()).contains(&same)
            && let (Some(given), Some(wanted)) = (text.get(same), literal.as_bytes().get(same))
        {
            return format!(
                "invalid character {} in literal {literal} (expecting {})",
                quoted(*given),
                quoted(*wanted)
            );
        }
    }
    if let Some(told) = found_at(bytes, error) {
        return told;
    }
    let at = bytes.trim_ascii_start().first().copied();
    match at {
        Some(first) if !b"{[\"-0123456789".contains(&first) => {
            format!(
                "invalid character {} looking for beginning of value",
                quoted(first)
            )
        }
        _ => error.to_string(),
    }
}

/// The message with the unexpected character.
fn found_at(bytes: &[u8], error: &serde_json::Error) -> Option<String> {
    // At the beginning of a line, the error is at the end of the previous one.
    let found = match error.column().checked_sub(1) {
        None => b'\n',
        Some(column) => {
            let mut lines = bytes.split(|byte| *byte == b'\n');
            *lines.nth(error.line().checked_sub(1)?)?.get(column)?
        }
    };
    let text = error.to_string();
    let is = |start: &str| text.starts_with(start);
    let what = match found {
        _ if is("control character") => "in string literal",
        _ if is("invalid escape") => "in string escape code",
        _ if is("key must be a string") => "looking for beginning of object key string",
        b'}' if is("trailing comma") => "looking for beginning of object key string",
        _ if is("trailing comma") || is("expected value") => "looking for beginning of value",
        _ if is("expected `:`") => "after object key",
        _ if is("expected `,` or `}`") => "after object key:value pair",
        _ if is("expected `,` or `]`") => "after array element",
        _ if is("trailing characters") => "after top-level value",
        _ => return None,
    };
    Some(format!("invalid character {} {what}", quoted(found)))
}

/// A byte as Go quotes it: the rune of that number.
pub(super) fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b' '..=b'~' | 0xa1..=0xac | 0xae.. => format!("'{}'", char::from(byte)),
        b'\t' => "'\\t'".to_owned(),
        b'\n' => "'\\n'".to_owned(),
        b'\r' => "'\\r'".to_owned(),
        0x80..=0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'\\x{byte:02x}'"),
    }
}
