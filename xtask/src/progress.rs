//! A progress line on stderr for long work.

use std::io::{IsTerminal, Write, stderr};

/// Counts items up to a known total.
pub(crate) struct Progress {
    what: String,
    unit: &'static str,
    total: usize,
    done: usize,
    in_place: bool,
}

impl Progress {
    /// Starts at zero of `total`; a terminal gets one updated line, a log gets a line for each tenth.
    pub(crate) fn new(what: String, unit: &'static str, total: usize) -> Self {
        Self {
            what,
            unit,
            total,
            done: 0,
            in_place: stderr().is_terminal(),
        }
    }

    /// Counts one more item.
    pub(crate) fn advance(&mut self) {
        self.done += 1;
        if self.in_place {
            eprint!("\r\x1b[K{}", self.line());
            let _cosmetic = stderr().flush();
        } else if reaches_a_tenth(self.done, self.total) {
            eprintln!("{}", self.line());
        }
    }

    /// Ends the updated line.
    pub(crate) fn finish(self) {
        if self.in_place && self.done > 0 {
            eprintln!();
        }
    }

    fn line(&self) -> String {
        format!("{}: {} of {} {}", self.what, self.done, self.total, self.unit)
    }
}

/// Whether the item `done` crosses a tenth of `total`.
fn reaches_a_tenth(done: usize, total: usize) -> bool {
    total > 0 && done * 10 / total != (done - 1) * 10 / total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gets_ten_lines_for_a_long_build_and_one_per_package_for_a_short_one() {
        for (total, lines) in [(2712, 10), (10, 10), (1, 1), (3, 3)] {
            assert_eq!(
                (1..=total).filter(|&done| reaches_a_tenth(done, total)).count(),
                lines,
                "of {total}"
            );
        }
    }
}
