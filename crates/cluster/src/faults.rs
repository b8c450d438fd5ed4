//! Injects faults between a client and the server, as one layer in front of the router.
//!
//! A [`Plan`] decides the fate of every request before it is sent. It sees requests in order and can be deterministic: a seed, a list, "the
//! fifth write". The server behind it is always healthy, so everything a client does under faults is its own behaviour.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::json::json;
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode, header};
use bytes::Bytes;
use futures::{StreamExt, future};
use stateward_clock::Clock;
use tower::ServiceExt;

/// One request on its way to the server.
#[derive(Clone, Debug)]
pub struct Call {
    /// How many requests this client has sent before.
    pub number: u64,
    /// `GET`, `POST`, …
    pub method: Method,
    /// Without the query.
    pub path: String,
    /// Whether it is a watch.
    pub watch: bool,
}

impl Call {
    /// Whether the request is a write.
    pub fn is_write(&self) -> bool {
        self.method != Method::GET
    }
}

/// The fate of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives and is answered.
    Pass,
    /// The response has this HTTP status and nothing changes: 409, 429, 500, 503, 504.
    Refused(u16),
    /// The server executes it, but the response has this HTTP status: the write looks lost.
    AppliedThenRefused(u16),
    /// It never arrives, and the client sees a broken connection.
    Lost,
    /// The server executes it, and the client sees a broken connection.
    AppliedThenLost,
    /// It waits this long, then arrives.
    Late(Duration),
}

/// The fate of a watch that was not rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stream {
    /// It delivers every event immediately.
    #[default]
    Prompt,
    /// Its first event says that the version is too old.
    Expired,
    /// Each event has its own [`Delivery`].
    Watched,
}

/// The fate of one event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It arrives this much later. Later events do not overtake it.
    Late(Duration),
    /// It is lost, and the connection breaks.
    Cut,
}

/// Decides which faults occur.
pub trait Plan: Send + Sync {
    /// The fate of this request.
    fn fate(&self, call: &Call) -> Fate;

    /// The fate of this watch.
    fn stream(&self, _call: &Call) -> Stream {
        Stream::default()
    }

    /// The fate of the next event of a [`Stream::Watched`].
    fn delivery(&self, _watch: &Call) -> Delivery {
        Delivery::Late(Duration::ZERO)
    }
}

/// No faults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calm;

impl Plan for Calm {
    fn fate(&self, _call: &Call) -> Fate {
        Fate::Pass
    }
}

/// A client's connection to the server, with its plan of faults.
#[derive(Clone)]
pub(crate) struct Connection {
    router: Router,
    clock: Clock,
    plan: Arc<dyn Plan>,
    made: Arc<AtomicU64>,
}

/// The connection broke.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("connection reset by peer")]
pub(crate) struct Broken;

impl Connection {
    pub(crate) fn new(router: Router, clock: Clock, plan: Arc<dyn Plan>) -> Self {
        Self {
            router,
            clock,
            plan,
            made: Arc::default(),
        }
    }

    pub(crate) async fn send(self, request: Request<Body>) -> Result<Response<Body>, Broken> {
        let query = request.uri().query().unwrap_or_default();
        let call = Call {
            number: self.made.fetch_add(1, Ordering::Relaxed),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            watch: query
                .split('&')
                .any(|part| part == "watch=true" || part == "watch=1"),
        };
        let fate = self.plan.fate(&call);
        match fate {
            Fate::Refused(code) => return Ok(refused(code)),
            Fate::Lost => return Err(Broken),
            Fate::Late(delay) => self.clock.sleep(delay).await,
            _ => {}
        }
        let answer = self
            .router
            .clone()
            .oneshot(request)
            .await
            .unwrap_or_else(|never: Infallible| match never {});
        match fate {
            Fate::AppliedThenRefused(code) => Ok(refused(code)),
            Fate::AppliedThenLost => Err(Broken),
            _ if call.watch => Ok(disturbed(answer, call, self.plan, self.clock)),
            _ => Ok(answer),
        }
    }
}

/// An injected error response.
fn refused(code: u16) -> Response<Body> {
    let (reason, message) = match code {
        409 => (
            "Conflict",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
        429 => (
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        ),
        503 => (
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted",
        ),
        _ => (
            "InternalError",
            "an error on the server has prevented the request from succeeding",
        ),
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    let mut response = Response::new(Body::from(status.to_string()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}

/// The maximum number of delayed events.
const UNDER_WAY: usize = 1024;

fn disturbed(answer: Response<Body>, watch: Call, plan: Arc<dyn Plan>, clock: Clock) -> Response<Body> {
    let (parts, body) = match plan.stream(&watch) {
        Stream::Prompt => return answer,
        Stream::Watched => answer.into_parts(),
        Stream::Expired => {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "too old resource version", "reason": "Expired", "code": 410,
            });
            let line = json!({"type": "ERROR", "object": status}).to_string() + "\n";
            return Response::from_parts(answer.into_parts().0, Body::from(line));
        }
    };
    let lines = body
        .into_data_stream()
        .map(move |line| {
            let (delivery, clock) = (plan.delivery(&watch), clock.clone());
            async move {
                match delivery {
                    Delivery::Cut => None,
                    Delivery::Late(Duration::ZERO) => line.ok(),
                    Delivery::Late(lag) => {
                        clock.sleep(lag).await;
                        line.ok()
                    }
                }
            }
        })
        .buffered(UNDER_WAY)
        .take_while(|line| future::ready(line.is_some()))
        .filter_map(|line: Option<Bytes>| future::ready(line.map(Ok::<_, Infallible>)));
    Response::from_parts(parts, Body::from_stream(lines))
}
