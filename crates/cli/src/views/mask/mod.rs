//! Hides values that look like secrets: of two templates, it only shows whether they differ.
//!
//! References to Secrets contain no secret and are shown. Literal values are hidden by their names (environment, annotations, labels,
//! headers, `--password=…`), by their format, and by the preceding flag. A secret of no particular format under a neutral name cannot
//! be detected. `stateward-redact`, `value` and `flag` have the rules.

mod flag;
mod value;

use serde_json::{Map, Value};
use stateward_redact::{is_secret, is_webhook};

/// Two templates to compare, without possible secrets.
pub(crate) fn mask(before: &Value, after: &Value) -> (Value, Value) {
    (
        hide(before, Some(after), Side::Before, &[]),
        hide(after, Some(before), Side::After, &[]),
    )
}

#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

impl Side {
    /// The placeholder for a secret: the same on both sides only if the secrets are equal.
    fn stands_for(self, value: &Value, other: Option<&Value>) -> String {
        match (self, other) {
            (_, Some(other)) if other == value => "<hidden>".into(),
            (Self::Before, _) => "<hidden, before>".into(),
            (Self::After, _) => "<hidden, after>".into(),
        }
    }
}

/// Fields with keys that users choose.
const FREE_NAMES: [&str; 4] = ["annotations", "labels", "options", "volumeAttributes"];

/// `around` may identify the program of a container: its image and its command.
fn hide(value: &Value, other: Option<&Value>, side: Side, around: &[&str]) -> Value {
    match value {
        Value::Object(fields) => Value::Object(hide_fields(fields, other, side, around)),
        Value::Array(items) => hide_items(items, other.and_then(Value::as_array), side, around),
        Value::String(text) => hide_text(text, other, side).into(),
        other => other.clone(),
    }
}

fn hide_fields(
    fields: &Map<String, Value>,
    other: Option<&Value>,
    side: Side,
    around: &[&str],
) -> Map<String, Value> {
    let theirs = |key: &str| other.and_then(|other| other.get(key));
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let command = fields.get("command").and_then(Value::as_array);
    let command = command.into_iter().flatten().filter_map(Value::as_str);
    let here: Vec<&str> = text("image").into_iter().chain(command).collect();
    let around = if here.is_empty() { around } else { here.as_slice() };
    // An environment variable or a header.
    let secret = match (text("name"), text("value")) {
        (Some(name), Some(value)) => is_secret(name) || is_webhook(name) && value.contains("://"),
        _ => false,
    };
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
                        hide(value, theirs, side, around)
                    };
                    (key.clone(), hidden)
                };
                Value::Object(free.iter().map(entry).collect())
            }
            value => hide(value, theirs(key), side, around),
        };
        (key.clone(), hidden)
    };
    fields.iter().map(hidden).collect()
}

fn hide_items(items: &[Value], others: Option<&Vec<Value>>, side: Side, around: &[&str]) -> Value {
    let mut hidden = Vec::new();
    let mut before = Vec::new();
    for (index, item) in items.iter().enumerate() {
        // Containers and variables are matched by name, other items by index.
        let name = item.get("name");
        let other = others.and_then(|others| match name {
            Some(_) => others.iter().find(|other| other.get("name") == name),
            None => others.get(index),
        });
        let announced = item
            .as_str()
            .and_then(|text| Some((text, flag::secret_from(text, &before, around)?)));
        hidden.push(match announced {
            Some((text, from)) => format!("{}{}", &text[..from], side.stands_for(item, other)).into(),
            None => hide(item, other, side, around),
        });
        before.extend(item.as_str());
    }
    Value::Array(hidden)
}

/// Hides the rest of a line after a secret name with `=` or `:`, and secrets before it by format or flag.
fn hide_text(text: &str, other: Option<&Value>, side: Side) -> String {
    // The placeholder covers the whole text: a part of it may be elsewhere in the other one.
    let hidden = || side.stands_for(&Value::from(text), other);
    if text.contains("PRIVATE KEY-----") {
        return hidden();
    }
    let line = |line: &str| match secret_from(line) {
        Some(at) => hide_words(&line[..at], &hidden) + &hidden(),
        None => hide_words(line, &hidden),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn hide_words(line: &str, hidden: &dyn Fn() -> String) -> String {
    let (mut shown, mut before) = (Vec::new(), Vec::new());
    let mut words = line.split(' ');
    while let Some(word) = words.next() {
        match flag::secret_from(word, &before, &[]) {
            Some(from) => {
                shown.push(format!("{}{}", &word[..from], hidden()));
                // A quoted value extends to the closing quote.
                let quote = word[from..].chars().next().filter(|c| matches!(c, '"' | '\''));
                if let Some(quote) = quote
                    && !word[from + 1..].contains(quote)
                {
                    let _ = words.by_ref().find(|word| word.contains(quote));
                }
            }
            None => shown.push(hide_word(word, hidden)),
        }
        before.push(word);
        // Another command starts.
        if matches!(word, "&&" | "||" | "|" | ";") || word.ends_with(';') {
            before.clear();
        }
    }
    shown.join(" ")
}

fn hide_word(word: &str, hidden: &dyn Fn() -> String) -> String {
    match value::find(word) {
        Some(secret) => {
            let rest = hide_word(&word[secret.end..], hidden);
            format!("{}{}{rest}", &word[..secret.start], hidden())
        }
        None => word.to_owned(),
    }
}

/// The start of the value of the first secret name in a line.
fn secret_from(line: &str) -> Option<usize> {
    line.match_indices(['=', ':', '>']).find_map(|(at, separator)| {
        let value = at + separator.len();
        let name = line[..at].trim_end().trim_end_matches(['"', '\'']);
        let from = name.rfind(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)));
        let name = &name[from.map_or(0, |from| from + 1)..];
        let something = !line[value..].trim().is_empty() && !line[value..].starts_with("//");
        (something && is_secret(name)).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

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

    #[test]
    fn what_people_name_in_a_volume_says_what_is_secret() {
        let template = json!({"spec": {"volumes": [
            {"name": "a", "flexVolume": {"options": {"password": "s3cret", "share": "x"}}},
            {"name": "b", "csi": {"volumeAttributes": {"secretAccessKey": "s3cret", "bucket": "y"}}},
        ]}});
        let (shown, _) = mask(&template, &template);
        assert_eq!(
            shown,
            json!({"spec": {"volumes": [
                {"name": "a", "flexVolume": {"options": {"password": "<hidden>", "share": "x"}}},
                {"name": "b", "csi": {"volumeAttributes": {"secretAccessKey": "<hidden>", "bucket": "y"}}},
            ]}})
        );
    }

    /// Typical values, under neutral names.
    #[test]
    fn secrets_are_known_by_their_look_and_by_the_flag_before_them() {
        let template = json!({"spec": {"containers": [{
            "name": "db", "image": "redis:7",
            "env": [
                {"name": "CREDS", "value": "s3cret"},
                {"name": "PGPASS", "value": "s3cret"},
                {"name": "SLACK_WEBHOOK", "value": "https://hooks.slack.com/services/s3cret"},
                {"name": "ALERT_WEBHOOK_URL", "value": "https://example.com/s3cret"},
                {"name": "A", "value": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzM2NyZXQ1In0.s3cret"},
                {"name": "B", "value": "ghp_s3cret0123456789abcdefghijABCDEFGHIJ"},
                {"name": "C", "value": "xoxb-123456789012-s3cret"},
                {"name": "D", "value": "AKIAIOSFODNN7EXAMPLE"},
                {"name": "WEBHOOK_PORT", "value": "9443"},
            ],
            "args": ["-a", "s3cret", "-p", "6379", "--maxmemory", "1gb"],
            "command": ["sh", "-c", "curl -u admin:s3cret http://x && mkdir -p data; login -p 's3cret s3cret' -v"],
        }]}});
        let (shown, _) = mask(&template, &template);
        assert_eq!(
            shown,
            json!({"spec": {"containers": [{
                "name": "db", "image": "redis:7",
                "env": [
                    {"name": "CREDS", "value": "<hidden>"},
                    {"name": "PGPASS", "value": "<hidden>"},
                    {"name": "SLACK_WEBHOOK", "value": "<hidden>"},
                    {"name": "ALERT_WEBHOOK_URL", "value": "<hidden>"},
                    {"name": "A", "value": "<hidden>"},
                    {"name": "B", "value": "<hidden>"},
                    {"name": "C", "value": "<hidden>"},
                    {"name": "D", "value": "<hidden>"},
                    {"name": "WEBHOOK_PORT", "value": "9443"},
                ],
                "args": ["-a", "<hidden>", "-p", "6379", "--maxmemory", "1gb"],
                "command": ["sh", "-c", "curl -u admin:<hidden> http://x && mkdir -p data; login -p <hidden> -v"],
            }]}})
        );
    }

    #[rstest]
    #[case(
        "level: debug\npassword: \"a b c\"\nport: 1",
        "level: debug\npassword:<hidden>\nport: 1"
    )]
    #[case(r#"{"db": "x", "password": "y"}"#, r#"{"db": "x", "password":<hidden>"#)]
    #[case("https://h/?token=abc&x=1", "https://h/?token=<hidden>")]
    #[case("password = \"y\"", "password =<hidden>")]
    #[case("<db><password>y</password></db>", "<db><password><hidden>")]
    #[case("a -> b", "a -> b")]
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
        /// No secret is shown, of any format, but its change is.
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
