//! One HTTP client for all providers, because one guard is easier to hold than nine.
//!
//! Every hop is the same: the host is resolved once, every address it has is shown to [`Egress`], and the connection is made to
//! one of just those addresses; nothing resolves a second time, so a name cannot change its mind in between. Each request has
//! its own connection, proxies of the environment are ignored, compressed answers are neither asked for nor taken, and an answer
//! is read up to [`LIMIT`].
//!
//! What namespaces share has a limit per namespace: lookups of names, and memory for answers that are large.

mod connect;
mod exchange;
mod proxy;
mod redirect;
mod resolve;
mod tls;

use std::fmt;
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use bytes::Bytes;
use url::Url;

pub(crate) use self::exchange::authority;
pub use self::proxy::Proxy;
use self::resolve::Lookups;
pub use self::resolve::{Resolve, SystemResolver};
pub(crate) use self::tls::Trust;
use self::tls::Trusts;
use crate::address::origin;
use crate::limit::{NamespaceLimit, Permit};
use crate::{AskError, Egress, timing};

/// As much of an answer as is read.
pub const LIMIT: usize = 1024 * 1024;

/// As much of a web metric's answer as is read: it may be anything, and is kept whole until it is judged.
pub const WEB_LIMIT: usize = 256 * 1024;

/// Longer answers than this are large: few of them are read at the same time, and each counts until it has been parsed.
const SMALL: usize = 64 * 1024;

/// How many large answers of one namespace, and of all, there may be at the same time.
const LARGE_PER_NAMESPACE: usize = 4;
const LARGE: usize = 16;

/// As often as a redirection is followed.
pub const REDIRECTS: usize = 5;

/// How long one connection may take to be made.
pub const CONNECT: Duration = Duration::from_secs(10);

/// The client.
pub struct Http {
    egress: Egress,
    lookups: Lookups,
    proxy: Option<Proxy>,
    large: NamespaceLimit,
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
    /// As much of the answer as is read.
    pub(crate) limit: usize,
}

/// An answer, whatever its status.
pub(crate) struct Response {
    /// Who gave it, for messages.
    pub(crate) origin: String,
    pub(crate) status: StatusCode,
    /// Such as `text/html`; `None` where it is not one.
    pub(crate) content_type: Option<String>,
    pub(crate) body: Bytes,
    /// For the memory of a large body. It goes with the body.
    pub(crate) _permit: Option<Permit>,
}

impl Http {
    /// A client that resolves names as this machine does and trusts the authorities that it trusts.
    pub fn new(egress: Egress) -> Self {
        Self {
            egress,
            lookups: Lookups::new(SystemResolver),
            proxy: None,
            large: NamespaceLimit::new(LARGE_PER_NAMESPACE, LARGE),
            trusts: Trusts::default(),
        }
    }

    /// Resolves names otherwise.
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Self {
        self.lookups = Lookups::new(resolver);
        self
    }

    /// Sends everything through a proxy.
    pub fn proxy(mut self, proxy: Option<Proxy>) -> Self {
        self.proxy = proxy;
        self
    }

    /// Trusts the authorities of this PEM, beside those of this machine. `None` where there is none in it.
    pub fn trusting(mut self, pem: &str) -> Option<Self> {
        self.trusts = self.trusts.with(pem)?;
        Some(self)
    }

    /// Why it never connects to a URL, as far as that is known without resolving its host.
    pub(crate) fn refusal(&self, url: &str) -> Option<String> {
        self.egress.refusal(url).map(|refusal| refusal.to_string())
    }

    /// Sends a request for a namespace and reads the answer.
    pub(crate) async fn send(&self, namespace: &str, request: Request) -> Result<Response, AskError> {
        let (url, timeout) = (request.url.clone(), request.timeout);
        timing::within(&url, timeout, self.follow(namespace, request)).await
    }

    async fn follow(&self, namespace: &str, mut request: Request) -> Result<Response, AskError> {
        let first = origin(&request.url);
        for _ in 0..=REDIRECTS {
            let stream = self.connect(namespace, &request.url).await?;
            let stream = self.trusts.wrap(stream, &request.url, &request.trust).await?;
            match self.exchange(namespace, stream, &request).await? {
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
            limit: LIMIT,
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
    /// The answer, where its status is a good one.
    pub(crate) fn ok(self) -> Result<Self, AskError> {
        if self.status.is_success() {
            return Ok(self);
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
            .field("proxy", &self.proxy)
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
