//! Who wrote what: the record that tests read as they read the real server's audit log.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::json::Value;

/// One answered write.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Who.
    pub user: String,
    /// With which program.
    pub agent: String,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// `pods`, or with a subresource `statefulsets/status`.
    pub resource: String,
    /// The group of the resource; empty for the core group.
    pub group: String,
    /// Empty for cluster-scoped resources.
    pub namespace: String,
    /// Empty where the request names none.
    pub name: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// The number of the commit it led to, if it changed anything.
    pub revision: Option<u64>,
    /// The body of the request. The cluster's own controllers send no `managedFields`.
    pub body: serde_json::Value,
}

/// Entries kept. Long simulations check them as they go.
const LIMIT: usize = 100_000;

/// The newest writes, oldest first.
#[derive(Default)]
pub(crate) struct Audit {
    /// Far more are written than read, so that bodies are kept as they came.
    entries: Mutex<VecDeque<(Entry, Body)>>,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// As it was sent: JSON.
    Text(Bytes),
    /// As it was read. Most of it is shared with what it led to.
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
    /// Takes down an entry and the body of its request.
    pub(crate) fn record(&self, entry: Entry, body: Body) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() == LIMIT {
            entries.pop_front();
        }
        entries.push_back((entry, body));
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |(entry, body): &(Entry, Body)| Entry {
            body: body.into(),
            ..entry.clone()
        };
        entries.iter().map(read).collect()
    }
}
