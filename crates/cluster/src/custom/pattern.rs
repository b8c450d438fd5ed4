//! Regular expressions of schemas: written for Go, matched by the `regex` crate.
//!
//! Both come from RE2. They differ in that Go's short classes are ASCII only, and that the crate has more syntax in a character class than
//! Go: a nested `[`, and the operators `&&`, `--` and `~~`.

use regex::Regex;

/// The source of a pattern, and its compiled form.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) source: String,
    /// `None` if it is invalid; the CRD was accepted anyway.
    regex: Option<Regex>,
}

impl Pattern {
    pub(super) fn read(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            regex: compile(source).ok(),
        }
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(text))
    }
}

/// Compiles a Go pattern, or returns Go's error.
pub(super) fn compile(source: &str) -> Result<Regex, String> {
    Regex::new(&translated(source)).map_err(|error| complaint(source, &error.to_string()))
}

/// The same pattern in the crate's syntax.
fn translated(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut class = false;
    let mut class_is_new = false;
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        let first = std::mem::take(&mut class_is_new);
        match c {
            '\\' => match chars.next() {
                Some(escaped) => escape(escaped, class, &mut out),
                None => out.push('\\'),
            },
            '[' if class && chars.peek() != Some(&':') => out.push_str("\\["),
            '[' if class => {
                // A named class such as `[:alpha:]` is the same in both.
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '[' => {
                class = true;
                class_is_new = true;
                out.push('[');
                if chars.peek() == Some(&'^') {
                    chars.next();
                    out.push('^');
                }
            }
            ']' if class && first => out.push_str("\\]"),
            ']' if class => {
                class = false;
                out.push(']');
            }
            '&' | '~' if class => out.extend(['\\', c]),
            '-' if class && first => out.push_str("\\-"),
            '-' if class && chars.peek() == Some(&'-') => {
                // The first dash makes a range, the second ends it.
                chars.next();
                out.push_str("-\\-");
            }
            c => out.push(c),
        }
    }
    out
}

fn escape(escaped: char, class: bool, out: &mut String) {
    let ascii = match (escaped, class) {
        ('d', true) => "0-9",
        ('d', false) => "[0-9]",
        ('D', _) => "[^0-9]",
        ('w', true) => "0-9A-Za-z_",
        ('w', false) => "[0-9A-Za-z_]",
        ('W', _) => "[^0-9A-Za-z_]",
        ('s', true) => r"\t\n\f\r ",
        ('s', false) => r"[\t\n\f\r ]",
        ('S', _) => r"[^\t\n\f\r ]",
        ('b', false) => r"(?-u:\b)",
        _ => {
            out.extend(['\\', escaped]);
            return;
        }
    };
    out.push_str(ascii);
}

/// Go's messages for the most common mistakes; ours for the rest.
fn complaint(source: &str, error: &str) -> String {
    let perl = || {
        let start = source.find("(?").unwrap_or_default();
        source[start..].chars().take(3).collect::<String>()
    };
    let why = if error.contains("unclosed group") {
        format!("missing closing ): `{source}`")
    } else if error.contains("unopened group") {
        format!("unexpected ): `{source}`")
    } else if error.contains("unclosed character class") {
        format!(
            "missing closing ]: `{}`",
            &source[source.rfind('[').unwrap_or_default()..]
        )
    } else if error.contains("repetition operator missing expression") {
        let operator = source.find(['*', '+', '?']).map_or("", |at| &source[at..=at]);
        format!("missing argument to repetition operator: `{operator}`")
    } else if error.contains("look-around") || error.contains("unrecognized flag") {
        format!("invalid or unsupported Perl syntax: `{}`", perl())
    } else {
        error.lines().last().unwrap_or(error).to_owned()
    };
    format!("error parsing regexp: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("^[a-z]+$", "abc", true)]
    #[case("^[a-z]+$", "ABC", false)]
    #[case(r"^\d+$", "12", true)]
    #[case(r"^\d+$", "١٢", false)]
    #[case(r"^[\w.-]+$", "a_b.c-d", true)]
    #[case(r"^[\w.-]+$", "é", false)]
    #[case(r"^[[]a]$", "[a]", true)]
    #[case(r"^[]a]+$", "]a", true)]
    #[case(r"^[^]]+$", "a", true)]
    #[case(r"^[a&&b]+$", "a&b", true)]
    #[case(r"^[!--]+$", "#", true)]
    #[case(r"^[[:alpha:]]+$", "abc", true)]
    #[case(r"^\[x\]$", "[x]", true)]
    fn a_go_pattern_matches_what_go_matches(
        #[case] source: &str,
        #[case] text: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(Pattern::read(source).matches(text), expected);
        assert!(compile(source).is_ok());
    }

    #[rstest]
    #[case("(a", "error parsing regexp: missing closing ): `(a`")]
    #[case("a)", "error parsing regexp: unexpected ): `a)`")]
    #[case("[a", "error parsing regexp: missing closing ]: `[a`")]
    #[case("*a", "error parsing regexp: missing argument to repetition operator: `*`")]
    #[case("(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`")]
    fn a_broken_pattern_is_refused_in_gos_words(#[case] source: &str, #[case] expected: &str) {
        assert_eq!(compile(source).unwrap_err(), expected);
    }
}
