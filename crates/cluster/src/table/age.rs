//! How long ago.

use jiff::Timestamp;
use stateward_clock::human_duration;

/// The age of a timestamp; `<unknown>` if there is none.
pub(super) fn since(moment: &str, now: Timestamp) -> String {
    match moment.parse::<Timestamp>() {
        Ok(moment) => human_duration(now.duration_since(moment)),
        Err(_) => "<unknown>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_that_is_none_is_unknown() {
        let now = "2026-01-01T00:00:10Z".parse().unwrap();
        assert_eq!(since("", now), "<unknown>");
        assert_eq!(since("2026-01-01T00:00:00.5Z", now), "9s");
    }
}
