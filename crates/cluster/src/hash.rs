//! Hash tables of what this crate knows and has seen lately: a few thousand strings. Clients of this cluster are trusted not to choose
//! colliding ones.

use std::collections::HashMap;

use foldhash::fast::FixedState;

/// A map with a faster hash than the standard one.
pub(crate) type Table<K, V> = HashMap<K, V, FixedState>;
