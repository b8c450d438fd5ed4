//! Reads the resource version from the response to a write: the watch delivers everything else.

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};

/// The resource version of an object; reads no more text than needed. Zero if there is none.
pub(crate) fn version_in(text: &str) -> u64 {
    let mut version = None;
    let reader = &mut serde_json::Deserializer::from_str(text);
    // The deserializer reports trailing text, which is expected.
    let _ = reader.deserialize_map(At(&["metadata", "resourceVersion"], &mut version));
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}

/// Reads the text at this path and stops.
struct At<'a>(&'a [&'a str], &'a mut Option<String>);

impl<'de> Visitor<'de> for At<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let Self([first, rest @ ..], found) = self else {
            return Ok(());
        };
        while let Some(is_first) = map.next_key_seed(Is(first))? {
            if !is_first {
                map.next_value::<IgnoredAny>()?;
            } else if rest.is_empty() {
                *found = map.next_value()?;
                break;
            } else {
                return map.next_value_seed(At(rest, found));
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_map(self)
    }
}

/// Whether a text equals this one.
struct Is<'a>(&'a str);

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(text == self.0)
    }
}

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<bool, D::Error> {
        source.deserialize_str(self)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::version_in;

    #[rstest]
    #[case::first(
        r#"{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"resourceVersion":"8"}}"#,
        7
    )]
    #[case::last(
        r#"{"kind":"Pod","metadata":{"labels":{"resourceVersion":"8"},"resourceVersion":"7"}}"#,
        7
    )]
    #[case::escaped(r#"{"meta\u0064ata":{"resourceVersion":"7"}}"#, 7)]
    #[case::none(r#"{"metadata":{"uid":"u"},"resourceVersion":"8"}"#, 0)]
    #[case::no_number(r#"{"metadata":{"resourceVersion":"x"}}"#, 0)]
    #[case::no_object("[]", 0)]
    #[case::nothing("", 0)]
    fn a_version_is_read_off_an_answer(#[case] text: &str, #[case] version: u64) {
        assert_eq!(version_in(text), version);
    }
}
