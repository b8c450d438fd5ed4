//! A request as data: created before anything is sent.

use std::fmt;

use serde_json::Value;

/// A step of a sequence.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Send it and compare the answer.
    Send(Request),
    /// Open a watch on a collection.
    Watch(Request),
    /// Create a last object in the watched collection, then compare every watch event up to it.
    Events(Request),
}

/// A request. Placeholders in `«…»` are filled in when it is sent: see [`Memory`](super::memory::Memory).
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) content_type: Option<String>,
    pub(super) accept: Option<&'static str>,
    pub(super) body: Body,
    /// The object it is about, as `plural/name`: the key that the answer is remembered under.
    pub(super) about: Option<String>,
    /// Whether controllers react to it and must finish before the next request.
    pub(super) settles: bool,
    /// A value that the answer must have at this pointer before it is compared: the request is repeated until then. Null also matches a
    /// missing value.
    pub(super) until: Option<(&'static str, Value)>,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Nothing,
    Json(Value),
    Text(String),
    /// A ConfigMap with this many bytes of data.
    Heavy(usize),
    /// The object as last seen, with a merge patch applied.
    Edited(Value),
}

impl Request {
    pub(super) fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            content_type: None,
            accept: None,
            body: Body::Nothing,
            about: None,
            settles: false,
            until: None,
        }
    }

    pub(super) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(super) fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    pub(super) fn json(self, body: Value) -> Self {
        self.body(Body::Json(body))
    }

    pub(super) fn text(self, body: &str) -> Self {
        self.body(Body::Text(body.to_owned()))
    }

    pub(super) fn content_type(mut self, media: impl Into<String>) -> Self {
        self.content_type = Some(media.into());
        self
    }

    pub(super) fn accept(mut self, accept: &'static str) -> Self {
        self.accept = Some(accept);
        self
    }

    pub(super) fn about(mut self, key: impl Into<String>) -> Self {
        self.about = Some(key.into());
        self
    }

    pub(super) fn until(mut self, pointer: &'static str, value: impl Into<Value>) -> Self {
        self.until = Some((pointer, value.into()));
        self
    }

    pub(super) fn settles(mut self) -> Self {
        self.settles = true;
        self
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            method,
            path,
            query,
            content_type,
            accept,
            body,
            ..
        } = self;
        write!(f, "{method} {path}")?;
        for (index, (name, value)) in query.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { '?' } else { '&' })?;
        }
        if let Some(accept) = accept {
            write!(f, " as {accept}")?;
        }
        if let Some(content_type) = content_type {
            write!(f, " {content_type}")?;
        }
        match body {
            Body::Nothing => Ok(()),
            Body::Json(value) => write!(f, " {value}"),
            Body::Text(text) => write!(f, " {text:?}"),
            Body::Heavy(bytes) => write!(f, " {bytes} bytes"),
            Body::Edited(patch) => write!(f, " the object with {patch}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(request) => request.fmt(f),
            Self::Watch(request) => write!(f, "watch {request}"),
            Self::Events(request) => write!(f, "watched until {request}"),
        }
    }
}
