//! Numbers and their limits. Whole numbers are compared as integers, so the limits are truncated to integers too.

use std::cmp::Ordering;

use crate::json::{Number, Value};

use super::schema::Bounds;
use crate::go::{plain_float, plain_number};

/// Whether a float counts as an integer: exactly, or within a billionth of the one below.
pub(super) fn is_whole(number: &Number) -> bool {
    let Some(float) = number.as_f64() else {
        return false;
    };
    let below = float.trunc();
    // Beyond 2^53 floats cannot represent every integer.
    let exact = float.abs() < 9_007_199_254_740_992.0;
    exact && (float == below || (below != 0.0 && (float - below).abs() / (float.abs() + below.abs()) < 1e-9))
}

/// Why a number does not fit its type and format.
pub(super) fn out_of_range(number: &Number, kind: &str, format: &str, at: &str) -> Option<String> {
    unfit(
        number.as_f64().unwrap_or_default(),
        &plain_number(number),
        kind,
        format,
        "Checked",
        at,
    )
}

fn unfit(float: f64, shown: &str, kind: &str, format: &str, what: &str, at: &str) -> Option<String> {
    let fits = match (kind, format) {
        ("integer", "int32") => shown.parse::<i32>().is_ok(),
        ("integer", _) => shown.parse::<i64>().is_ok(),
        (_, "float") => float.abs() <= f64::from(f32::MAX),
        _ => true,
    };
    if fits {
        return None;
    }
    Some(match format {
        "" => format!("{what} value must be of type {kind} (default format) in {at}"),
        format => format!("{what} value must be of type {kind} with format {format} in {at}"),
    })
}

/// The limits that a number violates, with the value to print; `None` for a limit that is itself out of range.
pub(super) fn out_of_bounds(
    number: &Number,
    bounds: &Bounds,
    kind: &str,
    format: &str,
    at: &str,
) -> Vec<(String, Option<Value>)> {
    let mut broken = Vec::new();
    let whole = number.as_i64();
    let float = number.as_f64().unwrap_or_default();
    // A limit that its own type cannot hold is reported, then compared as a float.
    let limit = |limit: f64, what: &str, broken: &mut Vec<(String, Option<Value>)>| {
        let unfit = unfit(limit, &plain_float(limit), kind, format, what, at);
        let whole = if unfit.is_none() { whole } else { None };
        broken.extend(unfit.map(|sentence| (sentence, None)));
        whole
    };
    if let Some(factor) = bounds.multiple_of {
        let whole = limit(factor, "MultipleOf", &mut broken);
        broken.extend(not_multiple(whole, float, factor, at));
    }
    let sides = [
        (
            bounds.minimum,
            bounds.exclusive_minimum,
            "Minimum boundary",
            "greater than",
            Ordering::Less,
        ),
        (
            bounds.maximum,
            bounds.exclusive_maximum,
            "Maximum boundary",
            "less than",
            Ordering::Greater,
        ),
    ];
    for (bound, exclusive, what, words, beyond) in sides {
        let Some(bound) = bound else {
            continue;
        };
        let whole = limit(bound, what, &mut broken);
        let order = match whole {
            Some(whole) => Some(whole.cmp(&cut(bound))),
            None => float.partial_cmp(&bound),
        };
        if order == Some(beyond) || (exclusive && order == Some(Ordering::Equal)) {
            let or_equal = if exclusive { "" } else { " or equal to" };
            let sentence = sentence(at, &format!("{words}{or_equal}"), whole, bound);
            broken.push((sentence, Some(Value::Number(number.clone()))));
        }
    }
    broken
}

fn sentence(at: &str, words: &str, whole: Option<i64>, limit: f64) -> String {
    let limit = if whole.is_some() {
        cut(limit).to_string()
    } else {
        plain_float(limit)
    };
    format!("{at} in body should be {words} {limit}")
}

fn not_multiple(whole: Option<i64>, float: f64, factor: f64, at: &str) -> Option<(String, Option<Value>)> {
    let positive = |factor: String, value: Value| {
        Some((
            format!("factor MultipleOf declared for {at} must be positive: {factor}"),
            Some(value),
        ))
    };
    let sentence = |factor: String| format!("{at} in body should be a multiple of {factor}");
    match whole {
        Some(_) if cut(factor) <= 0 => positive(cut(factor).to_string(), cut(factor).into()),
        Some(whole) if whole % cut(factor) != 0 => {
            Some((sentence(cut(factor).to_string()), Some(whole.into())))
        }
        Some(_) => None,
        None if factor <= 0.0 => positive(plain_float(factor), factor.into()),
        None => {
            let times = if factor < 1.0 {
                1.0 / factor * float
            } else {
                float / factor
            };
            let exact = Number::from_f64(times).is_some_and(|times| is_whole(&times));
            (!exact).then(|| (sentence(plain_float(factor)), Some(float.into())))
        }
    }
}

/// A limit as an integer, as Go converts it.
fn cut(limit: f64) -> i64 {
    limit as i64
}
