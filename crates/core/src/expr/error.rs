//! The errors of expressions, and their positions.

use std::fmt;

/// A position in an expression, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Counted from 1.
    pub line: usize,
    /// Counted in characters, from 1.
    pub column: usize,
    /// The line of the expression, or its part around the column if it is long.
    pub snippet: String,
    /// The index of the column in the snippet, in characters from 0.
    pub mark: usize,
}

/// Characters of a long line that are shown on each side of the position.
const AROUND: usize = 60;

impl Place {
    /// The position of the character `offset` of `source`.
    pub(super) fn of(source: &str, offset: usize) -> Self {
        let (mut line, mut start) = (1, 0);
        for (index, character) in source.chars().enumerate().take(offset) {
            if character == '\n' {
                line += 1;
                start = index + 1;
            }
        }
        let text: Vec<char> = source
            .chars()
            .skip(start)
            .take_while(|character| *character != '\n')
            .collect();
        let at = offset.saturating_sub(start).min(text.len());
        let from = at.saturating_sub(AROUND);
        let to = text.len().min(at + AROUND);
        Self {
            line,
            column: at + 1,
            // Tabs would move the mark under another character.
            snippet: text[from..to]
                .iter()
                .map(|character| if character.is_control() { ' ' } else { *character })
                .collect(),
            mark: at - from,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// An expression that is invalid for all values: a wrong syntax, name or type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}\n  {}\n  {:mark$}^", place.snippet, "", mark = place.mark)]
pub struct CompileError {
    /// The error, and what is allowed.
    pub message: String,
    /// The position.
    pub place: Place,
}

/// Why an expression returned no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunErrorKind {
    /// A value did not fit the operation.
    Value,
    /// The evaluation exceeded its budget of steps or memory.
    Budget,
    /// There is a value, but a condition must return a bool, and a moment a time.
    Outcome,
    /// The answer does not have the shape that the condition was compiled for.
    Shape,
}

/// The evaluation failed with these values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}\n  {}\n  {:mark$}^", place.snippet, "", mark = place.mark)]
pub struct RunError {
    /// The kind of error.
    pub kind: RunErrorKind,
    /// The error.
    pub message: String,
    /// The error without any part of the answer, for confidential answers.
    pub without_values: String,
    /// The position.
    pub place: Place,
}

/// An expression that is invalid, in general or for these values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExprError {
    /// It cannot be evaluated with an answer of this shape.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// It cannot be evaluated with this answer.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// An error at a character of the source, before the source is available for the message.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) at: usize,
    pub(super) message: String,
}

impl Wrong {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }

    /// The error for `source`.
    pub(super) fn in_source(self, source: &str) -> CompileError {
        CompileError {
            message: self.message,
            place: Place::of(source, self.at),
        }
    }
}
