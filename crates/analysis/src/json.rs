//! Parses JSON responses, with a limit on the number of values.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, de};
use stateward_client::json::{self, JsonError};

use crate::ProviderError;

/// The maximum number of values and keys of a response that is kept as a document.
pub(crate) const DOCUMENT: usize = 20_000;

/// The maximum number for a response of which only numbers are kept.
pub(crate) const SAMPLES: usize = 200_000;

/// Why a response could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Not JSON, or not of the expected shape.
    Malformed,
    /// More values than this limit.
    TooComplex(usize),
}

/// Parses JSON of at most `limit` values and keys.
pub(crate) fn read<'b, T: Deserialize<'b>>(body: &'b [u8], limit: usize) -> Result<T, Unread> {
    json::read(body, limit).map_err(|error| match error {
        JsonError::Malformed(_) | JsonError::TooDeep(_) => Unread::Malformed,
        JsonError::TooManyValues(limit) => Unread::TooComplex(limit),
    })
}

impl Unread {
    /// The error of the provider that responded.
    pub(crate) fn of(self, origin: &str, expected: &str) -> ProviderError {
        match self {
            Self::Malformed => ProviderError::malformed(origin, expected),
            Self::TooComplex(limit) => ProviderError::too_complex(origin, limit),
        }
    }
}

/// A number, also as a string; `None` for null. Other content is not kept.
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
    use serde_json::Value;

    #[test]
    fn what_is_nested_too_deep_is_malformed() {
        let body = "[".repeat(100_000);
        assert_eq!(read::<Value>(body.as_bytes(), SAMPLES), Err(Unread::Malformed));
    }
}
