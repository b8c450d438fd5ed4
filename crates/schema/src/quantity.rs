//! Resource quantities: their value and canonical form. Equal amounts are always written the same way.

use std::cmp::Ordering;
use std::fmt;

/// The suffixes of powers of 1024, smallest first.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// The suffixes of powers of 1000 from 10^-9 to 10^18.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// The index of 10^0 in `DECIMAL`.
const PLACE_OF_ONE: usize = 3;

const MILLI: i128 = 1_000_000;
const ONE: i128 = 1_000_000_000;

/// The format of the input decides the canonical format.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Binary,
    Decimal,
    Exponent,
}

/// An amount in billionths, and its format.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self {
        nanos: 0,
        format: Format::Decimal,
    };

    /// The quantity in a field that decoding has accepted; anything else is zero.
    pub fn of(text: Option<&str>) -> Self {
        text.and_then(Self::parse).unwrap_or(Self::ZERO)
    }

    /// `None` if it is not a quantity. Amounts finer than 10^-9 are rounded away from zero, as upstream does.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, unsigned) = match text.as_bytes().first()? {
            b'-' => (-1, &text[1..]),
            b'+' => (1, &text[1..]),
            _ => (1, text),
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
        Some(Self {
            nanos: sign * nanos(whole, fraction, base, exponent)?,
            format,
        })
    }

    /// Whether it is greater than zero.
    pub fn is_positive(self) -> bool {
        self.nanos > 0
    }

    /// Whether it is less than zero.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether it is a whole number.
    pub fn is_whole(self) -> bool {
        self.nanos % ONE == 0
    }

    /// Whether this is a positive multiple of `size`.
    pub fn is_multiple_of(self, size: Self) -> bool {
        size.nanos > 0 && self.nanos > 0 && self.nanos % size.nanos == 0
    }

    /// Whether it is a whole number of thousandths.
    pub fn is_in_thousandths(self) -> bool {
        self.nanos % MILLI == 0
    }

    /// The sum, in the format of this amount, unless this amount is zero.
    pub fn plus(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            format: if self.is_zero() { other.format } else { self.format },
        }
    }

    /// The amount rounded up to whole thousandths.
    pub fn rounded_up_to_thousandths(self) -> Self {
        let missing = (MILLI - self.nanos.rem_euclid(MILLI)) % MILLI;
        Self {
            nanos: self.nanos.saturating_add(missing),
            ..self
        }
    }
}

/// The format, base and exponent of a suffix.
fn scale(suffix: &str) -> Option<(Format, i128, i32)> {
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

/// The amount in billionths, rounded away from zero. `None` if it does not fit into 128 bits.
fn nanos(whole: &str, fraction: &str, base: i128, exponent: i32) -> Option<i128> {
    let digits: i128 = match format!("{whole}{fraction}").trim_start_matches('0') {
        "" => return Some(0),
        digits => digits.parse().ok()?,
    };
    let mut shift = 9 - i32::try_from(fraction.len()).ok()?;
    let mut amount = digits;
    if base == 1024 {
        amount = amount.checked_mul(base.checked_pow(exponent.unsigned_abs())?)?;
    } else {
        shift = shift.checked_add(exponent)?;
    }
    let factor = 10_i128.checked_pow(shift.unsigned_abs());
    match (factor, shift >= 0) {
        (factor, true) => amount.checked_mul(factor?),
        (Some(factor), false) => Some(amount / factor + (amount % factor).signum()),
        (None, false) => Some(1),
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.nanos.partial_cmp(&other.nanos)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        // Binary suffixes are for whole numbers from 1024 up; anything else is written in decimal.
        if self.format == Format::Binary && self.is_whole() && self.nanos.abs() >= 1024 * ONE {
            let (amount, power) = divided(self.nanos / ONE, 1024, BINARY.len());
            return write!(f, "{amount}{}", BINARY[power]);
        }
        let (amount, place) = divided(self.nanos, 1000, DECIMAL.len());
        match self.format {
            Format::Exponent if place > PLACE_OF_ONE => write!(f, "{amount}e{}", (place - PLACE_OF_ONE) * 3),
            Format::Exponent if place < PLACE_OF_ONE => write!(f, "{amount}e-{}", (PLACE_OF_ONE - place) * 3),
            _ => write!(f, "{amount}{}", DECIMAL[place]),
        }
    }
}

/// Divides as long as there is no remainder and there are suffixes.
fn divided(mut amount: i128, by: i128, suffixes: usize) -> (i128, usize) {
    let mut times = 0;
    while amount % by == 0 && times + 1 < suffixes {
        (amount, times) = (amount / by, times + 1);
    }
    (amount, times)
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
        assert_eq!(Quantity::parse(given).unwrap().to_string(), expected);
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
        assert!(Quantity::parse(given).is_none());
    }

    #[rstest]
    #[case("1", "500m", "1500m")]
    #[case("1Gi", "512Mi", "1536Mi")]
    #[case("0", "1Gi", "1Gi")]
    #[case("1Gi", "1k", "1073742824")]
    #[case("500m", "500m", "1")]
    #[case("1e3", "1", "1001")]
    fn a_sum_is_written_as_its_first_amount(#[case] left: &str, #[case] right: &str, #[case] sum: &str) {
        assert_eq!(
            Quantity::of(Some(left))
                .plus(Quantity::of(Some(right)))
                .to_string(),
            sum
        );
    }

    #[test]
    fn amounts_compare_by_worth() {
        assert!(Quantity::of(Some("1Gi")) > Quantity::of(Some("1G")));
        assert!(Quantity::of(Some("1000m")) == Quantity::of(Some("1")));
        assert!(Quantity::of(Some("-1")).is_negative());
    }
}
