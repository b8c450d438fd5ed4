//! Parses what follows a value: members, slices and calls.

use super::ast::{Node, Syntax};
use super::builtins::{self, Part};
use super::error::Wrong;
use super::parser::Parser;
use super::token::Kind;

/// A loop needs more stack than other levels, and so counts for more.
const LEVELS_OF_A_LOOP: usize = 2;

impl Parser {
    /// Members, indices, slices and method calls after `node`.
    pub(super) fn postfix(&mut self, mut node: Node) -> Result<Node, Wrong> {
        loop {
            match self.current().kind {
                Kind::Operator(".") => {
                    self.advance();
                    node = self.member(node, false)?;
                }
                Kind::Operator("?.") => {
                    self.advance();
                    node = if self.current().is_bracket('[') {
                        self.index(node, true)?
                    } else {
                        self.member(node, true)?
                    };
                }
                Kind::Bracket('[') => node = self.index(node, false)?,
                _ => return Ok(node),
            }
        }
    }

    fn member(&mut self, base: Node, optional: bool) -> Result<Node, Wrong> {
        let token = self.current().clone();
        let name = match token.kind {
            Kind::Name(name) => name,
            // Words like `in` and `not` are valid names of fields.
            Kind::Operator(word) if word.starts_with(|first: char| first.is_alphabetic()) => word.to_owned(),
            _ => return Err(self.unexpected("the name of a field")),
        };
        self.advance();
        // One chain holds a whole run of members, so that a missing one ends it.
        let (base, in_chain) = match base.syntax {
            Syntax::Chain(inner) => (inner, true),
            _ => (Box::new(base), false),
        };
        let node = if self.current().is_bracket('(') {
            let arguments = self.arguments(Vec::new())?;
            self.node(
                token.at,
                Syntax::Method {
                    base,
                    name,
                    optional,
                    arguments,
                },
            )?
        } else {
            let key = Box::new(self.node(token.at, Syntax::Text(name))?);
            self.node(token.at, Syntax::Member { base, key, optional })?
        };
        if in_chain || optional {
            return self.node(token.at, Syntax::Chain(Box::new(node)));
        }
        Ok(node)
    }

    fn index(&mut self, base: Node, optional: bool) -> Result<Node, Wrong> {
        let at = self.advance().at;
        let base = Box::new(base);
        let from = match self.current().is_operator(":") {
            true => None,
            false => Some(Box::new(self.expression(0)?)),
        };
        if self.take_operator(":") {
            let to = match self.current().is_bracket(']') {
                true => None,
                false => Some(Box::new(self.expression(0)?)),
            };
            self.expect_bracket(']')?;
            return self.node(at, Syntax::Slice { base, from, to });
        }
        self.expect_bracket(']')?;
        let Some(key) = from else {
            return Err(self.unexpected("an index"));
        };
        let node = self.node(at, Syntax::Member { base, key, optional })?;
        match optional {
            true => self.node(at, Syntax::Chain(Box::new(node))),
            false => Ok(node),
        }
    }

    /// A call of `name`, with `piped` as its first argument.
    pub(super) fn call(&mut self, at: usize, name: String, piped: Option<Node>) -> Result<Node, Wrong> {
        let arguments: Vec<Node> = piped.into_iter().collect();
        if let Some((name, parts)) = builtins::parts(&name) {
            let arguments = self.parts(name, parts, arguments)?;
            return self.node(at, Syntax::Builtin(name, arguments));
        }
        if let Some(name) = builtins::known(&name) {
            let arguments = self.arguments(arguments)?;
            return self.node(at, Syntax::Builtin(name, arguments));
        }
        let arguments = self.arguments(arguments)?;
        self.node(at, Syntax::Call(name, arguments))
    }

    /// The arguments of a function that is evaluated for every element.
    fn parts(&mut self, name: &str, parts: &[Part], mut arguments: Vec<Node>) -> Result<Vec<Node>, Wrong> {
        self.expect_bracket('(')?;
        let given = arguments.len();
        for (index, part) in parts.iter().enumerate().skip(given) {
            if self.current().is_bracket(')') {
                if part.optional() {
                    break;
                }
                return Err(self.unexpected(&format!("argument {} of {name}()", index + 1)));
            }
            if index > given {
                self.expect_operator(",")?;
            }
            arguments.push(match part {
                Part::Value | Part::OptionalValue => self.expression(0)?,
                Part::Predicate | Part::OptionalPredicate => self.predicate()?,
            });
        }
        self.take_operator(",");
        self.expect_bracket(')')?;
        Ok(arguments)
    }

    fn predicate(&mut self) -> Result<Node, Wrong> {
        let braces = self.take_bracket('{');
        self.in_predicate += 1;
        self.depth += LEVELS_OF_A_LOOP;
        let node = if braces {
            self.sequence()
        } else {
            self.expression(0)
        };
        self.depth -= LEVELS_OF_A_LOOP;
        self.in_predicate -= 1;
        let node = node?;
        if braces {
            self.expect_bracket('}')?;
        } else if self.current().is_operator(";") {
            return Err(self.unexpected("{ and } around what has a ;"));
        }
        Ok(node)
    }

    fn arguments(&mut self, mut arguments: Vec<Node>) -> Result<Vec<Node>, Wrong> {
        self.expect_bracket('(')?;
        let given = arguments.len();
        while !self.current().is_bracket(')') {
            if arguments.len() > given {
                self.expect_operator(",")?;
                if self.current().is_bracket(')') {
                    break;
                }
            }
            arguments.push(self.expression(0)?);
        }
        self.expect_bracket(')')?;
        Ok(arguments)
    }
}
