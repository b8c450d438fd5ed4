//! The executable form of an expression: checked, names resolved, constants folded.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ast::Binary;
use super::builtins::Function;
use super::pattern::Pattern;
use super::value::Value;

/// A step of the evaluation, and the character of the source that its errors point at.
#[derive(Clone, Debug)]
pub(super) struct Code {
    pub(super) at: usize,
    pub(super) op: Op,
}

impl PartialEq for Code {
    /// Ignores the position.
    fn eq(&self, other: &Self) -> bool {
        self.op == other.op
    }
}

/// The operations of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Op {
    Constant(Value),
    Result,
    Variable(usize),
    /// The current element of a loop.
    Item,
    /// The index of the current element.
    Index,
    /// The accumulator of `reduce`.
    Accumulated,
    Not(Box<Code>),
    Negate(Box<Code>),
    And(Box<Code>, Box<Code>),
    Or(Box<Code>, Box<Code>),
    Coalesce(Box<Code>, Box<Code>),
    /// All other operators: both sides are always evaluated.
    Binary(Binary, Box<Code>, Box<Code>),
    /// `==`, or `!=`.
    Equal {
        left: Box<Code>,
        right: Box<Code>,
        strict: Strict,
        negated: bool,
    },
    Comparisons(Box<Code>, Vec<(Binary, Code)>),
    Matches(Box<Code>, Arc<Pattern>),
    InNumbers(Box<Code>, BTreeSet<i64>),
    InTexts(Box<Code>, BTreeSet<Arc<str>>),
    InRange(Box<Code>, i64, i64),
    Chain(Box<Code>),
    Member {
        base: Box<Code>,
        key: Box<Code>,
        optional: bool,
    },
    Slice {
        base: Box<Code>,
        from: Option<Box<Code>>,
        to: Option<Box<Code>>,
    },
    Call(Function, Vec<Code>),
    Method {
        base: Box<Code>,
        name: Arc<str>,
        optional: bool,
        arguments: Vec<Code>,
    },
    Loop(Box<Loop>),
    /// The sum of a list literal, added from its end.
    Sum(Vec<Code>),
    Let(usize, Box<Code>, Box<Code>),
    Sequence(Vec<Code>),
    If(Box<Code>, Option<Box<Code>>, Box<Code>),
    List(Vec<Code>),
    Map(Vec<(Code, Code)>),
    /// An expression that Go does not check before it runs: an error if it is evaluated.
    Broken(Arc<str>),
}

/// The types that Go assumes if it knows those of both sides: it then compares nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strict {
    No,
    Ints,
    Texts,
}

/// An operation on the elements of a list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Loop {
    pub(super) kind: LoopKind,
    pub(super) list: Code,
    pub(super) body: Option<Code>,
    /// The order of `sortBy`, or the initial value of `reduce`.
    pub(super) third: Option<Code>,
    /// Applied by `filter` and `find` to an element that they keep.
    pub(super) map: Option<Code>,
    /// The count at which `count` may stop.
    pub(super) enough: Option<i64>,
    /// Whether finding no element is an error.
    pub(super) must_find: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoopKind {
    All,
    None,
    Any,
    One,
    Filter,
    Map,
    Count,
    Sum,
    Find,
    FindIndex,
    FindLast,
    FindLastIndex,
    GroupBy,
    SortBy,
    Reduce,
}

impl LoopKind {
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "all" => Self::All,
            "none" => Self::None,
            "any" => Self::Any,
            "one" => Self::One,
            "filter" => Self::Filter,
            "map" => Self::Map,
            "count" => Self::Count,
            "sum" => Self::Sum,
            "find" => Self::Find,
            "findIndex" => Self::FindIndex,
            "findLast" => Self::FindLast,
            "findLastIndex" => Self::FindLastIndex,
            "groupBy" => Self::GroupBy,
            "sortBy" => Self::SortBy,
            "reduce" => Self::Reduce,
            _ => return None,
        })
    }
}

impl Code {
    pub(super) fn new(at: usize, op: Op) -> Self {
        Self { at, op }
    }

    pub(super) fn constant(&self) -> Option<&Value> {
        match &self.op {
            Op::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The value, if it is a whole number literal.
    pub(super) fn int(&self) -> Option<i64> {
        match self.constant() {
            Some(Value::Int(int)) => Some(*int),
            _ => None,
        }
    }

    /// Calls `visit` for every step directly below this one.
    pub(super) fn each_below(&mut self, visit: &mut dyn FnMut(&mut Code)) {
        match &mut self.op {
            Op::Constant(_)
            | Op::Result
            | Op::Variable(_)
            | Op::Item
            | Op::Index
            | Op::Accumulated
            | Op::Broken(_) => {}
            Op::Not(code)
            | Op::Negate(code)
            | Op::Matches(code, _)
            | Op::InNumbers(code, _)
            | Op::InTexts(code, _)
            | Op::InRange(code, _, _)
            | Op::Chain(code) => visit(code),
            Op::And(left, right)
            | Op::Or(left, right)
            | Op::Coalesce(left, right)
            | Op::Binary(_, left, right)
            | Op::Equal { left, right, .. }
            | Op::Member {
                base: left,
                key: right,
                ..
            }
            | Op::Let(_, left, right) => {
                visit(left);
                visit(right);
            }
            Op::Comparisons(first, rest) => {
                visit(first);
                rest.iter_mut().for_each(|(_, code)| visit(code));
            }
            Op::Slice { base, from, to } => {
                visit(base);
                [from, to].into_iter().flatten().for_each(|code| visit(code));
            }
            Op::Call(_, codes) | Op::Sum(codes) | Op::Sequence(codes) | Op::List(codes) => {
                codes.iter_mut().for_each(visit);
            }
            Op::Method { base, arguments, .. } => {
                visit(base);
                arguments.iter_mut().for_each(visit);
            }
            Op::Loop(inner) => {
                visit(&mut inner.list);
                [&mut inner.body, &mut inner.third, &mut inner.map]
                    .into_iter()
                    .flatten()
                    .for_each(visit);
            }
            Op::If(condition, then, otherwise) => {
                visit(condition);
                then.iter_mut().for_each(|code| visit(code));
                visit(otherwise);
            }
            Op::Map(pairs) => pairs.iter_mut().for_each(|(key, value)| {
                visit(key);
                visit(value);
            }),
        }
    }
}
