//! The pods' time line in a failure message.

use std::fmt::{self, Write};

use jiff::{SignedDuration, Timestamp};

use super::pod::PodRow;

/// Events with the time since the scenario began.
#[derive(Debug)]
pub(crate) struct Timeline {
    began: Timestamp,
    happenings: Vec<(SignedDuration, String)>,
}

impl Timeline {
    pub(crate) fn starting(began: Timestamp) -> Self {
        Self {
            began,
            happenings: Vec::new(),
        }
    }

    pub(crate) fn note(&mut self, now: Timestamp, happening: impl Into<String>) {
        self.happenings
            .push((now.duration_since(self.began), happening.into()));
    }

    /// Records what changed in one pod between two observations.
    pub(crate) fn note_pod(&mut self, now: Timestamp, before: Option<&PodRow>, after: Option<&PodRow>) {
        match (before, after) {
            (Some(before), Some(after)) if before.uid == after.uid => {
                if before != after {
                    self.note(now, after.to_string());
                }
            }
            // A watch may show the successor without the deletion of its predecessor.
            (before, after) => {
                if let Some(gone) = before {
                    self.note(now, format!("{} {} gone", gone.name, gone.image));
                }
                if let Some(new) = after {
                    self.note(now, format!("{new} created on {}", new.revision));
                }
            }
        }
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.happenings.is_empty() {
            return f.write_str("  nothing happened");
        }
        let mut lines = String::new();
        for (since, happening) in &self.happenings {
            writeln!(lines, "  {:>9.3}s  {happening}", since.as_secs_f64())?;
        }
        f.write_str(lines.trim_end())
    }
}
