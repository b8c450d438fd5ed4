//! Finds the position of an error in a rule.
//!
//! The parser does not report positions, but expressions are visited in source order: the n-th field of some name is the n-th such field in
//! the source.

use std::collections::BTreeMap;

/// A construct in a rule.
#[derive(Clone, Copy)]
pub(super) enum Mark<'m> {
    Name(&'m str),
    /// At its dot.
    Field(&'m str),
    /// At its parenthesis.
    Call(&'m str),
    Operator(&'m str),
    /// The construction of a message, at its brace.
    Message(&'m str),
}

/// A rule's source, and the progress for each kind of mark.
pub(super) struct Locator<'s> {
    source: &'s str,
    tokens: Vec<(usize, &'s str)>,
    read: BTreeMap<(u8, String), usize>,
}

impl<'s> Locator<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self {
            source,
            tokens: tokens(source),
            read: BTreeMap::new(),
        }
    }

    /// The offset of the next such mark; of the end if there is none.
    pub(super) fn next(&mut self, mark: Mark<'_>) -> usize {
        let (kind, text) = match mark {
            Mark::Name(text) => (0, text),
            Mark::Field(text) => (1, text),
            Mark::Call(text) => (2, text),
            Mark::Operator(text) => (3, text),
            Mark::Message(text) => (4, text),
        };
        let token = |index: usize| self.tokens.get(index).map_or("", |(_, token)| *token);
        let before = |index: usize| if index == 0 { "" } else { token(index - 1) };
        let places = (0..self.tokens.len()).filter_map(|index| {
            let here = self.tokens[index];
            if here.1 != text {
                return None;
            }
            let called = token(index + 1) == "(";
            match kind {
                0 if !called && before(index) != "." => Some(here.0),
                1 if !called && before(index) == "." => Some(self.tokens[index - 1].0),
                2 if called => Some(self.tokens[index + 1].0),
                3 => Some(here.0),
                4 if token(index + 1) == "{" => Some(self.tokens[index + 1].0),
                _ => None,
            }
        });
        let read = self
            .read
            .get(&(kind, text.to_owned()))
            .copied()
            .unwrap_or_default();
        let place = places.into_iter().nth(read).unwrap_or(self.source.len());
        self.read.insert((kind, text.to_owned()), read + 1);
        place
    }

    /// An error at an offset, with its line, in the compiler's format.
    pub(super) fn report(&self, at: usize, what: &str) -> String {
        let before = self.source.get(..at).unwrap_or(self.source);
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        shown(self.source, line, column, what)
    }
}

/// `line` and `column` count from 0.
pub(in crate::custom) fn shown(source: &str, line: usize, column: usize, what: &str) -> String {
    let text = source.lines().nth(line).unwrap_or_default();
    let dots = ".".repeat(column);
    format!(
        "ERROR: <input>:{}:{}: {what}\n | {text}\n | {dots}^",
        line + 1,
        column + 1
    )
}

/// Words, operators and brackets, without the contents of string literals.
fn tokens(source: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        let end = match c {
            '"' | '\'' => quoted_end(rest, c),
            c if c == '_' || c.is_alphanumeric() => {
                let end = rest
                    .find(|c: char| c != '_' && !c.is_alphanumeric())
                    .unwrap_or(rest.len());
                found.push((at, &rest[..end]));
                end
            }
            c if c.is_whitespace() => c.len_utf8(),
            c => {
                let two = rest
                    .get(..2)
                    .filter(|two| ["==", "!=", "<=", ">=", "&&", "||"].contains(two));
                let end = two.map_or(c.len_utf8(), str::len);
                // An optional selection `.?a` is a selection.
                let selects = found
                    .last()
                    .is_some_and(|(_, token): &(usize, &str)| *token == ".");
                if c != '?' || !selects {
                    found.push((at, &rest[..end]));
                }
                end
            }
        };
        at += end.max(1);
    }
    found
}

fn quoted_end(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + c.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}
