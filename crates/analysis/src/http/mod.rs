//! One HTTP client for all providers, because one guard is easier to verify than nine.
//!
//! Every hop is the same: the host is resolved once, each of its addresses is checked by [`Egress`], and the connection is made to one of
//! exactly these addresses; no second lookup could return others. Each request has its own connection, proxies of the environment are
//! ignored, compressed responses are neither requested nor accepted, and a response is read up to [`LIMIT`].
//!
//! Shared resources are limited per namespace: name lookups, and memory for large responses.

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
use crate::{Egress, ProviderError, timing};

/// The maximum size of a response.
pub const LIMIT: usize = 1024 * 1024;

/// The maximum size of a web metric's response, which may have any content and is kept until it is judged.
pub const WEB_LIMIT: usize = 256 * 1024;

/// Responses above this size are large: their number is limited, and each counts until it has been parsed.
const SMALL: usize = 64 * 1024;

/// The maximum number of concurrent large responses of one namespace, and in total.
const LARGE_PER_NAMESPACE: usize = 4;
const LARGE: usize = 16;

/// The maximum number of redirects.
pub const REDIRECTS: usize = 5;

/// The timeout of establishing a connection.
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
    /// Without credentials, which become headers.
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The query is in the body, and a response to a request without it is not an answer.
    pub(crate) asks_in_body: bool,
    pub(crate) trust: Trust,
    /// The timeout of the whole exchange: lookup, connection, redirects and response.
    pub(crate) timeout: Duration,
    /// The maximum size of the response.
    pub(crate) limit: usize,
}

/// A response with any status.
pub(crate) struct Response {
    /// Its origin, for messages.
    pub(crate) origin: String,
    pub(crate) status: StatusCode,
    /// Such as `text/html`; `None` if it is invalid.
    pub(crate) content_type: Option<String>,
    pub(crate) body: Bytes,
    /// Accounts for the memory of a large body, and must live as long.
    pub(crate) _permit: Option<Permit>,
}

impl Http {
    /// A client with the system's resolver and trusted certificate authorities.
    pub fn new(egress: Egress) -> Self {
        Self {
            egress,
            lookups: Lookups::new(SystemResolver),
            proxy: None,
            large: NamespaceLimit::new(LARGE_PER_NAMESPACE, LARGE),
            trusts: Trusts::default(),
        }
    }

    /// Sets the resolver.
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Self {
        self.lookups = Lookups::new(resolver);
        self
    }

    /// Sets the proxy for all requests.
    pub fn proxy(mut self, proxy: Option<Proxy>) -> Self {
        self.proxy = proxy;
        self
    }

    /// Also trusts the authorities in this PEM. `None` if it contains none.
    pub fn trusting(mut self, pem: &str) -> Option<Self> {
        self.trusts = self.trusts.with(pem)?;
        Some(self)
    }

    /// Why it never connects to a URL, as far as known without resolving the host.
    pub(crate) fn refusal(&self, url: &str) -> Option<String> {
        self.egress.refusal(url).map(|refusal| refusal.to_string())
    }

    /// Sends a request for a namespace and reads the response.
    pub(crate) async fn send(&self, namespace: &str, request: Request) -> Result<Response, ProviderError> {
        let (url, timeout) = (request.url.clone(), request.timeout);
        timing::within(&url, timeout, self.follow(namespace, request)).await
    }

    async fn follow(&self, namespace: &str, mut request: Request) -> Result<Response, ProviderError> {
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
        Err(ProviderError::TooManyRedirects {
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

    /// Sets a header with a sensitive value. `None` if the value is not valid in a header.
    pub(crate) fn secret(mut self, name: HeaderName, value: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Some(self)
    }
}

impl Response {
    /// The response, if its status is a success.
    pub(crate) fn ok(self) -> Result<Self, ProviderError> {
        if self.status.is_success() {
            return Ok(self);
        }
        Err(ProviderError::Status {
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
