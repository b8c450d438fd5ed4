//! Functions that accept or return strings.

use std::sync::Arc;

use super::numbers::index;
use super::{Function, argument, text};
use crate::expr::answer::Answer;
use crate::expr::budget::{Budget, Fault};
use crate::expr::format;
use crate::expr::value::{ListKind, MapKind, Value};

/// Conversions to and from text.
pub(super) fn convert(function: Function, arguments: &[Value], budget: &mut Budget) -> Result<Value, Fault> {
    let value = argument(arguments, 0);
    match function {
        Function::Type => Ok(Value::text(type_of(value))),
        Function::ToJson => format::json(value, budget).map(Value::text),
        Function::FromJson => {
            let text = text(arguments, 0)?;
            budget.text(text.len())?;
            // A list or a map takes much more memory than its text.
            let nested = text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
            budget.elements((text.len() / 2).saturating_add(nested.saturating_mul(64)))?;
            let json: serde_json::Value = serde_json::from_str(text)
                .map_err(|error| Fault::showing(format!("this is not JSON: {error}"), "this is not JSON"))?;
            let answer = Answer::json(&json);
            match answer.cut {
                true => Err(Fault::too_deep()),
                false => Ok(answer.value),
            }
        }
        _ => format::text(value, budget).map(Value::text),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Long(_) => "int",
        Value::Byte(_) => "uint",
        Value::Float(_) => "float",
        Value::Text(_) => "string",
        Value::List(_) => "array",
        Value::Map(map) => match map.kind {
            MapKind::Fields | MapKind::Any | MapKind::Groups => "map",
        },
        Value::Time(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
    }
}

/// Functions from strings to strings.
pub(super) fn edit(function: Function, arguments: &[Value], budget: &mut Budget) -> Result<Value, Fault> {
    use Function as F;
    if function == F::Join {
        return join(arguments, budget);
    }
    let first = text(arguments, 0)?;
    budget.steps(first.len() / 16)?;
    // All of these return at most as much text as they get, except those that count for themselves.
    let second = || text(arguments, 1);
    let has_second = arguments.len() > 1;
    let plain = match function {
        F::Trim if has_second => {
            let unwanted = second()?;
            // Every character is compared with each unwanted one.
            budget.look_at(first.len().saturating_mul(unwanted.len()))?;
            first.trim_matches(|character| unwanted.contains(character))
        }
        F::Trim => first.trim(),
        F::TrimPrefix => {
            let prefix = if has_second { second()? } else { " " };
            first.strip_prefix(prefix).unwrap_or(first)
        }
        F::TrimSuffix => {
            let suffix = if has_second { second()? } else { " " };
            first.strip_suffix(suffix).unwrap_or(first)
        }
        F::Upper => {
            return cased(
                first,
                |character| one(character, character.to_uppercase()),
                budget,
            );
        }
        F::Lower => {
            return cased(
                first,
                |character| one(character, character.to_lowercase()),
                budget,
            );
        }
        F::IndexOf => return Ok(place(first.find(second()?))),
        F::LastIndexOf => return Ok(place(first.rfind(second()?))),
        F::HasPrefix => return Ok(Value::Bool(first.starts_with(second()?))),
        F::HasSuffix => return Ok(Value::Bool(first.ends_with(second()?))),
        F::Split | F::SplitAfter => {
            let most = match arguments.get(2) {
                Some(most) => index(most)?,
                None => -1,
            };
            return split(first, second()?, function == F::SplitAfter, most, budget);
        }
        F::Replace => return replace(first, arguments, budget),
        _ => {
            let count = index(argument(arguments, 1))?;
            return repeat(first, count, budget);
        }
    };
    budget.text(plain.len())?;
    Ok(Value::text(plain))
}

fn cased(text: &str, change: impl Fn(char) -> char, budget: &mut Budget) -> Result<Value, Fault> {
    budget.text(text.len() * 2)?;
    Ok(Value::text(text.chars().map(change).collect::<String>()))
}

/// Go maps a character to a single one only: `ß` has no upper case.
fn one(character: char, mut changed: impl Iterator<Item = char>) -> char {
    match (changed.next(), changed.next()) {
        (Some(changed), None) => changed,
        _ => character,
    }
}

fn place(found: Option<usize>) -> Value {
    Value::Int(found.map_or(-1, |at| at as i64))
}

fn split(text: &str, separator: &str, after: bool, most: i64, budget: &mut Budget) -> Result<Value, Fault> {
    if most == 0 {
        return Ok(Value::absent());
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    budget.text(text.len())?;
    let mut parts: Vec<Value> = Vec::new();
    let mut rest = text;
    while parts.len() + 1 < most {
        let cut = match separator.is_empty() {
            true => rest
                .chars()
                .next()
                .map(|first| first.len_utf8())
                // The last element is the rest.
                .filter(|length| *length < rest.len())
                .map(|length| (length, length)),
            false => rest.find(separator).map(|at| (at, at + separator.len())),
        };
        let Some((end, next)) = cut else { break };
        budget.steps(1)?;
        parts.push(Value::text(&rest[..if after { next } else { end }]));
        rest = &rest[next..];
    }
    // An empty text has no characters.
    if !(separator.is_empty() && text.is_empty()) {
        parts.push(Value::text(rest));
    }
    budget.elements(parts.len())?;
    Ok(Value::flat(ListKind::Texts, parts))
}

fn replace(whole: &str, arguments: &[Value], budget: &mut Budget) -> Result<Value, Fault> {
    let (old, new) = (text(arguments, 1)?, text(arguments, 2)?);
    let most = match arguments.get(3) {
        Some(most) => index(most)?,
        None => -1,
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let count = whole.matches(old).take(most).count();
    budget.text(whole.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(Value::text(whole.replacen(old, new, most)))
}

fn repeat(text: &str, count: i64, budget: &mut Budget) -> Result<Value, Fault> {
    let count = usize::try_from(count).map_err(|_| {
        Fault::showing(
            format!("a string cannot be repeated {count} times"),
            "a string cannot be repeated a negative number of times",
        )
    })?;
    let bytes = text.len().saturating_mul(count);
    if count > 1_000_000 {
        return Err(Fault::Budget("a string is repeated more than 1 million times"));
    }
    budget.elements(bytes)?;
    budget.text(bytes)?;
    Ok(Value::text(text.repeat(count)))
}

fn join(arguments: &[Value], budget: &mut Budget) -> Result<Value, Fault> {
    let glue = match arguments.len() {
        2 => text(arguments, 1)?,
        _ => "",
    };
    let list = match argument(arguments, 0) {
        Value::List(list) if matches!(list.kind, ListKind::Any | ListKind::Absent | ListKind::Texts) => list,
        other => {
            return Err(Fault::value(format!(
                "join() takes a list of strings, and it is given {}",
                other.name()
            )));
        }
    };
    let mut joined = String::new();
    for (number, item) in list.items.iter().enumerate() {
        let Value::Text(item) = item else {
            return Err(Fault::showing(
                format!(
                    "join() takes a list of strings, and element {number} is {}",
                    item.name()
                ),
                "join() takes a list of strings, and an element is none",
            ));
        };
        budget.steps(1)?;
        budget.text(item.len() + glue.len())?;
        if number > 0 {
            joined.push_str(glue);
        }
        joined.push_str(item);
    }
    Ok(Value::Text(Arc::from(joined)))
}
