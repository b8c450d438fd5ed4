//! Amounts of resources: what a canonical quantity is worth, so that it can be compared, added and rounded.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

const MILLI: i128 = 1_000_000;
const ONE: i128 = 1_000_000_000;
const BINARY: [(&str, u32); 6] = [("Ki", 1), ("Mi", 2), ("Gi", 3), ("Ti", 4), ("Pi", 5), ("Ei", 6)];
const DECIMAL: [(&str, i32); 9] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Notation {
    Binary,
    Decimal,
    Exponent,
}

/// An amount and how it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount {
    nanos: i128,
    notation: Notation,
}

impl Amount {
    pub(super) const ZERO: Self = Self {
        nanos: 0,
        notation: Notation::Decimal,
    };

    /// Reads a quantity that decoding has made canonical; anything else is zero.
    pub(super) fn of(value: &Value) -> Self {
        value.as_str().and_then(Self::parse).unwrap_or(Self::ZERO)
    }

    fn parse(text: &str) -> Option<Self> {
        let end = text
            .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+'))
            .unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let places = i32::try_from(fraction.len()).ok()?;
        if let Some((_, power)) = BINARY.iter().find(|(known, _)| *known == suffix) {
            let nanos = scaled(digits.checked_mul(1024_i128.pow(*power))?, 9 - places)?;
            return Some(Self {
                nanos,
                notation: Notation::Binary,
            });
        }
        let known = DECIMAL.iter().find(|(known, _)| *known == suffix);
        let (exponent, notation) = match (suffix, known) {
            ("", _) => (0, Notation::Decimal),
            (_, Some((_, exponent))) => (*exponent, Notation::Decimal),
            (suffix, None) => (suffix.strip_prefix(['e', 'E'])?.parse().ok()?, Notation::Exponent),
        };
        Some(Self {
            nanos: scaled(digits, (9 - places).checked_add(exponent)?)?,
            notation,
        })
    }

    pub(super) fn is_positive(self) -> bool {
        self.nanos > 0
    }

    pub(super) fn is_negative(self) -> bool {
        self.nanos < 0
    }

    pub(super) fn is_zero(self) -> bool {
        self.nanos == 0
    }

    pub(super) fn is_whole(self) -> bool {
        self.nanos % ONE == 0
    }

    /// Whether this is a positive number of pages of that size.
    pub(super) fn is_multiple_of(self, size: Self) -> bool {
        size.nanos > 0 && self.nanos > 0 && self.nanos % size.nanos == 0
    }

    /// Whether nothing finer than a thousandth is asked for.
    pub(super) fn is_in_thousandths(self) -> bool {
        self.nanos % MILLI == 0
    }

    /// The sum, written as this amount is, unless that is zero.
    pub(super) fn plus(self, other: Self) -> Self {
        let notation = if self.is_zero() {
            other.notation
        } else {
            self.notation
        };
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            notation,
        }
    }

    /// Rounded up to thousandths.
    pub(super) fn rounded_up(self) -> Self {
        let rest = self.nanos.rem_euclid(MILLI);
        let nanos = if rest == 0 {
            self.nanos
        } else {
            self.nanos.saturating_add(MILLI - rest)
        };
        Self { nanos, ..self }
    }
}

/// `digits` times ten to the `power`, rounded away from zero.
fn scaled(digits: i128, power: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(power.unsigned_abs())?;
    if power >= 0 {
        return digits.checked_mul(factor);
    }
    let (whole, rest) = (digits / factor, digits % factor);
    Some(whole + rest.signum())
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.nanos.partial_cmp(&other.nanos)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.notation == Notation::Binary && self.is_whole() && self.nanos.abs() >= 1024 * ONE {
            let (mut amount, mut suffix) = (self.nanos / ONE, "");
            for (next, _) in BINARY {
                if amount % 1024 != 0 {
                    break;
                }
                (amount, suffix) = (amount / 1024, next);
            }
            return write!(f, "{amount}{suffix}");
        }
        let (mut amount, mut exponent) = (self.nanos, -9);
        while amount != 0 && amount % 1000 == 0 && exponent < 18 {
            (amount, exponent) = (amount / 1000, exponent + 3);
        }
        if amount == 0 || exponent == 0 {
            return write!(f, "{amount}");
        }
        match DECIMAL.iter().find(|(_, known)| *known == exponent) {
            Some((suffix, _)) if self.notation != Notation::Exponent => write!(f, "{amount}{suffix}"),
            _ => write!(f, "{amount}e{exponent}"),
        }
    }
}

/// Rounds every quantity of a resource list up to thousandths, as upstream still does for compatibility.
pub(super) fn round_list(list: Option<&mut Value>) {
    for value in list
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(|list| list.values_mut())
    {
        if let Some(amount) = value.as_str().and_then(Amount::parse)
            && !amount.is_in_thousandths()
        {
            *value = amount.rounded_up().to_string().into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("1", "500m", "1500m")]
    #[case("1Gi", "512Mi", "1536Mi")]
    #[case("0", "1Gi", "1Gi")]
    #[case("1Gi", "1k", "1073742824")]
    #[case("500m", "500m", "1")]
    #[case("1e3", "1", "1001")]
    fn a_sum_is_written_as_its_first_amount(#[case] left: &str, #[case] right: &str, #[case] sum: &str) {
        assert_eq!(
            Amount::of(&left.into())
                .plus(Amount::of(&right.into()))
                .to_string(),
            sum
        );
    }

    #[rstest]
    #[case("1u", "1m")]
    #[case("1500u", "2m")]
    #[case("1n", "1m")]
    #[case("1e-6", "1e-3")]
    #[case("999999u", "1")]
    #[case("5m", "5m")]
    #[case("nonsense", "nonsense")]
    fn lists_are_rounded_up_to_thousandths(#[case] given: &str, #[case] expected: &str) {
        let mut list = serde_json::json!({"cpu": given});
        round_list(Some(&mut list));
        assert_eq!(list["cpu"], expected);
    }

    #[test]
    fn amounts_compare_by_worth() {
        assert!(Amount::of(&"1Gi".into()) > Amount::of(&"1G".into()));
        assert!(Amount::of(&"1000m".into()) == Amount::of(&"1".into()));
        assert!(Amount::of(&"-1".into()).is_negative());
    }
}
