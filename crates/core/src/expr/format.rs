//! Formats values as text, like Go.

use std::fmt::Write;

use jiff::tz::Offset;

use super::budget::{Budget, Fault};
use super::builtins::format_duration;
use super::value::{Key, MapKind, Time, Value};
use crate::revision::{write_number, write_string};

/// The result of `string()`.
pub(super) fn text(value: &Value, budget: &mut Budget) -> Result<String, Fault> {
    let mut out = String::new();
    write_text(&mut out, value, budget)?;
    Ok(out)
}

fn write_text(out: &mut String, value: &Value, budget: &mut Budget) -> Result<(), Fault> {
    budget.steps(1)?;
    let start = out.len();
    match value {
        Value::Nil => out.push_str("<nil>"),
        Value::Bool(bool) => push(out, bool),
        Value::Int(int) | Value::Long(int) => push(out, int),
        Value::Byte(byte) => push(out, byte),
        Value::Float(float) => out.push_str(&float_text(*float)),
        Value::Text(text) => out.push_str(text),
        Value::Time(time) => out.push_str(&time_text(*time)),
        Value::Duration(nanoseconds) => out.push_str(&format_duration(*nanoseconds)),
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.items.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write_text(out, item, budget)?;
            }
            out.push(']');
            return Ok(());
        }
        Value::Map(map) => {
            out.push_str("map[");
            for (index, (key, value)) in map.entries.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write_text(out, &key.value(), budget)?;
                out.push(':');
                write_text(out, value, budget)?;
            }
            out.push(']');
            return Ok(());
        }
    }
    budget.text(out.len() - start)
}

fn push(out: &mut String, value: impl std::fmt::Display) {
    let written = write!(out, "{value}");
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

/// A float with as few digits as are unambiguous; with an exponent if it is large or small.
fn float_text(float: f64) -> String {
    if float.is_nan() {
        return "NaN".into();
    }
    if float.is_infinite() {
        return if float > 0.0 { "+Inf" } else { "-Inf" }.into();
    }
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) || float == 0.0 {
        return format!("{float}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn time_text(time: Time) -> String {
    let zone = match time.offset {
        0 => "+0000 UTC".to_owned(),
        offset => {
            let sign = if offset < 0 { '-' } else { '+' };
            let minutes = offset.abs() / 60;
            let zone = format!("{sign}{:02}{:02}", minutes / 60, minutes % 60);
            format!("{zone} {zone}")
        }
    };
    match local(time) {
        Some(local) => format!("{} {zone}", local.replace('T', " ")),
        None => zone,
    }
}

/// The local date and time.
fn local(time: Time) -> Option<String> {
    Some(
        Offset::from_seconds(time.offset)
            .ok()?
            .to_datetime(time.at)
            .to_string(),
    )
}

/// The result of `toJSON()`.
pub(super) fn json(value: &Value, budget: &mut Budget) -> Result<String, Fault> {
    let mut out = String::new();
    write_json(&mut out, value, 0, budget)?;
    Ok(out)
}

fn line(out: &mut String, level: usize, budget: &mut Budget) -> Result<(), Fault> {
    budget.text(1 + 2 * level)?;
    out.push('\n');
    (0..level).for_each(|_| out.push_str("  "));
    Ok(())
}

fn write_json(out: &mut String, value: &Value, level: usize, budget: &mut Budget) -> Result<(), Fault> {
    budget.steps(1)?;
    let start = out.len();
    match value {
        value if value.is_nil() => out.push_str("null"),
        Value::Nil => out.push_str("null"),
        Value::Bool(bool) => push(out, bool),
        Value::Int(int) | Value::Long(int) | Value::Duration(int) => push(out, int),
        Value::Byte(byte) => push(out, byte),
        Value::Float(float) if !float.is_finite() => {
            return Err(Fault::value(
                "JSON has no number for infinity or for what is not a number",
            ));
        }
        Value::Float(float) => write_number(out, *float),
        Value::Text(text) => write_string(out, text),
        Value::Time(time) => {
            let Some(local) = local(*time) else {
                return Err(Fault::value("there is no such time in JSON"));
            };
            let zone = match time.offset {
                0 => "Z".to_owned(),
                offset => {
                    let sign = if offset < 0 { '-' } else { '+' };
                    let minutes = offset.abs() / 60;
                    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
                }
            };
            write_string(out, &format!("{local}{zone}"));
        }
        Value::List(list) if list.items.is_empty() => out.push_str("[]"),
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, level + 1, budget)?;
                write_json(out, item, level + 1, budget)?;
            }
            line(out, level, budget)?;
            out.push(']');
            return Ok(());
        }
        Value::Map(map) if map.kind != MapKind::Fields => {
            return Err(Fault::value("JSON has only maps whose keys are strings"));
        }
        Value::Map(map) if map.entries.is_empty() => out.push_str("{}"),
        Value::Map(map) => {
            out.push('{');
            for (index, (key, value)) in map.entries.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, level + 1, budget)?;
                if let Key::Text(name) = key {
                    budget.text(name.len())?;
                    write_string(out, name);
                }
                out.push_str(": ");
                write_json(out, value, level + 1, budget)?;
            }
            line(out, level, budget)?;
            out.push('}');
            return Ok(());
        }
    }
    budget.text(out.len() - start)
}
