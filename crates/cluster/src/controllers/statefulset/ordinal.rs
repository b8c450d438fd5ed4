//! Ordinals: the numbers in pod names.

use std::fmt;

/// The number at the end of a pod's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ordinal(i64);

impl Ordinal {
    /// `db-3` is pod 3 of `db`. A number beyond 32 bits still names the set, but is no ordinal.
    pub(super) fn split(pod: &str) -> Option<(&str, Option<Self>)> {
        let (set, digits) = pod.rsplit_once('-')?;
        let numeric = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        numeric.then(|| {
            (
                set,
                digits.parse::<i32>().ok().map(|ordinal| Self(ordinal.into())),
            )
        })
    }

    /// The name of this pod of a set.
    pub(super) fn of(self, set: &str) -> String {
        [set, "-", &self.0.to_string()].concat()
    }

    /// Whether this is the name of this pod of a set.
    pub(super) fn is_of(self, set: &str, pod: &str) -> bool {
        let digits = pod.strip_prefix(set).and_then(|rest| rest.strip_prefix('-'));
        digits.is_some_and(|digits| *digits == *self.0.to_string())
    }
}

impl fmt::Display for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The ordinals of a set: `count` of them from `start` on. The controller counts indexes, which begin at 0 whatever the first ordinal is;
/// so does the partition (k/k#128529).
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordinals {
    start: i64,
    count: usize,
}

impl Ordinals {
    pub(super) fn new(start: i64, count: usize) -> Self {
        Self { start, count }
    }

    /// The index of an ordinal; `None` if it is outside.
    pub(super) fn index(self, ordinal: Ordinal) -> Option<usize> {
        let index = usize::try_from(ordinal.0.checked_sub(self.start)?).ok()?;
        (index < self.count).then_some(index)
    }

    pub(super) fn at(self, index: usize) -> Ordinal {
        Ordinal(
            self.start
                .saturating_add(i64::try_from(index).unwrap_or(i64::MAX)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("db-0", Some(("db", Some(0))))]
    #[case("db-1-23", Some(("db-1", Some(23))))]
    #[case("db-007", Some(("db", Some(7))))]
    #[case("-1", Some(("", Some(1))))]
    #[case::too_big("db-2147483648", Some(("db", None)))]
    #[case::no_number("db-x", None)]
    #[case::no_digits("db-", None)]
    #[case::a_sign("db-+1", None)]
    #[case::no_dash("db1", None)]
    #[case::empty("", None)]
    fn a_pod_name_splits_into_set_and_ordinal(
        #[case] name: &str,
        #[case] expected: Option<(&str, Option<i64>)>,
    ) {
        let seen = Ordinal::split(name).map(|(set, ordinal)| (set, ordinal.map(|ordinal| ordinal.0)));
        assert_eq!(seen, expected);
    }

    #[rstest]
    #[case(0, Some(0), None)]
    #[case(5, None, Some(1))]
    fn indexes_count_from_the_first_ordinal(
        #[case] start: i64,
        #[case] of_zero: Option<usize>,
        #[case] of_six: Option<usize>,
    ) {
        let ordinals = Ordinals::new(start, 3);
        assert_eq!(ordinals.index(Ordinal(0)), of_zero);
        assert_eq!(ordinals.index(Ordinal(6)), of_six);
        assert_eq!(ordinals.at(2), Ordinal(start + 2));
        assert_eq!(ordinals.index(Ordinal(start + 3)), None);
    }
}
