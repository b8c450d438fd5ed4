//! Watches: a stream of changes, one JSON document a line.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::json::{Value, json};
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, header};
use futures::stream;
use jiff::Timestamp;
use tokio::sync::watch;

use super::answer::{dressed_whole, metadata_only, rows, text_of};
use super::item::unreadable_version;
use super::negotiate::Form;
use super::query::Query;
use super::text;
use crate::list_filter::ListFilter;
use crate::object::{self, Object};
use crate::server::{Server, Target};
use crate::status::{FieldError, Status};
use crate::store;
use crate::table::without_columns;

/// How long a watch lasts if the client sets no timeout. The real server draws from 30 to 60 minutes.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(45 * 60);
/// The interval of bookmarks on an idle watch.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// kube-rs considers a watch dead after 295 seconds without an event.
const BOOKMARK_AT_LEAST_EVERY: Duration = Duration::from_secs(290);

/// Starts a watch of the target's collection, or of the target alone.
pub(super) fn start(
    server: Arc<Server>,
    target: Target,
    query: &Query,
    form: Form,
) -> Result<Response<Body>, Status> {
    let mut selected = query.selected(&target.resource)?;
    if !target.name.is_empty() {
        selected = selected.and_name(&target.name);
    }
    let version = query.get("resourceVersion");
    let asked: u64 = match version {
        "" => 0,
        text => text.parse().map_err(|_| unreadable_version(&target, text))?,
    };
    let initial = initial_events(query, version)?;
    let timeout = query
        .number("timeoutSeconds")?
        .filter(|seconds| *seconds > 0)
        .map_or(DEFAULT_TIMEOUT, Duration::from_secs);
    let now = server.now();
    let (timeout, bookmark_every) = if server.patient_watches {
        (Duration::MAX, BOOKMARK_AT_LEAST_EVERY)
    } else {
        (timeout, BOOKMARK_EVERY)
    };
    let watch = Watch {
        growth: server.store.growth(&target.resource.shelf),
        form,
        query: query.clone(),
        bookmarks: query.is_set("allowWatchBookmarks"),
        deadline: now.checked_add(timeout).unwrap_or(Timestamp::MAX),
        next_bookmark: now.checked_add(bookmark_every).unwrap_or(Timestamp::MAX),
        bookmark_every,
        cursor: asked,
        lines: VecDeque::new(),
        described: false,
        ended: false,
        server,
        target,
        selected,
    };
    Ok(respond(watch.opened(asked, initial)))
}

/// Whether the stream begins with the existing objects, and whether it marks their end.
#[derive(Clone, Copy, PartialEq)]
enum Initial {
    No,
    Unmarked,
    Marked,
}

fn initial_events(query: &Query, version: &str) -> Result<Initial, Status> {
    let (send, version_match) = (query.get("sendInitialEvents"), query.get("resourceVersionMatch"));
    let (field, known) = ("resourceVersionMatch", "NotOlderThan");
    let mut errors = Vec::new();
    if !send.is_empty() && version_match != known {
        errors.push(FieldError::forbidden(
            field,
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
    }
    if send.is_empty() && !version_match.is_empty() {
        errors.push(FieldError::forbidden(
            field,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ));
    }
    if !version_match.is_empty() && version_match != known {
        errors.push(FieldError::not_supported(field, &version_match.into(), &[known]));
    }
    if !errors.is_empty() {
        return Err(Status::invalid_options("ListOptions", &errors));
    }
    Ok(match (query.is_set("sendInitialEvents"), send.is_empty()) {
        (true, _) => Initial::Marked,
        (false, true) if version.is_empty() || version == "0" => Initial::Unmarked,
        _ => Initial::No,
    })
}

/// One running watch.
struct Watch {
    server: Arc<Server>,
    target: Target,
    selected: ListFilter,
    query: Query,
    form: Form,
    growth: watch::Receiver<u64>,
    /// Every change up to here has been sent.
    cursor: u64,
    lines: VecDeque<Bytes>,
    bookmarks: bool,
    next_bookmark: Timestamp,
    bookmark_every: Duration,
    deadline: Timestamp,
    /// Whether a table's columns have been sent.
    described: bool,
    ended: bool,
}

impl Watch {
    fn opened(mut self, asked: u64, initial: Initial) -> Self {
        if initial == Initial::No {
            return self;
        }
        let namespace = Some(self.target.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let (objects, revision) = self.server.store.list(&self.target.resource.shelf, namespace);
        for object in objects {
            if self.selected.holds(&self.target.resource, &object) {
                self.say("ADDED", &object);
            }
        }
        self.cursor = revision.max(asked);
        if initial == Initial::Marked && self.bookmarks {
            self.say_bookmark(true);
        }
        self
    }

    /// The next line, if there is one.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            self.growth.borrow_and_update();
            self.catch_up();
            if !self.lines.is_empty() || self.ended {
                continue;
            }
            let wake = if self.bookmarks {
                self.deadline.min(self.next_bookmark)
            } else {
                self.deadline
            };
            tokio::select! {
                biased;
                changed = self.growth.changed() => self.ended = changed.is_err(),
                () = self.server.clock.sleep_until(wake) => self.tick(),
            }
        }
    }

    /// Sends the commits since the cursor.
    fn catch_up(&mut self) {
        let Ok((changes, complete)) = self.server.store.since(&self.target.resource.shelf, self.cursor)
        else {
            let (asked, current) = (self.cursor, self.server.store.revision());
            let status = Status::expired(format!("too old resource version: {asked} ({current})"));
            self.push("ERROR", 0, |line| text::write(line, &status.to_value()));
            self.ended = true;
            return;
        };
        for change in changes {
            self.say_change(&change);
        }
        // A version from the future is waited for; the cursor never goes back.
        self.cursor = self.cursor.max(complete);
    }

    fn say_change(&mut self, change: &store::Change) {
        if !self.target.namespace.is_empty() && change.key.namespace != self.target.namespace {
            return;
        }
        let holds = |object: &Value| self.selected.holds(&self.target.resource, object);
        let before = change.previous.as_deref().is_some_and(holds);
        let after = !change.deleted && holds(&change.object);
        match (before, after) {
            (false, false) => {}
            (false, true) => self.say("ADDED", &change.object),
            (true, true) => self.say("MODIFIED", &change.object),
            (true, false) if change.deleted => self.say("DELETED", &change.object),
            // It left the selection: its last state inside it, with the version of the change that removed it.
            (true, false) => {
                if let Some(previous) = &change.previous {
                    let mut last = Value::clone(previous);
                    object::metadata_mut(&mut last)
                        .insert("resourceVersion".into(), change.revision.to_string().into());
                    self.say("DELETED", &Object::new(last, previous.managers.clone()));
                }
            }
        }
    }

    fn say(&mut self, kind: &str, object: &Object) {
        let resource = self.target.resource.clone();
        let shown = match self.form {
            Form::Object | Form::Lean => {
                let shown = text_of(&self.server, &resource, object, self.form);
                return self.push(kind, shown.len(), |line| line.extend_from_slice(&shown));
            }
            Form::Metadata => metadata_only(&object.whole(), "PartialObjectMetadata"),
            Form::Table => {
                let shown = dressed_whole(&resource, object);
                let mut table = rows(&self.server, &resource, &[&shown], &self.query);
                table["metadata"] = json!({"resourceVersion": object::resource_version(object)});
                // The columns do not change, so only the first table has them.
                if std::mem::replace(&mut self.described, true) {
                    without_columns(table)
                } else {
                    table
                }
            }
        };
        self.push(kind, 0, |line| text::write(line, &shown));
    }

    /// Sends the position of the watch.
    fn say_bookmark(&mut self, initial_events_end: bool) {
        let resource = self.target.resource.clone();
        let mut mark = json!({
            "kind": resource.kind, "apiVersion": resource.api_version(),
            "metadata": {"resourceVersion": self.cursor.to_string()},
        });
        if initial_events_end {
            mark["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let mark = match self.form {
            Form::Object | Form::Lean => mark,
            Form::Metadata => metadata_only(&mark, "PartialObjectMetadata"),
            Form::Table => {
                let mut table = rows(&self.server, &resource, &[&mark], &self.query);
                table["metadata"] = json!({"resourceVersion": self.cursor.to_string()});
                table
            }
        };
        self.push("BOOKMARK", 0, |line| text::write(line, &mark));
    }

    fn tick(&mut self) {
        let now = self.server.now();
        if now >= self.deadline {
            self.ended = true;
            return;
        }
        self.say_bookmark(false);
        self.next_bookmark = now.checked_add(self.bookmark_every).unwrap_or(Timestamp::MAX);
    }

    /// Queues a line with an object of that many bytes, as far as its length is known.
    fn push(&mut self, kind: &str, length: usize, write: impl FnOnce(&mut Vec<u8>)) {
        const AROUND: usize = 40;
        // The type first, as on the real server: a reader then knows it before the object.
        let mut line = Vec::with_capacity(length + AROUND);
        line.extend_from_slice(b"{\"type\":\"");
        line.extend_from_slice(kind.as_bytes());
        line.extend_from_slice(b"\",\"object\":");
        write(&mut line);
        line.extend_from_slice(b"}\n");
        self.lines.push_back(line.into());
    }
}

fn respond(watch: Watch) -> Response<Body> {
    let lines = stream::unfold(watch, |mut watch| async move {
        let line = watch.next().await?;
        Some((Ok::<_, Infallible>(line), watch))
    });
    let mut response = Response::new(Body::from_stream(lines));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
