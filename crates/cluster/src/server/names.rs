//! Generated names and UIDs.

use super::Server;

/// The maximum length of a generated name; the given prefix is cut to make room for the suffix.
const LONGEST_GENERATED: usize = 63;
const SUFFIX: usize = 5;
/// The characters of generated suffixes: no vowels, so that no words appear.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl Server {
    /// A random UID in the usual form.
    pub(super) fn new_uid(&self) -> String {
        let bits = self.chance(|chance| chance.u128(..));
        let (version, variant) = (0x4000_u128 << 64, 0x8000_u128 << 48);
        let bits = bits & !(0xf000 << 64) & !(0xc000 << 48) | version | variant;
        let hex = format!("{bits:032x}");
        format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }

    /// A name that begins with `prefix`.
    pub(super) fn generate_name(&self, prefix: &str) -> String {
        let mut end = prefix.len().min(LONGEST_GENERATED - SUFFIX);
        while !prefix.is_char_boundary(end) {
            end -= 1;
        }
        let suffix = self.chance(|chance| {
            (0..SUFFIX)
                .map(|_| char::from(LETTERS[chance.usize(..LETTERS.len())]))
                .collect::<String>()
        });
        format!("{}{suffix}", &prefix[..end])
    }
}
