//! A unified diff in the format of Go's difflib: the server appends such a diff to some of its errors.

use std::fmt::Write;
use std::ops::Range;

/// The number of context lines.
const CONTEXT: usize = 3;

/// A run of lines in both texts, equal or not.
#[derive(Clone, Debug)]
struct Run {
    is_same: bool,
    before: Range<usize>,
    after: Range<usize>,
}

/// The hunks of a unified diff, without the names of files.
pub(super) fn unified(before: &str, after: &str) -> String {
    let (before, after): (Vec<_>, Vec<_>) = (before.split('\n').collect(), after.split('\n').collect());
    let mut text = String::new();
    for hunk in hunks(runs(&before, &after)) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
            continue;
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "@@ -{} +{} @@",
            shown(first.before.start..last.before.end),
            shown(first.after.start..last.after.end)
        );
        for run in hunk {
            let mut tell = |mark: char, lines: &[&str]| {
                for line in lines {
                    let _ = writeln!(text, "{mark}{line}");
                }
            };
            if run.is_same {
                tell(' ', &before[run.before]);
            } else {
                tell('-', &before[run.before]);
                tell('+', &after[run.after]);
            }
        }
    }
    text
}

fn shown(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        more => format!("{},{more}", lines.start + 1),
    }
}

/// Both texts from beginning to end.
fn runs(before: &[&str], after: &[&str]) -> Vec<Run> {
    let mut same = Vec::new();
    find_same(before, after, 0..before.len(), 0..after.len(), &mut same);
    let mut runs: Vec<Run> = Vec::new();
    let (mut left, mut right) = (0, 0);
    let end = Run {
        is_same: true,
        before: before.len()..before.len(),
        after: after.len()..after.len(),
    };
    for run in same.into_iter().chain([end]) {
        if left < run.before.start || right < run.after.start {
            runs.push(Run {
                is_same: false,
                before: left..run.before.start,
                after: right..run.after.start,
            });
        }
        (left, right) = (run.before.end, run.after.end);
        match runs.last_mut() {
            Some(last) if last.is_same => (last.before.end, last.after.end) = (left, right),
            _ if run.before.is_empty() => {}
            _ => runs.push(run),
        }
    }
    runs
}

/// The longest run that both have, then recursively on either side of it.
fn find_same(before: &[&str], after: &[&str], left: Range<usize>, right: Range<usize>, found: &mut Vec<Run>) {
    let (mut at, mut length) = ((left.start, right.start), 0);
    for i in left.clone() {
        for j in right.clone() {
            let same = (i..left.end)
                .zip(j..right.end)
                .take_while(|(i, j)| before[*i] == after[*j]);
            let here = same.count();
            if here > length {
                (at, length) = ((i, j), here);
            }
        }
    }
    if length == 0 {
        return;
    }
    let (i, j) = at;
    find_same(before, after, left.start..i, right.start..j, found);
    found.push(Run {
        is_same: true,
        before: i..i + length,
        after: j..j + length,
    });
    find_same(before, after, i + length..left.end, j + length..right.end, found);
}

/// Groups of adjacent runs, with context.
fn hunks(mut runs: Vec<Run>) -> Vec<Vec<Run>> {
    if let Some(first) = runs.first_mut().filter(|run| run.is_same) {
        let skipped = first.before.len().saturating_sub(CONTEXT);
        first.before.start += skipped;
        first.after.start += skipped;
    }
    if let Some(last) = runs.last_mut().filter(|run| run.is_same) {
        let skipped = last.before.len().saturating_sub(CONTEXT);
        last.before.end -= skipped;
        last.after.end -= skipped;
    }
    let mut hunks = vec![Vec::new()];
    for run in runs {
        let mut hunk = hunks.pop().unwrap_or_default();
        if run.is_same && run.before.len() > 2 * CONTEXT {
            let Run { before, after, .. } = run;
            let part = |before, after| Run {
                is_same: true,
                before,
                after,
            };
            hunk.push(part(
                before.start..before.start + CONTEXT,
                after.start..after.start + CONTEXT,
            ));
            hunks.push(hunk);
            hunks.push(vec![part(
                before.end - CONTEXT..before.end,
                after.end - CONTEXT..after.end,
            )]);
        } else {
            hunk.push(run);
            hunks.push(hunk);
        }
    }
    hunks.retain(|hunk| hunk.iter().any(|run| !run.is_same));
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::nothing("a\nb", "a\nb", "")]
    #[case::one_of_one("a", "b", "@@ -1 +1 @@\n-a\n+b\n")]
    #[case::one_more("a\nb\nc\nd\ne", "a\nb\nc\nd\nx\ne", "@@ -2,4 +2,5 @@\n b\n c\n d\n+x\n e\n")]
    #[case::two_places(
        "1\n2\n3\n4\n5\n6\n7\n8\n9",
        "x\n2\n3\n4\n5\n6\n7\n8\ny",
        "@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y\n"
    )]
    #[case::two_places_close_by(
        "1\n2\n3\n4\n5\n6\n7\n8",
        "x\n2\n3\n4\n5\n6\n7\ny",
        "@@ -1,8 +1,8 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+y\n"
    )]
    fn lines_are_compared(#[case] before: &str, #[case] after: &str, #[case] expected: &str) {
        assert_eq!(unified(before, after), expected);
    }
}
