//! What came of checking conditions, kept so that none is compiled again whenever a rollout is looked at.
//!
//! An outcome follows from the source alone, so it does not matter who asked for it. It takes bounded room, whatever is asked.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::error::CompileError;

/// Bytes of sources that are kept; all are dropped when there are more.
const ROOM: usize = 4 * 1024 * 1024;

type Outcome = Result<usize, CompileError>;

/// Outcomes by source.
pub(super) struct Checks(Mutex<Known>);

struct Known {
    outcomes: BTreeMap<String, Outcome>,
    bytes: usize,
}

impl Checks {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Known {
            outcomes: BTreeMap::new(),
            bytes: 0,
        }))
    }

    /// What came of `source`, or comes of it now.
    pub(super) fn get(&self, source: &str, check: impl FnOnce() -> Outcome) -> Outcome {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().outcomes.get(source) {
            return known.clone();
        }
        let outcome = check();
        // An error shows the line that it is in, and the key is the source.
        let bytes = 2 * source.len() + 200;
        let mut known = lock();
        if known.bytes + bytes > ROOM {
            known.outcomes.clear();
            known.bytes = 0;
        }
        if bytes <= ROOM
            && known
                .outcomes
                .insert(source.to_owned(), outcome.clone())
                .is_none()
        {
            known.bytes += bytes;
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_checked_once_and_the_room_is_bounded() {
        let checks = Checks::new();
        assert_eq!(checks.get("a", || Ok(1)), Ok(1));
        assert_eq!(checks.get("a", || panic!("checked again")), Ok(1));
        for index in 0..100 {
            let source = format!("{index}{}", "x".repeat(100_000));
            assert_eq!(checks.get(&source, || Ok(2)), Ok(2));
            let known = checks.0.lock().unwrap();
            let kept: usize = known.outcomes.keys().map(String::len).sum();
            assert!(kept <= ROOM && known.bytes <= ROOM, "{kept}");
        }
        assert_eq!(checks.get(&"x".repeat(ROOM), || Ok(3)), Ok(3));
    }
}
