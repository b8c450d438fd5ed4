//! OAuth2 with client credentials: requests a token first, and caches it until shortly before it expires.

use std::collections::HashMap;
use std::time::Duration;

use ::http::header::{AUTHORIZATION, HeaderValue};
use aws_lc_rs::digest::{SHA256, digest};
use form_urlencoded::Serializer;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use stateward_api::analysis::OAuth2;
use tokio::time::Instant;

use super::AuthenticatedClient;
use crate::ProviderError;
use crate::address::{Address, basic, origin};
use crate::http::{Request, Response, Trust};
use crate::json;

/// A token is not used in the last seconds of its lifetime.
const MARGIN: Duration = Duration::from_secs(10);

/// The lifetime of a token that does not declare one.
const UNSAID: Duration = Duration::from_secs(300);

/// The maximum number of cached tokens. Beyond it, expired tokens are removed, and then all.
const KEPT: usize = 1000;

/// The maximum size of a token response, and of the number of its values. It is small enough to be parsed in place.
const ANSWER: usize = 64 * 1024;
const VALUES: usize = 1000;

/// Identifies a token. Contains a digest of the secret, so that a client without the secret gets no token of others.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    namespace: String,
    token_url: String,
    client_id: String,
    scopes: Vec<String>,
    secret: [u8; 32],
    checked: bool,
}

/// The token cache.
#[derive(Default)]
pub(crate) struct Tokens(Mutex<HashMap<Key, Token>>);

#[derive(Clone)]
struct Token {
    value: HeaderValue,
    until: Instant,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    access_token: String,
    #[serde(default)]
    token_type: String,
    /// A number, or a number as a string.
    #[serde(default)]
    expires_in: Value,
}

impl Tokens {
    pub(super) async fn token(
        &self,
        authenticated: &AuthenticatedClient<'_>,
        at: &str,
        client: &OAuth2,
        request: &Request,
    ) -> Result<(HeaderValue, Key), ProviderError> {
        let key = Key::of(authenticated.namespace, client, &request.trust);
        let kept = self.lock(|tokens| tokens.get(&key).cloned());
        if let Some(token) = kept.filter(|token| token.until > Instant::now()) {
            return Ok((token.value, key));
        }
        let token = fetch_token(authenticated, at, client, request).await?;
        let value = token.value.clone();
        self.lock(|tokens| {
            if tokens.len() >= KEPT {
                let now = Instant::now();
                tokens.retain(|_, token| token.until > now);
            }
            if tokens.len() >= KEPT {
                tokens.clear();
            }
            tokens.insert(key.clone(), token);
        });
        Ok((value, key))
    }

    pub(super) fn forget(&self, key: &Key) {
        self.lock(|tokens| tokens.remove(key));
    }

    fn lock<T>(&self, with: impl FnOnce(&mut HashMap<Key, Token>) -> T) -> T {
        with(&mut self.0.lock())
    }
}

impl Key {
    fn of(namespace: &str, client: &OAuth2, trust: &Trust) -> Self {
        let mut secret = [0; 32];
        secret.copy_from_slice(digest(&SHA256, client.client_secret.as_bytes()).as_ref());
        Self {
            namespace: namespace.to_owned(),
            token_url: client.token_url.clone(),
            client_id: client.client_id.clone(),
            scopes: client.scopes.clone(),
            secret,
            checked: !matches!(trust, Trust::Anybody),
        }
    }
}

/// Some servers expect the client's credentials in a header, as the standard prefers, some in the form: the header is tried first, like
/// Go's client.
async fn fetch_token(
    authenticated: &AuthenticatedClient<'_>,
    at: &str,
    client: &OAuth2,
    request: &Request,
) -> Result<Token, ProviderError> {
    let address = Address::parse(&format!("{at}.oauth2.tokenUrl"), &client.token_url)?;
    let form = |secret_too: bool| {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials");
        if !client.scopes.is_empty() {
            form.append_pair("scope", &client.scopes.join(" "));
        }
        if secret_too {
            form.append_pair("client_id", &client.client_id);
            form.append_pair("client_secret", &client.client_secret);
        }
        let content = "application/x-www-form-urlencoded";
        let mut asking = Request::post(address.url.clone(), request.timeout, content, form.finish());
        asking.trust = request.trust.clone();
        asking.limit = ANSWER;
        asking
    };
    let mut asking = form(false);
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    asking.headers.insert(
        AUTHORIZATION,
        basic(&encoded(&client.client_id), &encoded(&client.client_secret)),
    );
    let mut response = authenticated.http.send(authenticated.namespace, asking).await?;
    if matches!(response.status.as_u16(), 400 | 401 | 403) {
        response = authenticated
            .http
            .send(authenticated.namespace, form(true))
            .await?;
    }
    read(response, &origin(&address.url))
}

fn read(response: Response, from: &str) -> Result<Token, ProviderError> {
    const EXPECTED: &str = "JSON with an access_token";
    let malformed = || ProviderError::malformed(from, EXPECTED);
    let answer = json::read(&response.ok()?.body, VALUES);
    let answer: Answer = answer.map_err(|unread| unread.of(from, EXPECTED))?;
    if answer.access_token.is_empty() {
        return Err(malformed());
    }
    let kind = match answer.token_type.to_ascii_lowercase().as_str() {
        "" | "bearer" => "Bearer",
        _ => answer.token_type.as_str(),
    };
    let mut value =
        HeaderValue::from_str(&format!("{kind} {}", answer.access_token)).map_err(|_| malformed())?;
    value.set_sensitive(true);
    let seconds = match &answer.expires_in {
        Value::String(text) => text.trim().parse().ok(),
        number => number.as_f64(),
    };
    let life = seconds
        .filter(|seconds: &f64| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds.min(86_400.0)).ok())
        .unwrap_or(UNSAID);
    Ok(Token {
        value,
        until: Instant::now() + life.saturating_sub(MARGIN),
    })
}
