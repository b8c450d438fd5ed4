//! Functions that return numbers.

use super::{Function, argument, quoted};
use crate::expr::ast::Binary;
use crate::expr::budget::{Budget, Fault};
use crate::expr::operators;
use crate::expr::value::{ListKind, Value, cut};

/// Functions of one number.
pub(super) fn convert(function: Function, arguments: &[Value]) -> Result<Value, Fault> {
    use Function as F;
    let value = argument(arguments, 0);
    let wrong = |wanted: &str| {
        Err(Fault::value(format!(
            "this takes {wanted}, and it is given {}",
            value.name()
        )))
    };
    match (function, value) {
        (F::AsInt | F::Int, Value::Text(text)) => match whole_of(text) {
            Some(int) if function == F::AsInt => Ok(Value::Long(int)),
            Some(int) => Ok(Value::Int(int)),
            None => Err(Fault::showing(
                format!("{} is not a whole number", quoted(text)),
                "the text is not a whole number",
            )),
        },
        (F::AsInt, value) => match value.index() {
            Some(int) => Ok(Value::Long(int)),
            None => wrong("a number or a string"),
        },
        (F::Int, Value::Duration(nanoseconds)) => Ok(Value::Int(*nanoseconds)),
        (F::Int, value) => match value.index() {
            Some(int) => Ok(Value::Int(int)),
            None => wrong("a number or a string"),
        },
        (F::AsFloat | F::Float, Value::Text(text)) => match float_of(text) {
            Some(float) => Ok(Value::Float(float)),
            None => Err(Fault::showing(
                format!("{} is not a number", quoted(text)),
                "the text is not a number",
            )),
        },
        (F::AsFloat | F::Float, value) => match value.float() {
            Some(float) => Ok(Value::Float(float)),
            None => wrong("a number or a string"),
        },
        (F::IsNaN, Value::Float(float)) => Ok(Value::Bool(float.is_nan())),
        (F::IsInf, Value::Float(float)) => Ok(Value::Bool(float.is_infinite())),
        (F::IsNaN | F::IsInf, _) => wrong("a float; float() makes one of a whole number"),
        (F::Abs, Value::Int(int)) => Ok(Value::Int(int.wrapping_abs())),
        (F::Abs, Value::Long(int)) => Ok(Value::Long(int.wrapping_abs())),
        (F::Abs, Value::Byte(byte)) => Ok(Value::Byte(*byte)),
        (F::Abs, Value::Float(float)) => Ok(Value::Float(if *float < 0.0 { -float } else { *float })),
        (F::Ceil | F::Floor | F::Round, value) => match value.float() {
            Some(float) => Ok(Value::Float(match function {
                F::Ceil => float.ceil(),
                F::Floor => float.floor(),
                _ => float.round(),
            })),
            None => wrong("a number"),
        },
        _ => wrong("a number"),
    }
}

/// A whole number in Go's decimal format: a sign and digits only.
fn whole_of(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// A number in Go's decimal format, including infinity and NaN. Underscores may separate digits.
fn float_of(text: &str) -> Option<f64> {
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (if text.starts_with('-') { -1.0 } else { 1.0 }, digits),
        None => (1.0, text),
    };
    match digits.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => return Some(sign * f64::INFINITY),
        // A sign before it is rejected.
        "nan" => return (digits.len() == text.len()).then_some(f64::NAN),
        _ => {}
    }
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let bytes = digits.as_bytes();
    let between_digits = |at: usize| {
        let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
        digit(at.checked_sub(1)) && digit(at.checked_add(1))
    };
    if digits.match_indices('_').any(|(at, _)| !between_digits(at)) {
        return None;
    }
    digits
        .replace('_', "")
        .parse::<f64>()
        .ok()
        // A number that is too large is rejected, too.
        .filter(|float| float.is_finite())
        .map(|float| sign * float)
}

/// Functions of many numbers, in lists or not.
pub(super) fn aggregate(
    function: Function,
    arguments: &[Value],
    budget: &mut Budget,
) -> Result<Value, Fault> {
    use Function as F;
    if matches!(function, F::Max | F::Min) {
        return extreme(function, arguments, budget);
    }
    let mut floats = Vec::new();
    for argument in arguments {
        collect(argument, &mut floats, budget)?;
    }
    if floats.is_empty() {
        return Ok(Value::Float(0.0));
    }
    let count = floats.len();
    Ok(Value::Float(match function {
        F::Mean => floats.iter().sum::<f64>() / count as f64,
        _ => {
            // The number of comparisons of a sort.
            budget.steps(count.saturating_mul(count.ilog2() as usize) / 4)?;
            // Go sorts NaN first.
            floats.sort_by(|a, b| b.is_nan().cmp(&a.is_nan()).then(a.total_cmp(b)));
            match count % 2 {
                1 => floats[count / 2],
                _ => (floats[count / 2 - 1] + floats[count / 2]) / 2.0,
            }
        }
    }))
}

fn collect(value: &Value, floats: &mut Vec<f64>, budget: &mut Budget) -> Result<(), Fault> {
    budget.steps(1)?;
    match value {
        Value::List(list) => list
            .items
            .iter()
            .try_for_each(|item| collect(item, floats, budget)),
        Value::Duration(nanoseconds) => {
            floats.push(*nanoseconds as f64);
            Ok(())
        }
        value => match value.float() {
            Some(float) => {
                floats.push(float);
                Ok(())
            }
            None => Err(not_a_number(value)),
        },
    }
}

fn not_a_number(value: &Value) -> Fault {
    Fault::value(format!(
        "this takes numbers and lists of numbers, and it is given {}",
        value.name()
    ))
}

/// The maximum or minimum; nil without elements.
fn extreme(function: Function, arguments: &[Value], budget: &mut Budget) -> Result<Value, Fault> {
    let operator = if function == Function::Max {
        Binary::Less
    } else {
        Binary::More
    };
    let mut best = Value::Nil;
    let better = |best: &mut Value, value: &Value, budget: &mut Budget| -> Result<(), Fault> {
        if matches!(best, Value::Nil) || operators::compare(operator, best, value, budget)? {
            *best = value.clone();
        }
        Ok(())
    };
    for argument in arguments {
        budget.steps(1)?;
        match argument {
            Value::List(list) if matches!(list.kind, ListKind::Pair | ListKind::Pairs | ListKind::Texts) => {
                // Go evaluates these in another way, which takes the result for an element as a number.
                for item in &list.items {
                    let value = extreme(function, std::slice::from_ref(item), budget)?;
                    if value.float().is_none() {
                        return Err(not_a_number(&value));
                    }
                    better(&mut best, &value, budget)?;
                }
            }
            Value::List(list) => {
                for item in &list.items {
                    budget.steps(1)?;
                    match item {
                        Value::List(_) => {
                            let value = extreme(function, std::slice::from_ref(item), budget)?;
                            if !matches!(value, Value::Nil) {
                                better(&mut best, &value, budget)?;
                            }
                        }
                        value if value.float().is_some() => better(&mut best, value, budget)?,
                        value => return Err(not_a_number(value)),
                    }
                }
            }
            value if value.float().is_some() || matches!(value, Value::Duration(_)) => {
                better(&mut best, value, budget)?
            }
            // A single argument is returned as it is.
            value if arguments.len() == 1 => return Ok(value.clone()),
            value => return Err(not_a_number(value)),
        }
    }
    Ok(best)
}

/// Functions of the bits of whole numbers.
pub(super) fn bits(function: Function, arguments: &[Value]) -> Result<Value, Fault> {
    use Function as F;
    let whole = |index: usize| {
        let value = argument(arguments, index);
        value.whole().ok_or_else(|| {
            Fault::value(format!(
                "this takes whole numbers, and it is given {}",
                value.name()
            ))
        })
    };
    let x = whole(0)?;
    if function == F::BitNot {
        return Ok(Value::Int(!x));
    }
    let y = whole(1)?;
    let shifts = matches!(function, F::BitShl | F::BitShr | F::BitUshr);
    if shifts && y < 0 {
        return Err(Fault::showing(
            format!("bits cannot be shifted by {y}"),
            "bits cannot be shifted by a negative number",
        ));
    }
    // Shifting by more than the width removes all bits.
    let by = u32::try_from(y).unwrap_or(u32::MAX);
    Ok(Value::Int(match function {
        F::BitAnd => x & y,
        F::BitOr => x | y,
        F::BitXor => x ^ y,
        F::BitNand => x & !y,
        F::BitShl => x.checked_shl(by).unwrap_or(0),
        F::BitShr => x.checked_shr(by).unwrap_or(if x < 0 { -1 } else { 0 }),
        _ => (x as u64).checked_shr(by).unwrap_or(0) as i64,
    }))
}

/// A number as an index.
pub(super) fn index(value: &Value) -> Result<i64, Fault> {
    match value {
        Value::Float(float) => Ok(cut(*float)),
        value => value.whole().ok_or_else(|| {
            Fault::value(format!(
                "this takes a whole number, and it is given {}",
                value.name()
            ))
        }),
    }
}
