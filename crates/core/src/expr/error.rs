//! What can be wrong with an expression, and where.

use std::fmt;

/// A place in an expression, with the line it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Counted from 1.
    pub line: usize,
    /// Counted in characters, from 1.
    pub column: usize,
    /// The line of the expression, or its part around the column if it is long.
    pub snippet: String,
    /// Where in the snippet the column is, counted in characters from 0.
    pub mark: usize,
}

/// Characters of a long line that are shown on each side of the place.
const AROUND: usize = 60;

impl Place {
    /// The place of the character `offset` of `source`.
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
            // Tabs would put the mark under another character.
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

/// An expression that cannot be used: its syntax, a name or a type is wrong whatever the values will be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}\n  {}\n  {:mark$}^", place.snippet, "", mark = place.mark)]
pub struct CompileError {
    /// What is wrong, and what is allowed.
    pub message: String,
    /// Where.
    pub place: Place,
}

/// Why an expression gave no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunErrorKind {
    /// A value did not fit what was to be done with it.
    Value,
    /// The evaluation took more steps or memory than an expression may.
    Budget,
    /// There is a value, but a condition has to give true or false, and a moment a time.
    Outcome,
    /// The answer is not of the shape that the condition was compiled for.
    Shape,
}

/// An expression that could not be evaluated with these values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}\n  {}\n  {:mark$}^", place.snippet, "", mark = place.mark)]
pub struct RunError {
    /// Why.
    pub kind: RunErrorKind,
    /// What happened.
    pub message: String,
    /// The same without anything of the answer, for answers that are not shown.
    pub without_values: String,
    /// Where.
    pub place: Place,
}

/// An expression that is not good, or not good for these values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExprError {
    /// It never can be evaluated with an answer of this shape.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// It cannot be evaluated with this answer.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Something wrong at a character of the source, before the source is at hand to show it.
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
