//! The result of checking a value: errors without duplicates, and a count of checks to choose among failed alternatives.

use super::fault;
use crate::status::FieldError;

/// The result of checking a value.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) errors: Vec<Complaint>,
    /// How many checks were made, for choosing among failed alternatives.
    pub(super) matches: u64,
}

/// An error, and its key: an error with the same key is reported once.
pub(super) struct Complaint {
    sentence: String,
    pub(super) error: FieldError,
}

impl Outcome {
    pub(super) fn add(&mut self, sentence: impl Into<String>, error: FieldError) {
        self.push(Complaint {
            sentence: sentence.into(),
            error,
        });
    }

    /// An error without a field.
    pub(super) fn add_nowhere(&mut self, sentence: String) {
        let error = fault::invalid("", Some(&"".into()), &sentence);
        self.add(sentence, error);
    }

    fn push(&mut self, complaint: Complaint) {
        if !self
            .errors
            .iter()
            .any(|known| known.sentence == complaint.sentence)
        {
            self.errors.push(complaint);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        other
            .errors
            .into_iter()
            .for_each(|complaint| self.push(complaint));
    }

    pub(super) fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}
