//! What a provider said about its trouble, made fit to be shown.

/// As much of it as is shown.
const SHOWN: usize = 300;

/// Shortened, on one line, and without `secrets` should the provider have repeated them.
pub(crate) fn shown(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    // The longest first: one may be the beginning of another.
    let mut secrets: Vec<_> = secrets.iter().filter(|secret| !secret.is_empty()).collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    for secret in secrets {
        text = text.replace(*secret, "(redacted)");
    }
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
        assert_eq!(
            shown("bad\n\tkey s3cr3t\u{7}!", &["s3cr3t", ""]),
            "bad key (redacted) !"
        );
        assert_eq!(shown(&"ä".repeat(1000), &[]).chars().count(), SHOWN + 1);
    }
}
