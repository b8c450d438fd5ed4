//! The canonical spelling of a resource quantity: the same amount is always written the same way.

/// The suffixes of powers of 1024, smallest first.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// The suffixes of powers of 1000 from 10^-9 to 10^18.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// Where 10^0 is among them.
const ONE: usize = 3;

/// How the suffix was written decides how the canonical one is.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    Binary,
    Decimal,
    Exponent,
}

/// The canonical form of `text`, or `None` if it is no quantity. Amounts finer than 10^-9 are rounded up, as upstream does.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let (format, base, exponent) = scale(suffix)?;
    let nanos = nanos(whole, fraction, base, exponent)?;
    let written = write(nanos, format);
    Some(if negative && nanos != 0 {
        format!("-{written}")
    } else {
        written
    })
}

/// The format, base and exponent that a suffix stands for.
fn scale(suffix: &str) -> Option<(Format, u32, i32)> {
    if let Some(power) = BINARY
        .iter()
        .position(|known| *known == suffix)
        .filter(|power| *power > 0)
    {
        return Some((Format::Binary, 1024, i32::try_from(power).ok()?));
    }
    if let Some(place) = DECIMAL.iter().position(|known| *known == suffix) {
        return Some((Format::Decimal, 10, (i32::try_from(place).ok()? - 3) * 3));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Format::Exponent, 10, exponent))
}

/// The amount in billionths, rounded away from zero. `None` past what 128 bits hold.
fn nanos(whole: &str, fraction: &str, base: u32, exponent: i32) -> Option<u128> {
    let digits: u128 = match format!("{whole}{fraction}").trim_start_matches('0') {
        "" => return Some(0),
        digits => digits.parse().ok()?,
    };
    let mut shift = 9 - i32::try_from(fraction.len()).ok()?;
    let mut amount = digits;
    if base == 1024 {
        amount = amount.checked_mul(1024_u128.checked_pow(exponent.unsigned_abs())?)?;
    } else {
        shift = shift.checked_add(exponent)?;
    }
    if shift >= 0 {
        amount.checked_mul(10_u128.checked_pow(shift.unsigned_abs())?)
    } else {
        Some(match 10_u128.checked_pow(shift.unsigned_abs()) {
            Some(divisor) => amount.div_ceil(divisor),
            None => 1,
        })
    }
}

const NANOS: u128 = 1_000_000_000;

fn write(nanos: u128, format: Format) -> String {
    if nanos == 0 {
        return "0".into();
    }
    // Binary suffixes are for whole numbers from 1024 up; anything else is written in decimal.
    if format == Format::Binary && nanos.is_multiple_of(NANOS) && nanos / NANOS >= 1024 {
        let (mut amount, mut power) = (nanos / NANOS, 0);
        while amount.is_multiple_of(1024) && power + 1 < BINARY.len() {
            amount /= 1024;
            power += 1;
        }
        return format!("{amount}{}", BINARY[power]);
    }
    let (mut amount, mut place) = (nanos, 0);
    while amount.is_multiple_of(1000) && place + 1 < DECIMAL.len() {
        amount /= 1000;
        place += 1;
    }
    match format {
        Format::Exponent if place > ONE => format!("{amount}e{}", (place - ONE) * 3),
        Format::Exponent if place < ONE => format!("{amount}e-{}", (ONE - place) * 3),
        _ => format!("{amount}{}", DECIMAL[place]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("1", "1")]
    #[case("1.0", "1")]
    #[case("1000m", "1")]
    #[case("1500m", "1500m")]
    #[case("0.5", "500m")]
    #[case("0.5Gi", "512Mi")]
    #[case("1024Mi", "1Gi")]
    #[case("1025Mi", "1025Mi")]
    #[case("512", "512")]
    #[case("1000", "1k")]
    #[case("1e3", "1e3")]
    #[case("12e2", "1200")]
    #[case("0", "0")]
    #[case("0Gi", "0")]
    #[case("-1.5", "-1500m")]
    #[case("1Ki", "1Ki")]
    #[case("1.5Ki", "1536")]
    #[case("0.1Ki", "102400m")]
    #[case("100M", "100M")]
    #[case("123456789k", "123456789k")]
    #[case("0.0000000001", "1n")]
    fn a_quantity_has_one_spelling(#[case] given: &str, #[case] expected: &str) {
        assert_eq!(canonical(given).as_deref(), Some(expected));
    }

    #[rstest]
    #[case("")]
    #[case("x")]
    #[case("1 Gi")]
    #[case("1gi")]
    #[case(".")]
    #[case("1.2.3")]
    #[case("--1")]
    #[case("1e")]
    fn what_is_no_quantity_is_refused(#[case] given: &str) {
        assert_eq!(canonical(given), None);
    }
}
