//! Redacts secrets, in every encoding in which text may repeat them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use parking_lot::{Mutex, MutexGuard};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The replacement of a secret.
const STARS: &str = "*****";

/// The characters that `encodeURIComponent` does not encode.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// The secrets of one query. Code that reads a secret adds it; text for people is redacted. Case is ignored, because hosts and header names
/// lose it. Clones share the secrets.
#[derive(Clone, Default)]
pub struct Redactor(Arc<Mutex<BTreeSet<String>>>);

impl Redactor {
    /// Adds a secret.
    pub fn add(&self, secret: &str) {
        let mut forms = self.lock();
        forms.extend(forms_of(secret).into_iter().map(|form| form.to_ascii_lowercase()));
    }

    /// Adds a password, and its combination with the user name.
    pub fn add_login(&self, name: &str, password: &str) {
        self.add(password);
        self.add(&format!("{name}:{password}"));
    }

    /// A copy with the same secrets and `more`, which are not shared.
    pub(crate) fn with<'s>(&self, more: impl IntoIterator<Item = &'s str>) -> Self {
        let redactor = Self(Arc::new(Mutex::new(self.lock().clone())));
        more.into_iter().for_each(|secret| redactor.add(secret));
        redactor
    }

    /// Redacts a text.
    pub fn redact(&self, text: &str) -> String {
        self.replace(text, STARS)
    }

    pub(crate) fn replace(&self, text: &str, by: &str) -> String {
        // ASCII lower case moves no byte, so positions in both are the same.
        let lower = text.to_ascii_lowercase();
        let forms = self.lock();
        let found = forms.iter().flat_map(|form| {
            let places = lower.match_indices(form.as_str());
            places.map(|(start, found)| start..start + found.len())
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|range| (range.start, range.end));
        let (mut redacted, mut shown) = (String::with_capacity(text.len()), 0);
        let mut found = found.into_iter().peekable();
        while let Some(range) = found.next() {
            // Matches may overlap: one may contain another, or start in it.
            let mut end = range.end;
            while let Some(next) = found.next_if(|next| next.start < end) {
                end = end.max(next.end);
            }
            redacted.push_str(&text[shown..range.start]);
            redacted.push_str(by);
            shown = end;
        }
        redacted.push_str(&text[shown..]);
        redacted
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock()
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Veil")
    }
}

/// The secret, unmodified and trimmed; each also quoted, in JSON, in base64 and URL-encoded.
fn forms_of(secret: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for secret in [secret, secret.trim()] {
        if secret.is_empty() {
            continue;
        }
        let within = |quoted: String| quoted[1..quoted.len() - 1].to_owned();
        forms.extend([secret.to_owned(), secret.to_lowercase(), secret.to_uppercase()]);
        forms.push(within(format!("{secret:?}")));
        forms.push(within(serde_json::Value::from(secret).to_string()));
        forms.extend([STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].map(|base| base.encode(secret)));
        let form: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        let encoded = [NON_ALPHANUMERIC, COMPONENT].map(|set| utf8_percent_encode(secret, set).to_string());
        for encoded in encoded.into_iter().chain([form]) {
            forms.push(with_small_letters(&encoded));
            forms.push(encoded);
        }
    }
    forms
}

/// `%2f` for `%2F`.
fn with_small_letters(encoded: &str) -> String {
    let mut hexadecimal = 0;
    let small = encoded.chars().map(|c| {
        let small = hexadecimal > 0;
        hexadecimal = if c == '%' { 2 } else { i32::max(hexadecimal - 1, 0) };
        if small { c.to_ascii_lowercase() } else { c }
    });
    small.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::as_it_is("say hunter/2+?", "say *****")]
    #[case::base64("aHVudGVyLzIrPw==!", "*****!")]
    #[case::base64_without_end("aHVudGVyLzIrPw!", "*****!")]
    #[case::base64_of_a_login("Basic bWU6aHVudGVyLzIrPw==", "Basic *****")]
    #[case::percent("?k=hunter%2F2%2B%3F&x", "?k=*****&x")]
    #[case::percent_in_small_letters("?k=hunter%2f2%2b%3f&x", "?k=*****&x")]
    #[case::with_its_line("hunter/2+?\n.", "*****\n.")]
    #[case::nothing_of_it("hunter", "hunter")]
    #[case::lower_case("AhVuDgVyLzIrPw!", "*****!")]
    #[case::upper_case("say HUNTER/2+? or Hunter/2+?", "say ***** or *****")]
    #[case::upper_case_percent("HUNTER%2F2%2B%3F", "*****")]
    fn a_secret_is_hidden_in_every_form(#[case] text: &str, #[case] expected: &str) {
        let redactor = Redactor::default();
        redactor.add("");
        redactor.add_login("me", "hunter/2+?");
        assert_eq!(redactor.redact(text), expected);
    }

    #[test]
    fn forms_that_overlap_are_hidden_together() {
        let redactor = Redactor::default();
        redactor.add("abcd");
        redactor.clone().add("cdÄfgh");
        assert_eq!(redactor.redact("-abcdÄfgh-"), "-*****-");
        assert_eq!(redactor.redact("-ABcdäFGH-"), "-*****-");
        assert_eq!(redactor.redact("abcdabcd"), "**********");
    }

    #[test]
    fn the_line_that_an_editor_left_makes_no_difference() {
        let redactor = Redactor::default();
        redactor.add("s3cr3t\n");
        assert_eq!(redactor.redact("it is s3cr3t"), "it is *****");
        assert_eq!(redactor.redact("it is czNjcjN0"), "it is *****");
        assert_eq!(redactor.redact("it is czNjcjN0Cg=="), "it is *****");
    }

    #[rstest]
    #[case(r#"was refused: "a\"b""#, r#"was refused: "*****""#)]
    #[case(r#"{"said":"a\"b"}"#, r#"{"said":"*****"}"#)]
    #[case("a%22b", "*****")]
    fn quotes_do_not_show_it_either(#[case] text: &str, #[case] expected: &str) {
        let redactor = Redactor::default();
        redactor.add("a\"b");
        assert_eq!(redactor.redact(text), expected);
        assert_eq!(format!("{redactor:?}"), "Veil");
    }
}
