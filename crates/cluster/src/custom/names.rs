//! The names that Kubernetes allows, and what it says about others.

const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// What is wrong with a DNS-1035 label, such as a plural or a version.
pub(super) fn dns_label(text: &str) -> Option<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push("must be no more than 63 bytes");
    }
    let starts = text.starts_with(|c: char| c.is_ascii_lowercase());
    let legal = text
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !(starts && legal && !text.ends_with('-')) {
        wrong.push(LABEL_1035);
    }
    (!wrong.is_empty()).then(|| wrong.join(","))
}

/// What is wrong with a DNS-1123 subdomain, such as a group.
pub(super) fn subdomain(text: &str) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push("must be no more than 253 bytes");
    }
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let label = |label: &str| {
        label.starts_with(ends) && label.ends_with(ends) && label.chars().all(|c| ends(c) || c == '-')
    };
    if !text.split('.').all(label) {
        wrong.push(SUBDOMAIN);
    }
    wrong
}

/// What is wrong with a label's key: `example.com/name`.
pub(super) fn qualified(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let parts: Vec<_> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(
                    subdomain(prefix)
                        .into_iter()
                        .map(|why| format!("prefix part {why}")),
                );
            }
            name
        }
        _ => {
            wrong.push(format!("a qualified name {QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"));
            return wrong;
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_qualified(name) {
        wrong.push(format!("name part {QUALIFIED}"));
    }
    wrong
}

/// What is wrong with a label's value.
pub(super) fn label_value(text: &str) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push("must be no more than 63 bytes");
    }
    if !text.is_empty() && !is_qualified(text) {
        wrong.push(LABEL_VALUE);
    }
    wrong
}

/// What is wrong with a name that is only asked to stand in a URL.
pub(super) fn path_segment(text: &str, prefix: bool) -> Option<String> {
    if !prefix && matches!(text, "." | "..") {
        return Some(format!("may not be '{text}'"));
    }
    let illegal = text.chars().find(|c| matches!(c, '/' | '%'))?;
    Some(format!("may not contain '{illegal}'"))
}

fn is_qualified(text: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(ends) && text.ends_with(ends) && text.chars().all(|c| ends(c) || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("widgets", true)]
    #[case("a-1", true)]
    #[case("1a", false)]
    #[case("a-", false)]
    #[case("A", false)]
    #[case("", false)]
    fn labels_start_with_a_letter(#[case] text: &str, #[case] good: bool) {
        assert_eq!(dns_label(text).is_none(), good);
    }

    #[rstest]
    #[case("example.com", true)]
    #[case("1.2", true)]
    #[case("a..b", false)]
    #[case("-a", false)]
    fn groups_are_subdomains(#[case] text: &str, #[case] good: bool) {
        assert_eq!(subdomain(text).is_empty(), good);
    }

    #[rstest]
    #[case("app", true)]
    #[case("example.com/app", true)]
    #[case("a b", false)]
    #[case("/app", false)]
    #[case("a/b/c", false)]
    fn label_keys_may_have_a_domain(#[case] text: &str, #[case] good: bool) {
        assert_eq!(qualified(text).is_empty(), good);
    }
}
