//! Sets of completion indexes, written as `0,3-5,7`.

use std::collections::BTreeSet;
use std::fmt;

/// Indexes in ascending intervals that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<Interval>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    first: i64,
    last: i64,
}

impl Indexes {
    /// The indexes below `completions`; parts that are not intervals are skipped.
    pub(super) fn read(text: &str, completions: i64) -> Self {
        let mut intervals: Vec<Interval> = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let mut limits = part.split('-');
            let Some(Ok(first)) = limits.next().map(str::parse::<i64>) else {
                continue;
            };
            if first >= completions {
                break;
            }
            let last = match limits.next().map(str::parse::<i64>) {
                None => first,
                Some(Ok(last)) => last.min(completions - 1),
                Some(Err(_)) => continue,
            };
            match intervals.last_mut() {
                Some(before) if before.last == first - 1 => before.last = last,
                _ => intervals.push(Interval { first, last }),
            }
        }
        Self(intervals)
    }

    /// The union of both.
    pub(super) fn and(&self, others: &Self) -> Self {
        let mut all: Vec<_> = self.0.iter().chain(&others.0).copied().collect();
        all.sort_by_key(|interval| interval.first);
        let mut merged: Vec<Interval> = Vec::new();
        for interval in all {
            match merged.last_mut() {
                Some(before) if interval.first <= before.last.saturating_add(1) => {
                    before.last = before.last.max(interval.last);
                }
                _ => merged.push(interval),
            }
        }
        Self(merged)
    }

    pub(super) fn total(&self) -> i64 {
        let lengths = self.0.iter().map(|interval| interval.last - interval.first + 1);
        lengths.fold(0, i64::saturating_add)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, index: i64) -> bool {
        self.0
            .iter()
            .any(|interval| (interval.first..=interval.last).contains(&index))
    }

    /// The number of indexes in both.
    pub(super) fn shared(&self, others: &Self) -> i64 {
        let overlap =
            |one: &Interval, other: &Interval| one.last.min(other.last) - one.first.max(other.first) + 1;
        self.0
            .iter()
            .flat_map(|one| others.0.iter().map(move |other| overlap(one, other).max(0)))
            .sum()
    }

    /// The lowest missing indexes below `completions`, at most `count`.
    pub(super) fn gaps(&self, count: i64, completions: i64) -> Vec<i64> {
        let mut gaps = Vec::new();
        let mut candidate = 0;
        let end = Interval {
            first: completions,
            last: completions,
        };
        for interval in self.0.iter().chain([&end]) {
            let room = usize::try_from(count).unwrap_or(0).saturating_sub(gaps.len());
            gaps.extend((candidate..interval.first.min(completions)).take(room));
            candidate = candidate.max(interval.last.saturating_add(1));
        }
        gaps
    }
}

impl FromIterator<i64> for Indexes {
    fn from_iter<I: IntoIterator<Item = i64>>(indexes: I) -> Self {
        let indexes: BTreeSet<_> = indexes.into_iter().collect();
        let singles = Self(
            indexes
                .into_iter()
                .map(|index| Interval {
                    first: index,
                    last: index,
                })
                .collect(),
        );
        singles.and(&Self::default())
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, Interval { first, last }) in self.0.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("", "")]
    #[case("0,1", "0,1")]
    #[case("0,1,2", "0-2")]
    #[case("3-5,7", "3-5,7")]
    #[case("x,2,4-y,6", "2,6")]
    #[case("7-20", "7-9")]
    #[case("3,12", "3")]
    fn indexes_are_read_and_written_back(#[case] text: &str, #[case] written: &str) {
        assert_eq!(Indexes::read(text, 10).to_string(), written);
    }

    #[test]
    fn gaps_come_in_order_up_to_the_count() {
        let taken = Indexes::read("1,3-4", 8);
        assert_eq!(taken.gaps(3, 8), [0, 2, 5]);
        assert_eq!(taken.gaps(9, 6), [0, 2, 5]);
        assert_eq!(taken.gaps(0, 8), [] as [i64; 0]);
    }

    proptest! {
        #[test]
        fn a_set_of_intervals_is_a_set(
            one in prop::collection::btree_set(0..40_i64, 0..20),
            other in prop::collection::btree_set(0..40_i64, 0..20),
        ) {
            let both = Indexes::from_iter(one.clone()).and(&other.iter().copied().collect());
            let union: BTreeSet<_> = one.union(&other).copied().collect();
            prop_assert_eq!(both.total() as usize, union.len());
            prop_assert!((0..40).all(|index| both.has(index) == union.contains(&index)));
            prop_assert_eq!(Indexes::read(&both.to_string(), 40), both);
            let shared = Indexes::from_iter(one.clone()).shared(&other.iter().copied().collect());
            prop_assert_eq!(shared as usize, one.intersection(&other).count());
        }
    }
}
