//! Retries transient errors of a request in place.
//!
//! A reconcile that fails starts over: it reads, reports and writes again what had already arrived. Under a fault that hits every
//! few requests it would never end. So a request that was reset, or answered with 5xx or 429, is sent again a few times first.
//! Every attempt passes the [fence](crate::fence) below. A status is not sent again here: it may be stale after the wait, so the
//! reconcile checks first.
//!
//! Sending a write twice is safe: created objects have deterministic names, changes carry the version that they were decided on,
//! and deletions carry a UID. A write that arrived although its response was lost is answered with 409 or 404 the second time, as
//! after a crash.
//!
//! kube's own `RetryPolicy` retries neither connection resets nor 500 and 502, and would retry evictions.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use tokio::time::sleep;
use tower::BoxError;

use crate::fence::{Fenced, is_watch};

/// How long to wait before each further attempt.
const WAITS: [Duration; 3] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(800),
];

/// The longest Retry-After that is waited for. A longer one fails the reconcile, which backs off.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3);

/// A client that retries transient errors. Watches have a backoff of their own, and a 429 for an eviction is its answer.
pub fn retry_transient_errors(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let retried = !is_watch(request.uri()) && !request.uri().path().ends_with("/eviction");
            let mut request = request;
            for wait in WAITS.into_iter().enumerate() {
                let Some(again) = clone(&request).filter(|_| retried) else {
                    break;
                };
                let uri = request.uri().clone();
                let answer = client.send(request).await;
                let attempt = wait.0;
                let Some(wait) = retry_after(&answer, jittered(wait, uri.path()), attempt) else {
                    return answer.map_err(BoxError::from);
                };
                sleep(wait).await;
                request = again;
            }
            client.send(request).await.map_err(BoxError::from)
        }
    });
    Client::new(service, namespace)
}

/// Adds jitter, which is the same for the same request, so that a simulation can be repeated.
fn jittered((attempt, wait): (usize, Duration), who: &str) -> Duration {
    let mut hasher = DefaultHasher::new();
    (who, attempt).hash(&mut hasher);
    wait.mul_f64(0.5 + (hasher.finish() % 1000) as f64 / 1000.0)
}

/// How long to wait before the next attempt; `None` for a permanent error.
///
/// A 500 is retried only once: a write that is too large for etcd gets one every time, and an object that a tenant has made so
/// large must not block a reconcile that others need.
fn retry_after(answer: &kube::Result<Response<Body>>, wait: Duration, attempt: usize) -> Option<Duration> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(kube::Error::Service(error)) if error.is::<Fenced>() => return None,
        Err(kube::Error::Service(_) | kube::Error::HyperError(_)) => return Some(wait),
        Err(_) => return None,
    };
    let asked = answer.headers().get(RETRY_AFTER);
    let asked = asked.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
    wait_after(answer.status(), asked.map(Duration::from_secs), wait, attempt)
}

/// The same for the error from a client without retries.
pub(crate) fn retry_error_after(error: &kube::Error, attempt: usize, who: &str) -> Option<Duration> {
    let wait = jittered((attempt, *WAITS.get(attempt)?), who);
    match error {
        kube::Error::Api(status) => {
            let asked = status.details.as_ref().map(|details| details.retry_after_seconds);
            let asked = asked.filter(|seconds| *seconds > 0);
            // Not every 429 has details, and the error does not have the header.
            let asked = asked.or((status.code == 429).then_some(1));
            let asked = asked.map(|seconds| Duration::from_secs(seconds.into()));
            wait_after(StatusCode::from_u16(status.code).ok()?, asked, wait, attempt)
        }
        kube::Error::Service(error) if error.is::<Fenced>() => None,
        kube::Error::Service(_) | kube::Error::HyperError(_) => Some(wait),
        _ => None,
    }
}

fn wait_after(
    status: StatusCode,
    asked: Option<Duration>,
    wait: Duration,
    attempt: usize,
) -> Option<Duration> {
    match status {
        StatusCode::TOO_MANY_REQUESTS => asked,
        StatusCode::NOT_IMPLEMENTED => None,
        StatusCode::INTERNAL_SERVER_ERROR if attempt > 0 => None,
        status if status.is_server_error() => Some(asked.unwrap_or(wait)),
        _ => None,
    }
    .filter(|wait| *wait <= LONGEST_RETRY_AFTER)
}

fn clone(request: &Request<Body>) -> Option<Request<Body>> {
    let mut again = Request::new(request.body().try_clone()?);
    *again.method_mut() = request.method().clone();
    *again.uri_mut() = request.uri().clone();
    *again.headers_mut() = request.headers().clone();
    *again.extensions_mut() = request.extensions().clone();
    Some(again)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rstest::rstest;

    use super::*;

    /// The server's response to an attempt.
    #[derive(Clone, Copy)]
    enum Answer {
        Reset,
        Fenced,
        Status(u16, Option<&'static str>),
    }

    async fn ask(path: &'static str, answers: &'static [Answer]) -> (usize, Result<u16, String>) {
        let sent = Arc::new(AtomicUsize::new(0));
        let count = sent.clone();
        let server = tower::service_fn(move |request: Request<Body>| {
            let answer = answers[count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1)];
            async move {
                let body = request.into_body().collect_bytes().await.unwrap();
                assert_eq!(body.as_ref(), b"{}", "every attempt has the body");
                match answer {
                    Answer::Reset => Err(BoxError::from("connection reset by peer")),
                    Answer::Fenced => Err(Fenced.into()),
                    Answer::Status(code, retry_after) => {
                        let mut response = Response::builder().status(code);
                        if let Some(seconds) = retry_after {
                            response = response.header(RETRY_AFTER, seconds);
                        }
                        Ok(response.body(Body::empty()).unwrap())
                    }
                }
            }
        });
        let client = retry_transient_errors(Client::new(server, "default"));
        let request = Request::post(path).body(Body::from(b"{}".to_vec())).unwrap();
        let answer = client.send(request).await;
        let answer = answer.map(|answer| answer.status().as_u16());
        (
            sent.load(Ordering::SeqCst),
            answer.map_err(|error| error.to_string()),
        )
    }

    #[rstest]
    #[case::reset(&[Answer::Reset, Answer::Reset, Answer::Status(201, None)], 3, Some(201))]
    #[case::unavailable(&[Answer::Status(503, None), Answer::Status(200, None)], 2, Some(200))]
    #[case::throttled(&[Answer::Status(429, Some("1")), Answer::Status(200, None)], 2, Some(200))]
    #[case::throttled_for_long(&[Answer::Status(429, Some("60"))], 1, Some(429))]
    #[case::not_throttled(&[Answer::Status(429, None)], 1, Some(429))]
    #[case::conflict(&[Answer::Status(409, None)], 1, Some(409))]
    #[case::not_the_leader(&[Answer::Fenced], 1, None)]
    #[case::bounded(&[Answer::Reset], 4, None)]
    #[case::bounded_too(&[Answer::Status(503, None)], 4, Some(503))]
    #[case::permanent(&[Answer::Status(500, None)], 2, Some(500))]
    #[tokio::test(start_paused = true)]
    async fn transient_errors_are_retried_a_few_times(
        #[case] answers: &'static [Answer],
        #[case] sent: usize,
        #[case] expected: Option<u16>,
    ) {
        let (attempts, answer) = ask("/api/v1/namespaces/ns/events", answers).await;
        assert_eq!((attempts, answer.ok()), (sent, expected));
    }

    #[rstest]
    #[case::eviction("/api/v1/namespaces/ns/pods/db-0/eviction")]
    #[case::watch("/api/v1/pods?watch=true")]
    #[tokio::test(start_paused = true)]
    async fn evictions_and_watches_are_not_retried(#[case] path: &'static str) {
        assert_eq!(ask(path, &[Answer::Status(503, None)]).await, (1, Ok(503)));
    }
}
