//! JSON with a limit on how many values it may have.
//!
//! A value takes two bytes on the wire and up to several hundred in memory: a megabyte of `{"":0},` became 220 MB. So values are
//! counted before any is built. Counting allocates nothing, and stops at the limit.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

use crate::AskError;

/// How many values and keys an answer may have that is kept as a document.
pub(crate) const DOCUMENT: usize = 20_000;

/// How many an answer may have of which only numbers are kept.
pub(crate) const SAMPLES: usize = 200_000;

/// Why there is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is not JSON, or not of the shape that was expected.
    Malformed,
    /// It has more values than this.
    TooComplex(usize),
}

/// Reads JSON of at most `limit` values and keys.
pub(crate) fn read<'b, T: Deserialize<'b>>(body: &'b [u8], limit: usize) -> Result<T, Unread> {
    let mut left = limit;
    let mut reader = serde_json::Deserializer::from_slice(body);
    let counted = Count(&mut left)
        .deserialize(&mut reader)
        .and_then(|()| reader.end());
    if counted.is_err() {
        return Err(if left == 0 {
            Unread::TooComplex(limit)
        } else {
            Unread::Malformed
        });
    }
    serde_json::from_slice(body).map_err(|_| Unread::Malformed)
}

impl Unread {
    /// As an error of the provider that answered.
    pub(crate) fn of(self, origin: &str, expected: &str) -> AskError {
        match self {
            Self::Malformed => AskError::malformed(origin, expected),
            Self::TooComplex(limit) => AskError::too_complex(origin, limit),
        }
    }
}

/// Counts down for each value and key, and fails when nothing is left.
struct Count<'l>(&'l mut usize);

impl Count<'_> {
    fn one<E: Error>(&mut self) -> Result<(), E> {
        *self.0 = self.0.saturating_sub(1);
        if *self.0 == 0 {
            return Err(E::custom("too many values"));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Count<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        self.one()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Count<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Count(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        while fields.next_key::<IgnoredAny>()?.is_some() {
            self.one()?;
            fields.next_value_seed(Count(self.0))?;
        }
        Ok(())
    }
}

/// A number, also as a text; `None` where it is null. Kept as a number, whatever else stood there would have been.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure(pub(crate) Option<f64>);

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FigureVisitor)
    }
}

struct FigureVisitor;

#[expect(clippy::cast_precision_loss, reason = "a measurement is a float")]
impl Visitor<'_> for FigureVisitor {
    type Value = Figure;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a number as a text, or null")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Figure, E> {
        Ok(Figure(Some(number as f64)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Figure, E> {
        Ok(Figure(Some(number as f64)))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Figure, E> {
        Ok(Figure(Some(number)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Figure, E> {
        let number = text.parse();
        number
            .map(|number| Figure(Some(number)))
            .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_unit<E: Error>(self) -> Result<Figure, E> {
        Ok(Figure(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    /// Values and keys each count.
    #[rstest]
    #[case("1", 2, Ok(json!(1)))]
    #[case(r#"{"a": [1, null, true, "x"]}"#, 8, Ok(json!({"a": [1, null, true, "x"]})))]
    #[case(r#"{"a": [1, null, true, "x"]}"#, 7, Err(Unread::TooComplex(7)))]
    #[case("[1, 2", 10, Err(Unread::Malformed))]
    #[case("[1] 2", 10, Err(Unread::Malformed))]
    #[case("", 10, Err(Unread::Malformed))]
    #[case("<html>", 10, Err(Unread::Malformed))]
    fn values_are_counted_before_they_are_built(
        #[case] body: &str,
        #[case] limit: usize,
        #[case] expected: Result<Value, Unread>,
    ) {
        assert_eq!(read(body.as_bytes(), limit), expected);
    }

    #[test]
    fn what_is_nested_too_deep_is_malformed() {
        let body = "[".repeat(100_000);
        assert_eq!(read::<Value>(body.as_bytes(), SAMPLES), Err(Unread::Malformed));
    }
}
