//! Compares answers and reports differences.

use super::transcript::{Answer, Counts, Step};

/// The report for a command that was answered differently; `None` if it was answered as recorded.
pub(super) fn difference(step: &Step, seen: &Answer) -> Option<String> {
    let (expected, seen) = (counted(&step.recorded, step.counts), counted(seen, step.counts));
    if expected == seen {
        return None;
    }
    let mut told = format!("$ {}\n", step.command.replace('\n', "\n> "));
    for line in lines_apart(&expected.render(), &seen.render()) {
        told.push_str(&line);
        told.push('\n');
    }
    Some(told)
}

/// The part of the answer that counts.
fn counted(answer: &Answer, counts: Counts) -> Answer {
    let Answer { stdout, stderr, code } = answer;
    match counts {
        Counts::All => answer.clone(),
        Counts::Nothing => Answer::default(),
        Counts::LastLine => Answer {
            stdout: stdout.lines().next_back().unwrap_or_default().to_owned(),
            stderr: stderr.clone(),
            code: *code,
        },
        Counts::Sorted => Answer {
            stdout: sorted(stdout),
            stderr: sorted(stderr),
            code: *code,
        },
    }
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// A diff of both texts: common lines indented, `-` for recorded only, `+` for seen only.
fn lines_apart(recorded: &str, seen: &str) -> Vec<String> {
    let (old, new): (Vec<_>, Vec<_>) = (recorded.lines().collect(), seen.lines().collect());
    // The longest common subsequence, from the end: answers are short.
    let mut longest = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            longest[i][j] = match a == b {
                true => longest[i + 1][j + 1] + 1,
                false => longest[i + 1][j].max(longest[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut told) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            told.push(format!("    {}", old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && longest[i + 1][j] >= longest[i][j + 1]) {
            told.push(format!("  - {}", old[i]));
            i += 1;
        } else {
            told.push(format!("  + {}", new[j]));
            j += 1;
        }
    }
    around_changes(&told)
}

/// Lines shown around a change.
const AROUND: usize = 3;

fn around_changes(lines: &[String]) -> Vec<String> {
    let changed = |line: &String| !line.starts_with("    ");
    let near = |at: usize| {
        let (from, to) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(lines.len()));
        lines[from..to].iter().any(changed)
    };
    lines
        .iter()
        .enumerate()
        .filter(|(at, _)| near(*at))
        .map(|(_, line)| line.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_was_recorded_and_what_was_seen() {
        let apart = lines_apart("a\nb\nc\nd\ne\nf", "a\nb\nc\nd\nx\nf");
        assert_eq!(apart, ["    b", "    c", "    d", "  - e", "  + x", "    f"]);
    }
}
