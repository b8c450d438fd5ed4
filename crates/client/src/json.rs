//! JSON with limits on the number and the depth of its values.
//!
//! A value takes two bytes on the wire and up to several hundred in memory: a megabyte of `{"":0},` became 220 MB. So values are
//! counted before any is built. Counting allocates nothing, and stops at the limit.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// How deep values may be nested. serde_json itself stops at 128.
pub const MAX_DEPTH: usize = 120;

/// How many values and keys JSON may have.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The limit.
    pub values: usize,
    /// How many values an object counts as: in memory, an object with a single field takes as much as twenty numbers.
    pub object: usize,
}

impl From<usize> for Limit {
    fn from(values: usize) -> Self {
        Self { values, object: 1 }
    }
}

/// Why JSON was not read.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// It is not JSON, or not of the expected shape.
    #[error("{0}")]
    Malformed(#[from] serde_json::Error),
    /// It has more values and keys than this.
    #[error("it has more than {0} values")]
    TooManyValues(usize),
    /// Values are nested deeper than this.
    #[error("values are nested more than {0} levels deep")]
    TooDeep(usize),
}

/// Reads JSON within `limit`.
pub fn read<'b, T: Deserialize<'b>>(body: &'b [u8], limit: impl Into<Limit>) -> Result<T, JsonError> {
    check(body, limit)?;
    Ok(serde_json::from_slice(body)?)
}

/// Checks that JSON is within `limit`.
pub fn check(body: &[u8], limit: impl Into<Limit>) -> Result<(), JsonError> {
    let limit = limit.into();
    let mut budget = Budget {
        values: limit.values,
        object: limit.object,
        exceeded: None,
    };
    let mut reader = serde_json::Deserializer::from_slice(body);
    let counted = Count {
        budget: &mut budget,
        depth: 0,
    }
    .deserialize(&mut reader)
    .and_then(|()| reader.end());
    match (counted, budget.exceeded) {
        (_, Some(Exceeded::Values)) => Err(JsonError::TooManyValues(limit.values)),
        (_, Some(Exceeded::Depth)) => Err(JsonError::TooDeep(MAX_DEPTH)),
        (counted, None) => Ok(counted?),
    }
}

struct Budget {
    values: usize,
    object: usize,
    exceeded: Option<Exceeded>,
}

#[derive(Clone, Copy)]
enum Exceeded {
    Values,
    Depth,
}

/// Counts down for each value and key, and fails when nothing is left.
struct Count<'b> {
    budget: &'b mut Budget,
    depth: usize,
}

impl Count<'_> {
    fn spend<E: Error>(&mut self, values: usize) -> Result<(), E> {
        self.budget.values = self.budget.values.saturating_sub(values);
        if self.budget.values == 0 {
            self.budget.exceeded = Some(Exceeded::Values);
            return Err(E::custom("too many values"));
        }
        Ok(())
    }

    /// The counter for the values inside this one.
    fn inner<E: Error>(&mut self) -> Result<Count<'_>, E> {
        if self.depth == MAX_DEPTH {
            self.budget.exceeded = Some(Exceeded::Depth);
            return Err(E::custom("too deep"));
        }
        Ok(Count {
            budget: self.budget,
            depth: self.depth + 1,
        })
    }
}

impl<'de> DeserializeSeed<'de> for Count<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        self.spend(1)?;
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

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self.inner()?)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        self.spend(self.budget.object.saturating_sub(1))?;
        while fields.next_key::<IgnoredAny>()?.is_some() {
            self.spend(1)?;
            fields.next_value_seed(self.inner()?)?;
        }
        Ok(())
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
    #[case(r#"{"a": [1, null, true, "x"]}"#, 7, Err("it has more than 7 values"))]
    #[case("[1, 2", 10, Err("EOF while parsing a list at line 1 column 5"))]
    #[case("[1] 2", 10, Err("trailing characters at line 1 column 5"))]
    #[case("", 10, Err("EOF while parsing a value at line 1 column 0"))]
    #[case("<html>", 10, Err("expected value at line 1 column 1"))]
    fn values_are_counted_before_they_are_built(
        #[case] body: &str,
        #[case] limit: usize,
        #[case] expected: Result<Value, &str>,
    ) {
        let read = read(body.as_bytes(), limit).map_err(|error| error.to_string());
        assert_eq!(read, expected.map_err(str::to_owned));
    }

    #[test]
    fn an_object_counts_as_many() {
        let within = |values| check(br#"[{"a": 1}, {}]"#, Limit { values, object: 8 });
        assert!(within(20).is_ok());
        assert!(matches!(within(19), Err(JsonError::TooManyValues(19))));
    }

    #[rstest]
    #[case("[", "]")]
    #[case(r#"{"a":"#, "}")]
    fn depth_is_limited(#[case] open: &str, #[case] close: &str) {
        let nested = |depth: usize| format!("{}0{}", open.repeat(depth), close.repeat(depth));
        assert!(read::<Value>(nested(MAX_DEPTH).as_bytes(), 100_000).is_ok());
        for depth in [MAX_DEPTH + 1, 10_000] {
            let error = read::<Value>(nested(depth).as_bytes(), 100_000).unwrap_err();
            assert_eq!(error.to_string(), "values are nested more than 120 levels deep");
        }
    }
}
