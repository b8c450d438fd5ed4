//! The query syntax of label selectors.

use std::collections::BTreeSet;

use super::label::{Operator, Requirement};
use crate::names;

/// Parses `a=b,c in (d,e),!f`.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser {
        tokens: tokens(text),
        at: 0,
    };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            Token::Word(_) | Token::Not => {
                let requirement = parser
                    .requirement()
                    .map_err(|why| format!("unable to parse requirement: {why}"))?;
                requirements.push(requirement);
                match parser.next() {
                    Token::End => return Ok(requirements),
                    Token::Comma => {
                        let next = parser.peek();
                        if !matches!(next, Token::Word(_) | Token::Not) {
                            return Err(format!("found '{}', expected: identifier after ','", next.text()));
                        }
                    }
                    other => {
                        return Err(format!(
                            "found '{}', expected: ',' or 'end of string'",
                            other.text()
                        ));
                    }
                }
            }
            Token::End => return Ok(requirements),
            other => {
                return Err(format!(
                    "found '{}', expected: !, identifier, or 'end of string'",
                    other.text()
                ));
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'t> {
    /// An identifier. `in` and `notin` are operators only where one is expected.
    Word(&'t str),
    Open,
    Close,
    Comma,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    End,
}

impl<'t> Token<'t> {
    fn text(self) -> &'t str {
        match self {
            Self::Word(word) => word,
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::Not => "!",
            Self::Equals => "=",
            Self::DoubleEquals => "==",
            Self::NotEquals => "!=",
            Self::Greater => ">",
            Self::Less => "<",
            Self::End => "",
        }
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    const SYMBOLS: [Token<'_>; 9] = [
        Token::DoubleEquals,
        Token::NotEquals,
        Token::Equals,
        Token::Not,
        Token::Open,
        Token::Close,
        Token::Comma,
        Token::Greater,
        Token::Less,
    ];
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let is_symbol = |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<');
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let token = SYMBOLS
            .into_iter()
            .find(|symbol| rest.starts_with(symbol.text()))
            .unwrap_or_else(|| {
                let end = rest.find(|c| is_space(c) || is_symbol(c)).unwrap_or(rest.len());
                Token::Word(&rest[..end])
            });
        tokens.push(token);
        rest = rest[token.text().len()..].trim_start_matches(is_space);
    }
    tokens
}

struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    at: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Token<'t> {
        self.tokens.get(self.at).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'t> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (negated, token) = match self.next() {
            Token::Not => (true, self.next()),
            token => (false, token),
        };
        let Token::Word(key) = token else {
            return Err(format!("found '{}', expected: identifier", token.text()));
        };
        let faults = names::qualified_name(key).join("; ");
        if !faults.is_empty() {
            return Err(format!("<nil>: Invalid value: {key:?}: {faults}"));
        }
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => BTreeSet::from([self.value()?]),
        };
        Requirement::new(key, operator, values.into_iter().map(str::to_owned).collect())
    }

    fn operator(&mut self) -> Result<Operator, String> {
        match self.next() {
            Token::Word("in") => Ok(Operator::In),
            Token::Word("notin") => Ok(Operator::NotIn),
            Token::Equals => Ok(Operator::Equals),
            Token::DoubleEquals => Ok(Operator::DoubleEquals),
            Token::NotEquals => Ok(Operator::NotEquals),
            Token::Greater => Ok(Operator::GreaterThan),
            Token::Less => Ok(Operator::LessThan),
            other => Err(format!(
                "found '{}', expected: in, notin, =, ==, !=, gt, lt",
                other.text()
            )),
        }
    }

    /// The value after `=`, which may be empty.
    fn value(&mut self) -> Result<&'t str, String> {
        match self.peek() {
            Token::End | Token::Comma => Ok(""),
            Token::Word(word) => {
                self.at += 1;
                Ok(word)
            }
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    /// The values after `in`. Nothing between two commas is an empty value.
    fn values(&mut self) -> Result<BTreeSet<&'t str>, String> {
        let open = self.next();
        if open != Token::Open {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        let mut values = BTreeSet::new();
        match self.peek() {
            Token::Word(_) | Token::Comma => {}
            Token::Close => {
                self.at += 1;
                return Ok(BTreeSet::from([""]));
            }
            other => {
                return Err(format!(
                    "found '{}', expected: ',', ')' or identifier",
                    other.text()
                ));
            }
        }
        loop {
            match (self.next(), self.peek()) {
                (Token::Word(word), Token::Comma) => {
                    values.insert(word);
                }
                (Token::Word(word), Token::Close) => {
                    values.insert(word);
                    break;
                }
                (Token::Word(_), other) => {
                    return Err(format!("found '{}', expected: ',' or ')'", other.text()));
                }
                (Token::Comma, next) => {
                    if values.is_empty() || matches!(next, Token::Close | Token::Comma) {
                        values.insert("");
                    }
                    if next == Token::Close {
                        break;
                    }
                }
                (other, _) => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
        }
        self.at += 1;
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::super::LabelSelector;
    use proptest::prelude::*;
    use rstest::rstest;

    const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
        alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
        must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
        validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    const PREFIX: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
        '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
        '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

    #[rstest]
    #[case(
        "a=b,c==d,e!=f,g in (x,y),h notin (z),i,!j",
        "a=b,c==d,e!=f,g in (x,y),h notin (z),i,!j"
    )]
    #[case("b<2,a>1", "a>1,b<2")]
    #[case("a in (y, x ,y)", "a in (x,y)")]
    #[case("a in (,b)", "a in (,b)")]
    #[case("a= ,b", "a=,b")]
    #[case("! a", "!a")]
    #[case("in in (in),notin=in", "in in (in),notin=in")]
    #[case("", "")]
    fn a_selector_is_read_and_shown(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(LabelSelector::parse(text).unwrap().to_string(), expected);
    }

    /// The messages with which the real server answers 400. `~` stands for `unable to parse requirement: `.
    #[rstest]
    #[case("a,", "found '', expected: identifier after ','")]
    #[case("a,,b", "found ',', expected: identifier after ','")]
    #[case(",a", "found ',', expected: !, identifier, or 'end of string'")]
    #[case("=b", "found '=', expected: !, identifier, or 'end of string'")]
    #[case("a=b=c", "found '=', expected: ',' or 'end of string'")]
    #[case("!a=b", "found '=', expected: ',' or 'end of string'")]
    #[case("!a in (b)", "found 'in', expected: ',' or 'end of string'")]
    #[case("a in", "~found '' expected: '('")]
    #[case("a notin b", "~found 'b' expected: '('")]
    #[case("a in (", "~found '', expected: ',', ')' or identifier")]
    #[case("a in (b", "~found '', expected: ',' or ')'")]
    #[case("a in (b c)", "~found 'c', expected: ',' or ')'")]
    #[case("!", "~found '', expected: identifier")]
    #[case("a b", "~found 'b', expected: in, notin, =, ==, !=, gt, lt")]
    #[case("a!b", "~found '!', expected: in, notin, =, ==, !=, gt, lt")]
    #[case("a===b", "~found '=', expected: identifier")]
    #[case("a=(b)", "~found '(', expected: identifier")]
    #[case("a<>b", "~found '>', expected: identifier")]
    #[case(
        "a>b",
        "~values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer"
    )]
    #[case("/a", "~<nil>: Invalid value: \"/a\": prefix part must be non-empty")]
    #[case("-a", format!("~<nil>: Invalid value: \"-a\": name part {NAME}"))]
    #[case("Ex.com/a", format!("~<nil>: Invalid value: \"Ex.com/a\": {PREFIX}"))]
    #[case("a.com/", format!("~<nil>: Invalid value: \"a.com/\": name part must be non-empty; name part {NAME}"))]
    #[case("a/b/c", format!("~<nil>: Invalid value: \"a/b/c\": a valid label key {NAME} with an optional DNS subdomain prefix \
        and '/' (e.g. 'example.com/MyName')"))]
    #[case("a=-b", format!("~values[0][a]: Invalid value: \"-b\": {VALUE}"))]
    #[case("a in (-x,-y)", format!("~[values[0][a]: Invalid value: \"-x\": {VALUE}, values[1][a]: Invalid value: \"-y\": {VALUE}]"))]
    fn a_bad_selector_is_refused(#[case] text: &str, #[case] expected: impl Into<String>) {
        let expected = expected.into().replace('~', "unable to parse requirement: ");
        assert_eq!(LabelSelector::parse(text).unwrap_err().to_string(), expected);
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_shown_reads_the_same(text in "[a-c!=<>(), in-]{0,24}|.{0,24}") {
            if let Ok(selector) = LabelSelector::parse(&text) {
                prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
            }
        }
    }
}
