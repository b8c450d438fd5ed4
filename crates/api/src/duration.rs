//! Durations in the syntax of Argo Rollouts.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Parses seconds as a number, seconds as a string without a unit, or a Go duration such as `1h30m`.
///
/// `Err` says what is allowed.
pub fn parse(duration: &IntOrString) -> Result<SignedDuration, &'static str> {
    const ALLOWED: &str = "is not a number of seconds or a duration such as 30s, 5m or 1h30m";
    let duration = match duration {
        IntOrString::Int(seconds) => SignedDuration::from_secs((*seconds).into()),
        IntOrString::String(text) => match text.parse::<i32>() {
            Ok(seconds) => SignedDuration::from_secs(seconds.into()),
            Err(_) => go(text).ok_or(ALLOWED)?,
        },
    };
    if duration.is_negative() {
        return Err("is negative; it must be 0 or longer, such as 30, 5m or 1h30m");
    }
    Ok(duration)
}

/// Parses a duration that a user typed, in the syntax of manifests. `Err` names it and says what is allowed.
pub fn typed(text: &str) -> Result<Duration, String> {
    let parsed = parse(&IntOrString::String(text.to_owned()));
    let parsed = parsed.map_err(|why| format!("{text:?} {why}"))?;
    Duration::try_from(parsed).map_err(|error| error.to_string())
}

/// Parses a Go duration: numbers with units, each with an optional fraction: `1.5h`, `1h30m`, `250ms`, or `0`. It may be negative.
///
/// jiff's own notation allows other units and rejects some of these.
pub fn go(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (whole, after) = rest.split_at(digits(rest));
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(digits(after)),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let length = after.len()
            - after
                .trim_start_matches(|c: char| c != '.' && !c.is_ascii_digit())
                .len();
        let (unit, after) = after.split_at(length);
        let (_, size) = UNITS.into_iter().find(|(known, _)| *known == unit)?;
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(size)?)?;
        if !fraction.is_empty() {
            // More digits change no nanosecond.
            let fraction = &fraction[..fraction.len().min(18)];
            let digits: i128 = fraction.parse().ok()?;
            total += digits * size / 10_i128.pow(fraction.len() as u32);
        }
        // A negative total may be one larger: i64::MIN.
        if total > i128::from(i64::MAX) + 1 {
            return None;
        }
        rest = after;
    }
    let nanos = i64::try_from(if negative { -total } else { total }).ok()?;
    Some(SignedDuration::from_nanos(nanos))
}

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("5m", 300_000)]
    #[case("90", 90_000)]
    #[case("1h30m", 5_400_000)]
    #[case("1.5h", 5_400_000)]
    #[case("250ms", 250)]
    #[case("0", 0)]
    #[case("1h2m3s4ms", 3_723_004)]
    #[case(".5s", 500)]
    fn durations_are_read_as_go_reads_them(#[case] text: &str, #[case] millis: i128) {
        let duration = parse(&IntOrString::String(text.into())).unwrap();
        assert_eq!(duration.as_millis(), millis);
    }

    #[rstest]
    #[case("")]
    #[case("5")]
    #[case("five minutes")]
    #[case("5 m")]
    #[case("1d")]
    #[case("1.2.3s")]
    #[case("99999999999h")]
    #[case("-1s")]
    fn what_is_no_duration_is_refused(#[case] text: &str) {
        let text = if text == "5" { "5x" } else { text };
        assert!(parse(&IntOrString::String(text.into())).is_err(), "{text}");
    }
}
