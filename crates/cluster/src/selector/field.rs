//! Requirements on fields: `metadata.name=x,status.phase!=Running`.

use std::fmt;

use super::SelectorError;

/// Requirements that must all hold. Without any it selects everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq)]
struct Term {
    field: String,
    is_equal: bool,
    value: String,
}

impl FieldSelector {
    /// Parses the query syntax. The resource decides which fields are valid.
    pub(crate) fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parts = split(text);
        parts.sort_unstable();
        let terms = parts.into_iter().filter(|part| !part.is_empty()).map(|part| {
            Term::parse(part).unwrap_or_else(|| {
                Err(SelectorError(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                )))
            })
        });
        let mut terms: Vec<_> = terms.collect::<Result<_, _>>()?;
        // Upstream ignores a bare `=`.
        terms.retain(|term| !(term.field.is_empty() && term.value.is_empty()));
        Ok(Self { terms })
    }

    /// Adds the requirement that one field has one value.
    pub(crate) fn and_equal(mut self, field: &str, value: &str) -> Self {
        self.terms.push(Term {
            field: field.to_owned(),
            is_equal: true,
            value: value.to_owned(),
        });
        self
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The fields in its requirements.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|term| term.field.as_str())
    }

    /// Whether it selects an object with these field values. A missing value is empty.
    pub(crate) fn matches(&self, read: impl Fn(&str) -> String) -> bool {
        self.terms
            .iter()
            .all(|term| (read(&term.field) == term.value) == term.is_equal)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = self.terms.iter().map(
            |Term {
                 field,
                 is_equal,
                 value,
             }| {
                let value = value
                    .replace('\\', "\\\\")
                    .replace(',', "\\,")
                    .replace('=', "\\=");
                format!("{field}{}{value}", if *is_equal { "=" } else { "!=" })
            },
        );
        f.write_str(&terms.collect::<Vec<_>>().join(","))
    }
}

impl Term {
    /// `None` if there is no operator.
    fn parse(part: &str) -> Option<Result<Self, SelectorError>> {
        let (at, operator) = part.char_indices().find_map(|(at, _)| {
            ["!=", "==", "="]
                .into_iter()
                .find(|operator| part[at..].starts_with(operator))
                .map(|operator| (at, operator))
        })?;
        let value = unescape(&part[at + operator.len()..]);
        Some(value.map(|value| Self {
            field: part[..at].to_owned(),
            is_equal: operator != "!=",
            value,
        }))
    }
}

/// Splits at unescaped commas.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut is_escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn unescape(text: &str) -> Result<String, SelectorError> {
    let bad = |sequence: String| {
        SelectorError(format!(
            "invalid field selector: invalid escape sequence: {sequence}"
        ))
    };
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                Some(other) => return Err(bad(format!("\\{other}"))),
                None => return Err(bad("\\".to_owned())),
            },
            // Upstream prints the number of the character.
            ',' | '=' => {
                let why = format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                );
                return Err(SelectorError(why));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case(
        "status.phase!=Running,metadata.name=db-0",
        true,
        "metadata.name=db-0,status.phase!=Running"
    )]
    #[case("metadata.name==db-0", true, "metadata.name=db-0")]
    #[case("metadata.name!=db-0", false, "metadata.name!=db-0")]
    #[case("spec.nodeName=", true, "spec.nodeName=")]
    #[case("metadata.name=a\\,b", false, "metadata.name=a\\,b")]
    #[case("metadata.name=a\\=b", false, "metadata.name=a\\=b")]
    #[case("a==,a=", true, "a=,a=")]
    #[case("a==c,a=b", false, "a=c,a=b")]
    #[case(",", true, "")]
    #[case("=", true, "")]
    fn a_selector_matches_fields(#[case] text: &str, #[case] expected: bool, #[case] shown: &str) {
        let selector = FieldSelector::parse(text).unwrap();
        let read = |field: &str| match field {
            "metadata.name" => "db-0".to_owned(),
            "status.phase" => "Pending".to_owned(),
            _ => String::new(),
        };
        assert_eq!(selector.matches(read), expected);
        assert_eq!(selector.to_string(), shown);
    }

    /// The messages with which the real server answers 400.
    #[rstest]
    #[case(
        "metadata.name",
        "invalid selector: 'metadata.name'; can't understand 'metadata.name'"
    )]
    #[case(
        "metadata.name=a,b",
        "invalid selector: 'metadata.name=a,b'; can't understand 'b'"
    )]
    #[case("a>b", "invalid selector: 'a>b'; can't understand 'a>b'")]
    #[case(
        "metadata.name=a=b",
        "invalid field selector: unescaped character in value: 61"
    )]
    #[case("metadata.name=a\\xb", "invalid field selector: invalid escape sequence: \\x")]
    #[case("metadata.name=a\\", "invalid field selector: invalid escape sequence: \\")]
    fn a_bad_selector_is_refused(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(FieldSelector::parse(text).unwrap_err().to_string(), expected);
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_shown_reads_the_same(text in "[a-c!=\\\\,.]{0,16}|.{0,16}") {
            if let Ok(selector) = FieldSelector::parse(&text) {
                let again = FieldSelector::parse(&selector.to_string()).unwrap();
                // Terms are sorted as written, including `==`, and printed with `=`.
                let sorted = |selector: &FieldSelector| {
                    let mut terms: Vec<_> = selector.terms.iter().map(|term| format!("{term:?}")).collect();
                    terms.sort();
                    terms
                };
                prop_assert_eq!(sorted(&again), sorted(&selector));
            }
        }
    }
}
