//! Recognizes credentials by the names of environment variables, fields, flags and headers.

/// Parts of names that mark a credential.
const SECRET: [&str; 20] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "credential",
    "creds",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "bearer",
    "cookie",
    "connectionstring",
    "connstr",
    "dockerconfigjson",
    "mnemonic",
    "signature",
    "jwt",
];

/// Whole words of names that mark a credential.
const SECRET_WORDS: [&str; 11] = [
    "key", "keys", "auth", "pass", "pw", "cred", "dsn", "pin", "salt", "sas", "sig",
];

/// Words that end in `pass` without marking a credential: `COMPASS`, but not `PGPASS`.
const NO_PASS: [&str; 6] = [
    "compass",
    "encompass",
    "bypass",
    "overpass",
    "underpass",
    "trespass",
];

/// Whether a name marks a credential: `PGPASSWORD`, `api-key`, `authToken`.
pub fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    let word = |word: &String| {
        SECRET_WORDS.contains(&word.as_str()) || word.ends_with("pass") && !NO_PASS.contains(&word.as_str())
    };
    SECRET.iter().any(|secret| plain.contains(secret)) || words(name).iter().any(word)
}

/// Whether a name marks a webhook: anyone who knows such an address may write to it.
pub fn is_webhook(name: &str) -> bool {
    name.to_ascii_lowercase()
        .replace(['_', '-'], "")
        .contains("webhook")
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
    use rstest::rstest;

    #[rstest]
    #[case("PGPASSWORD", true)]
    #[case("PGPASS", true)]
    #[case("DB_PW", true)]
    #[case("CREDS", true)]
    #[case("GOOGLE_CREDS_JSON", true)]
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
    #[case("BYPASS_CACHE", false)]
    #[case("INCREDIBLE", false)]
    fn names_say_what_is_secret(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(is_secret(name), expected, "{name}");
    }
}
