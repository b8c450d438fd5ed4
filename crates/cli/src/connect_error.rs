//! Why the API server cannot be reached, in one line: its address and the root cause.

use std::error::Error;
use std::fmt;

/// No answer from the address.
#[derive(Debug)]
pub(crate) struct Unreachable {
    address: String,
    why: String,
    /// The connection failed, so nothing was sent.
    unconnected: bool,
}

// Its message includes that of its causes, so it has no source.
impl Error for Unreachable {}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot reach {}: {}", self.address, self.why)
    }
}

impl Unreachable {
    pub(crate) fn new(address: impl Into<String>, error: &(dyn Error + 'static)) -> Self {
        let unconnected = causes(error).any(is_of_a_connection);
        let late = unconnected && causes(error).any(is_late);
        Self {
            address: address.into(),
            why: if late {
                "no connection in time".into()
            } else {
                root(error)
            },
            unconnected,
        }
    }

    /// Whether the server may have received the request, and only the answer is missing.
    pub(crate) fn may_have_been_heard(&self) -> bool {
        !self.unconnected
    }

    /// Finds this error among the causes of another.
    pub(crate) fn among<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        causes(error).find_map(|cause| cause.downcast_ref())
    }
}

fn is_of_a_connection(cause: &(dyn Error + 'static)) -> bool {
    let cause = cause.downcast_ref::<hyper_util::client::legacy::Error>();
    cause.is_some_and(hyper_util::client::legacy::Error::is_connect)
}

fn is_late(cause: &(dyn Error + 'static)) -> bool {
    let cause = cause.downcast_ref::<std::io::Error>();
    cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::TimedOut)
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| (*error).source())
}

/// The message of the root cause, which says what happened.
pub(crate) fn root(error: &(dyn Error + 'static)) -> String {
    let root = causes(error).last().map_or_else(String::new, ToString::to_string);
    let root = match root.split_once(" (os error") {
        Some((words, _)) => words,
        None => &root,
    };
    let mut chars = root.chars();
    match (chars.next(), chars.next()) {
        // A sentence, and not an abbreviation.
        (Some(first), Some(second)) if second.is_lowercase() => {
            format!("{}{}", first.to_lowercase(), &root[first.len_utf8()..])
        }
        _ => root.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct Told(#[source] io::Error);

    #[test]
    fn the_root_is_told_once_and_with_the_address() {
        let refused = Told(io::Error::from_raw_os_error(111));
        let unreachable = Unreachable::new("https://127.0.0.1:6443", &refused);
        assert_eq!(
            unreachable.to_string(),
            "cannot reach https://127.0.0.1:6443: connection refused"
        );
        assert_eq!(root(&io::Error::other("DNS is down")), "DNS is down");
    }
}
