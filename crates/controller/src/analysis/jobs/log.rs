//! The end of a failed Job's log, as it may stand in a status: short, in one line, and without what looks like a credential.
//!
//! The operator does not know which Secrets a Job's pod has, so it goes by how credentials look.

/// How much of it is shown, in characters.
pub(super) const SHOWN: usize = 256;

/// Stands for a credential.
const REDACTED: &str = "*****";

/// The schemes of HTTP authentication: what comes after them is a credential.
const SCHEMES: [&str; 4] = ["bearer", "basic", "digest", "negotiate"];

/// As many letters and digits without a break are no word.
const OPAQUE: usize = 32;

/// The end of a log.
pub(super) fn tail(log: &str) -> String {
    let lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut key = false;
    let mut kept = Vec::new();
    for line in lines {
        key |= line.contains("-----BEGIN ");
        kept.push(if key { REDACTED.to_owned() } else { redact(line) });
        key &= !line.contains("-----END ");
    }
    kept.dedup_by(|next, last| next == REDACTED && last == REDACTED);
    let text = kept.join(" | ");
    let text: String = text
        .chars()
        .map(|c| {
            if stateward_terminal::is_unsafe(c) {
                '\u{FFFD}'
            } else {
                c
            }
        })
        .collect();
    let count = text.chars().count();
    match count.checked_sub(SHOWN) {
        Some(cut @ 1..) => format!("…{}", text.chars().skip(cut + 1).collect::<String>()),
        _ => text,
    }
}

/// What of a line is hidden after a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hidden {
    Nothing,
    /// The next word: `--token abc --verbose`, `Bearer abc`
    Word,
    /// All of it: `password: correct horse`, where nothing says which word is the last.
    Rest,
}

/// A line without credentials.
fn redact(line: &str) -> String {
    let mut words = Vec::new();
    let mut hidden = Hidden::Nothing;
    let mut name = false;
    for word in line.split(' ') {
        // Several spaces are empty words.
        if word.is_empty() {
            words.push(String::new());
            continue;
        }
        let (shown, next) = redact_word(word, hidden);
        let is_redacted = shown == REDACTED;
        words.push(shown);
        if hidden == Hidden::Rest && is_redacted {
            break;
        }
        hidden = match name && is_assignment(word) {
            true => Hidden::Rest,
            false => next,
        };
        name = is_name_of_credential(word);
    }
    words.join(" ")
}

fn is_assignment(word: &str) -> bool {
    matches!(word, "=" | ":" | ":=" | "=>")
}

/// A word without credentials, and what is hidden after it.
fn redact_word(word: &str, hidden: Hidden) -> (String, Hidden) {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    let is_scheme = SCHEMES.contains(&bare.to_ascii_lowercase().as_str());
    if hidden != Hidden::Nothing {
        // `Authorization: Bearer abc`, and `password = abc`
        return match is_scheme || is_assignment(word) {
            true => (word.to_owned(), hidden),
            false => (REDACTED.to_owned(), Hidden::Nothing),
        };
    }
    if is_scheme {
        return (word.to_owned(), Hidden::Word);
    }
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((_, host)) = rest
            .split('/')
            .next()
            .and_then(|authority| authority.rsplit_once('@'))
    {
        let path = rest.split_once('/').map(|(_, path)| format!("/{path}"));
        let path = redact_fields(&path.unwrap_or_default());
        return (format!("{scheme}://{REDACTED}@{host}{}", path.0), path.1);
    }
    redact_fields(word)
}

/// `password=abc`, `{"token":"abc","user":"me"}`, `?sig=abc&x=y`: the values of fields that hold credentials.
fn redact_fields(word: &str) -> (String, Hidden) {
    let (mut out, mut next) = (String::new(), Hidden::Nothing);
    for field in word.split_inclusive(['&', ',', ';', '?']) {
        let (field, end) = match field.char_indices().next_back() {
            Some((at, c)) if "&,;?".contains(c) => field.split_at(at),
            _ => (field, ""),
        };
        next = Hidden::Nothing;
        let at = field.find(['=', ':']);
        match at.map(|at| field.split_at(at)) {
            Some((name, value)) if is_name_of_credential(name) => {
                let (mark, value) = value.split_at(1);
                out.push_str(name);
                out.push_str(mark);
                if value.trim_matches(|c: char| !c.is_alphanumeric()).is_empty() {
                    // It is in what follows.
                    out.push_str(value);
                    next = Hidden::Rest;
                } else {
                    out.push_str(REDACTED);
                    if is_open(value) {
                        next = Hidden::Rest;
                    }
                }
            }
            Some((name, value)) => {
                out.push_str(&without_opaque(name));
                out.push_str(&without_opaque(value));
            }
            // `password abc`
            None if is_name_of_credential(field) && field == word && word.starts_with("--") => {
                out.push_str(field);
                next = Hidden::Word;
            }
            None => out.push_str(&without_opaque(field)),
        }
        out.push_str(end);
    }
    (out, next)
}

/// Whether a quoted text goes on in the next word: `"correct`
fn is_open(value: &str) -> bool {
    let value = value.trim_start_matches('\\');
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    quote.is_some_and(|quote| value.matches(quote).count() == 1)
}

/// Of `{"token"` and `--db.password` too.
fn is_name_of_credential(name: &str) -> bool {
    stateward_redact::is_secret(name)
}

/// Long runs of letters and digits are keys, tokens or digests.
fn without_opaque(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+/=_-.".contains(c);
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        let digits = run.chars().any(|c| c.is_ascii_digit());
        let letters = run.chars().any(|c| c.is_ascii_alphabetic());
        // Paths and host names are long, but their parts are not.
        let longest = run.split(['/', '.', '-', '_']).map(str::len).max().unwrap_or(0);
        // Base64 has them too, and mixes its letters.
        let mixed =
            run.chars().any(|c| c.is_ascii_lowercase()) && run.chars().any(|c| c.is_ascii_uppercase());
        let base64 = run.split(['.', '-', '_']).map(str::len).max().unwrap_or(0);
        let is_path = run.starts_with('/');
        let opaque = digits && letters && (longest >= OPAQUE || mixed && !is_path && base64 >= OPAQUE);
        out.push_str(if opaque { REDACTED } else { run });
        let end = after.find(is_part).unwrap_or(after.len());
        let (between, after) = after.split_at(end);
        out.push_str(between);
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("connecting\n\nno route to host\n", "connecting | no route to host")]
    #[case("password=hunter2 for me", "password=***** for me")]
    #[case("DB_PASSWORD: hunter2", "DB_PASSWORD: *****")]
    #[case("password = hunter2", "password = *****")]
    #[case("the password is wrong", "the password is wrong")]
    #[case(
        "{\"api_key\":\"abc\",\"user\":\"me\"}",
        "{\"api_key\":*****,\"user\":\"me\"}"
    )]
    #[case("--token hunter2 --verbose", "--token ***** --verbose")]
    #[case("Authorization: Bearer abc.def", "Authorization: Bearer *****")]
    #[case("< authorization: Basic bWU6aHVudGVyMg==", "< authorization: Basic *****")]
    #[case("sent Bearer  abc", "sent Bearer  *****")]
    #[case("postgres://me:hunter2@db:5432/x failed", "postgres://*****@db:5432/x failed")]
    #[case(
        "GET https://host/a?sig=1&signature=abc&x=1",
        "GET https://host/a?sig=*****&signature=*****&x=1"
    )]
    #[case("Set-Cookie: session=abc", "Set-Cookie: *****")]
    #[case("key: hunter2", "key: *****")]
    #[case("DB_PASS=hunter2", "DB_PASS=*****")]
    #[case("auth=hunter2, retry", "auth=*****, retry")]
    #[case("password: correct horse battery", "password: *****")]
    #[case("password=\"correct horse\" at db", "password=***** *****")]
    #[case("{\"password\": \"correct horse\", \"user\": 1}", "{\"password\": *****")]
    #[case("password : correct horse", "password : *****")]
    #[case("using wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY now", "using ***** now")]
    #[case("monkey: not found", "monkey: not found")]
    #[case("key AKIAIOSFODNN7EXAMPLEAKIAIOSFODNN7EXAMPLE used", "key ***** used")]
    #[case(
        "/usr/share/some/rather/long/path/to/a/file-of-version-2.txt",
        "/usr/share/some/rather/long/path/to/a/file-of-version-2.txt"
    )]
    #[case(
        "a\n-----BEGIN PRIVATE KEY-----\nMIIE\nabc\n-----END PRIVATE KEY-----\nb",
        "a | ***** | b"
    )]
    #[case("\x1b[31mred\x1b[0m\r\u{202e}", "\u{FFFD}[31mred\u{FFFD}[0m\u{FFFD}\u{FFFD}")]
    fn what_looks_like_a_credential_is_redacted(#[case] log: &str, #[case] expected: &str) {
        assert_eq!(tail(log), expected);
    }

    #[test]
    fn the_end_is_what_is_shown() {
        let log = format!("{}\nthe end", "ä".repeat(SHOWN));
        let tail = tail(&log);
        assert_eq!(tail.chars().count(), SHOWN);
        assert!(tail.starts_with('…') && tail.ends_with("ä | the end"), "{tail}");
    }
}
