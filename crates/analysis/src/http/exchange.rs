//! Sends a request and reads the response over a connection.

use std::pin::pin;

use ::http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, LOCATION,
    PROXY_AUTHORIZATION, USER_AGENT,
};
use ::http::{StatusCode, Version};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper_util::rt::TokioIo;
use url::{Position, Url};

use super::tls::Stream;
use super::{Http, Proxy, Request, Response, SMALL};
use crate::ProviderError;
use crate::address::origin;

/// The result of a hop.
pub(super) enum Outcome {
    Answer(Response),
    Redirect {
        status: StatusCode,
        location: Option<HeaderValue>,
    },
}

impl Http {
    pub(super) async fn exchange(
        &self,
        namespace: &str,
        stream: Stream,
        request: &Request,
    ) -> Result<Outcome, ProviderError> {
        let from = origin(&request.url);
        let broken = |error: hyper::Error| broken(&from, &error);
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(64 * 1024)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        let outgoing = outgoing(request, self.proxy.as_ref())?;
        let exchange = async {
            let answer = sender.send_request(outgoing).await.map_err(broken)?;
            self.read(namespace, request, &from, answer).await
        };
        let mut exchange = pin!(exchange);
        // The connection task must be polled, and may end before the rest of the response is read.
        tokio::select! {
            outcome = &mut exchange => outcome,
            _ = connection => exchange.await,
        }
    }

    async fn read(
        &self,
        namespace: &str,
        request: &Request,
        from: &str,
        answer: hyper::Response<Incoming>,
    ) -> Result<Outcome, ProviderError> {
        let status = answer.status();
        if matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            let location = answer.headers().get(LOCATION).cloned();
            return Ok(Outcome::Redirect { status, location });
        }
        let encoding = answer.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(ProviderError::malformed(
                from,
                "without compression, as was asked for",
            ));
        }
        let content_type = answer.headers().get(CONTENT_TYPE).and_then(essence);
        let limit = request.limit;
        let too_large = || ProviderError::TooLarge {
            origin: from.to_owned(),
            limit,
        };
        let mut incoming = answer.into_body();
        if incoming.size_hint().lower() > limit as u64 {
            return Err(too_large());
        }
        let (mut body, mut permit) = (BytesMut::new(), None);
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|error| broken(from, &error))?;
            let Ok(data) = frame.into_data() else { continue };
            let length = body.len() + data.len();
            if length > limit {
                return Err(too_large());
            }
            if length > SMALL && permit.is_none() {
                permit = self.large.acquire(namespace).await;
            }
            body.extend_from_slice(&data);
        }
        Ok(Outcome::Answer(Response {
            origin: from.to_owned(),
            status,
            content_type,
            body: body.freeze(),
            _permit: permit,
        }))
    }
}

/// A valid content type without its parameters, which is shown.
fn essence(value: &HeaderValue) -> Option<String> {
    let text = value
        .to_str()
        .ok()?
        .split(';')
        .next()?
        .trim()
        .to_ascii_lowercase();
    let is_word = |word: &str| {
        (1..=64).contains(&word.len())
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    let (kind, subtype) = text.split_once('/')?;
    (is_word(kind) && is_word(subtype)).then_some(text)
}

/// A proxy for plain HTTP gets the absolute URL.
fn outgoing(request: &Request, proxy: Option<&Proxy>) -> Result<hyper::Request<Full<Bytes>>, ProviderError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("stateward/", env!("CARGO_PKG_VERSION"))),
    );
    headers.extend(request.headers.clone());
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let unusable = || ProviderError::Connection {
        origin: origin(&request.url),
        what: "the address cannot be put into a request".to_owned(),
    };
    let host = HeaderValue::from_str(&authority(&request.url)).map_err(|_| unusable())?;
    headers.insert(HOST, host);
    let proxy = proxy.filter(|_| request.url.scheme() == "http");
    let target = match proxy {
        Some(_) => &request.url[..Position::AfterQuery],
        None => &request.url[Position::BeforePath..Position::AfterQuery],
    };
    headers.remove(PROXY_AUTHORIZATION);
    if let Some(value) = proxy.and_then(|proxy| proxy.authorization.clone()) {
        headers.insert(PROXY_AUTHORIZATION, value);
    }
    let mut outgoing = hyper::Request::builder()
        .method(request.method.clone())
        .version(Version::HTTP_11)
        .uri(target)
        .body(Full::new(request.body.clone()))
        .map_err(|_| unusable())?;
    *outgoing.headers_mut() = headers;
    Ok(outgoing)
}

/// The host, and the port if it is not the default.
pub(crate) fn authority(url: &Url) -> String {
    url[Position::BeforeHost..Position::AfterPort].to_owned()
}

fn broken(from: &str, error: &hyper::Error) -> ProviderError {
    if error.is_parse() {
        return ProviderError::malformed(from, "HTTP");
    }
    let what = if error.is_incomplete_message() {
        "the connection was closed before the answer was complete"
    } else {
        "the connection broke"
    };
    ProviderError::Connection {
        origin: from.to_owned(),
        what: what.to_owned(),
    }
}
