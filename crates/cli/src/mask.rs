//! Values that may be secrets are never shown: of two templates, only whether they differ there.
//!
//! References to Secrets hold no secret and are shown. Literal values are hidden where their names say that they are secret
//! (environment, annotations, labels, headers, `--password=…` among the arguments), and so is what stands before the `@` of an
//! address. Better one value too many than one too few.

use serde_json::{Map, Value};

/// Two templates for people to compare, without what may be secret.
pub(crate) fn mask(before: &Value, after: &Value) -> (Value, Value) {
    (
        hide(before, Some(after), Side::Before),
        hide(after, Some(before), Side::After),
    )
}

#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

impl Side {
    /// What stands for a secret: the same on both sides only where the secrets are the same.
    fn stands_for(self, value: &Value, other: Option<&Value>) -> String {
        match (self, other) {
            (_, Some(other)) if other == value => "<hidden>".into(),
            (Self::Before, _) => "<hidden, before>".into(),
            (Self::After, _) => "<hidden, after>".into(),
        }
    }
}

/// Fields in which everything is a name that people have chosen.
const FREE_NAMES: [&str; 2] = ["annotations", "labels"];

fn hide(value: &Value, other: Option<&Value>, side: Side) -> Value {
    match value {
        Value::Object(fields) => Value::Object(hide_fields(fields, other, side)),
        Value::Array(items) => hide_items(items, other.and_then(Value::as_array), side),
        Value::String(text) => hide_text(text, other, side).into(),
        other => other.clone(),
    }
}

fn hide_fields(fields: &Map<String, Value>, other: Option<&Value>, side: Side) -> Map<String, Value> {
    let theirs = |key: &str| other.and_then(|other| other.get(key));
    // A variable or a header.
    let name = fields.get("name").and_then(Value::as_str);
    let secret = name.is_some_and(is_secret) && fields.get("value").is_some_and(Value::is_string);
    let hidden = |(key, value): (&String, &Value)| {
        let hidden = match value {
            Value::String(_) if secret && key == "value" => side.stands_for(value, theirs(key)).into(),
            Value::Object(free) if FREE_NAMES.contains(&key.as_str()) => {
                let theirs = theirs(key);
                let entry = |(key, value): (&String, &Value)| {
                    let theirs = theirs.and_then(|theirs| theirs.get(key));
                    let hidden = if is_secret(key) || key.ends_with("last-applied-configuration") {
                        side.stands_for(value, theirs).into()
                    } else {
                        hide(value, theirs, side)
                    };
                    (key.clone(), hidden)
                };
                Value::Object(free.iter().map(entry).collect())
            }
            value => hide(value, theirs(key), side),
        };
        (key.clone(), hidden)
    };
    fields.iter().map(hidden).collect()
}

fn hide_items(items: &[Value], others: Option<&Vec<Value>>, side: Side) -> Value {
    let mut hidden = Vec::new();
    for (index, item) in items.iter().enumerate() {
        // Containers and variables are known by their names, everything else by its place.
        let name = item.get("name");
        let other = others.and_then(|others| match name {
            Some(_) => others.iter().find(|other| other.get("name") == name),
            None => others.get(index),
        });
        // `--password`, and the password after it.
        let before = index
            .checked_sub(1)
            .and_then(|before| items.get(before)?.as_str());
        let announced = before.is_some_and(|before| {
            before.starts_with('-') && !before.contains('=') && is_secret(before.trim_start_matches('-'))
        });
        hidden.push(match item {
            Value::String(text) if announced && !text.starts_with('-') => side.stands_for(item, other).into(),
            item => hide(item, other, side),
        });
    }
    Value::Array(hidden)
}

/// Hides the rest of a line behind a secret name with `=` or `:`, and who logs in at an address.
fn hide_text(text: &str, other: Option<&Value>, side: Side) -> String {
    // The whole text tells whether they differ: a part of it may stand elsewhere in the other.
    let hidden = || side.stands_for(&Value::from(text), other);
    if text.contains("PRIVATE KEY-----") {
        return hidden();
    }
    let line = |line: &str| match secret_from(line) {
        Some(at) => format!("{}{}", &line[..at], hidden()),
        None => {
            let word = |word: &str| match login(word) {
                Some((before, after)) => format!("{before}{}{after}", hidden()),
                None => word.to_owned(),
            };
            line.split(' ').map(word).collect::<Vec<_>>().join(" ")
        }
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Where the value of the first secret name of a line begins.
fn secret_from(line: &str) -> Option<usize> {
    line.match_indices(['=', ':']).find_map(|(at, separator)| {
        let value = at + separator.len();
        let name = line[..at].trim_end_matches(['"', '\'']);
        let from = name.rfind(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)));
        let name = &name[from.map_or(0, |from| from + 1)..];
        let something = !line[value..].trim().is_empty() && !line[value..].starts_with("//");
        (something && is_secret(name)).then_some(value)
    })
}

/// `postgres://` and `@host/db`, with who logs in between them.
fn login(word: &str) -> Option<(&str, &str)> {
    let scheme = word.find("://")? + 3;
    let rest = &word[scheme..];
    let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let at = rest[..host].rfind('@')?;
    Some((&word[..scheme], &rest[at..]))
}

/// Parts of names that say what is behind them.
const SECRET: [&str; 15] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "bearer",
    "cookie",
    "connectionstring",
    "signature",
];

/// Words of names that do, by themselves.
const SECRET_WORDS: [&str; 8] = ["key", "keys", "auth", "pass", "dsn", "pin", "salt", "sas"];

/// Whether a name says that what it names is nobody's business: `PGPASSWORD`, `api-key`, `authToken`.
fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    SECRET.iter().any(|secret| plain.contains(secret))
        || words(name)
            .iter()
            .any(|word| SECRET_WORDS.contains(&word.as_str()))
}

/// The words of `a-b_c.dE`, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_is_lower = false;
    for c in name.chars() {
        let starts = !c.is_ascii_alphanumeric() || (c.is_ascii_uppercase() && before_is_lower);
        before_is_lower = c.is_ascii_lowercase();
        if starts {
            words.push(String::new());
        }
        if c.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(c.to_ascii_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case("PGPASSWORD", true)]
    #[case("db_passwd", true)]
    #[case("AWS_ACCESS_KEY_ID", true)]
    #[case("apiKey", true)]
    #[case("authToken", true)]
    #[case("BASIC_AUTH", true)]
    #[case("clientSecret", true)]
    #[case("SENTRY_DSN", true)]
    #[case("example.com/token", true)]
    #[case("LOG_LEVEL", false)]
    #[case("MONKEY", false)]
    #[case("AUTHOR", false)]
    #[case("DATABASE", false)]
    #[case("COMPASS", false)]
    fn names_say_what_is_secret(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(is_secret(name), expected, "{name}");
    }

    fn template(secret: &str) -> Value {
        json!({
            "metadata": {"annotations": {"example.com/token": secret, "team": "storage"}, "labels": {"api-key": secret}},
            "spec": {"containers": [{
                "name": "db",
                "env": [
                    {"name": "DB_PASSWORD", "value": secret},
                    {"name": "LEVEL", "value": "debug"},
                    {"name": "DSN_REF", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
                    {"name": "URL", "value": format!("postgres://me:{secret}@db/x")},
                ],
                "args": [format!("--password={secret}"), "--token", secret, "--level=debug"],
                "command": ["sh", "-c", format!("PGPASSWORD={secret} run --verbose")],
                "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": secret}]}},
            }]},
        })
    }

    #[test]
    fn secrets_are_hidden_and_everything_else_is_shown() {
        let (shown, same) = mask(&template("s3cret"), &template("s3cret"));
        assert_eq!(shown, same);
        assert_eq!(
            shown,
            json!({
                "metadata": {"annotations": {"example.com/token": "<hidden>", "team": "storage"}, "labels": {"api-key": "<hidden>"}},
                "spec": {"containers": [{
                    "name": "db",
                    "env": [
                        {"name": "DB_PASSWORD", "value": "<hidden>"},
                        {"name": "LEVEL", "value": "debug"},
                        {"name": "DSN_REF", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
                        {"name": "URL", "value": "postgres://<hidden>@db/x"},
                    ],
                    "args": ["--password=<hidden>", "--token", "<hidden>", "--level=debug"],
                    "command": ["sh", "-c", "PGPASSWORD=<hidden>"],
                    "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "<hidden>"}]}},
                }]},
            })
        );
    }

    #[rstest]
    #[case(
        "level: debug\npassword: \"a b c\"\nport: 1",
        "level: debug\npassword:<hidden>\nport: 1"
    )]
    #[case(r#"{"db": "x", "password": "y"}"#, r#"{"db": "x", "password":<hidden>"#)]
    #[case("https://h/?token=abc&x=1", "https://h/?token=<hidden>")]
    #[case("https://a:b@c@h/x y", "https://<hidden>@h/x y")]
    #[case("-----BEGIN RSA PRIVATE KEY-----\nabc", "<hidden>")]
    #[case("http://token:8080", "http://token:<hidden>")]
    #[case("https://example.com:443/key", "https://example.com:443/key")]
    #[case("a=b:c", "a=b:c")]
    fn a_text_keeps_what_is_not_secret(#[case] text: &str, #[case] expected: &str) {
        let (shown, _) = mask(&json!(text), &json!(text));
        assert_eq!(shown, json!(expected));
    }

    proptest! {
        /// Whatever a secret looks like, it is not shown; and that it has changed is.
        #[test]
        fn no_secret_is_ever_shown(one in "[!-~]{8,20}", other in "[!-~]{8,20}") {
            let template = |secret: &str| json!({
                "metadata": {"annotations": {"my-token": secret}},
                "spec": {"containers": [{"name": "db", "env": [{"name": "A_SECRET", "value": secret}], "args": ["--password", format!("x{secret}")]}]},
            });
            let (before, after) = mask(&template(&one), &template(&other));
            for shown in [before.to_string(), after.to_string()] {
                let quoted = |text: &str| json!(text).to_string().trim_matches('"').to_owned();
                prop_assert!(!shown.contains(&quoted(&one)) && !shown.contains(&quoted(&other)), "{shown}");
            }
            prop_assert_eq!(before == after, one == other);
        }
    }
}
