//! Parses tokens to a tree by operator precedence.
//!
//! Lowest first: `|`, `||`, `&&`, comparisons, `..`, `+ -`, `not`, `* / %`, signs, `**`, `??`. As in Go's expr, `??` has the highest
//! precedence and must not be combined with another operator without parentheses.

use super::ast::{Binary, Node, Syntax, Unary};
use super::error::Wrong;
use super::lexer::lex;
use super::token::{Kind, Token};

/// The maximum length of an expression in characters.
pub(super) const LONGEST: usize = 16 * 1024;
/// The maximum nesting of parentheses, brackets and calls. The usual stack of a thread, two megabytes, is enough for that, even without
/// optimisation.
const DEEPEST: usize = 64;
/// The maximum height of the tree; operators in a row add to it.
const HIGHEST: usize = 100;
/// The maximum number of nodes, as in Go's expr.
const MOST_PARTS: usize = 10_000;

/// Parses an expression.
pub(super) fn parse(source: &str) -> Result<Node, Wrong> {
    if source.chars().nth(LONGEST).is_some() {
        return Err(Wrong::new(
            0,
            format!("an expression may have {LONGEST} characters; this one is longer"),
        ));
    }
    let mut parser = Parser {
        tokens: lex(source)?,
        next: 0,
        in_predicate: 0,
        depth: 0,
        parts: 0,
    };
    let node = parser.sequence()?;
    match &parser.current().kind {
        Kind::End => Ok(node),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

pub(super) struct Parser {
    tokens: Vec<Token>,
    next: usize,
    /// The nesting depth of predicates: `#` and `.field` are valid only inside.
    pub(super) in_predicate: usize,
    pub(super) depth: usize,
    parts: usize,
}

impl Parser {
    pub(super) fn current(&self) -> &Token {
        // The last token is the end, and nothing advances past it.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    pub(super) fn advance(&mut self) -> Token {
        let token = self.current().clone();
        if self.next + 1 < self.tokens.len() {
            self.next += 1;
        }
        token
    }

    pub(super) fn unexpected(&self, wanted: &str) -> Wrong {
        let token = self.current();
        Wrong::new(token.at, format!("expected {wanted}, found {token}"))
    }

    pub(super) fn take_operator(&mut self, sign: &str) -> bool {
        let found = self.current().is_operator(sign);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect_operator(&mut self, sign: &str) -> Result<(), Wrong> {
        if self.take_operator(sign) {
            return Ok(());
        }
        Err(self.unexpected(sign))
    }

    pub(super) fn take_bracket(&mut self, bracket: char) -> bool {
        let found = self.current().is_bracket(bracket);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect_bracket(&mut self, bracket: char) -> Result<(), Wrong> {
        if self.take_bracket(bracket) {
            return Ok(());
        }
        Err(self.unexpected(&bracket.to_string()))
    }

    pub(super) fn expect_name(&mut self) -> Result<(usize, String), Wrong> {
        match self.current().clone() {
            Token {
                at,
                kind: Kind::Name(name),
            } => {
                self.advance();
                Ok((at, name))
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    /// Creates a node, unless the tree becomes too large.
    pub(super) fn node(&mut self, at: usize, syntax: Syntax) -> Result<Node, Wrong> {
        self.parts += 1;
        if self.parts > MOST_PARTS {
            return Err(Wrong::new(
                at,
                format!("an expression may have {MOST_PARTS} parts; this one has more"),
            ));
        }
        let height = syntax.height();
        if height > HIGHEST {
            return Err(Wrong::new(
                at,
                format!("an expression may have {HIGHEST} operators in a row; this one has more"),
            ));
        }
        Ok(Node { at, height, syntax })
    }

    /// `a; b`: the value is that of the last one.
    pub(super) fn sequence(&mut self) -> Result<Node, Wrong> {
        let first = self.expression(0)?;
        let at = first.at;
        let mut nodes = vec![first];
        while self.take_operator(";") {
            if self.current().kind == Kind::End {
                break;
            }
            nodes.push(self.expression(0)?);
        }
        match nodes.len() {
            1 => Ok(nodes.remove(0)),
            _ => self.node(at, Syntax::Sequence(nodes)),
        }
    }

    /// An expression of operators with at least the precedence `tightness`.
    pub(super) fn expression(&mut self, tightness: u16) -> Result<Node, Wrong> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(too_deep(self.current().at));
        }
        let node = self.operators(tightness);
        self.depth -= 1;
        node
    }

    fn operators(&mut self, tightness: u16) -> Result<Node, Wrong> {
        if tightness == 0 && self.current().is_operator("let") {
            return self.variable();
        }
        if tightness == 0 && self.current().is_operator("if") {
            return self.if_else();
        }
        let mut left = self.primary()?;
        let mut after_coalesce = false;
        while let Kind::Operator(sign) = self.current().kind {
            let at = self.current().at;
            if sign == "|" {
                if tightness > 0 {
                    break;
                }
                self.advance();
                let (at, name) = self.expect_name()?;
                left = self.call(at, name, Some(left))?;
                after_coalesce = false;
                continue;
            }
            let start = self.next;
            let (sign, negated) = self.operator_sign(sign)?;
            let Some((operator, binds)) = Binary::of(sign).filter(|(_, binds)| *binds >= tightness) else {
                self.next = start;
                break;
            };
            self.advance();
            if after_coalesce && operator != Binary::Coalesce {
                return Err(Wrong::new(
                    at,
                    format!("?? and {sign} need parentheses around one of them"),
                ));
            }
            after_coalesce = operator == Binary::Coalesce;
            left = self.right_of(at, left, operator, binds)?;
            if negated {
                left = self.node(at, Syntax::Unary(Unary::Not, Box::new(left)))?;
            }
        }
        if tightness == 0 {
            left = self.ternary(left)?;
        }
        Ok(left)
    }

    /// The operator at this position; `not in` and its like are one operator.
    fn operator_sign(&mut self, sign: &'static str) -> Result<(&'static str, bool), Wrong> {
        if sign != "not" {
            return Ok((sign, false));
        }
        self.advance();
        match self.current().kind {
            Kind::Operator(sign @ ("in" | "matches" | "contains" | "startsWith" | "endsWith")) => {
                Ok((sign, true))
            }
            _ => Err(self.unexpected("in, matches, contains, startsWith or endsWith after not")),
        }
    }

    fn right_of(&mut self, at: usize, left: Node, operator: Binary, binds: u16) -> Result<Node, Wrong> {
        if !operator.is_ordering() {
            // Powers are right-associative: 2 ** 3 ** 2 is 2 ** 9.
            let right = self.expression(if operator == Binary::Power {
                binds
            } else {
                binds + 1
            })?;
            return self.node(at, Syntax::Binary(operator, Box::new(left), Box::new(right)));
        }
        let mut rest = vec![(operator, self.expression(binds + 1)?)];
        while let Kind::Operator(sign) = self.current().kind
            && let Some((operator, binds)) = Binary::of(sign).filter(|(operator, _)| operator.is_ordering())
        {
            self.advance();
            rest.push((operator, self.expression(binds + 1)?));
        }
        if rest.len() == 1
            && let Some((operator, right)) = rest.pop()
        {
            return self.node(at, Syntax::Binary(operator, Box::new(left), Box::new(right)));
        }
        self.node(at, Syntax::Comparisons(Box::new(left), rest))
    }

    fn variable(&mut self) -> Result<Node, Wrong> {
        self.advance();
        let (at, name) = self.expect_name()?;
        self.expect_operator("=")?;
        let value = Box::new(self.expression(0)?);
        self.expect_operator(";")?;
        let body = Box::new(self.sequence()?);
        self.node(at, Syntax::Let { name, value, body })
    }

    fn if_else(&mut self) -> Result<Node, Wrong> {
        let at = self.advance().at;
        let condition = Box::new(self.expression(0)?);
        self.expect_bracket('{')?;
        let then = Box::new(self.sequence()?);
        self.expect_bracket('}')?;
        self.expect_operator("else")?;
        let otherwise = if self.current().is_operator("if") {
            self.expression(0)?
        } else {
            self.expect_bracket('{')?;
            let otherwise = self.sequence()?;
            self.expect_bracket('}')?;
            otherwise
        };
        self.node(at, Syntax::If(condition, Some(then), Box::new(otherwise)))
    }

    fn ternary(&mut self, mut node: Node) -> Result<Node, Wrong> {
        while self.current().is_operator("?") {
            let at = self.advance().at;
            let condition = Box::new(node);
            let then = if self.current().is_operator(":") {
                None
            } else {
                Some(Box::new(self.expression(0)?))
            };
            self.expect_operator(":")?;
            let otherwise = self.expression(0)?;
            node = self.node(at, Syntax::If(condition, then, Box::new(otherwise)))?;
        }
        Ok(node)
    }

    /// Every level of an expression is a recursive call of this, so operations that need much stack are elsewhere.
    fn primary(&mut self) -> Result<Node, Wrong> {
        match self.current().kind {
            Kind::Operator("not" | "!") => self.unary(Unary::Not, 50),
            Kind::Operator("-") => self.unary(Unary::Minus, 90),
            Kind::Operator("+") => self.unary(Unary::Plus, 90),
            Kind::Operator("#" | ".") => self.pointer(),
            Kind::Operator("::") => self.builtin(),
            Kind::Bracket('(') => self.parentheses(),
            Kind::Bracket('[') => self.list(),
            Kind::Bracket('{') => self.map(),
            Kind::Name(_) => self.name(),
            Kind::Number(_) | Kind::Text(_) => self.literal(),
            Kind::Operator(_) | Kind::Bracket(_) | Kind::End => Err(self.unexpected("a value")),
        }
    }

    fn parentheses(&mut self) -> Result<Node, Wrong> {
        self.advance();
        let node = self.sequence()?;
        self.expect_bracket(')')?;
        self.postfix(node)
    }

    /// `#`, `#index`, or `.field`, which is short for `#.field`.
    fn pointer(&mut self) -> Result<Node, Wrong> {
        let token = self.current().clone();
        if self.in_predicate == 0 {
            return Err(Wrong::new(
                token.at,
                format!(
                    "{token} stands for an element, inside of all(), filter() and their like; there is none here"
                ),
            ));
        }
        let mut name = String::new();
        if self.take_operator("#") && matches!(self.current().kind, Kind::Name(_)) {
            name = self.expect_name()?.1;
        }
        let node = self.node(token.at, Syntax::Pointer(name))?;
        self.postfix(node)
    }

    fn builtin(&mut self) -> Result<Node, Wrong> {
        self.advance();
        let (at, name) = self.expect_name()?;
        let node = self.call(at, name, None)?;
        self.postfix(node)
    }

    fn literal(&mut self) -> Result<Node, Wrong> {
        let token = self.advance();
        match token.kind {
            Kind::Number(number) => {
                let syntax = number_of(&number).map_err(|message| Wrong::new(token.at, message))?;
                self.node(token.at, syntax)
            }
            Kind::Text(text) => {
                let node = self.node(token.at, Syntax::Text(text))?;
                self.postfix(node)
            }
            _ => Err(self.unexpected("a value")),
        }
    }

    fn unary(&mut self, operator: Unary, binds: u16) -> Result<Node, Wrong> {
        let at = self.advance().at;
        let operand = self.expression(binds)?;
        let node = self.node(at, Syntax::Unary(operator, Box::new(operand)))?;
        self.postfix(node)
    }

    fn name(&mut self) -> Result<Node, Wrong> {
        let (at, name) = self.expect_name()?;
        match name.as_str() {
            "true" => self.node(at, Syntax::Bool(true)),
            "false" => self.node(at, Syntax::Bool(false)),
            "nil" => self.node(at, Syntax::Nil),
            _ => {
                let node = if self.current().is_bracket('(') {
                    self.call(at, name, None)?
                } else {
                    self.node(at, Syntax::Name(name))?
                };
                self.postfix(node)
            }
        }
    }

    fn list(&mut self) -> Result<Node, Wrong> {
        let at = self.advance().at;
        let mut nodes = Vec::new();
        while !self.current().is_bracket(']') {
            if !nodes.is_empty() {
                self.expect_operator(",")?;
                if self.current().is_bracket(']') {
                    break;
                }
            }
            nodes.push(self.expression(0)?);
        }
        self.expect_bracket(']')?;
        let node = self.node(at, Syntax::List(nodes))?;
        self.postfix(node)
    }

    fn map(&mut self) -> Result<Node, Wrong> {
        let at = self.advance().at;
        let mut pairs = Vec::new();
        while !self.current().is_bracket('}') {
            if !pairs.is_empty() {
                self.expect_operator(",")?;
                if self.current().is_bracket('}') {
                    break;
                }
            }
            let token = self.current().clone();
            let key = match token.kind {
                Kind::Name(text) | Kind::Number(text) | Kind::Text(text) => {
                    self.advance();
                    self.node(token.at, Syntax::Text(text))?
                }
                Kind::Bracket('(') => self.expression(0)?,
                _ => {
                    return Err(
                        self.unexpected("a key: a name, a string, a number or an expression in parentheses")
                    );
                }
            };
            self.expect_operator(":")?;
            pairs.push((key, self.expression(0)?));
        }
        self.expect_bracket('}')?;
        let node = self.node(at, Syntax::Map(pairs))?;
        self.postfix(node)
    }
}

fn too_deep(at: usize) -> Wrong {
    Wrong::new(
        at,
        format!("an expression may be nested {DEEPEST} levels deep; this one is deeper"),
    )
}

/// Parses a number literal.
fn number_of(written: &str) -> Result<Syntax, String> {
    let number = written.replace('_', "").to_lowercase();
    let base = match number.get(..2) {
        Some("0x") => Some(16),
        _ if number.contains(['.', 'e']) => None,
        Some("0b") => Some(2),
        Some("0o") => Some(8),
        _ => Some(10),
    };
    match base {
        Some(base) => {
            let digits = if base == 10 { &number } else { &number[2..] };
            i64::from_str_radix(digits, base)
                .map(Syntax::Int)
                .map_err(|_| format!("{written} is not a whole number of 64 bits"))
        }
        None => number
            .parse::<f64>()
            .ok()
            .filter(|float| float.is_finite())
            .map(Syntax::Float)
            .ok_or_else(|| format!("{written} is not a number of 64 bits")),
    }
}
