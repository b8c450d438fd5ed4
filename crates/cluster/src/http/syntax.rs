//! What Go says of JSON that it cannot read.

/// The sentence for a body that `error` was found in.
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
