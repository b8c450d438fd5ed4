//! A request and its answer over a connection.

use std::pin::pin;

use ::http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, HOST, HeaderMap, HeaderValue, LOCATION, USER_AGENT,
};
use ::http::{StatusCode, Version};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper_util::rt::TokioIo;
use url::{Position, Url};

use super::tls::Stream;
use super::{LIMIT, Request, Response};
use crate::AskError;
use crate::address::origin;

/// What a hop came to.
pub(super) enum Outcome {
    Answer(Response),
    Redirect {
        status: StatusCode,
        location: Option<HeaderValue>,
    },
}

pub(super) async fn exchange(stream: Stream, request: &Request) -> Result<Outcome, AskError> {
    let from = origin(&request.url);
    let broken = |error: hyper::Error| broken(&from, &error);
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(64 * 1024)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let outgoing = outgoing(request)?;
    let exchange = async {
        let answer = sender.send_request(outgoing).await.map_err(broken)?;
        read(&from, answer).await
    };
    let mut exchange = pin!(exchange);
    // The connection works while it is polled, and may end before the rest of the answer is read.
    tokio::select! {
        outcome = &mut exchange => outcome,
        _ = connection => exchange.await,
    }
}

fn outgoing(request: &Request) -> Result<hyper::Request<Full<Bytes>>, AskError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("stateward/", env!("CARGO_PKG_VERSION"))),
    );
    headers.extend(request.headers.clone());
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let unusable = || AskError::Connection {
        origin: origin(&request.url),
        what: "the address cannot be put into a request".to_owned(),
    };
    let host = HeaderValue::from_str(&authority(&request.url)).map_err(|_| unusable())?;
    headers.insert(HOST, host);
    let mut outgoing = hyper::Request::builder()
        .method(request.method.clone())
        .version(Version::HTTP_11)
        .uri(&request.url[Position::BeforePath..Position::AfterQuery])
        .body(Full::new(request.body.clone()))
        .map_err(|_| unusable())?;
    *outgoing.headers_mut() = headers;
    Ok(outgoing)
}

/// The host, and the port where it is not the usual one.
pub(crate) fn authority(url: &Url) -> String {
    url[Position::BeforeHost..Position::AfterPort].to_owned()
}

async fn read(from: &str, answer: hyper::Response<Incoming>) -> Result<Outcome, AskError> {
    let status = answer.status();
    if matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        let location = answer.headers().get(LOCATION).cloned();
        return Ok(Outcome::Redirect { status, location });
    }
    let encoding = answer.headers().get(CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(AskError::malformed(from, "without compression, as was asked for"));
    }
    let too_large = || AskError::TooLarge {
        origin: from.to_owned(),
        limit: LIMIT,
    };
    let mut incoming = answer.into_body();
    if incoming.size_hint().lower() > LIMIT as u64 {
        return Err(too_large());
    }
    let mut body = BytesMut::new();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| broken(from, &error))?;
        let Ok(data) = frame.into_data() else { continue };
        if body.len() + data.len() > LIMIT {
            return Err(too_large());
        }
        body.extend_from_slice(&data);
    }
    Ok(Outcome::Answer(Response {
        origin: from.to_owned(),
        status,
        body: body.freeze(),
    }))
}

fn broken(from: &str, error: &hyper::Error) -> AskError {
    if error.is_parse() {
        return AskError::malformed(from, "HTTP");
    }
    let what = if error.is_incomplete_message() {
        "the connection was closed before the answer was complete"
    } else {
        "the connection broke"
    };
    AskError::Connection {
        origin: from.to_owned(),
        what: what.to_owned(),
    }
}
