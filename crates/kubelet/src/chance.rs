//! Randomness without a stream: every draw depends only on the seed and the name of its purpose, not on the order of events.

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

/// `time`, longer or shorter by up to `share` of itself.
pub(crate) fn vary(time: Duration, share: f64, draw: u64) -> Duration {
    let lot = fastrand::Rng::with_seed(draw).f64();
    time.mul_f64(1.0 + share.clamp(0.0, 1.0) * (2.0 * lot - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

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
