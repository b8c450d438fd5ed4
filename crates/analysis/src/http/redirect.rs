//! Which redirects are followed, and what is sent to the new location.
//!
//! | from | to | followed | sent along |
//! |---|---|---|---|
//! | any | the same scheme, host and port | yes | everything |
//! | http | https, or another host or port | yes | neither headers nor body |
//! | https | http | no | |
//! | any, with a body that would go along | another origin | no | |
//!
//! After 301, 302 and 303 a POST or PUT becomes a GET, as in other clients; but not if the query is in the body, because a response to a
//! request without it is not an answer.

use ::http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use ::http::{HeaderMap, Method, StatusCode};
use bytes::Bytes;
use url::Url;

use super::Request;
use crate::ProviderError;
use crate::address::origin;

/// The next request.
pub(super) fn next(
    mut request: Request,
    status: StatusCode,
    location: Option<HeaderValue>,
) -> Result<Request, ProviderError> {
    let refused = |whither| ProviderError::RedirectRefused {
        origin: origin(&request.url),
        whither,
    };
    let location = location.ok_or_else(|| refused("without a location"))?;
    let url = location.to_str().ok().and_then(|to| request.url.join(to).ok());
    let mut url = url.ok_or_else(|| refused("to what is no address"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(refused("to an address that is neither http nor https"));
    }
    if request.url.scheme() == "https" && url.scheme() == "http" {
        return Err(refused("from https to http, which is not followed"));
    }
    // Credentials of the location are not sent. Both setters only fail for URLs without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);

    let same = same_origin(&request.url, &url);
    if matches!(status.as_u16(), 301..=303) && request.method != Method::GET {
        if request.asks_in_body {
            return Err(refused("in a way that loses the question; ask there at once"));
        }
        request.method = Method::GET;
        request.body = Bytes::new();
        request.headers.remove(CONTENT_TYPE);
    }
    if !same {
        if !request.body.is_empty() {
            return Err(ProviderError::RedirectRefused {
                origin: origin(&request.url),
                whither: "to another host with a body, which goes to the one that was asked only",
            });
        }
        let accept = request.headers.remove(ACCEPT);
        request.headers = HeaderMap::new();
        request.headers.extend(accept.map(|accept| (ACCEPT, accept)));
    }
    request.url = url;
    Ok(request)
}

fn same_origin(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host() == other.host()
        && one.port_or_known_default() == other.port_or_known_default()
}
