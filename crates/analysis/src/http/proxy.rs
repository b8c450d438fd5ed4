//! An explicitly configured proxy for all requests. Proxies of the environment are ignored.
//!
//! The proxy resolves names, so the egress rules only apply to host names and literal addresses: the proxy must check what a name
//! resolves to.

use std::fmt;
use std::str::FromStr;

use ::http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

use crate::ProviderError;
use crate::address::{Address, origin};

/// The maximum size of the proxy's response to CONNECT.
const ANSWER: usize = 8 * 1024;

/// An HTTP proxy: `http://proxy.example:3128`, with optional credentials.
#[derive(Clone)]
pub struct Proxy {
    pub(super) url: Url,
    pub(super) authorization: Option<HeaderValue>,
}

impl FromStr for Proxy {
    type Err = ProviderError;

    fn from_str(text: &str) -> Result<Self, ProviderError> {
        let address = Address::parse("--egress-proxy", text)?;
        let bad = |problem: &str| Err(ProviderError::bad_field("--egress-proxy", problem));
        if address.url.scheme() != "http" {
            return bad("is https; a proxy is reached by http, such as http://proxy.example:3128");
        }
        if address.url.path() != "/" || address.url.query().is_some() {
            return bad("has a path; it is a host and a port, such as http://proxy.example:3128");
        }
        let mut headers = HeaderMap::new();
        address.let_in(&mut headers);
        Ok(Self {
            authorization: headers.remove(AUTHORIZATION),
            url: address.url,
        })
    }
}

impl Proxy {
    /// Opens a tunnel to the URL's host, whose TLS the proxy cannot read.
    pub(super) async fn tunnel(&self, stream: &mut TcpStream, url: &Url) -> Result<(), ProviderError> {
        let broken = |what: &str| self.failed(url, what);
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(443);
        let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nhost: {host}:{port}\r\n").into_bytes();
        if let Some(value) = &self.authorization {
            request.extend_from_slice(b"proxy-authorization: ");
            request.extend_from_slice(value.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        let written = stream.write_all(&request).await;
        written.map_err(|_| broken("broke the connection"))?;
        // The other end waits for our TLS handshake, so nothing follows the headers.
        let (mut answer, mut part) = (Vec::new(), [0; 1024]);
        while !answer.ends_with(b"\r\n\r\n") {
            let read = stream.read(&mut part).await;
            let read = read
                .ok()
                .filter(|read| *read > 0 && answer.len() + read <= ANSWER);
            let read = read.ok_or_else(|| broken("did not answer in HTTP"))?;
            answer.extend_from_slice(part.get(..read).unwrap_or_default());
        }
        let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let mut words = std::str::from_utf8(line).unwrap_or_default().split(' ');
        let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
        match words.next().and_then(|status| status.parse::<u16>().ok()) {
            Some(200..=299) if is_http => Ok(()),
            Some(status) if is_http => Err(broken(&format!("answered with status {status}"))),
            _ => Err(broken("did not answer in HTTP")),
        }
    }

    /// A failure of the proxy, as an error of the provider.
    pub(super) fn failed(&self, url: &Url, what: &str) -> ProviderError {
        ProviderError::Connection {
            origin: origin(url),
            what: format!("the proxy {} {what}", origin(&self.url)),
        }
    }
}

/// Omits the credentials.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Proxy").field(&origin(&self.url)).finish()
    }
}
