//! What must not be shown, in every form in which somebody may repeat it.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands in the place of a secret.
const STARS: &str = "*****";

/// What `encodeURIComponent` leaves as it is.
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

/// The secrets of one question. Whoever comes by one adds it; what is written down for people is taken out of them.
#[derive(Default)]
pub struct Veil(Mutex<BTreeSet<Form>>);

/// One form of a secret; the longest come first, because one may be the beginning of another.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Form(Reverse<usize>, String);

impl Veil {
    /// Hides a secret.
    pub fn add(&self, secret: &str) {
        let mut forms = self.lock();
        forms.extend(forms_of(secret).into_iter().map(Form::from));
    }

    /// Hides a password, also where it stands beside the name it goes with.
    pub fn add_login(&self, name: &str, password: &str) {
        self.add(password);
        self.add(&format!("{name}:{password}"));
    }

    /// A text without secrets.
    pub fn hide(&self, text: &str) -> String {
        self.replace(text, STARS)
    }

    pub(crate) fn replace(&self, text: &str, by: &str) -> String {
        let forms = self.lock();
        let mut text = text.to_owned();
        for Form(_, form) in forms.iter() {
            if text.contains(form.as_str()) {
                text = text.replace(form.as_str(), by);
            }
        }
        text
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Form>> {
        // Every change above is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<String> for Form {
    fn from(form: String) -> Self {
        Self(Reverse(form.len()), form)
    }
}

impl fmt::Debug for Veil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Veil")
    }
}

/// As it is and without the space around it; each in quotes, in JSON, in base64 and as a part of an address.
fn forms_of(secret: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for secret in [secret, secret.trim()] {
        if secret.is_empty() {
            continue;
        }
        let within = |quoted: String| quoted[1..quoted.len() - 1].to_owned();
        forms.push(secret.to_owned());
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
    fn a_secret_is_hidden_in_every_form(#[case] text: &str, #[case] expected: &str) {
        let veil = Veil::default();
        veil.add("");
        veil.add_login("me", "hunter/2+?");
        assert_eq!(veil.hide(text), expected);
    }

    #[test]
    fn the_line_that_an_editor_left_makes_no_difference() {
        let veil = Veil::default();
        veil.add("s3cr3t\n");
        assert_eq!(veil.hide("it is s3cr3t"), "it is *****");
        assert_eq!(veil.hide("it is czNjcjN0"), "it is *****");
        assert_eq!(veil.hide("it is czNjcjN0Cg=="), "it is *****");
    }

    #[rstest]
    #[case(r#"was refused: "a\"b""#, r#"was refused: "*****""#)]
    #[case(r#"{"said":"a\"b"}"#, r#"{"said":"*****"}"#)]
    #[case("a%22b", "*****")]
    fn quotes_do_not_show_it_either(#[case] text: &str, #[case] expected: &str) {
        let veil = Veil::default();
        veil.add("a\"b");
        assert_eq!(veil.hide(text), expected);
        assert_eq!(format!("{veil:?}"), "Veil");
    }
}
