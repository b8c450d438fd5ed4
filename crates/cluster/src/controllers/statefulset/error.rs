//! Errors that end a sync: errors of the API server, with the attempted operation.

use std::collections::BTreeSet;

use crate::status::Status;

/// The number of attempts at a conflict, as in client-go's DefaultRetry and DefaultBackoff. Upstream waits between the attempts for its
/// cache; there is no cache here.
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

/// The same error, with the attempted operation.
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

/// Several errors as one: each message once, in brackets if there is more than one.
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

/// Repeats a write until there is no conflict, or too often.
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
