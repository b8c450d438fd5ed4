//! Values with the format of a secret, under any name: issuers give their tokens prefixes so that leaks can be found, and some addresses
//! are secrets themselves.

use std::ops::Range;

/// Prefixes of tokens, and the minimum length of the rest.
const TOKENS: [(&str, usize); 35] = [
    // `{"` in base64: a JSON web token, or the credentials of a registry.
    ("eyJ", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 20),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("glsa_", 20),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    ("sk_live_", 10),
    ("sk_test_", 10),
    ("rk_live_", 10),
    ("sk-", 20),
    ("SG.", 40),
    ("hvs.", 20),
    ("hvb.", 20),
    ("npm_", 30),
    ("pypi-", 40),
    ("dop_v1_", 30),
    ("dckr_pat_", 16),
    ("shpat_", 20),
    ("hf_", 30),
    ("lin_api_", 20),
    ("AGE-SECRET-KEY-", 20),
    ("whsec_", 16),
];

/// Hosts and path prefixes of URLs that grant access to anyone who knows the rest.
const WEBHOOKS: [&str; 9] = [
    "hooks.slack.com/",
    "hooks.zapier.com/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "webhook.office.com/",
    "outlook.office.com/webhook/",
    "chat.googleapis.com/v1/spaces/",
    "events.pagerduty.com/integration/",
    "api.telegram.org/bot",
];

/// The position of the first secret in a word.
pub(super) fn find(word: &str) -> Option<Range<usize>> {
    webhook(word)
        .or_else(|| login(word))
        .or_else(|| login_without_a_scheme(word))
        .or_else(|| token(word))
}

fn token(word: &str) -> Option<Range<usize>> {
    let mut before = None;
    for (at, c) in word.char_indices() {
        let begins = before.is_none_or(|before: char| !before.is_ascii_alphanumeric());
        before = Some(c);
        if !begins {
            continue;
        }
        let rest = &word[at..];
        for (prefix, least) in TOKENS {
            let Some(body) = rest.strip_prefix(prefix) else {
                continue;
            };
            let end = body.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.=".contains(c)));
            let length = end.unwrap_or(body.len());
            // Names have no digits between capitals; tokens of this kind consist of both.
            let capitals = !matches!(prefix, "AKIA" | "ASIA")
                || body[..length]
                    .chars()
                    .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
            // A text of words is a name: `sk-learn-feature-store-base`.
            let random = body[..length].chars().any(|c| c.is_ascii_digit());
            if length >= least && capitals && random {
                return Some(at..at + prefix.len() + length);
            }
        }
    }
    None
}

/// The credentials between `postgres://` and `@host/db`.
fn login(word: &str) -> Option<Range<usize>> {
    let scheme = word.find("://")? + 3;
    let rest = &word[scheme..];
    let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let at = rest[..host].rfind('@')?;
    Some(scheme..scheme + at)
}

/// The password of `me:password@tcp(db:3306)/x`. An image with a tag and a digest looks similar.
fn login_without_a_scheme(word: &str) -> Option<Range<usize>> {
    let colon = word.find(':')?;
    let user = &word[..colon];
    let after = &word[colon + 1..];
    let at = after.find('@')?;
    let digest = after[at + 1..].starts_with("sha");
    let plain = !user.is_empty() && !user.contains(['/', '@']) && at > 0 && !after[..at].contains('/');
    (plain && !digest).then_some(colon + 1..colon + 1 + at)
}

fn webhook(word: &str) -> Option<Range<usize>> {
    let (at, known) = WEBHOOKS
        .iter()
        .find_map(|known| Some((word.find(known)?, known)))?;
    let from = at + known.len();
    let rest = &word[from..];
    let length = rest.find(['"', '\'', ',']).unwrap_or(rest.len());
    (length > 0).then_some(from..from + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-DEF_123", "<>")]
    #[case("ghp_0123456789abcdefghijABCDEFGHIJ012345", "<>")]
    #[case("xoxb-123456789012-abcdef", "<>")]
    #[case("AKIAIOSFODNN7EXAMPLE", "<>")]
    #[case("x=\"AKIAIOSFODNN7EXAMPLE\",", "x=\"<>\",")]
    #[case("https://hooks.slack.com/services/T0/B0/abc", "https://hooks.slack.com/<>")]
    #[case("https://a:b@c@h/x", "https://<>@h/x")]
    #[case("me:s3cret@tcp(db:3306)/x", "me:<>@tcp(db:3306)/x")]
    #[case("db:v2@sha256:0123", "db:v2@sha256:0123")]
    #[case("AKIA", "AKIA")]
    #[case("sk-learn-feature-store-base-image", "sk-learn-feature-store-base-image")]
    #[case(
        "task-0123456789012345678901234567890",
        "task-0123456789012345678901234567890"
    )]
    #[case("https://example.com/a@b", "https://example.com/a@b")]
    #[case("https://hooks.example.com/x", "https://hooks.example.com/x")]
    fn what_looks_like_a_secret_is_found(#[case] word: &str, #[case] expected: &str) {
        let shown = match find(word) {
            Some(secret) => format!("{}<>{}", &word[..secret.start], &word[secret.end..]),
            None => word.to_owned(),
        };
        assert_eq!(shown, expected);
    }
}
