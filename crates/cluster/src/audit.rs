//! The audit log: which user sent which write. Tests read it like the real server's.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::json::Value;

/// A write that the server has answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The user.
    pub user: String,
    /// The user agent.
    pub agent: String,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// `pods`, or with a subresource `statefulsets/status`.
    pub resource: String,
    /// The group of the resource; empty for the core group.
    pub group: String,
    /// Empty for cluster-scoped resources.
    pub namespace: String,
    /// Empty if the request names none.
    pub name: String,
    /// The HTTP status code of the response.
    pub code: u16,
    /// The revision of its commit, if it changed anything.
    pub revision: Option<u64>,
    /// The body of the request. The cluster's own controllers send no `managedFields`.
    pub body: serde_json::Value,
}

/// The number of entries to keep. Long simulations read them as they go.
const LIMIT: usize = 100_000;

/// The newest writes, oldest first.
#[derive(Default)]
pub(crate) struct Audit {
    /// Far more are written than read, so bodies stay unparsed.
    entries: Mutex<VecDeque<(Entry, Body)>>,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// As sent: JSON.
    Text(Bytes),
    /// Parsed. Most of it is shared with the stored object.
    Value(Value),
}

impl From<Value> for Body {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl From<&Body> for serde_json::Value {
    fn from(body: &Body) -> Self {
        match body {
            Body::Text(text) => serde_json::from_slice(text).unwrap_or_default(),
            Body::Value(value) => value.into(),
        }
    }
}

impl Audit {
    /// Records an entry and the body of its request.
    pub(crate) fn record(&self, entry: Entry, body: Body) {
        let mut entries = self.entries.lock();
        if entries.len() == LIMIT {
            entries.pop_front();
        }
        entries.push_back((entry, body));
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        let entries = self.entries.lock();
        let read = |(entry, body): &(Entry, Body)| Entry {
            body: body.into(),
            ..entry.clone()
        };
        entries.iter().map(read).collect()
    }
}
