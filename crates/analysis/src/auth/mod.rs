//! Authentication, as configured in the field `authentication`.

mod oauth2;
mod sigv4;

use ::http::header::AUTHORIZATION;
use ::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use stateward_api::analysis::{Authentication, Header};

pub(crate) use self::oauth2::Tokens;
pub use self::sigv4::AwsCredentials;
use crate::address::{Address, basic};
use crate::http::{Http, Request, Response};
use crate::{ProviderError, Redactor};

/// The operator's own AWS keys, as available to a namespace.
#[derive(Clone, Copy)]
pub(crate) enum Aws<'d> {
    /// The operator has no keys.
    None,
    /// The keys are for other namespaces.
    Elsewhere,
    Keys(&'d AwsCredentials),
}

/// A client with the dependencies of authentication.
pub(crate) struct AuthenticatedClient<'d> {
    pub(crate) http: &'d Http,
    pub(crate) tokens: &'d Tokens,
    pub(crate) aws: Aws<'d>,
    pub(crate) namespace: &'d str,
    pub(crate) now: Timestamp,
    pub(crate) redactor: &'d Redactor,
}

impl AuthenticatedClient<'_> {
    /// Sends a request with its authentication. `at` is the provider's path, such as `provider.web`.
    pub(crate) async fn send(
        &self,
        at: &str,
        authentication: Option<&Authentication>,
        mut request: Request,
    ) -> Result<Response, ProviderError> {
        let at = format!("{at}.authentication");
        let mut ticket = None;
        match Chosen::of(&at, authentication)? {
            Chosen::Nothing => {}
            Chosen::Basic { username, password } => {
                self.redactor.add_login(username, password);
                request.headers.insert(AUTHORIZATION, basic(username, password));
            }
            Chosen::OAuth2(client) => {
                self.redactor.add_login(&client.client_id, &client.client_secret);
                let (token, key) = self.tokens.token(self, &at, client, &request).await?;
                request.headers.insert(AUTHORIZATION, token);
                ticket = Some(key);
            }
            Chosen::Sigv4(region) => {
                sigv4::sign_for_prometheus(&at, &mut request, region, self.aws, self.namespace, self.now)?
            }
        }
        if let Some(ticket) = request
            .headers
            .get(AUTHORIZATION)
            .filter(|value| value.is_sensitive())
        {
            conceal(ticket, self.redactor);
        }
        let response = self.http.send(self.namespace, request).await?;
        // A token may be revoked before it expires. The next query gets a new one.
        if let (401, Some(key)) = (response.status.as_u16(), ticket) {
            self.tokens.forget(&key);
        }
        Ok(response)
    }
}

/// Redacts an authorization header, and the password in it.
fn conceal(ticket: &HeaderValue, redactor: &Redactor) {
    let Some((scheme, token)) = ticket.to_str().ok().and_then(|text| text.split_once(' ')) else {
        return;
    };
    redactor.add(token);
    let login = STANDARD
        .decode(token)
        .ok()
        .and_then(|login| String::from_utf8(login).ok());
    if scheme.eq_ignore_ascii_case("basic")
        && let Some((name, password)) = login.as_deref().and_then(|login| login.split_once(':'))
    {
        redactor.add_login(name, password);
    }
}

/// The configured authentication method. Argo also writes empty ones.
enum Chosen<'a> {
    Nothing,
    Basic { username: &'a str, password: &'a str },
    OAuth2(&'a stateward_api::analysis::OAuth2),
    Sigv4(&'a str),
}

impl<'a> Chosen<'a> {
    fn of(at: &str, authentication: Option<&'a Authentication>) -> Result<Self, ProviderError> {
        let Some(Authentication {
            sigv4,
            oauth2,
            basic_auth,
        }) = authentication
        else {
            return Ok(Self::Nothing);
        };
        let sigv4 = sigv4.as_ref().filter(|it| **it != Default::default());
        let oauth2 = oauth2.as_ref().filter(|it| **it != Default::default());
        let basic = basic_auth.as_ref().filter(|it| **it != Default::default());
        let missing = |field: &str| ProviderError::bad_field(format!("{at}.{field}"), "is empty");
        match (sigv4, oauth2, basic) {
            (None, None, None) => Ok(Self::Nothing),
            (None, None, Some(basic)) if basic.username.is_empty() => Err(missing("basicAuth.username")),
            (None, None, Some(basic)) if basic.password.is_empty() => Err(missing("basicAuth.password")),
            (None, None, Some(basic)) => Ok(Self::Basic {
                username: &basic.username,
                password: &basic.password,
            }),
            (None, Some(client), None) if client.token_url.is_empty() => Err(missing("oauth2.tokenUrl")),
            (None, Some(client), None) if client.client_id.is_empty() => Err(missing("oauth2.clientId")),
            (None, Some(client), None) if client.client_secret.is_empty() => {
                Err(missing("oauth2.clientSecret"))
            }
            (None, Some(client), None) => Ok(Self::OAuth2(client)),
            (Some(signing), None, None) => {
                let unserved = [("profile", &signing.profile), ("roleArn", &signing.role_arn)];
                if let Some((field, _)) = unserved.iter().find(|(_, value)| !value.is_empty()) {
                    return Err(ProviderError::bad_field(
                        format!("{at}.sigv4.{field}"),
                        "is not served; the operator signs with the keys of its own environment",
                    ));
                }
                if signing.region.is_empty() {
                    return Err(missing("sigv4.region"));
                }
                Ok(Self::Sigv4(&signing.region))
            }
            _ => Err(ProviderError::bad_field(
                at,
                "has more than one of sigv4, oauth2 and basicAuth; a request is let in one way",
            )),
        }
    }
}

/// The headers of a metric, and the credentials of its address. `at` is the path of the headers.
pub(crate) fn headers(at: &str, given: &[Header], address: &Address) -> Result<HeaderMap, ProviderError> {
    let mut headers = HeaderMap::new();
    for (index, header) in given.iter().enumerate() {
        let bad =
            |field: &str, problem: &str| ProviderError::bad_field(format!("{at}[{index}].{field}"), problem);
        let name: HeaderName = header
            .key
            .parse()
            .map_err(|_| bad("key", "is not the name of a header"))?;
        // Ignores headers that the request itself determines, like Go's client.
        if OURS.contains(&name.as_str()) {
            continue;
        }
        let mut value = HeaderValue::from_str(&header.value)
            .map_err(|_| bad("value", "cannot be sent in a header: it has a control character"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    address.let_in(&mut headers);
    Ok(headers)
}

const OURS: [&str; 10] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
