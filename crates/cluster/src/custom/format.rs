//! The string formats that the server checks. Others are only documentation.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

const HOSTNAME: &str = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
const SHORT_NAME: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const BASE64: &str = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$";
const TIME_OF_DAY: &str = r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";

/// The units of a spelled-out duration; the last name of each also matches longer words: `5 minutes`.
const UNITS: [(i64, &[&str]); 8] = [
    (1, &["ns", "nano"]),
    (1_000, &["us", "µs", "micro"]),
    (1_000_000, &["ms", "milli"]),
    (1_000_000_000, &["s", "sec"]),
    (60_000_000_000, &["m", "min"]),
    (3_600_000_000_000, &["h", "hr", "hour"]),
    (86_400_000_000_000, &["d", "day"]),
    (604_800_000_000_000, &["w", "wk", "week"]),
];

/// Whether text of this format is checked at all.
pub(super) fn is_checked(format: &str) -> bool {
    fits(format, "").is_some()
}

/// Whether `text` has this format; `None` for a format that is not checked. Dashes in its name do not count.
pub(super) fn fits(format: &str, text: &str) -> Option<bool> {
    Some(match format.replace('-', "").as_str() {
        "date" => date(text),
        "datetime" => date_time(text),
        "duration" => duration(text).is_some(),
        "byte" => matches(&RX_BASE64, text),
        "password" => true,
        "uri" => uri(text),
        "email" => email(text),
        "hostname" => hostname(text),
        "ipv4" => ipv4(text),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => cidr(text),
        "mac" => mac(text),
        "uuid" => uuid(text, None, false),
        "uuid3" => uuid(text, Some('3'), false),
        "uuid4" => uuid(text, Some('4'), true),
        "uuid5" => uuid(text, Some('5'), true),
        "hexcolor" => hex_color(text),
        "ssn" => matches(&RX_SSN, text),
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "k8sshortname" => text.len() <= 63 && matches(&RX_SHORT_NAME, text),
        "k8slongname" => text.len() <= 253 && matches(&RX_LONG_NAME, text),
        _ => return None,
    })
}

static RX_BASE64: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(BASE64).ok());
static RX_HOSTNAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(HOSTNAME).ok());
static RX_TIME_OF_DAY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(TIME_OF_DAY).ok());
static RX_SSN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$").ok());
static RX_SHORT_NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!("^{SHORT_NAME}$")).ok());
static RX_LONG_NAME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r"^{SHORT_NAME}(\.{SHORT_NAME})*$")).ok());

fn matches(regex: &Option<Regex>, text: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

/// `2026-01-31`, a day that exists.
pub(super) fn date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(day), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let Some(regex) = RX_TIME_OF_DAY.as_ref() else {
        return false;
    };
    let Some(found) = regex.captures(time) else {
        return false;
    };
    date(day) && &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59"
}

/// A duration in nanoseconds: `1h5m` as Go writes it, or `5 minutes`.
pub(super) fn duration(text: &str) -> Option<i64> {
    go_duration(text).or_else(|| spelled_duration(text))
}

fn go_duration(text: &str) -> Option<i64> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if unsigned == "0" {
        return Some(0);
    }
    let mut rest = unsigned;
    let mut nanos = 0.0_f64;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let number: f64 = number.parse().ok()?;
        let unit = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        let factor = match unit {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return None,
        };
        nanos += number * factor;
        rest = after;
    }
    // Past 292 years Go's durations overflow.
    if unsigned.is_empty() || nanos >= 9.223_372_036_854_775e18 {
        return None;
    }
    let nanos = nanos as i64;
    Some(if negative { -nanos } else { nanos })
}

fn spelled_duration(text: &str) -> Option<i64> {
    let mut total = None;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: i64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest
            .find(|c: char| !c.is_ascii_alphabetic() && c != 'µ')
            .unwrap_or(rest.len());
        let unit = rest[..letters].to_lowercase();
        rest = &rest[letters..];
        let known = UNITS.iter().filter(|(_, names)| {
            let last = names.last().is_some_and(|last| unit.starts_with(last));
            !unit.is_empty() && (last || names.contains(&unit.as_str()))
        });
        for (factor, _) in known {
            total = Some(
                total
                    .unwrap_or(0_i64)
                    .saturating_add(number.saturating_mul(*factor)),
            );
        }
    }
    total
}

/// A URI with a scheme, or an absolute path.
fn uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|c| c.is_ascii_control() || c == ' ') {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let starts = scheme.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    starts
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !rest.is_empty()
}

/// An address with or without a name before it: `a@b`, `A <a@b>`.
fn email(text: &str) -> bool {
    let address = match text.rsplit_once('<') {
        Some((_, address)) => match address.strip_suffix('>') {
            Some(address) => address,
            None => return false,
        },
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let atom = |part: &str| {
        let legal = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
        !part.is_empty() && part.chars().all(legal) && part.split('.').all(|label| !label.is_empty())
    };
    atom(local) && atom(domain)
}

fn hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && matches(&RX_HOSTNAME, text)
}

/// Leading zeros are tolerated, as in old versions of Go.
fn ipv4(text: &str) -> bool {
    if text.contains(':') {
        return text.contains('.') && text.parse::<Ipv6Addr>().is_ok();
    }
    let parts: Vec<_> = text.split('.').collect();
    parts.len() == 4
        && parts.iter().all(|part| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_digit())
                && part.parse::<u32>().is_ok_and(|n| n < 256)
        })
}

fn cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
    let limit = match (ipv4(address), address.parse::<Ipv6Addr>()) {
        (_, Ok(_)) => u32::from(Ipv6Addr::BITS as u8),
        (true, _) => u32::from(Ipv4Addr::BITS as u8),
        _ => return false,
    };
    digits && length.parse::<u32>().is_ok_and(|length| length <= limit)
}

/// 6, 8 or 20 bytes, apart by colons, dashes, or dots every two.
fn mac(text: &str) -> bool {
    let groups = |separator: char, size: usize| {
        let groups: Vec<_> = text.split(separator).collect();
        let good = groups
            .iter()
            .all(|g| g.len() == size && g.bytes().all(|b| b.is_ascii_hexdigit()));
        good && [6, 8, 20].contains(&(groups.len() * size / 2))
    };
    groups(':', 2) || groups('-', 2) || groups('.', 4)
}

/// The dashes may be left out.
fn uuid(text: &str, version: Option<char>, variant: bool) -> bool {
    let sizes = [8, 4, 4, 4, 12];
    let mut rest = text;
    let mut hex = String::new();
    for (place, size) in sizes.into_iter().enumerate() {
        if place > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(size) else {
            return false;
        };
        hex.push_str(group);
        rest = after;
    }
    let marked = |at: usize, legal: &str| {
        hex.chars()
            .nth(at)
            .is_some_and(|c| legal.contains(c.to_ascii_lowercase()))
    };
    rest.is_empty()
        && hex.bytes().all(|b| b.is_ascii_hexdigit())
        && version.is_none_or(|version| marked(12, version.encode_utf8(&mut [0; 4])))
        && (!variant || marked(16, "89ab"))
}

fn hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    [3, 6].contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("date", "2026-02-28", true)]
    #[case("date", "2026-02-30", false)]
    #[case("date-time", "2026-01-01T00:00:00Z", true)]
    #[case("date-time", "2026-01-01T00:00:00.5+02:00", true)]
    #[case("date-time", "2026-01-01 00:00:00Z", false)]
    #[case("date-time", "2026-01-01T24:00:00Z", false)]
    #[case("duration", "1h5m", true)]
    #[case("duration", "-1.5h", true)]
    #[case("duration", "5 minutes", true)]
    #[case("duration", "2 weeks", true)]
    #[case("duration", "5 parsecs", false)]
    #[case("duration", "", false)]
    #[case("byte", "aGVsbG8=", true)]
    #[case("byte", "***", false)]
    #[case("ipv4", "010.0.0.1", true)]
    #[case("ipv4", "1.2.3", false)]
    #[case("ipv6", "::1", true)]
    #[case("ipv6", "1.2.3.4", false)]
    #[case("cidr", "10.0.0.0/8", true)]
    #[case("cidr", "10.0.0.0/33", false)]
    #[case("cidr", "fe80::/10", true)]
    #[case("mac", "01:23:45:67:89:ab", true)]
    #[case("mac", "0123.4567.89ab", true)]
    #[case("mac", "01:23:45", false)]
    #[case("uuid", "550e8400-e29b-41d4-a716-446655440000", true)]
    #[case("uuid4", "550e8400e29b41d4a716446655440000", true)]
    #[case("uuid3", "550e8400-e29b-41d4-a716-446655440000", false)]
    #[case("uri", "https://a/b", true)]
    #[case("uri", "/a", true)]
    #[case("uri", "a", false)]
    #[case("email", "A <a@b.c>", true)]
    #[case("email", "a", false)]
    #[case("hostname", "a-b.example.com", true)]
    #[case("hostname", "a b", false)]
    #[case("hexcolor", "#fff", true)]
    #[case("k8s-short-name", "a-b", true)]
    #[case("k8s-short-name", "a.b", false)]
    #[case("k8s-long-name", "a.b", true)]
    fn text_has_its_format_or_not(#[case] format: &str, #[case] text: &str, #[case] expected: bool) {
        assert_eq!(fits(format, text), Some(expected));
    }

    #[test]
    fn an_unknown_format_is_not_checked() {
        assert!(!is_checked("zodiac-sign"));
        assert!(is_checked("date-time"));
    }
}
