//! Prepares a provider's error message for display.

use crate::Redactor;

/// The maximum length.
const SHOWN: usize = 300;

/// The message, shortened to one line and redacted.
pub(crate) fn shown(text: &str, redactor: &Redactor) -> String {
    // Redact before truncating: half a secret is one too.
    let text = redactor.replace(text, "(redacted)");
    let mut line: String = text
        .split(|c: char| c.is_control() || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    if let Some((end, _)) = line.char_indices().nth(SHOWN) {
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_one_short_line_without_secrets() {
        let redactor = Redactor::default();
        redactor.add("s3cr3t");
        assert_eq!(
            shown("bad\n\tkey s3cr3t\u{7}!", &redactor),
            "bad key (redacted) !"
        );
        assert_eq!(shown("key czNjcjN0", &redactor), "key (redacted)");
        assert_eq!(shown(&"ä".repeat(1000), &redactor).chars().count(), SHOWN + 1);
    }
}
