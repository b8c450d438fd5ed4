//! The names of fields. Nearly all are those of the Kubernetes API, which are interned.

use std::cmp::Ordering;
use std::fmt;
use std::hash::Hasher;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::is_plain;
use crate::hash::Table;

/// A name of a field or key of a map.
#[derive(Clone)]
pub(crate) enum Name {
    Known(&'static str),
    Other(Arc<str>),
}

static KNOWN: OnceLock<Table<&'static str, ()>> = OnceLock::new();

/// Interns these names.
pub(crate) fn know(names: impl Iterator<Item = &'static str>) {
    KNOWN.get_or_init(|| {
        names
            .filter(|name| is_plain(name))
            .map(|name| (name, ()))
            .collect()
    });
}

impl Name {
    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Known(name) => name,
            Self::Other(name) => name,
        }
    }

    /// Whether it equals this name.
    #[inline]
    pub(super) fn is(&self, name: &str) -> bool {
        are_same(self.as_str().as_bytes(), name.as_bytes())
    }

    /// Whether it is known to need no escaping, without reading it.
    pub(super) fn is_known_to_be_plain(&self) -> bool {
        matches!(self, Self::Known(..))
    }
}

/// Most names are short, and compared often: a call to memcmp would take longer than comparing them here.
#[inline]
fn are_same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    // Compares the same number of bytes from both ends; an overlap does no harm.
    match left.len() {
        8..=16 => {
            left.first_chunk::<8>() == right.first_chunk::<8>()
                && left.last_chunk::<8>() == right.last_chunk::<8>()
        }
        4..8 => {
            left.first_chunk::<4>() == right.first_chunk::<4>()
                && left.last_chunk::<4>() == right.last_chunk::<4>()
        }
        2..4 => {
            left.first_chunk::<2>() == right.first_chunk::<2>()
                && left.last_chunk::<2>() == right.last_chunk::<2>()
        }
        _ => are_same_and_long(left, right),
    }
}

#[inline(never)]
fn are_same_and_long(left: &[u8], right: &[u8]) -> bool {
    left == right
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        match KNOWN.get().and_then(|known| known.get_key_value(name)) {
            Some((known, ())) => Self::Known(known),
            None => Self::Other(name.into()),
        }
    }
}

impl From<String> for Name {
    fn from(name: String) -> Self {
        name.as_str().into()
    }
}

impl From<&String> for Name {
    fn from(name: &String) -> Self {
        name.as_str().into()
    }
}

impl From<&Name> for Name {
    fn from(name: &Name) -> Self {
        name.clone()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.as_str().to_owned()
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        self
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        let (left, right) = (self.as_str(), other.as_str());
        std::ptr::eq(left, right) || left == right
    }
}

impl Eq for Name {}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<String> for Name {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<Name> for str {
    fn eq(&self, other: &Name) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<Name> for &str {
    fn eq(&self, other: &Name) -> bool {
        *self == other.as_str()
    }
}

impl PartialEq<Name> for String {
    fn eq(&self, other: &Name) -> bool {
        self == other.as_str()
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        let (left, right) = (self.as_str(), other.as_str());
        match std::ptr::eq(left, right) {
            true => Ordering::Equal,
            false => left.cmp(right),
        }
    }
}

/// Equal to the hash of the string, so that a set of names can be searched by string.
impl std::hash::Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}
