//! Errors that end a sync: refusals of the API server, with what was being tried.

use std::collections::BTreeSet;

use crate::status::Status;

/// How often a write is tried when other writers are faster, as client-go's DefaultRetry has it and its DefaultBackoff.
/// Upstream waits between the tries for its cache to catch up; ours has nothing to catch up with.
pub(super) const DEFAULT_RETRY: usize = 5;
pub(super) const DEFAULT_BACKOFF: usize = 4;

/// An error of our own.
pub(super) fn failure(message: impl Into<String>) -> Status {
    Status {
        code: 500,
        reason: "InternalError",
        message: message.into(),
        details: None,
        warnings: Vec::new(),
    }
}

/// The same refusal, with what was being tried.
pub(super) fn doing(what: &str, status: Status) -> Status {
    Status {
        message: format!("{what}: {status}"),
        ..status
    }
}

fn is_conflict(status: &Status) -> bool {
    status.reason == "Conflict"
}

pub(super) fn already_exists(status: &Status) -> bool {
    status.reason == "AlreadyExists"
}

/// Several errors as one: each message once, in brackets when there is more than one.
pub(super) fn all_of(errors: Vec<Status>) -> Result<(), Status> {
    let mut seen = BTreeSet::new();
    let different: Vec<_> = errors
        .iter()
        .map(|error| &error.message)
        .filter(|message| seen.insert(message.as_str()))
        .collect();
    let message = match different.as_slice() {
        [] => return Ok(()),
        [one] => (*one).clone(),
        several => format!(
            "[{}]",
            several
                .iter()
                .map(|message| message.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    match errors.into_iter().next() {
        Some(first) => Err(Status { message, ..first }),
        None => Ok(()),
    }
}

/// Tries a write until no other writer is faster, or too often.
pub(super) fn retry_on_conflict<T>(
    tries: usize,
    mut attempt: impl FnMut() -> Result<T, Status>,
) -> Result<T, Status> {
    for _ in 1..tries {
        match attempt() {
            Err(status) if is_conflict(&status) => {}
            done => return done,
        }
    }
    attempt()
}
