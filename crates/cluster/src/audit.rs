//! Who wrote what: the record that tests read as they read the real server's audit log.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::json::{self, Value};

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
    /// Bodies are kept as text: far more are written than read, and text is small.
    entries: Mutex<VecDeque<(Entry, Box<[u8]>)>>,
}

/// The body of a request that sends an object with another status.
pub(crate) struct WithStatus<'a> {
    pub(crate) base: &'a Value,
    pub(crate) status: &'a Value,
}

/// What the audit log keeps of a request.
pub(crate) trait Body {
    /// Appends its text.
    fn write(&self, out: &mut Vec<u8>);
}

impl Body for Value {
    fn write(&self, out: &mut Vec<u8>) {
        json::write(out, self);
    }
}

impl Body for WithStatus<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut whole = self.base.clone();
        whole["status"] = self.status.clone();
        json::write(out, &whole);
    }
}

impl Audit {
    /// Takes down an entry and the body of its request.
    pub(crate) fn record(&self, entry: Entry, body: &impl Body) {
        let mut text = Vec::with_capacity(2048);
        body.write(&mut text);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() == LIMIT {
            entries.pop_front();
        }
        entries.push_back((entry, text.into()));
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |(entry, text): &(Entry, Box<[u8]>)| Entry {
            body: serde_json::from_slice(text).unwrap_or_default(),
            ..entry.clone()
        };
        entries.iter().map(read).collect()
    }
}
