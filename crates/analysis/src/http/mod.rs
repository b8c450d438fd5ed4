//! One HTTP client for all providers, because one guard is easier to hold than nine.
//!
//! Every hop is the same: the host is resolved once, every address it has is shown to [`Egress`], and the connection is made to
//! one of just those addresses; nothing resolves a second time, so a name cannot change its mind in between. Each request has
//! its own connection, proxies from the environment are not heard of, compressed answers are neither asked for nor taken, and
//! an answer is read up to [`LIMIT`].

mod connect;
mod exchange;
mod redirect;
mod resolve;
mod tls;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use bytes::Bytes;
use url::Url;

pub(crate) use self::exchange::authority;
pub use self::resolve::{Resolve, SystemResolver};
pub(crate) use self::tls::Trust;
use self::tls::Trusts;
use crate::address::origin;
use crate::{AskError, Egress, timing};

/// As much of an answer as is read.
pub const LIMIT: usize = 1024 * 1024;

/// As often as a redirection is followed.
pub const REDIRECTS: usize = 5;

/// How long one connection may take to be made.
pub const CONNECT: Duration = Duration::from_secs(10);

/// The client.
pub struct Http {
    egress: Egress,
    resolver: Arc<dyn Resolve>,
    trusts: Trusts,
}

/// A request.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Without a user name: that goes to the headers.
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// What is asked is in the body, and an answer without it is no answer.
    pub(crate) asks_in_body: bool,
    pub(crate) trust: Trust,
    /// For all of it: the name, the connection, redirections and the answer.
    pub(crate) timeout: Duration,
}

/// An answer, whatever its status.
pub(crate) struct Response {
    /// Who gave it, for messages.
    pub(crate) origin: String,
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl Http {
    /// A client that resolves names as this machine does and trusts the authorities that it trusts.
    pub fn new(egress: Egress) -> Self {
        Self {
            egress,
            resolver: Arc::new(SystemResolver),
            trusts: Trusts::default(),
        }
    }

    /// Resolves names otherwise.
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Trusts the authorities of this PEM, beside those of this machine. `None` where there is none in it.
    pub fn trusting(mut self, pem: &str) -> Option<Self> {
        self.trusts = self.trusts.with(pem)?;
        Some(self)
    }

    /// Sends a request and reads the answer.
    pub(crate) async fn send(&self, request: Request) -> Result<Response, AskError> {
        let (url, timeout) = (request.url.clone(), request.timeout);
        timing::within(&url, timeout, self.follow(request)).await
    }

    async fn follow(&self, mut request: Request) -> Result<Response, AskError> {
        let first = origin(&request.url);
        for _ in 0..=REDIRECTS {
            let stream = connect::connect(&request.url, &self.egress, self.resolver.as_ref()).await?;
            let stream = self.trusts.wrap(stream, &request.url, &request.trust).await?;
            match exchange::exchange(stream, &request).await? {
                exchange::Outcome::Answer(response) => return Ok(response),
                exchange::Outcome::Redirect { status, location } => {
                    request = redirect::next(request, status, location)?;
                }
            }
        }
        Err(AskError::TooManyRedirects {
            origin: first,
            limit: REDIRECTS,
        })
    }
}

impl Request {
    pub(crate) fn get(url: Url, timeout: Duration) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            asks_in_body: false,
            trust: Trust::default(),
            timeout,
        }
    }

    pub(crate) fn post(
        url: Url,
        timeout: Duration,
        content_type: &'static str,
        body: impl Into<Bytes>,
    ) -> Self {
        let mut request = Self::get(url, timeout);
        request.method = Method::POST;
        request.body = body.into();
        request.asks_in_body = true;
        let value = HeaderValue::from_static(content_type);
        request.headers.insert(::http::header::CONTENT_TYPE, value);
        request
    }

    /// Sets a header whose value nobody may see. `None` for a value that no header can have.
    pub(crate) fn secret(mut self, name: HeaderName, value: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Some(self)
    }
}

impl Response {
    /// The body, where the status is a good one.
    pub(crate) fn ok(self) -> Result<(String, Bytes), AskError> {
        if self.status.is_success() {
            return Ok((self.origin, self.body));
        }
        Err(AskError::Status {
            origin: self.origin,
            status: self.status.as_u16(),
            said: None,
        })
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("egress", &self.egress)
            .finish_non_exhaustive()
    }
}

/// Without path, query, headers and body.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("origin", &origin(&self.url))
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Without the body.
impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("origin", &self.origin)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
