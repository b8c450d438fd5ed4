//! Names of objects.

use std::fmt;

/// The rule for a name, in words.
pub(crate) const OBJECT_NAME: &str = "it must be lower case letters, digits, - and ., each part between dots beginning and ending with a letter or digit, 253 characters at most";

/// The same as a regular expression, for schemas.
pub(crate) const OBJECT_NAME_PATTERN: &str =
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// Whether this is a valid object name: a DNS-1123 subdomain.
pub(crate) fn is_object_name(name: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(alphanumeric)
            && part.ends_with(alphanumeric)
            && part.chars().all(|c| alphanumeric(c) || c == '-')
    };
    name.len() <= 253 && name.split('.').all(is_part)
}

/// The name of an object or a namespace: exactly one segment of a request's path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName(String);

impl ObjectName {
    /// Validates a name.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidName> {
        let name = name.into();
        if is_object_name(&name) {
            Ok(Self(name))
        } else {
            Err(InvalidName(name.chars().take(SHOWN).collect()))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How much of an invalid name is shown.
const SHOWN: usize = 80;

/// A string that is not a valid object name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidName(String);

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not the name of an object: {OBJECT_NAME}", self.0)
    }
}

impl std::error::Error for InvalidName {}

/// Names that would direct a request at something other than the object they appear to name.
pub const HOSTILE_NAMES: [&str; 18] = [
    "",
    ".",
    "..",
    "../../other/secrets/stolen",
    "..%2f..%2fother%2fsecrets%2fstolen",
    "%2e%2e/%2e%2e/other",
    "a/b",
    "a/log",
    "/a",
    "a?watch=true",
    "a#b",
    "a%00",
    "a\\b",
    "a\nb",
    "a\u{202e}b",
    "a,metadata.namespace=other",
    "A",
    "a b",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path() {
        for name in HOSTILE_NAMES {
            let refused = ObjectName::new(name).unwrap_err().to_string();
            assert!(refused.contains("is not the name of an object"), "{refused}");
            assert!(!refused.contains(char::is_control), "{refused:?}");
        }
        for name in ["a", "db-0", "db.example.com", "0"] {
            assert_eq!(ObjectName::new(name).unwrap().as_str(), name);
        }
        assert!(ObjectName::new("a".repeat(254)).is_err());
    }
}
