//! Which words an expression uses, without asking what for.

use super::lexer::lex;
use super::token::Kind;

/// Whether an expression has one of these names or signs in it. Text in quotes does not count.
pub fn mentions(source: &str, words: &[&str]) -> bool {
    let tokens = lex(source).unwrap_or_default();
    tokens.iter().any(|token| match &token.kind {
        Kind::Name(name) => words.contains(&name.as_str()),
        Kind::Operator(sign) => words.contains(sign),
        Kind::Number(_) | Kind::Text(_) | Kind::Bracket(_) | Kind::End => false,
    })
}
