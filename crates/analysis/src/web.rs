//! An HTTP endpoint that returns JSON or text.
//!
//! A path in Kubernetes' JSONPath dialect selects the value. If it matches several values, the first one counts, as in Argo Rollouts, and
//! the number of matches is noted.

use std::collections::BTreeMap;

use ::http::Method;
use ::http::header::{CONTENT_TYPE, HeaderValue};
use serde_json::Value;
use stateward_api::analysis::Web;
use stateward_core::analysis::{Data, Reply};
use stateward_jsonpath::{JsonPath, Numbers};

use crate::address::Address;
use crate::auth::headers;
use crate::http::{Request, Response, Trust, WEB_LIMIT};
use crate::json::{self, Unread};
use crate::providers::Providers;
use crate::{MetricQuery, ProviderError, timing};

const AT: &str = "provider.web";

/// The maximum length of a path: each step may visit the whole response.
const LONGEST_PATH: usize = 1024;

/// Queries an endpoint.
pub(crate) async fn query(
    providers: &Providers,
    metric: &Web,
    query: &MetricQuery<'_>,
) -> Result<Reply, ProviderError> {
    let address = Address::parse(&format!("{AT}.url"), &metric.url)?;
    let path = path(&metric.json_path)?;
    let given = metric.timeout_seconds.filter(|seconds| *seconds > 0);
    let timeout = timing::seconds(&format!("{AT}.timeoutSeconds"), given, 10)?;
    let mut request = Request::get(address.url.clone(), timeout);
    request.trust = Trust::of(AT, metric.insecure, metric.ca_certificate.as_deref())?;
    request.headers = headers(&format!("{AT}.headers"), &metric.headers, &address)?;
    request.method = method(metric)?;
    request.limit = WEB_LIMIT;
    if let Some(body) = &metric.json_body {
        request.body = body.to_string().into();
        let json = HeaderValue::from_static("application/json");
        request.headers.insert(CONTENT_TYPE, json);
    } else {
        request.body = metric.body.clone().into();
    }
    let authenticated = providers.authenticated(query);
    let sending = authenticated.send(AT, metric.authentication.as_ref(), request);
    let response = timing::within(&address.url, timeout, sending).await?.ok()?;
    let text = metric.json_path.clone();
    let read = move |response: &Response| read(response, path.as_ref(), &text);
    providers.read(query, response, read).await
}

fn method(metric: &Web) -> Result<Method, ProviderError> {
    let has_body = !metric.body.is_empty() || metric.json_body.is_some();
    if !metric.body.is_empty() && metric.json_body.is_some() {
        let problem = "and body are given; one is sent";
        return Err(ProviderError::bad_field(format!("{AT}.jsonBody"), problem));
    }
    match metric.method.as_deref().unwrap_or("GET") {
        "GET" | "" if has_body => Err(ProviderError::bad_field(
            format!("{AT}.body"),
            "goes with POST or PUT; the method is GET",
        )),
        "GET" | "" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        other => Err(ProviderError::bad_field(
            format!("{AT}.method"),
            format!("{other:?} is not GET, POST or PUT"),
        )),
    }
}

/// A path with or without braces, like in kubectl. `None` for the whole document.
fn path(text: &str) -> Result<Option<JsonPath>, ProviderError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let inner = match text.strip_prefix('{') {
        Some(inner) => inner.contains('}').then_some(inner),
        None => Some(text),
    };
    inner
        .filter(|inner| inner.len() <= LONGEST_PATH)
        .and_then(JsonPath::parse)
        .map(|path| Some(path.comparing(Numbers::Together)))
        .ok_or_else(|| {
            ProviderError::bad_field(
                format!("{AT}.jsonPath"),
                format!("is not a path such as {{$.data.ok}} of at most {LONGEST_PATH} characters"),
            )
        })
}

fn read(response: &Response, path: Option<&JsonPath>, text: &str) -> Result<Reply, ProviderError> {
    let Response { origin, body, .. } = response;
    let mut notes = BTreeMap::new();
    let data = match json::read::<Value>(body, json::DOCUMENT) {
        Err(Unread::TooComplex(limit)) => return Err(ProviderError::too_complex(origin, limit)),
        Err(Unread::Malformed) if path.is_some() => return Err(no_json(response)),
        Err(Unread::Malformed) => Data::Text(String::from_utf8_lossy(body).into_owned()),
        Ok(document) => match path {
            None => data(document),
            Some(path) => {
                let found = path.all(&document).unwrap_or_default();
                if found.len() > 1 {
                    let note = format!("{} at {text}; the first one counts", found.len());
                    notes.insert("matches".to_owned(), note);
                }
                let first = found.first().copied().cloned();
                data(first.ok_or_else(|| {
                    ProviderError::malformed(origin, format!("a document with a value at {text}"))
                })?)
            }
        },
    };
    Ok(Reply {
        data,
        newest: None,
        series: None,
        notes,
    })
}

/// Describes a response that is not JSON without its content, which may be any page.
fn no_json(response: &Response) -> ProviderError {
    let expected = format!(
        "JSON, in which jsonPath could find a value (status {}, {}, {} bytes)",
        response.status.as_u16(),
        response.content_type.as_deref().unwrap_or("no content type"),
        response.body.len(),
    );
    ProviderError::malformed(&response.origin, expected)
}

/// A number is a number, quoted or not. A JSON string is a document with one string; only a body that is not JSON is [`Data::Text`], which
/// is never shown.
fn data(value: Value) -> Data {
    match value {
        Value::Null => Data::Nothing,
        Value::Number(number) => match number.as_f64() {
            Some(number) => Data::Number(number),
            None => Data::Document(Value::Number(number)),
        },
        document => Data::Document(document),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn answer(body: &str, text: &str) -> Result<Reply, ProviderError> {
        let response = Response {
            origin: "http://web".to_owned(),
            status: ::http::StatusCode::OK,
            content_type: Some("text/html".to_owned()),
            body: body.to_owned().into(),
            _permit: None,
        };
        read(&response, path(text)?.as_ref(), text)
    }

    const BODY: &str =
        r#"{"data": {"ok": true, "n": 3, "s": "x", "z": null}, "items": [{"v": 0.7}, {"v": 1}, {"v": 0}]}"#;

    #[rstest]
    #[case("{$.data.ok}", Data::Document(json!(true)))]
    #[case("{.data.n}", Data::Number(3.0))]
    #[case("$.data.n", Data::Number(3.0))]
    #[case("{$.data.s}", Data::Document(json!("x")))]
    #[case("{$.data.z}", Data::Nothing)]
    #[case("{$.data}", Data::Document(json!({"ok": true, "n": 3, "s": "x", "z": null})))]
    #[case("{$.items[1].v}", Data::Number(1.0))]
    #[case("{$.items[-1].v}", Data::Number(0.0))]
    #[case("{$.items[?(@.v > 0.8)].v}", Data::Number(1.0))]
    fn a_path_finds_what_counts(#[case] path: &str, #[case] expected: Data) {
        let reply = answer(BODY, path).unwrap();
        assert_eq!(reply.data, expected);
        assert!(reply.notes.is_empty());
    }

    #[test]
    fn of_several_values_the_first_counts_and_the_others_are_noted() {
        let reply = answer(BODY, "{$.items[*].v}").unwrap();
        assert_eq!(reply.data, Data::Number(0.7));
        assert_eq!(
            reply.notes["matches"],
            "3 at {$.items[*].v}; the first one counts"
        );
    }

    #[rstest]
    #[case("{$.data.missing}")]
    #[case("{$.items[9].v}")]
    #[case("{$.items[?(@.v > 9)].v}")]
    fn a_path_that_finds_nothing_is_named(#[case] path: &str) {
        assert_eq!(
            answer(BODY, path).unwrap_err().to_string(),
            format!("http://web: the answer is not a document with a value at {path}")
        );
    }

    #[rstest]
    #[case("{$.data")]
    #[case("{range .items[*]}")]
    #[case("{$.a[x]}")]
    fn what_is_no_path_is_told(#[case] path: &str) {
        assert_eq!(
            answer(BODY, path).unwrap_err().to_string(),
            "provider.web.jsonPath: is not a path such as {$.data.ok} of at most 1024 characters"
        );
    }

    #[test]
    fn without_a_path_the_whole_counts_and_what_is_no_json_is_text() {
        assert_eq!(answer("7", "").unwrap().data, Data::Number(7.0));
        assert_eq!(answer("[1]", "").unwrap().data, Data::Document(json!([1])));
        assert_eq!(answer("fine", "").unwrap().data, Data::Text("fine".to_owned()));
        assert_eq!(
            answer("\"fine\"", "").unwrap().data,
            Data::Document(json!("fine"))
        );
    }

    #[rstest]
    #[case("", 0)]
    #[case("<html><h1>Sign in, s3cr3t</h1></html>", 37)]
    #[case("{\"a\": 1", 7)]
    #[case("fine", 4)]
    fn with_a_path_a_body_that_is_no_json_is_an_error_that_shows_nothing_of_it(
        #[case] body: &str,
        #[case] bytes: usize,
    ) {
        let error = answer(body, "{$.a}").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "http://web: the answer is not JSON, in which jsonPath could find a value (status 200, text/html, {bytes} bytes)"
            )
        );
    }
}
