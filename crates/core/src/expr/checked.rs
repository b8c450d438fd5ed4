//! Caches the results of checking conditions, so that a reconcile does not compile them again.
//!
//! A result depends on the source alone, so rollouts can share it. The cache has a bounded size.

use std::collections::BTreeMap;

use super::error::CompileError;
use parking_lot::Mutex;

/// The bytes of sources to keep; beyond that the cache is cleared.
const ROOM: usize = 4 * 1024 * 1024;

type Outcome = Result<usize, CompileError>;

/// Results by source.
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

    /// The cached result for `source`, or the result of `check`.
    pub(super) fn get(&self, source: &str, check: impl FnOnce() -> Outcome) -> Outcome {
        let lock = || self.0.lock();
        if let Some(known) = lock().outcomes.get(source) {
            return known.clone();
        }
        let outcome = check();
        // An error contains its source line, and the key is the source.
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
            let known = checks.0.lock();
            let kept: usize = known.outcomes.keys().map(String::len).sum();
            assert!(kept <= ROOM && known.bytes <= ROOM, "{kept}");
        }
        assert_eq!(checks.get(&"x".repeat(ROOM), || Ok(3)), Ok(3));
    }
}
