//! Tables of what this crate knows: few thousand short names that nobody chooses to our harm.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with a faster hash than the standard one.
pub(crate) type Table<K, V> = HashMap<K, V, BuildHasherDefault<Words>>;

/// A hash of eight bytes at a time.
#[derive(Default)]
pub(crate) struct Words(u64);

impl Words {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Words {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        // The rest is read in one piece, together with some of what comes before it.
        let last = match bytes.last_chunk::<8>() {
            Some(_) if rest.is_empty() => return,
            Some(last) => u64::from_le_bytes(*last),
            None => rest.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte)),
        };
        self.add(last);
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(byte.into());
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
