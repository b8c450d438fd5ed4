//! Suggestions for typos.

/// The known name that is similar enough to have been meant.
pub(super) fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let distances = known.into_iter().map(|known| (distance(name, known), known));
    // A short name is similar to everything.
    let most = match name.chars().count() {
        0..=3 => 1,
        _ => 2,
    };
    let (distance, nearest) = distances.min()?;
    (distance <= most).then_some(nearest)
}

/// The case-insensitive edit distance.
fn distance(one: &str, other: &str) -> usize {
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<_>>();
    let (one, other) = (letters(one), letters(other));
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.iter().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], index + 1);
        for (column, theirs) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != theirs);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("setweight", "setWeight", 0)]
    #[case("steps", "step", 1)]
    #[case("abc", "xyz", 3)]
    #[case("", "ab", 2)]
    fn letters_are_counted(#[case] one: &str, #[case] other: &str, #[case] expected: usize) {
        assert_eq!(distance(one, other), expected);
    }

    #[rstest]
    #[case("imagee", Some("image"))]
    #[case("Name", Some("name"))]
    #[case("foo", None)]
    #[case("nam", Some("name"))]
    #[case("i", None)]
    #[case("", None)]
    fn what_is_much_like_it_may_have_been_meant(#[case] name: &str, #[case] expected: Option<&str>) {
        assert_eq!(nearest(name, ["image", "name", "env", "fsGroup"]), expected);
    }
}
