//! Tables of what this crate knows: few thousand short names that nobody chooses to our harm.

use std::collections::HashMap;

use foldhash::fast::FixedState;

/// A map with a faster hash than the standard one.
pub(crate) type Table<K, V> = HashMap<K, V, FixedState>;
