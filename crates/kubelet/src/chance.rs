//! Chance without a stream: every draw comes from the seed and the name of what it is for, so it does not depend on
//! the order of events.

use std::hash::Hasher;
use std::time::Duration;

/// FNV-1a over the parts, each closed by a separator.
pub(crate) fn hash<'a>(seed: u64, parts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed;
    for part in parts {
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

/// A hash of what we have made ourselves, for which the standard one takes more care than is needed: eight bytes at a
/// time, each product folded in half.
#[derive(Default)]
pub(crate) struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words
            .iter()
            .for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        let last = rest
            .iter()
            .fold(rest.len() as u64, |word, byte| word << 8 | u64::from(*byte));
        self.write_u64(last);
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        // The sum keeps zeros from being lost.
        self.0 = (product as u64 ^ (product >> 64) as u64).wrapping_add(0xd6e8_feb8_6659_fd93);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// `time`, longer or shorter by up to `share` of itself.
pub(crate) fn vary(time: Duration, share: f64, draw: u64) -> Duration {
    let lot = fastrand::Rng::with_seed(draw).f64();
    time.mul_f64(1.0 + share.clamp(0.0, 1.0) * (2.0 * lot - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hash;

    #[test]
    fn a_folded_hash_depends_on_every_part_and_its_place() {
        let folded = |parts: &[&[u8]]| {
            let mut hasher = Folded::default();
            parts.hash(&mut hasher);
            hasher.finish()
        };
        let parts: [&[&[u8]]; 9] = [
            &[],
            &[b""],
            &[b"", b""],
            &[b"\0"],
            &[b"\0\0"],
            &[b"a", b"b"],
            &[b"b", b"a"],
            &[b"ab"],
            &[b"12345678", b"9"],
        ];
        let distinct: std::collections::BTreeSet<_> = parts.into_iter().map(folded).collect();
        assert_eq!(distinct.len(), parts.len());
    }

    #[test]
    fn a_draw_depends_on_the_seed_and_on_every_part() {
        let draws = [
            hash(1, ["ns", "db-0"]),
            hash(2, ["ns", "db-0"]),
            hash(1, ["ns", "db-1"]),
            hash(1, ["nsd", "b-0"]),
            hash(1, ["ns", "db-0", "pull"]),
        ];
        let distinct: std::collections::BTreeSet<_> = draws.iter().collect();
        assert_eq!(distinct.len(), draws.len());
        assert_eq!(hash(1, ["ns", "db-0"]), draws[0]);
    }

    #[test]
    fn a_varied_time_stays_within_its_share() {
        let second = Duration::from_secs(1);
        for draw in 0..1000 {
            let varied = vary(second, 0.1, draw);
            assert!((0.9..=1.1).contains(&varied.as_secs_f64()), "{varied:?}");
        }
        assert_eq!(vary(second, 0.0, 7), second);
    }
}
