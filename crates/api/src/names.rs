//! Names of objects.

/// What a name may be, in words.
pub(crate) const OBJECT_NAME: &str = "it must be lower case letters, digits, - and ., each part between dots beginning and ending with a letter or digit, 253 characters at most";

/// Whether an object can have this name: a DNS-1123 subdomain.
pub(crate) fn is_object_name(name: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(alphanumeric)
            && part.ends_with(alphanumeric)
            && part.chars().all(|c| alphanumeric(c) || c == '-')
    };
    name.len() <= 253 && name.split('.').all(is_part)
}
