//! Splits the source into tokens.
//!
//! Like Go's expr: `1..3` is a range, `not in` two tokens, `?.5` an optional member and not a number.

use super::error::Wrong;
use super::token::{Kind, Token};

/// Splits `source` into tokens, the last of which is the end.
pub(super) fn lex(source: &str) -> Result<Vec<Token>, Wrong> {
    let mut lexer = Lexer {
        characters: source.chars().collect(),
        at: 0,
    };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.token()?;
        let end = token.kind == Kind::End;
        tokens.push(token);
        if end {
            return Ok(tokens);
        }
    }
}

/// The operators that are words.
const WORDS: [&str; 11] = [
    "not",
    "in",
    "or",
    "and",
    "matches",
    "contains",
    "startsWith",
    "endsWith",
    "let",
    "if",
    "else",
];

/// The operators that are signs, longer ones first.
const SIGNS: [&str; 30] = [
    "||", "::", "##", "..", "?.", "??", "==", "!=", "<=", ">=", "&&", "**", "|", ":", "#", ".", "?", "=",
    "!", "<", ">", "&", "*", ",", ";", "%", "+", "-", "^", "/",
];

struct Lexer {
    characters: Vec<char>,
    at: usize,
}

impl Lexer {
    fn peek(&self) -> Option<char> {
        self.peek_after(0)
    }

    fn peek_after(&self, count: usize) -> Option<char> {
        self.characters.get(self.at + count).copied()
    }

    fn token(&mut self) -> Result<Token, Wrong> {
        self.skip_space_and_comments()?;
        let at = self.at;
        let kind = match self.peek() {
            None => Kind::End,
            Some(quote @ ('\'' | '"')) => Kind::Text(self.text(quote)?),
            Some('`') => Kind::Text(self.raw_text()?),
            Some('b' | 'B') if matches!(self.peek_after(1), Some('\'' | '"')) => {
                return Err(Wrong::new(
                    at,
                    "byte strings (b\"…\") are not supported; write a string",
                ));
            }
            Some('0'..='9') => self.number()?,
            Some('.') if self.peek_after(1).is_some_and(|next| next.is_ascii_digit()) => self.number()?,
            Some(bracket @ ('(' | ')' | '[' | ']' | '{' | '}')) => {
                self.at += 1;
                Kind::Bracket(bracket)
            }
            Some(character) if in_name(character) => self.word(),
            Some(character) => match self.sign() {
                Some(sign) => Kind::Operator(sign),
                None => {
                    return Err(Wrong::new(
                        at,
                        format!("{character:?} has no meaning in an expression"),
                    ));
                }
            },
        };
        Ok(Token { at, kind })
    }

    fn skip_space_and_comments(&mut self) -> Result<(), Wrong> {
        loop {
            match (self.peek(), self.peek_after(1)) {
                (Some(space), _) if space.is_whitespace() => self.at += 1,
                (Some('/'), Some('/')) => {
                    while self.peek().is_some_and(|character| character != '\n') {
                        self.at += 1;
                    }
                }
                (Some('/'), Some('*')) => {
                    let start = self.at;
                    self.at += 2;
                    while (self.peek(), self.peek_after(1)) != (Some('*'), Some('/')) {
                        if self.peek().is_none() {
                            return Err(Wrong::new(start, "this comment has no end: */ is missing"));
                        }
                        self.at += 1;
                    }
                    self.at += 2;
                }
                _ => return Ok(()),
            }
        }
    }

    fn sign(&mut self) -> Option<&'static str> {
        let sign = SIGNS.into_iter().find(|sign| {
            sign.chars()
                .enumerate()
                .all(|(index, character)| self.peek_after(index) == Some(character))
        })?;
        self.at += sign.len();
        Some(sign)
    }

    fn word(&mut self) -> Kind {
        let start = self.at;
        while self.peek().is_some_and(in_name) {
            self.at += 1;
        }
        let word: String = self.characters[start..self.at].iter().collect();
        // A word directly after # is a name, even if it is also an operator.
        if start > 0 && self.characters[start - 1] == '#' {
            return Kind::Name(word);
        }
        match WORDS.into_iter().find(|operator| *operator == word) {
            Some(operator) => Kind::Operator(operator),
            None => Kind::Name(word),
        }
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek().is_some_and(|next| next == '_' || wanted(next)) {
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<Kind, Wrong> {
        let start = self.at;
        let mut digit: fn(char) -> bool = |next| next.is_ascii_digit();
        if self.peek() == Some('0') {
            let base: Option<fn(char) -> bool> = match self.peek_after(1) {
                Some('x' | 'X') => Some(|next| next.is_ascii_hexdigit()),
                Some('o' | 'O') => Some(|next| ('0'..='7').contains(&next)),
                Some('b' | 'B') => Some(|next| next == '0' || next == '1'),
                _ => None,
            };
            if let Some(base) = base {
                digit = base;
                self.at += 2;
            }
        }
        self.take_while(digit);
        let range = self.peek() == Some('.') && self.peek_after(1) == Some('.');
        if !range {
            if self.peek() == Some('.') {
                self.at += 1;
                self.take_while(digit);
            }
            if matches!(self.peek(), Some('e' | 'E')) {
                self.at += 1;
                if matches!(self.peek(), Some('+' | '-')) {
                    self.at += 1;
                }
                self.take_while(digit);
            }
            if self.peek().is_some_and(in_name) {
                return Err(Wrong::new(
                    start,
                    "this is not a number; put a space or an operator after it",
                ));
            }
        }
        Ok(Kind::Number(self.characters[start..self.at].iter().collect()))
    }

    fn raw_text(&mut self) -> Result<String, Wrong> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match (self.peek(), self.peek_after(1)) {
                (None, _) => return Err(Wrong::new(start, "this string has no end: ` is missing")),
                // A doubled backtick is an escaped one.
                (Some('`'), Some('`')) => {
                    text.push('`');
                    self.at += 2;
                }
                (Some('`'), _) => {
                    self.at += 1;
                    return Ok(text);
                }
                (Some(character), _) => {
                    text.push(character);
                    self.at += 1;
                }
            }
        }
    }

    fn text(&mut self, quote: char) -> Result<String, Wrong> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\n') => {
                    return Err(Wrong::new(
                        start,
                        format!("this string has no end: {quote} is missing"),
                    ));
                }
                Some('\\') => text.push(self.escape(quote)?),
                Some('\r') => {
                    text.push('\n');
                    self.at += 1;
                }
                Some(character) => {
                    self.at += 1;
                    if character == quote {
                        return Ok(text);
                    }
                    text.push(character);
                }
            }
        }
    }

    fn escape(&mut self, quote: char) -> Result<char, Wrong> {
        let start = self.at;
        let wrong = |what: &str| {
            Err(Wrong::new(
                start,
                format!(
                    "{what}; allowed are \\n \\r \\t \\a \\b \\f \\v \\\\ \\{quote} \\xFF \\u00FF \\u{{FF}} \\U000000FF \\377"
                ),
            ))
        };
        let letter = self.peek_after(1);
        self.at += 2;
        let code = match letter {
            Some('a') => return Ok('\u{7}'),
            Some('b') => return Ok('\u{8}'),
            Some('f') => return Ok('\u{c}'),
            Some('n') => return Ok('\n'),
            Some('r') => return Ok('\r'),
            Some('t') => return Ok('\t'),
            Some('v') => return Ok('\u{b}'),
            Some('\\') => return Ok('\\'),
            Some(same) if same == quote => return Ok(quote),
            Some('x') => self.digits(16, 2),
            Some('u') if self.peek() == Some('{') => {
                self.at += 1;
                let count = (0..6)
                    .take_while(|index| {
                        self.peek_after(*index)
                            .is_some_and(|next| next.is_ascii_hexdigit())
                    })
                    .count();
                let code = self.digits(16, count);
                if count == 0 || self.peek() != Some('}') {
                    return wrong("this escape needs one to six hexadecimal digits in braces");
                }
                self.at += 1;
                code
            }
            Some('u') => self.digits(16, 4),
            Some('U') => self.digits(16, 8),
            Some('0'..='3') => {
                self.at -= 1;
                self.digits(8, 3)
            }
            _ => return wrong("this escape has no meaning"),
        };
        match code {
            // Go writes the replacement character for lone surrogates.
            Some(0xD800..=0xDFFF) => Ok('\u{FFFD}'),
            Some(code) => match char::from_u32(code) {
                Some(character) => Ok(character),
                None => wrong("there is no such character"),
            },
            None => wrong("this escape has too few digits"),
        }
    }

    fn digits(&mut self, base: u32, count: usize) -> Option<u32> {
        let mut code: u32 = 0;
        for _ in 0..count {
            let digit = self.peek()?.to_digit(base)?;
            code = code.checked_mul(base)?.checked_add(digit)?;
            self.at += 1;
        }
        Some(code)
    }
}

fn in_name(character: char) -> bool {
    character == '_' || character == '$' || character.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn words(source: &str) -> String {
        lex(source)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[rstest]
    #[case("1..3", "1 .. 3 the end")]
    #[case("1.5e3<=.5", "1.5e3 <= .5 the end")]
    #[case("a?.b??c ? d : e", "a ?. b ?? c ? d : e the end")]
    #[case("#index not  in x", "# index not in x the end")]
    #[case("a /* b */ // c\n d", "a d the end")]
    #[case("`a``b` 'c\\'\\x41\\u{1F600}'", "\"a`b\" \"c'A😀\" the end")]
    #[case("0xFF_00 0b1 0o7 1_000", "0xFF_00 0b1 0o7 1_000 the end")]
    fn source_is_cut_into_words(#[case] source: &str, #[case] expected: &str) {
        assert_eq!(words(source), expected);
    }

    #[rstest]
    #[case("'abc", 0, "no end")]
    #[case("a @ b", 2, "no meaning")]
    #[case("1 /* a", 2, "*/ is missing")]
    #[case("5x", 0, "not a number")]
    #[case(r"'\q'", 1, "allowed are")]
    fn what_cannot_be_cut_is_told_with_its_place(
        #[case] source: &str,
        #[case] at: usize,
        #[case] message: &str,
    ) {
        let wrong = lex(source).unwrap_err();
        assert_eq!(wrong.at, at);
        assert!(wrong.message.contains(message), "{}", wrong.message);
    }
}
