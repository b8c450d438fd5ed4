//! Telling whether something is as it was, without keeping it.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;

/// The same for what is the same, in this process.
pub(crate) fn hash(what: &impl Hash) -> u64 {
    FixedState::default().hash_one(what)
}
