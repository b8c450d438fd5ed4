//! Times and durations.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time as Clock};
use jiff::tz::Offset;

use super::{quoted, text};
use crate::expr::budget::Fault;
use crate::expr::operators;
use crate::expr::value::{Time, Value};

/// The caller's current time.
pub(super) fn now(now: Timestamp) -> Value {
    Value::Time(Time { at: now, offset: 0 })
}

/// A duration in Go's format.
pub(super) fn duration(arguments: &[Value]) -> Result<Value, Fault> {
    let text = text(arguments, 0)?;
    stateward_api::duration::go(text)
        .and_then(|duration| i64::try_from(duration.as_nanos()).ok())
        .map(Value::Duration)
        .ok_or_else(|| {
            Fault::showing(
                format!("{} is not a duration such as 90s, 5m or 1h30m", quoted(text)),
                "the text is not a duration such as 90s, 5m or 1h30m",
            )
        })
}

/// A time in one of the formats that Go's expr tries.
pub(super) fn date(arguments: &[Value]) -> Result<Value, Fault> {
    let text = text(arguments, 0)?;
    moment(text).map(Value::Time).ok_or_else(|| {
        Fault::showing(
            format!(
                "{} is not a time such as 2026-01-31T12:00:00Z or 2026-01-31",
                quoted(text)
            ),
            "the text is not a time such as 2026-01-31T12:00:00Z or 2026-01-31",
        )
    })
}

fn moment(text: &str) -> Option<Time> {
    let (date, rest) = match calendar_day(text) {
        Some((date, rest)) => (date, rest),
        // A time without a date is on the first day of the year 0.
        None => (Date::new(0, 1, 1).ok()?, text),
    };
    let alone = rest.len() == text.len();
    if !alone && rest.is_empty() {
        return at(date, Clock::midnight(), 0);
    }
    let zoned = !alone && rest.starts_with('T');
    let rest = match alone {
        true => rest,
        false => rest.strip_prefix(['T', ' '])?,
    };
    let (clock, rest) = clock(rest)?;
    match (zoned, rest) {
        (false, "") => at(date, clock, 0),
        (true, "Z") => at(date, clock, 0),
        (true, zone) => at(date, clock, offset(zone)?),
        (false, _) => None,
    }
}

fn at(date: Date, clock: Clock, offset: i32) -> Option<Time> {
    let zone = Offset::from_seconds(offset).ok()?;
    let at = zone.to_timestamp(DateTime::from_parts(date, clock)).ok()?;
    Some(Time { at, offset })
}

fn number(text: &str, length: usize) -> Option<(i64, &str)> {
    let digits = text.get(..length)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((digits.parse().ok()?, &text[length..]))
}

fn calendar_day(text: &str) -> Option<(Date, &str)> {
    let (year, rest) = number(text, 4)?;
    let (month, rest) = number(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = number(rest.strip_prefix('-')?, 2)?;
    let date = Date::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
    );
    Some((date.ok()?, rest))
}

fn clock(text: &str) -> Option<(Clock, &str)> {
    // Go accepts an hour of one digit, too.
    let (hour, rest) = number(text, 2).or_else(|| number(text, 1))?;
    let (minute, rest) = number(rest.strip_prefix(':')?, 2)?;
    let (second, mut rest) = number(rest.strip_prefix(':')?, 2)?;
    let mut nanosecond = 0;
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let length = fraction.len() - fraction.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if length == 0 {
            return None;
        }
        let digits = &fraction[..length.min(9)];
        nanosecond = digits.parse::<i32>().ok()? * 10_i32.pow(9 - digits.len() as u32);
        rest = &fraction[length..];
    }
    if second > 59 {
        return None;
    }
    let clock = Clock::new(
        i8::try_from(hour).ok()?,
        i8::try_from(minute).ok()?,
        i8::try_from(second).ok()?,
        nanosecond,
    );
    Some((clock.ok()?, rest))
}

fn offset(text: &str) -> Option<i32> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = number(&text[1..], 2)?;
    let (minutes, rest) = number(rest.strip_prefix(':')?, 2)?;
    if !rest.is_empty() || hours > 24 || minutes > 60 {
        return None;
    }
    i32::try_from(sign * (hours * 3600 + minutes * 60)).ok()
}

/// Formats a duration like Go.
pub(crate) fn format_duration(nanoseconds: i64) -> String {
    let size = nanoseconds.unsigned_abs();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let decimal = |count: u64, unit: u64, digits: usize| {
        let fraction = format!("{:0digits$}", count % unit);
        let fraction = fraction.trim_end_matches('0');
        match fraction.is_empty() {
            true => format!("{}", count / unit),
            false => format!("{}.{fraction}", count / unit),
        }
    };
    let text = match size {
        0 => "0s".to_owned(),
        1..1_000 => format!("{size}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(size, 1_000, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(size, 1_000_000, 6)),
        _ => {
            let minutes = size / 60_000_000_000;
            let seconds = format!("{}s", decimal(size % 60_000_000_000, 1_000_000_000, 9));
            match (minutes / 60, minutes % 60) {
                (0, 0) => seconds,
                (0, minutes) => format!("{minutes}m{seconds}"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
            }
        }
    };
    format!("{sign}{text}")
}

/// Calls a method of a time or a duration.
pub(crate) fn call_method(base: &Value, name: &str, arguments: &[Value]) -> Result<Value, Fault> {
    let called = match (base, arguments) {
        (Value::Time(time), []) => of_time(*time, name),
        (Value::Time(time), [argument]) => with_time(*time, name, argument),
        (Value::Duration(nanoseconds), []) => of_duration(*nanoseconds, name),
        _ => None,
    };
    called.ok_or_else(|| {
        Fault::value(format!(
            "{} has no method {name}() that can be called so",
            base.name()
        ))
    })
}

fn of_time(time: Time, name: &str) -> Option<Value> {
    let local = Offset::from_seconds(time.offset).ok()?.to_datetime(time.at);
    let nanosecond = time.at.as_nanosecond();
    let long = |unit: i128| i64::try_from(nanosecond.div_euclid(unit)).ok().map(Value::Long);
    Some(match name {
        "Unix" => return long(1_000_000_000),
        "UnixMilli" => return long(1_000_000),
        "UnixMicro" => return long(1_000),
        "UnixNano" => return long(1),
        "Year" => Value::Int(i64::from(local.year())),
        "Day" => Value::Int(i64::from(local.day())),
        "YearDay" => Value::Int(i64::from(local.date().day_of_year())),
        "Hour" => Value::Int(i64::from(local.hour())),
        "Minute" => Value::Int(i64::from(local.minute())),
        "Second" => Value::Int(i64::from(local.second())),
        "Nanosecond" => Value::Int(i64::from(local.subsec_nanosecond())),
        // Go's zero time is the start of the year 1.
        "IsZero" => Value::Bool(nanosecond == -62_135_596_800_000_000_000),
        "UTC" => Value::Time(Time { offset: 0, ..time }),
        _ => return None,
    })
}

fn with_time(time: Time, name: &str, argument: &Value) -> Option<Value> {
    match (name, argument) {
        ("Add", Value::Duration(by)) => operators::move_by(time, *by),
        ("Sub", Value::Time(other)) => Some(Value::Duration(operators::between(time.at, other.at))),
        ("After", Value::Time(other)) => Some(Value::Bool(time.at > other.at)),
        ("Before", Value::Time(other)) => Some(Value::Bool(time.at < other.at)),
        ("Equal", Value::Time(other)) => Some(Value::Bool(time.at == other.at)),
        _ => None,
    }
}

fn of_duration(nanoseconds: i64, name: &str) -> Option<Value> {
    // Go adds the whole units and the rest, which must be repeated here to get the same float.
    let float =
        |unit: i64| Value::Float((nanoseconds / unit) as f64 + (nanoseconds % unit) as f64 / unit as f64);
    Some(match name {
        "Hours" => float(3_600_000_000_000),
        "Minutes" => float(60_000_000_000),
        "Seconds" => float(1_000_000_000),
        "Milliseconds" => Value::Long(nanoseconds / 1_000_000),
        "Microseconds" => Value::Long(nanoseconds / 1_000),
        "Nanoseconds" => Value::Long(nanoseconds),
        "String" => Value::text(format_duration(nanoseconds)),
        "Abs" => Value::Duration(nanoseconds.saturating_abs()),
        _ => return None,
    })
}
