//! The tokens of the language.

use std::fmt;

/// A token and its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    /// Characters before it.
    pub(super) at: usize,
    pub(super) kind: Kind,
}

/// The kinds of tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Name(String),
    /// As in the source, with underscores.
    Number(String),
    Text(String),
    /// Signs, and the operators that are words: `in`, `not`, `let`.
    Operator(&'static str),
    /// One of `()[]{}`.
    Bracket(char),
    End,
}

impl Token {
    pub(super) fn is_operator(&self, sign: &str) -> bool {
        matches!(self.kind, Kind::Operator(operator) if operator == sign)
    }

    pub(super) fn is_bracket(&self, bracket: char) -> bool {
        self.kind == Kind::Bracket(bracket)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Name(name) => write!(f, "{name}"),
            Kind::Number(number) => write!(f, "{number}"),
            Kind::Text(text) => write!(f, "{text:?}"),
            Kind::Operator(operator) => write!(f, "{operator}"),
            Kind::Bracket(bracket) => write!(f, "{bracket}"),
            Kind::End => write!(f, "the end"),
        }
    }
}
