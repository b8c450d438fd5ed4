//! How much an evaluation may cost, so that none can hang or fill the memory.

use super::value::Value;

/// Steps that an evaluation may take. A loop over a million elements fits.
const STEPS: u64 = 10_000_000;
/// Elements of lists and maps that an evaluation may make, as in Go's expr.
const ELEMENTS: u64 = 1_000_000;
/// Bytes of text that an evaluation may make.
const TEXT: u64 = 16 * 1024 * 1024;

/// Why a step of an evaluation failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// A value does not fit what is done with it.
    Value {
        /// What happened.
        message: String,
        /// The same without anything of the values, where `message` has something of them.
        without_values: Option<&'static str>,
    },
    /// The evaluation is too costly.
    Budget(&'static str),
}

impl Fault {
    /// `message` has the types of values and what stands in the source, and nothing that was computed.
    pub(super) fn value(message: impl Into<String>) -> Self {
        Self::Value {
            message: message.into(),
            without_values: None,
        }
    }

    /// `message` shows something of a value, which may be a part of an answer that nobody may read.
    pub(super) fn showing(message: String, without_values: &'static str) -> Self {
        Self::Value {
            message,
            without_values: Some(without_values),
        }
    }

    /// The values in the message stand in the source.
    pub(super) fn of_source(self) -> Self {
        match self {
            Self::Value { message, .. } => Self::value(message),
            Self::Budget(message) => Self::Budget(message),
        }
    }

    /// A list in a list in a list, without an end in sight.
    pub(super) fn too_deep() -> Self {
        Self::Budget("lists and maps are nested deeper than 200 levels")
    }
}

/// What is left.
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

    /// Before that many bytes of text are looked at.
    pub(super) fn look_at(&mut self, bytes: usize) -> Result<(), Fault> {
        self.steps(bytes / 16)
    }

    /// Before something is done with these: what they are is looked at, whatever is done.
    pub(super) fn texts(&mut self, values: &[Value]) -> Result<(), Fault> {
        values.iter().try_for_each(|value| match value {
            Value::Text(text) => self.look_at(text.len()),
            _ => Ok(()),
        })
    }

    /// Before that many elements of lists or maps are made.
    pub(super) fn elements(&mut self, count: usize) -> Result<(), Fault> {
        self.steps(count / 4)?;
        self.elements = self
            .elements
            .checked_sub(count as u64)
            // Go's budget has to have something left.
            .filter(|left| *left > 0)
            .ok_or(Fault::Budget(
                "the expression makes lists of more than 1 million elements",
            ))?;
        Ok(())
    }

    /// Before that many bytes of text are made.
    pub(super) fn text(&mut self, bytes: usize) -> Result<(), Fault> {
        self.steps(bytes / 64)?;
        self.text = self
            .text
            .checked_sub(bytes as u64)
            .ok_or(Fault::Budget("the expression makes more than 16 MiB of text"))?;
        Ok(())
    }
}
