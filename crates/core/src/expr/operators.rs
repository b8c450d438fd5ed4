//! Operators on values.

use std::cmp::Ordering;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::ast::Binary;
use super::budget::{Budget, Fault};
use super::value::{Key, List, ListKind, Map, MapKind, Time, Value};

/// Applies `operator` to `a` and `b`.
pub(super) fn binary(operator: Binary, a: &Value, b: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    match operator {
        Binary::Less | Binary::More | Binary::LessOrEqual | Binary::MoreOrEqual => {
            compare(operator, a, b, budget).map(Value::Bool)
        }
        Binary::Add => add(a, b, budget),
        Binary::Subtract => subtract(a, b),
        Binary::Multiply => multiply(a, b),
        Binary::Divide => match (a.float(), b.float()) {
            (Some(a), Some(b)) => Ok(Value::Float(a / b)),
            _ => Err(no_meaning(operator, a, b)),
        },
        Binary::Power => match (a.float(), b.float()) {
            (Some(a), Some(b)) => Ok(Value::Float(a.powf(b))),
            _ => Err(no_meaning(operator, a, b)),
        },
        Binary::Modulo => match (a.whole(), b.whole()) {
            (Some(_), Some(0)) => Err(Fault::value("the remainder of a division by zero")),
            (Some(a), Some(b)) => Ok(Value::Int(a.wrapping_rem(b))),
            _ => Err(no_meaning(operator, a, b)),
        },
        Binary::In => contains(b, a, budget).map(Value::Bool),
        Binary::Contains | Binary::StartsWith | Binary::EndsWith => text_in_text(operator, a, b, budget),
        Binary::Range => range(a, b, budget),
        // These are handled elsewhere.
        Binary::Or | Binary::And | Binary::Equal | Binary::NotEqual | Binary::Matches | Binary::Coalesce => {
            Err(no_meaning(operator, a, b))
        }
    }
}

pub(super) fn no_meaning(operator: Binary, a: &Value, b: &Value) -> Fault {
    Fault::value(format!(
        "{} has no meaning between {} and {}",
        operator.sign(),
        a.name(),
        b.name()
    ))
}

/// `<`, `<=`, `>`, `>=`
pub(super) fn compare(operator: Binary, a: &Value, b: &Value, budget: &mut Budget) -> Result<bool, Fault> {
    let order = match (a, b) {
        (Value::Text(a), Value::Text(b)) => {
            budget.look_at(a.len().min(b.len()))?;
            Some(a.cmp(b))
        }
        (Value::Time(a), Value::Time(b)) => Some(a.at.cmp(&b.at)),
        (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
        _ => match (a.whole(), b.whole(), a.float(), b.float()) {
            (Some(a), Some(b), _, _) => Some(a.cmp(&b)),
            // `None` means that no comparison holds: NaN.
            (_, _, Some(a), Some(b)) => a.partial_cmp(&b),
            _ => return Err(no_meaning(operator, a, b)),
        },
    };
    Ok(order.is_some_and(|order| match operator {
        Binary::Less => order == Ordering::Less,
        Binary::More => order == Ordering::Greater,
        Binary::LessOrEqual => order != Ordering::Greater,
        _ => order != Ordering::Less,
    }))
}

/// `+`
pub(super) fn add(a: &Value, b: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => {
            budget.text(a.len() + b.len())?;
            Ok(Value::Text(Arc::from([&**a, &**b].concat())))
        }
        (Value::Time(time), Value::Duration(by)) | (Value::Duration(by), Value::Time(time)) => {
            move_by(*time, *by).ok_or_else(|| Fault::value("there is no such time"))
        }
        (Value::Duration(a), Value::Duration(b)) => Ok(Value::Duration(a.wrapping_add(*b))),
        _ => numbers(a, b, i64::wrapping_add, |a, b| a + b).ok_or_else(|| no_meaning(Binary::Add, a, b)),
    }
}

fn subtract(a: &Value, b: &Value) -> Result<Value, Fault> {
    match (a, b) {
        (Value::Time(a), Value::Time(b)) => Ok(Value::Duration(between(a.at, b.at))),
        (Value::Time(time), Value::Duration(by)) => {
            move_by(*time, by.wrapping_neg()).ok_or_else(|| Fault::value("there is no such time"))
        }
        (Value::Duration(a), Value::Duration(b)) => Ok(Value::Duration(a.wrapping_sub(*b))),
        _ => numbers(a, b, i64::wrapping_sub, |a, b| a - b).ok_or_else(|| no_meaning(Binary::Subtract, a, b)),
    }
}

fn multiply(a: &Value, b: &Value) -> Result<Value, Fault> {
    // Go computes with the nanoseconds of a duration.
    let plain = |value: &Value| match value {
        Value::Duration(nanoseconds) => Value::Int(*nanoseconds),
        other => other.clone(),
    };
    let product = numbers(&plain(a), &plain(b), i64::wrapping_mul, |a, b| a * b)
        .ok_or_else(|| no_meaning(Binary::Multiply, a, b))?;
    Ok(match (a, b, product) {
        (Value::Duration(_), _, Value::Int(product)) | (_, Value::Duration(_), Value::Int(product)) => {
            Value::Duration(product)
        }
        (_, _, product) => product,
    })
}

fn numbers(
    a: &Value,
    b: &Value,
    whole: impl Fn(i64, i64) -> i64,
    float: impl Fn(f64, f64) -> f64,
) -> Option<Value> {
    if let (Some(a), Some(b)) = (a.whole(), b.whole()) {
        return Some(Value::Int(whole(a, b)));
    }
    Some(Value::Float(float(a.float()?, b.float()?)))
}

/// The time that is `by` nanoseconds after `time`; `None` on overflow.
pub(super) fn move_by(time: Time, by: i64) -> Option<Value> {
    let at = time.at.checked_add(SignedDuration::from_nanos(by)).ok()?;
    Some(Value::Time(Time { at, ..time }))
}

/// Nanoseconds from `b` to `a`, saturated.
pub(super) fn between(a: Timestamp, b: Timestamp) -> i64 {
    let nanoseconds = a.as_nanosecond() - b.as_nanosecond();
    i64::try_from(nanoseconds).unwrap_or(if nanoseconds > 0 { i64::MAX } else { i64::MIN })
}

/// `-`
pub(super) fn negate(value: &Value) -> Result<Value, Fault> {
    Ok(match value {
        Value::Int(int) => Value::Int(int.wrapping_neg()),
        Value::Long(int) => Value::Long(int.wrapping_neg()),
        Value::Byte(byte) => Value::Byte(byte.wrapping_neg()),
        Value::Float(float) => Value::Float(-float),
        other => {
            return Err(Fault::value(format!(
                "the sign needs a number, and this is {}",
                other.name()
            )));
        }
    })
}

/// `..`
fn range(a: &Value, b: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    let (Some(from), Some(to)) = (a.index(), b.index()) else {
        return Err(no_meaning(Binary::Range, a, b));
    };
    let size = i128::from(to) - i128::from(from) + 1;
    let size = usize::try_from(size.max(0)).unwrap_or(usize::MAX);
    budget.elements(size)?;
    Ok(Value::flat(
        ListKind::Ints,
        (0..size)
            .map(|index| Value::Int(from.wrapping_add(index as i64)))
            .collect(),
    ))
}

fn text_in_text(operator: Binary, a: &Value, b: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    if a.is_nil() || b.is_nil() {
        return Ok(Value::Bool(false));
    }
    let (Value::Text(text), Value::Text(part)) = (a, b) else {
        return Err(no_meaning(operator, a, b));
    };
    // A search reads the pattern first.
    budget.look_at(part.len())?;
    if operator == Binary::Contains {
        budget.look_at(text.len())?;
    }
    Ok(Value::Bool(match operator {
        Binary::Contains => text.contains(&**part),
        Binary::StartsWith => text.starts_with(&**part),
        _ => text.ends_with(&**part),
    }))
}

/// `==`
pub(super) fn equal(a: &Value, b: &Value, budget: &mut Budget) -> Result<bool, Fault> {
    budget.steps(1)?;
    if let (Some(a), Some(b)) = (a.whole(), b.whole()) {
        return Ok(a == b);
    }
    if let (Some(a), Some(b)) = (a.float(), b.float()) {
        return Ok(a == b);
    }
    if let (Value::List(a), Value::List(b)) = (a, b)
        && let Some(equal) = lists_equal(a, b, budget)?
    {
        return Ok(equal);
    }
    if let (Value::Time(a), Value::Time(b)) = (a, b) {
        return Ok(a.at == b.at);
    }
    if a.is_nil() && b.is_nil() {
        return Ok(true);
    }
    deeply_equal(a, b, budget)
}

/// Lists of `any` are equal if their elements are; `None` for lists of other kinds.
fn lists_equal(a: &List, b: &List, budget: &mut Budget) -> Result<Option<bool>, Fault> {
    let plain = |kind| matches!(kind, ListKind::Any | ListKind::Absent);
    let comparable = |kind| !matches!(kind, ListKind::Pair | ListKind::Pairs);
    if !comparable(a.kind) || !comparable(b.kind) || !plain(a.kind) && !plain(b.kind) && a.kind != b.kind {
        return Ok(None);
    }
    if a.items.len() != b.items.len() {
        return Ok(Some(false));
    }
    for (a, b) in a.items.iter().zip(&b.items) {
        if !equal(a, b, budget)? {
            return Ok(Some(false));
        }
    }
    Ok(Some(true))
}

/// Equality as Go compares values in maps: the types must be the same too.
fn deeply_equal(a: &Value, b: &Value, budget: &mut Budget) -> Result<bool, Fault> {
    budget.steps(1)?;
    Ok(match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) | (Value::Long(a), Value::Long(b)) => a == b,
        (Value::Byte(a), Value::Byte(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => {
            if a.len() == b.len() {
                budget.look_at(a.len())?;
            }
            a == b
        }
        (Value::Time(a), Value::Time(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::List(a), Value::List(b)) => {
            if Arc::ptr_eq(a, b) {
                return Ok(true);
            }
            if a.kind != b.kind || a.items.len() != b.items.len() {
                return Ok(false);
            }
            for (a, b) in a.items.iter().zip(&b.items) {
                if !deeply_equal(a, b, budget)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(a), Value::Map(b)) => {
            if Arc::ptr_eq(a, b) {
                return Ok(true);
            }
            if a.kind != b.kind || a.entries.len() != b.entries.len() {
                return Ok(false);
            }
            for (key, a) in &a.entries {
                match b.entries.get(key) {
                    Some(b) if deeply_equal(a, b, budget)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        _ => false,
    })
}

/// `in`
fn contains(inside: &Value, value: &Value, budget: &mut Budget) -> Result<bool, Fault> {
    match inside {
        Value::Nil => Ok(false),
        Value::List(list) => {
            for item in &list.items {
                if equal(item, value, budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(map) => {
            if let Value::Text(name) = value {
                budget.look_at(name.len())?;
            }
            Ok(map.entries.contains_key(&key_for(map, value)?))
        }
        // Go looks for a public field of this name, and finds none.
        Value::Time(_) if matches!(value, Value::Text(_)) => Ok(false),
        other => Err(Fault::value(format!(
            "in looks into a list or a map, and this is {}",
            other.name()
        ))),
    }
}

/// The key for a lookup in a map.
pub(super) fn key_for(map: &Map, value: &Value) -> Result<Key, Fault> {
    match (map.kind, value) {
        (MapKind::Fields, Value::Text(text)) => Ok(Key::Text(text.clone())),
        // Go uses the empty string for nil.
        (MapKind::Fields, Value::Nil) => Ok(Key::Text(Arc::from(""))),
        (MapKind::Fields, other) => Err(Fault::value(format!(
            "a map is asked by a string, and this is {}",
            other.name()
        ))),
        (_, value) => key_of(value),
    }
}

/// A value as a key.
pub(super) fn key_of(value: &Value) -> Result<Key, Fault> {
    Key::of(value).ok_or_else(|| Fault::value(format!("{} cannot be a key of a map", value.name())))
}

/// The element of `base` at `key`.
pub(super) fn fetch(base: &Value, key: &Value) -> Result<Value, Fault> {
    match base {
        Value::Text(text) => {
            let at = position(key, text.len())?;
            Ok(Value::Byte(text.as_bytes()[at]))
        }
        Value::List(list) => {
            let at = position(key, list.items.len())?;
            Ok(list.items[at].clone())
        }
        Value::Map(map) => Ok(match map.entries.get(&key_for(map, key)?) {
            Some(value) => value.clone(),
            None if map.kind == MapKind::Groups => Value::absent(),
            None => Value::Nil,
        }),
        other => Err(match key {
            Value::Text(name) => Fault::showing(
                format!("{} has no field {name}", other.name()),
                "the value has no field of this name",
            ),
            _ => Fault::value(format!("{} has no elements", other.name())),
        }),
    }
}

/// The index of `key` in a list of `length`, counted from the end if it is negative.
fn position(key: &Value, length: usize) -> Result<usize, Fault> {
    let Some(index) = key.index() else {
        return Err(Fault::value(format!(
            "a list is asked by a whole number, and this is {}",
            key.name()
        )));
    };
    let from_start = if index < 0 {
        index.saturating_add(length as i64)
    } else {
        index
    };
    usize::try_from(from_start)
        .ok()
        .filter(|at| *at < length)
        .ok_or_else(|| {
            Fault::showing(
                format!("there is no element {index} in a list of {length}; len() tells how many there are"),
                "there is no such element in the list; len() tells how many there are",
            )
        })
}

/// The part of `base` between two indices.
pub(super) fn slice(base: &Value, from: &Value, to: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    let length = match base {
        Value::Text(text) => text.len(),
        Value::List(list) => list.items.len(),
        other => {
            return Err(Fault::value(format!(
                "only lists and strings have slices, and this is {}",
                other.name()
            )));
        }
    };
    let bound = |value: &Value| -> Result<usize, Fault> {
        let Some(index) = value.index() else {
            return Err(Fault::value(format!(
                "a slice goes from a whole number to another, and this is {}",
                value.name()
            )));
        };
        let index = if index < 0 {
            index.saturating_add(length as i64).max(0)
        } else {
            index
        };
        Ok(usize::try_from(index).unwrap_or(usize::MAX).min(length))
    };
    let (from, to) = (bound(from)?, bound(to)?);
    let from = from.min(to);
    match base {
        Value::Text(text) => {
            budget.text(to - from)?;
            text.get(from..to).map(Value::text).ok_or_else(|| {
                Fault::value("a slice that cuts a character in two is not supported; slices count bytes")
            })
        }
        Value::List(list) => {
            budget.steps((to - from) / 4)?;
            let kind = match list.kind {
                ListKind::Pair => ListKind::Any,
                kind => kind,
            };
            Value::list(kind, list.items[from..to].to_vec()).ok_or_else(Fault::too_deep)
        }
        other => Err(Fault::value(format!("{} has no slices", other.name()))),
    }
}
