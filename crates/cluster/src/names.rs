//! Validates names, keys and labels. Each check returns its errors, with the messages that clients see.

use std::fmt::Write;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character";

/// Upstream counts bytes everywhere but says so only in its newer checks.
fn too_long(limit: usize, unit: &str) -> String {
    format!("must be no more than {limit} {unit}")
}

/// A rule, examples and its expression, joined like upstream.
fn pattern(rule: &str, expression: &str, examples: &[&str]) -> String {
    let mut text = format!("{rule} (");
    for (index, example) in examples.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = write!(text, "{}'{example}', ", if index == 0 { "e.g. " } else { " or " });
    }
    text + &format!("regex used for validation is '{expression}')")
}

fn is_dns_label(text: &str) -> bool {
    is_wrapped(
        text,
        |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(),
        |byte| byte == b'-',
    )
}

fn is_dns_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

/// Not empty, `edge` characters at both ends, those or `inner` ones between.
fn is_wrapped(text: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| edge(*byte))
        && bytes.last().is_some_and(|byte| edge(*byte))
        && bytes.iter().all(|byte| edge(*byte) || inner(*byte))
}

/// An RFC 1123 label: a pod's hostname, a namespace, a container.
pub(crate) fn dns_label(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > 63 {
        complaints.push(too_long(63, "characters"));
    }
    if !is_dns_label(text) {
        complaints.push(if is_dns_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            let rule = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                 start and end with an alphanumeric character";
            pattern(rule, LABEL, &["my-name", "123-abc"])
        });
    }
    complaints
}

/// A DNS-1035 label, such as the plural or a version of a custom resource: its complaints in one text.
pub(crate) fn dns_1035_label(text: &str) -> Option<String> {
    let mut complaints = Vec::new();
    if text.len() > 63 {
        complaints.push(too_long(63, "bytes"));
    }
    if !(is_dns_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())) {
        let rule = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character";
        complaints.push(pattern(
            rule,
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    (!complaints.is_empty()).then(|| complaints.join(","))
}

/// An RFC 1123 subdomain: most names of objects.
pub(crate) fn dns_subdomain(text: &str) -> Vec<String> {
    subdomain(text, "characters")
}

/// The same with a newer check's message: the group of a CRD, the domain of a label's key.
pub(crate) fn domain(text: &str) -> Vec<String> {
    subdomain(text, "bytes")
}

fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > 253 {
        complaints.push(too_long(253, unit));
    }
    if !is_dns_subdomain(text) {
        complaints.push(pattern(SUBDOMAIN_RULE, SUBDOMAIN, &["example.com"]));
    }
    complaints
}

/// A DNS search path, whose labels may have underscores.
pub(crate) fn search_path(text: &str) -> Vec<String> {
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label);
        is_wrapped(
            label,
            |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(),
            |byte| b"-_".contains(&byte),
        )
    };
    let mut complaints = Vec::new();
    if text.len() > 253 {
        complaints.push(too_long(253, "characters"));
    }
    if !text.split('.').all(is_label) {
        let expression = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
        let rule = SUBDOMAIN_RULE.replace("'-' or '.'", "'_', '-' or '.'");
        complaints.push(pattern(&rule, expression, &["example.com"]));
    }
    complaints
}

/// A label key, a finalizer, a condition type: an optional domain, then a name.
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    let name_rule = || pattern(QUALIFIED_RULE, QUALIFIED, &["MyName", "my.name", "123-abc"]);
    let mut complaints = Vec::new();
    let mut parts = text.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(""), Some(name), None) => {
            complaints.push("prefix part must be non-empty".to_owned());
            name
        }
        (Some(prefix), Some(name), None) => {
            complaints.extend(
                domain(prefix)
                    .into_iter()
                    .map(|complaint| format!("prefix part {complaint}")),
            );
            name
        }
        _ => {
            let suffix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {} {suffix}", name_rule())];
        }
    };
    if name.is_empty() {
        complaints.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        complaints.push(format!("name part {}", too_long(63, "bytes")));
    }
    if !is_qualified(name) {
        complaints.push(format!("name part {}", name_rule()));
    }
    complaints
}

fn is_qualified(text: &str) -> bool {
    is_wrapped(
        text,
        |byte| byte.is_ascii_alphanumeric(),
        |byte| b"-_.".contains(&byte),
    )
}

pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > 63 {
        complaints.push(too_long(63, "bytes"));
    }
    if !text.is_empty() && !is_qualified(text) {
        let rule = format!(
            "a valid label must be an empty string or {}",
            &QUALIFIED_RULE["must ".len()..]
        );
        complaints.push(pattern(
            &rule,
            &format!("({QUALIFIED})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    complaints
}

/// A name that is valid as a URL path segment: the only rule for RBAC objects.
pub(crate) fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        text => path_segment_prefix(text),
    }
}

/// The prefix of such a name.
pub(crate) fn path_segment_prefix(text: &str) -> Vec<String> {
    let complaint = |part: &&str| format!("may not contain '{part}'");
    ["/", "%"]
        .iter()
        .filter(|part| text.contains(**part))
        .map(complaint)
        .collect()
}

/// The name of a port in a container.
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let is_letter = |byte: u8| byte.is_ascii_lowercase();
    let mut complaints = Vec::new();
    if text.len() > 15 {
        complaints.push(too_long(15, "characters"));
    }
    if text.is_empty()
        || !text
            .bytes()
            .all(|byte| is_letter(byte) || byte.is_ascii_digit() || byte == b'-')
    {
        complaints.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(is_letter) {
        complaints.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        complaints.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        complaints.push("must not begin or end with a hyphen".to_owned());
    }
    complaints
}

/// The name of an environment variable, or the prefix of one.
pub(crate) fn variable_name(text: &str) -> Vec<String> {
    let fits = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    if text.bytes().all(fits) {
        return Vec::new();
    }
    let rule =
        "a valid environment variable name must consist only of printable ASCII characters other than '='";
    vec![rule.to_owned()]
}

/// A key of a ConfigMap or a Secret.
pub(crate) fn config_key(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > 253 {
        complaints.push(too_long(253, "characters"));
    }
    if text.is_empty()
        || !text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    {
        let rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        complaints.push(pattern(
            rule,
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match text {
        "." | ".." => complaints.push(format!("must not be '{text}'")),
        text if text.starts_with("..") => complaints.push("must not start with '..'".to_owned()),
        _ => {}
    }
    complaints
}

pub(crate) fn http_header(text: &str) -> Vec<String> {
    if !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        return Vec::new();
    }
    let rule = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![pattern(rule, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

pub(crate) fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let rule = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![pattern(rule, "[0-9]+%", &["1%", "93%"])]
}

/// Upstream still accepts the addresses it used to accept, but no new ones of that form.
pub(crate) fn address(text: &str) -> Vec<String> {
    if text.parse::<std::net::IpAddr>().is_ok() {
        return Vec::new();
    }
    vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()]
}

/// The prefix of a generated name for validation: a trailing dash becomes a character that can end a name. Upstream cuts one character too
/// many, and so do we.
pub(crate) fn mask_trailing_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut rest: String = rest.to_owned();
            rest.pop();
            rest.push('a');
            rest
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("a", true)]
    #[case("a-1", true)]
    #[case("1", true)]
    #[case("", false)]
    #[case("-a", false)]
    #[case("a-", false)]
    #[case("A", false)]
    #[case("a.b", false)]
    #[case("ä", false)]
    fn labels_are_lower_case_words(#[case] text: &str, #[case] fits: bool) {
        assert_eq!(dns_label(text).is_empty(), fits);
    }

    #[rstest]
    #[case("widgets", true)]
    #[case("a-1", true)]
    #[case("1a", false)]
    #[case("a-", false)]
    #[case("A", false)]
    #[case("", false)]
    fn dns_1035_labels_start_with_a_letter(#[case] text: &str, #[case] fits: bool) {
        assert_eq!(dns_1035_label(text).is_none(), fits);
    }

    #[rstest]
    #[case("example.com", true)]
    #[case("1.2", true)]
    #[case("a..b", false)]
    #[case("-a", false)]
    fn domains_are_labels_with_dots(#[case] text: &str, #[case] fits: bool) {
        assert_eq!(domain(text).is_empty(), fits);
    }

    #[rstest]
    #[case("example.com/name", true)]
    #[case("Name_1.x", true)]
    #[case("/name", false)]
    #[case("example.com/", false)]
    #[case("a/b/c", false)]
    #[case("Example.com/name", false)]
    #[case("ä", false)]
    fn keys_are_names_with_an_optional_domain(#[case] text: &str, #[case] fits: bool) {
        assert_eq!(qualified_name(text).is_empty(), fits);
    }

    #[rstest]
    #[case("web-", "wea")]
    #[case("B-", "a")]
    #[case("-", "-")]
    #[case("web", "web")]
    #[case("ü-", "a")]
    fn a_trailing_dash_is_masked_as_upstream_masks_it(#[case] given: &str, #[case] masked: &str) {
        assert_eq!(mask_trailing_dash(given), masked);
    }
}
