//! Optimises code.
//!
//! Go's expr rewrites what it compiles, and the visible effects are reproduced here: what is not evaluated cannot fail. `x && false` is
//! false even if `x` is invalid; `5 % 0` is rejected before anything runs; `filter(…)[0]` stops at the first match.

use std::sync::Arc;

use super::ast::Binary;
use super::budget::Budget;
use super::builtins::Function;
use super::code::{Code, Loop, LoopKind, Op};
use super::error::Wrong;
use super::operators;
use super::pattern::Room;
use super::value::{ListKind, Value};

/// Simplifies `code`, and returns the size of its patterns in bytes.
pub(super) fn simplify(mut code: Code) -> Result<(Code, usize), Wrong> {
    let mut wrong = None;
    walk(&mut code, &mut |code| {
        if let Err(found) = fold(code) {
            wrong.get_or_insert(found);
        }
    });
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    walk(&mut code, &mut maps_of_filters);
    walk(&mut code, &mut ends_of_filters);
    walk(&mut code, &mut predicates);
    walk(&mut code, &mut sums);
    walk(&mut code, &mut counts);
    let (mut wrong, mut patterns) = (None, Room::default());
    walk(&mut code, &mut |code| {
        if wrong.is_none() {
            wrong = constant_pattern(code, &mut patterns).err();
        }
    });
    match wrong {
        Some(wrong) => Err(wrong),
        None => Ok((code, patterns.taken())),
    }
}

/// Applies `rule` to every step, inner ones first.
fn walk(code: &mut Code, rule: &mut dyn FnMut(&mut Code)) {
    code.each_below(&mut |below| walk(below, rule));
    rule(code);
}

fn take(code: &mut Code) -> Code {
    std::mem::replace(code, Code::new(code.at, Op::Constant(Value::Nil)))
}

/// Folds constants.
fn fold(code: &mut Code) -> Result<(), Wrong> {
    let at = code.at;
    let folded = match &mut code.op {
        Op::Negate(operand) => match operand.constant() {
            Some(value @ (Value::Int(_) | Value::Float(_))) => operators::negate(value).ok(),
            _ => None,
        },
        Op::Not(operand) => match operand.constant() {
            Some(Value::Bool(bool)) => Some(Value::Bool(!bool)),
            _ => None,
        },
        Op::Binary(operator, left, right) => match (left.constant(), right.constant()) {
            (Some(left), Some(right)) => fold_binary(at, *operator, left, right)?,
            _ => None,
        },
        Op::Equal {
            left,
            right,
            negated: false,
            ..
        } => match (left.constant(), right.constant()) {
            (Some(Value::Int(a)), Some(Value::Int(b))) => Some(Value::Bool(a == b)),
            (Some(Value::Text(a)), Some(Value::Text(b))) => Some(Value::Bool(a == b)),
            (Some(Value::Bool(a)), Some(Value::Bool(b))) => Some(Value::Bool(a == b)),
            _ => None,
        },
        Op::And(..) | Op::Or(..) => {
            fold_logic(code);
            return Ok(());
        }
        Op::List(codes) if !codes.is_empty() => {
            let constants: Option<Vec<_>> = codes
                .iter()
                .map(|code| {
                    code.constant()
                        .filter(|value| {
                            matches!(
                                value,
                                Value::Int(_) | Value::Float(_) | Value::Text(_) | Value::Bool(_)
                            )
                        })
                        .cloned()
                })
                .collect();
            constants.map(|constants| Value::flat(ListKind::Any, constants))
        }
        Op::Loop(outer) if outer.kind == LoopKind::Filter => {
            filter_of_filter(outer);
            return Ok(());
        }
        _ => None,
    };
    if let Some(value) = folded {
        code.op = Op::Constant(value);
    }
    Ok(())
}

fn fold_binary(at: usize, operator: Binary, left: &Value, right: &Value) -> Result<Option<Value>, Wrong> {
    let numbers = |value: &Value| matches!(value, Value::Int(_) | Value::Float(_));
    let folds = match operator {
        Binary::Modulo => {
            let ints = matches!((left, right), (Value::Int(_), Value::Int(_)));
            if ints && right.whole() == Some(0) {
                return Err(Wrong::new(at, "this is the remainder of a division by zero"));
            }
            ints
        }
        Binary::Add => {
            numbers(left) && numbers(right) || matches!((left, right), (Value::Text(_), Value::Text(_)))
        }
        Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Power => {
            numbers(left) && numbers(right)
        }
        _ => false,
    };
    // The source is short, and so is everything folded from it.
    Ok(folds
        .then(|| operators::binary(operator, left, right, &mut Budget::new()).ok())
        .flatten())
}

/// `true && x` and `x && true` are `x`, whatever it is; `x && false` is false.
fn fold_logic(code: &mut Code) {
    let bool = |code: &Code| match code.constant() {
        Some(Value::Bool(bool)) => Some(*bool),
        _ => None,
    };
    let (left, right, neutral) = match &mut code.op {
        Op::And(left, right) => (left, right, true),
        Op::Or(left, right) => (left, right, false),
        _ => return,
    };
    let (l, r) = (bool(left), bool(right));
    *code = if l == Some(neutral) {
        take(right)
    } else if r == Some(neutral) {
        take(left)
    } else if l.is_some() || r.is_some() {
        Code::new(code.at, Op::Constant(Value::Bool(!neutral)))
    } else {
        return;
    };
}

/// Merges a filter of a filter.
fn filter_of_filter(outer: &mut Loop) {
    let Op::Loop(inner) = &mut outer.list.op else {
        return;
    };
    if inner.kind != LoopKind::Filter {
        return;
    }
    let (Some(first), Some(second)) = (inner.body.take(), outer.body.take()) else {
        return;
    };
    let mut both = Code::new(second.at, Op::And(Box::new(first), Box::new(second)));
    fold_logic(&mut both);
    outer.body = Some(both);
    outer.list = take(&mut inner.list);
}

/// `map(filter(x, p), m)` applies `m` to an element as soon as it is kept.
fn maps_of_filters(code: &mut Code) {
    let Op::Loop(outer) = &mut code.op else { return };
    if outer.kind != LoopKind::Map || outer.body.as_mut().is_none_or(uses_index) {
        return;
    }
    let Op::Loop(inner) = &mut outer.list.op else {
        return;
    };
    if inner.kind == LoopKind::Filter && inner.map.is_none() {
        inner.map = outer.body.take();
        *code = take(&mut outer.list);
    }
}

fn uses_index(code: &mut Code) -> bool {
    let mut found = false;
    walk(code, &mut |code| found |= matches!(code.op, Op::Index));
    found
}

/// The number of kept elements, or the first or last of them.
fn ends_of_filters(code: &mut Code) {
    let (list, kind, must_find) = match &mut code.op {
        Op::Call(Function::Len, arguments) => (arguments.first_mut(), LoopKind::Count, false),
        Op::Call(Function::First, arguments) => (arguments.first_mut(), LoopKind::Find, false),
        Op::Call(Function::Last, arguments) => (arguments.first_mut(), LoopKind::FindLast, false),
        Op::Member {
            base,
            key,
            optional: false,
        } => match key.int() {
            Some(0) => (Some(&mut **base), LoopKind::Find, true),
            Some(-1) => (Some(&mut **base), LoopKind::FindLast, true),
            _ => return,
        },
        _ => return,
    };
    let Some(list) = list else { return };
    let Op::Loop(filter) = &mut list.op else { return };
    if filter.kind != LoopKind::Filter {
        return;
    }
    filter.kind = kind;
    filter.must_find = must_find;
    if kind == LoopKind::Count {
        filter.map = None;
    }
    *code = take(list);
}

/// `all(x, p) && all(x, q)` iterates over `x` once, and so do similar predicates.
fn predicates(code: &mut Code) {
    let (left, right, kinds) = match &mut code.op {
        Op::And(left, right) => (left, right, [LoopKind::All, LoopKind::None]),
        Op::Or(left, right) => (left, right, [LoopKind::Any, LoopKind::Any]),
        _ => return,
    };
    let (Op::Loop(first), Op::Loop(second)) = (&mut left.op, &mut right.op) else {
        return;
    };
    if first.kind != second.kind || !kinds.contains(&first.kind) || first.list != second.list {
        return;
    }
    let (Some(p), Some(q)) = (first.body.take(), second.body.take()) else {
        return;
    };
    let at = p.at;
    let (p, q) = (Box::new(p), Box::new(q));
    let mut both = Code::new(
        at,
        match first.kind {
            LoopKind::All => Op::And(p, q),
            _ => Op::Or(p, q),
        },
    );
    predicates(&mut both);
    first.body = Some(both);
    *code = take(left);
}

/// Sums of list literals.
fn sums(code: &mut Code) {
    let Op::Loop(inner) = &mut code.op else { return };
    if let Op::Binary(Binary::Range, from, to) = &inner.list.op
        && let (Some(from), Some(to)) = (from.int(), to.int())
        && to >= from
        && let Some(sum) = sum_of_range(inner, from, to)
    {
        code.op = Op::Constant(Value::Int(sum));
        return;
    }
    if inner.kind == LoopKind::Sum
        && inner.body.is_none()
        && let Op::List(codes) = &mut inner.list.op
        && codes.len() >= 2
    {
        code.op = Op::Sum(std::mem::take(codes));
    }
}

fn sum_of_range(inner: &Loop, from: i64, to: i64) -> Option<i64> {
    let count = to.wrapping_sub(from).wrapping_add(1);
    let sum = count.wrapping_mul(from.wrapping_add(to)) / 2;
    match (inner.kind, &inner.body) {
        (LoopKind::Sum, None) => Some(sum),
        (LoopKind::Sum, Some(body)) => match &body.op {
            Op::Item => Some(sum),
            Op::Binary(operator, left, right) => {
                let (by, item_first) = match (&left.op, left.int(), &right.op, right.int()) {
                    (Op::Item, _, _, Some(by)) => (by, true),
                    (_, Some(by), Op::Item, _) => (by, false),
                    _ => return None,
                };
                match (operator, item_first) {
                    (Binary::Multiply, _) => Some(by.wrapping_mul(sum)),
                    (Binary::Add, _) => Some(sum.wrapping_add(count.wrapping_mul(by))),
                    (Binary::Subtract, true) => Some(sum.wrapping_sub(count.wrapping_mul(by))),
                    (Binary::Subtract, false) => Some(count.wrapping_mul(by).wrapping_sub(sum)),
                    _ => None,
                }
            }
            _ => None,
        },
        (LoopKind::Reduce, Some(body)) => {
            let Op::Binary(Binary::Add, left, right) = &body.op else {
                return None;
            };
            let adds = matches!(
                (&left.op, &right.op),
                (Op::Item, Op::Accumulated) | (Op::Accumulated, Op::Item)
            );
            match &inner.third {
                _ if !adds => None,
                Some(start) => start.int().map(|start| start.wrapping_add(sum)),
                None => Some(sum),
            }
        }
        _ => None,
    }
}

/// Counting stops as soon as the comparison is decided.
fn counts(code: &mut Code) {
    let Op::Binary(operator, left, right) = &mut code.op else {
        return;
    };
    let Some(number) = right.int() else { return };
    let Op::Loop(inner) = &mut left.op else { return };
    if inner.kind != LoopKind::Count || inner.body.is_none() {
        return;
    }
    match (*operator, number) {
        (Binary::More, 0) | (Binary::MoreOrEqual, 1) => {
            inner.kind = LoopKind::Any;
            *code = take(left);
        }
        (Binary::MoreOrEqual | Binary::Less, number) if number > 1 => inner.enough = Some(number),
        (Binary::More | Binary::LessOrEqual, number) if number > 0 => {
            inner.enough = number.checked_add(1);
        }
        _ => {}
    }
}

/// A constant pattern is compiled once.
fn constant_pattern(code: &mut Code, patterns: &mut Room) -> Result<(), Wrong> {
    let Op::Binary(Binary::Matches, left, right) = &mut code.op else {
        return Ok(());
    };
    let Some(Value::Text(pattern)) = right.constant() else {
        return Ok(());
    };
    let pattern = patterns.compile(pattern, right.at)?;
    let left = take(left);
    code.op = Op::Matches(Box::new(left), Arc::new(pattern));
    Ok(())
}
