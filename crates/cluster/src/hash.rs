//! Tables of what this crate knows and has met lately: a few thousand texts. Whoever writes to this cluster is trusted not to choose
//! them to our harm.

use std::collections::HashMap;

use foldhash::fast::FixedState;

/// A map with a faster hash than the standard one.
pub(crate) type Table<K, V> = HashMap<K, V, FixedState>;
