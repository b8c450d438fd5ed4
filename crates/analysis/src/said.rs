//! What a provider said about its trouble, made fit to be shown.

use crate::Veil;

/// As much of it as is shown.
const SHOWN: usize = 300;

/// Shortened, on one line, and without the secrets of the question should the provider have repeated them.
pub(crate) fn shown(text: &str, veil: &Veil) -> String {
    // Before it is cut short: half a secret is one too.
    let text = veil.replace(text, "(redacted)");
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
        let veil = Veil::default();
        veil.add("s3cr3t");
        assert_eq!(shown("bad\n\tkey s3cr3t\u{7}!", &veil), "bad key (redacted) !");
        assert_eq!(shown("key czNjcjN0", &veil), "key (redacted)");
        assert_eq!(shown(&"ä".repeat(1000), &veil).chars().count(), SHOWN + 1);
    }
}
