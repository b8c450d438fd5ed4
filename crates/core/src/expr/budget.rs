//! Limits the cost of an evaluation, so that none can hang or fill the memory.

use super::value::Value;

/// The steps that an evaluation may take. A loop over a million elements fits.
const STEPS: u64 = 10_000_000;
/// The elements of lists and maps that an evaluation may create, as in Go's expr.
const ELEMENTS: u64 = 1_000_000;
/// The bytes of text that an evaluation may create.
const TEXT: u64 = 16 * 1024 * 1024;

/// Why a step of an evaluation failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// A value does not fit the operation.
    Value {
        /// The error.
        message: String,
        /// The error without any part of the values, if `message` contains one.
        without_values: Option<&'static str>,
    },
    /// The evaluation is too expensive.
    Budget(&'static str),
}

impl Fault {
    /// `message` contains the types of values and parts of the source, but nothing computed.
    pub(super) fn value(message: impl Into<String>) -> Self {
        Self::Value {
            message: message.into(),
            without_values: None,
        }
    }

    /// `message` contains part of a value, possibly of an answer that is confidential.
    pub(super) fn showing(message: String, without_values: &'static str) -> Self {
        Self::Value {
            message,
            without_values: Some(without_values),
        }
    }

    /// The values in the message come from the source.
    pub(super) fn of_source(self) -> Self {
        match self {
            Self::Value { message, .. } => Self::value(message),
            Self::Budget(message) => Self::Budget(message),
        }
    }

    /// Lists nested too deeply.
    pub(super) fn too_deep() -> Self {
        Self::Budget("lists and maps are nested deeper than 200 levels")
    }
}

/// The remaining budget.
#[derive(Debug)]
pub(super) struct Budget {
    steps: u64,
    elements: u64,
    text: u64,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self {
            steps: STEPS,
            elements: ELEMENTS,
            text: TEXT,
        }
    }

    pub(super) fn steps(&mut self, count: usize) -> Result<(), Fault> {
        self.steps = self
            .steps
            .checked_sub(count as u64)
            .ok_or(Fault::Budget("the expression takes more than 10 million steps"))?;
        Ok(())
    }

    /// Call before looking at that many bytes of text.
    pub(super) fn look_at(&mut self, bytes: usize) -> Result<(), Fault> {
        self.steps(bytes / 16)
    }

    /// Call before an operation on these values: every operation looks at them.
    pub(super) fn texts(&mut self, values: &[Value]) -> Result<(), Fault> {
        values.iter().try_for_each(|value| match value {
            Value::Text(text) => self.look_at(text.len()),
            _ => Ok(()),
        })
    }

    /// Call before creating that many elements of lists or maps.
    pub(super) fn elements(&mut self, count: usize) -> Result<(), Fault> {
        self.steps(count / 4)?;
        self.elements = self
            .elements
            .checked_sub(count as u64)
            // Go's budget must not reach zero.
            .filter(|left| *left > 0)
            .ok_or(Fault::Budget(
                "the expression makes lists of more than 1 million elements",
            ))?;
        Ok(())
    }

    /// Call before creating that many bytes of text.
    pub(super) fn text(&mut self, bytes: usize) -> Result<(), Fault> {
        self.steps(bytes / 64)?;
        self.text = self
            .text
            .checked_sub(bytes as u64)
            .ok_or(Fault::Budget("the expression makes more than 16 MiB of text"))?;
        Ok(())
    }
}
