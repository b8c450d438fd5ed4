//! What a label's key and value may look like, and how the real server says that one does not.

const WORD: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const CHARACTERS: &str = "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// What is wrong with a key; empty if nothing is.
pub(super) fn faults(key: &str) -> String {
    let mut faults = Vec::new();
    let rule = || {
        format!(
            "must {CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{WORD}')"
        )
    };
    let name = match key.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                faults.extend(
                    subdomain_faults(prefix)
                        .into_iter()
                        .map(|fault| format!("prefix part {fault}")),
                );
            }
            *name
        }
        _ => {
            return format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                rule()
            );
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        faults.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_word(name) {
        faults.push(format!("name part {}", rule()));
    }
    faults.join("; ")
}

/// What is wrong with a value; empty if nothing is.
pub(super) fn value_faults(value: &str) -> String {
    let mut faults = Vec::new();
    if value.len() > 63 {
        faults.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_word(value) {
        faults.push(format!(
            "a valid label must be an empty string or {CHARACTERS} \
             (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({WORD})?')"
        ));
    }
    faults.join("; ")
}

fn is_word(text: &str) -> bool {
    let (first, last) = (text.bytes().next(), text.bytes().last());
    let is_edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    is_edge(first)
        && is_edge(last)
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn subdomain_faults(prefix: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if prefix.len() > 253 {
        faults.push("must be no more than 253 bytes".to_owned());
    }
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let edges = [label.bytes().next(), label.bytes().last()];
        edges.iter().all(|edge| edge.is_some_and(is_plain))
            && label.bytes().all(|byte| is_plain(byte) || byte == b'-')
    };
    if !prefix.split('.').all(is_label) {
        faults.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
             and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    faults
}
