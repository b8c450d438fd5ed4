//! Protects a loopback server without credentials: accepts only requests that are addressed to it.
//!
//! A web page can make a browser send requests to any local port. With a host name that resolves to loopback (DNS rebinding) it can
//! also read the responses. `Host` or `Origin` of such requests name the page's host.

use std::net::IpAddr;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;

/// Rejects requests with a host other than loopback, or from a web page of another host.
pub(crate) async fn only(request: Request, next: Next) -> Response {
    match refusal(&request) {
        None => next.run(request).await,
        Some(why) => forbidden(&why),
    }
}

fn refusal(request: &Request) -> Option<String> {
    let in_headers = request.headers().get_all(HOST).iter();
    let mut hosts: Vec<&str> = in_headers.map(|host| host.to_str().unwrap_or("")).collect();
    // HTTP/2 sends the host in the request line, and HTTP/1 may do so.
    hosts.extend(request.uri().authority().map(Authority::as_str));
    if hosts.is_empty() {
        return Some("a request has to say in Host where it is meant to go".to_owned());
    }
    if let Some(host) = hosts.iter().find(|host| !is_loopback(host)) {
        return Some(format!(
            "Host: {} is not a loopback address or localhost",
            host.escape_debug()
        ));
    }
    let mut origins = request.headers().get_all(ORIGIN).iter();
    let foreign = origins.find(|origin| {
        let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
        let host = origin.as_ref().and_then(Uri::authority);
        !host.is_some_and(|host| is_loopback(host.as_str()))
    })?;
    let foreign = String::from_utf8_lossy(foreign.as_bytes());
    Some(format!(
        "Origin: {} is not a loopback address or localhost",
        foreign.escape_debug()
    ))
}

/// Whether a host, with or without a port, is this machine's loopback.
fn is_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    if host.contains('@') {
        return false;
    }
    let host = authority.host();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// A response in the API server's format, so that kubectl shows the reason.
fn forbidden(why: &str) -> Response {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": format!("{why}: this cluster has no credentials and serves its own machine alone"),
    });
    let mut response = Response::new(Body::from(status.to_string()));
    *response.status_mut() = StatusCode::FORBIDDEN;
    let json = axum::http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("127.0.0.1:6443", true)]
    #[case("127.0.0.1", true)]
    #[case("127.1.2.3:80", true)]
    #[case("localhost:6443", true)]
    #[case("LOCALHOST", true)]
    #[case("[::1]:6443", true)]
    #[case("evil.example:6443", false)]
    #[case("localhost.evil.example", false)]
    #[case("127.0.0.1.evil.example", false)]
    #[case("127.0.0.1@evil.example", false)]
    #[case("0.0.0.0:6443", false)]
    #[case("10.0.0.1", false)]
    #[case("[::ffff:10.0.0.1]", false)]
    #[case("", false)]
    #[case("a b", false)]
    fn only_loopback_is_meant(#[case] host: &str, #[case] expected: bool) {
        assert_eq!(is_loopback(host), expected);
    }

    fn request(uri: &str, headers: &[(&str, &str)]) -> Request {
        let request = Request::builder().uri(uri);
        let request = headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(Body::empty()).unwrap()
    }

    #[rstest]
    #[case::kubectl("/api", &[("host", "127.0.0.1:1")], None)]
    #[case::own_page("/api", &[("host", "localhost:1"), ("origin", "http://localhost:1")], None)]
    #[case::http2("http://127.0.0.1:1/api", &[], None)]
    #[case::rebound("/api", &[("host", "evil.example:1")], Some("Host: evil.example:1"))]
    #[case::second_host("/api", &[("host", "127.0.0.1:1"), ("host", "evil.example")], Some("Host: evil.example"))]
    #[case::http2_rebound("http://evil.example/api", &[("host", "127.0.0.1")], Some("Host: evil.example"))]
    #[case::none("/api", &[], Some("a request has to say"))]
    #[case::foreign_page("/api", &[("host", "127.0.0.1:1"), ("origin", "https://evil.example")], Some("Origin: https://evil.example"))]
    #[case::hidden_page("/api", &[("host", "127.0.0.1:1"), ("origin", "null")], Some("Origin: null"))]
    fn a_request_says_where_it_comes_from(
        #[case] uri: &str,
        #[case] headers: &[(&str, &str)],
        #[case] expected: Option<&str>,
    ) {
        let refused = refusal(&request(uri, headers));
        match (&refused, expected) {
            (Some(refused), Some(expected)) => assert!(refused.starts_with(expected), "{refused}"),
            (refused, expected) => assert_eq!(refused.as_deref(), expected),
        }
    }
}
