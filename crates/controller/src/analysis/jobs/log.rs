//! The end of a failed Job's log, prepared for a status: short, on one line, with credentials redacted.
//!
//! The operator does not know which Secrets a Job's pod has, so it recognizes credentials by their form.

/// How many characters of the log are shown.
pub(super) const SHOWN: usize = 256;

/// Replaces a credential.
const REDACTED: &str = "*****";

/// HTTP authentication schemes: a credential follows them.
const SCHEMES: [&str; 4] = ["bearer", "basic", "digest", "negotiate"];

/// A run of this many letters and digits is not a natural word.
const OPAQUE: usize = 32;

/// The end of a log, redacted.
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

/// What to redact after a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hidden {
    Nothing,
    /// The next word: `--token abc --verbose`, `Bearer abc`
    Word,
    /// The rest of the line: `password: correct horse`, where the end of the value is unknown.
    Rest,
    /// The rest of the line; the redaction mark is already written: `password:correct horse`
    Marked,
}

/// Redacts the credentials in a line.
fn redact(line: &str) -> String {
    let mut words = Vec::new();
    let mut hidden = Hidden::Nothing;
    let mut name = false;
    for word in line.split(char::is_whitespace) {
        // Repeated spaces yield empty words.
        if word.is_empty() {
            words.push(String::new());
            continue;
        }
        // `password :abc`
        let value = word
            .strip_prefix([':', '='])
            .filter(|_| name && !is_assignment(word));
        let (shown, next) = match value {
            Some(value) if hidden == Hidden::Nothing => redact_value(&word[..1], value, true),
            _ => redact_word(word, hidden),
        };
        let is_redacted = shown == REDACTED;
        words.push(shown);
        if next == Hidden::Marked || hidden == Hidden::Rest && is_redacted {
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

/// Also matches `[Bearer` and `"Basic`.
fn is_scheme(word: &str) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    SCHEMES.contains(&bare.to_ascii_lowercase().as_str())
}

/// Redacts the credentials in a word, and returns what to redact after it.
fn redact_word(word: &str, hidden: Hidden) -> (String, Hidden) {
    if hidden != Hidden::Nothing {
        // `Authorization: Bearer abc`, and `password = abc`
        return match is_scheme(word) || is_assignment(word) {
            true => (word.to_owned(), hidden),
            false => (REDACTED.to_owned(), Hidden::Nothing),
        };
    }
    if is_scheme(word) {
        return (word.to_owned(), Hidden::Word);
    }
    // Passwords may contain `@`, `/` and `?`: the last `@` ends them.
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((_, host)) = rest.rsplit_once('@')
    {
        let (scheme, hidden) = redact_fields(scheme);
        if hidden == Hidden::Marked {
            return (scheme, hidden);
        }
        let (host, hidden) = redact_fields(host);
        return (format!("{scheme}://{REDACTED}@{host}"), hidden);
    }
    redact_fields(word)
}

/// `password=abc`, `{"token":"abc","user":"me"}`, `?sig=abc&x=y`: redacts the values of credential fields.
fn redact_fields(word: &str) -> (String, Hidden) {
    let (mut out, mut next) = (String::new(), Hidden::Nothing);
    let mut in_value = false;
    let mut fields = word.split_inclusive(['&', ',', ';', '?']).peekable();
    while let Some(field) = fields.next() {
        let (field, end) = match field.char_indices().next_back() {
            Some((at, c)) if "&,;?".contains(c) => field.split_at(at),
            _ => (field, ""),
        };
        // `password=a,b`: a part without a name belongs to the previous field.
        if in_value && !field.contains(['=', ':']) {
            continue;
        }
        (in_value, next) = (false, Hidden::Nothing);
        match credential(field) {
            Some((name, value)) => {
                let (mark, value) = value.split_at(1);
                // Header values contain spaces and punctuation.
                let ends = mark == "=" && !is_header(name);
                let (value, hidden) = redact_value(mark, value, !ends);
                out.push_str(name);
                out.push_str(&value);
                let is_last = fields.peek().is_none();
                match hidden {
                    Hidden::Marked => return (out, hidden),
                    // The value continues in this word.
                    Hidden::Rest if !is_last && (!ends || value != mark) => {
                        if !value.ends_with(REDACTED) {
                            out.push_str(REDACTED);
                        }
                        return (out, Hidden::Marked);
                    }
                    hidden => next = hidden,
                }
                in_value = value.ends_with(REDACTED);
            }
            // `password abc`
            None if is_name_of_credential(field) && field == word && word.starts_with("--") => {
                out.push_str(field);
                next = Hidden::Word;
            }
            None => {
                out.push_str(&without_opaque(field));
                // `header=Bearer abc`
                let value = field.rsplit(['=', ':']).next().unwrap_or_default();
                if field.contains(['=', ':']) && is_scheme(value) {
                    next = Hidden::Word;
                }
            }
        }
        out.push_str(end);
    }
    (out, next)
}

/// The name of a credential, and its value with the separator: `:abc` in `map[headers:map[token:abc`.
fn credential(field: &str) -> Option<(&str, &str)> {
    let mut start = 0;
    for (at, _) in field.match_indices(['=', ':']) {
        let name = &field[start..at];
        // A host is not a name.
        if is_name_of_credential(name) && !name.starts_with("//") {
            return Some(field.split_at(at));
        }
        start = at + 1;
    }
    None
}

/// Redacts the value after a separator, and returns what to redact after it: the rest of the line if the end is unknown.
fn redact_value(mark: &str, value: &str, is_endless: bool) -> (String, Hidden) {
    if value.trim_matches(|c: char| !c.is_alphanumeric()).is_empty() || is_scheme(value) {
        // The credential follows.
        return (format!("{mark}{value}"), Hidden::Rest);
    }
    let hidden = match quoted(value) {
        Some(true) => Hidden::Nothing,
        Some(false) => Hidden::Rest,
        None if is_endless => Hidden::Marked,
        None => Hidden::Nothing,
    };
    (format!("{mark}{REDACTED}"), hidden)
}

/// Whether a quoted text ends in this word: not `"correct`
fn quoted(value: &str) -> Option<bool> {
    let text = value.trim_start_matches('\\');
    let escapes = value.len() - text.len();
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let ends = text.match_indices(quote).skip(1).any(|(at, _)| {
        let before = &text[..at];
        before.len() - before.trim_end_matches('\\').len() == escapes
    });
    Some(ends)
}

/// `Authorization`, `Set-Cookie`
fn is_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["authorization", "cookie"]
        .iter()
        .any(|header| name.contains(header))
}

/// Also matches `{"token"` and `--db.password`.
fn is_name_of_credential(name: &str) -> bool {
    stateward_redact::is_secret(name)
}

/// Redacts long runs of letters and digits: keys, tokens or digests.
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
        // Base64 contains `/` too, and mixes upper and lower case.
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
    #[case("Authorization:Bearer s3cr3t", "Authorization:Bearer *****")]
    #[case("Authorization:Basic bWU6aHVudGVyMg== at db", "Authorization:Basic *****")]
    #[case("authorization=Bearer s3cr3t", "authorization=Bearer *****")]
    #[case("token=Bearer s3cr3t", "token=Bearer *****")]
    #[case("header=Bearer s3cr3t", "header=Bearer *****")]
    #[case("Bearer\ts3cr3t", "Bearer *****")]
    #[case("--token\ts3cr3t\t--verbose", "--token ***** --verbose")]
    #[case(
        "map[Accept:[*/*] Authorization:[Bearer s3cr3t] Cookie:[a=b]]",
        "map[Accept:[*/*] Authorization:[Bearer *****"
    )]
    #[case(
        "map[headers:map[Authorization:[Bearer s3cr3t]]]",
        "map[headers:map[Authorization:[Bearer *****"
    )]
    #[case("map[Authorization:[s3cr3t more]]", "map[Authorization:*****")]
    #[case(
        "http.Header{\"Authorization\":[]string{\"Bearer s3cr3t\"}}",
        "http.Header{\"Authorization\":*****"
    )]
    #[case("{'Authorization': 'Bearer s3cr3t'}", "{'Authorization': 'Bearer *****")]
    #[case(
        "{\"Authorization\":[\"Bearer\",\"s3cr3t\"]}",
        "{\"Authorization\":[\"Bearer\"*****"
    )]
    #[case("\"tokens\":[\"s3cr3t\",\"m0re\"]", "\"tokens\":*****")]
    #[case("Cookie:a=1; session=s3cr3t", "Cookie:*****")]
    #[case("cookie=a=1; session=s3cr3t", "cookie=*****")]
    #[case("Set-Cookie:session=s3cr3t; Path=/; HttpOnly", "Set-Cookie:*****")]
    #[case("password:correct horse", "password:*****")]
    #[case("password :correct horse", "password :*****")]
    #[case("password=s3,cr3t;user=me", "password=*****,user=me")]
    #[case("{\"password\":\"s3,cr3t\",\"user\":1}", "{\"password\":*****")]
    #[case("{\"password\":\"s\\\",cr3t\",\"user\":1}", "{\"password\":*****")]
    #[case(
        "{\\\"token\\\":\\\"abc\\\",\\\"user\\\":1}",
        "{\\\"token\\\":*****,\\\"user\\\":1}"
    )]
    #[case(
        "postgres://me:hunter/2@db:5432/x failed",
        "postgres://*****@db:5432/x failed"
    )]
    #[case("postgres://me:p@ss/word@db failed", "postgres://*****@db failed")]
    #[case("postgres://me:a?b&c@db/x?sslmode=off", "postgres://*****@db/x?sslmode=off")]
    #[case(
        "token=abc,url=postgres://me:hunter2@db",
        "token=*****,url=postgres://*****@db"
    )]
    #[case("GET http://key.example.com:8080/a", "GET http://key.example.com:8080/a")]
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
    #[case("\x1b[31mred\x1b[0m\r\u{202e}", "\u{FFFD}[31mred\u{FFFD}[0m \u{FFFD}")]
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
