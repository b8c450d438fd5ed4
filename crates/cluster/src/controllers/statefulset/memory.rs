//! Remembers what the last sync parsed. Successive syncs of one set find few changes: an object that is identical is not parsed again.

use std::sync::Arc;

use crate::json::Value;
use crate::selector::LabelSelector;
use parking_lot::Mutex;

use super::object::{Metadata, Pod, Revision, Set};

/// The set that was synced last.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Seen>);

/// What was parsed for a set. It does not apply to a set with another UID or selector.
#[derive(Debug, Default)]
pub(super) struct Seen {
    uid: String,
    written_selector: Value,
    /// The parsed selector.
    pub(super) selector: Option<Arc<LabelSelector>>,
    pub(super) history: History,
    /// The set's pods.
    pub(super) pods: Vec<Pod>,
}

/// The revisions of a set, and the objects that they were selected from.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) listed: Vec<Arc<Value>>,
    /// The newest write to any revision when they were listed, if known.
    pub(super) newest: Option<u64>,
    pub(super) revisions: Arc<[Revision]>,
    /// The template that was last looked up among them, and its index.
    pub(super) found: Option<(Value, Option<usize>)>,
}

impl Memory {
    /// What is remembered of a set; nothing if another one was synced last.
    pub(super) fn recall(&self, set: &Set) -> Seen {
        let mut memory = self.0.lock();
        let seen = std::mem::take(&mut *memory);
        if seen.uid == set.uid() && seen.written_selector.shares(set.selector()) {
            seen
        } else {
            Seen::default()
        }
    }

    pub(super) fn keep(&self, set: &Set, selector: Arc<LabelSelector>, history: History, pods: Vec<Pod>) {
        *self.0.lock() = Seen {
            uid: set.uid().to_owned(),
            written_selector: set.selector().clone(),
            selector: Some(selector),
            history,
            pods,
        };
    }
}

impl Seen {
    /// The pod that was parsed from this same object.
    pub(super) fn pod(&self, object: &Arc<Value>) -> Option<&Pod> {
        self.pods.iter().find(|pod| pod.is_read_from(object))
    }
}

impl History {
    /// Whether it was selected from these same objects.
    pub(super) fn is_of(&self, listed: &[Arc<Value>]) -> bool {
        let is_same = |(one, other): (&Arc<Value>, &Arc<Value>)| Arc::ptr_eq(one, other);
        self.listed.len() == listed.len() && self.listed.iter().zip(listed).all(is_same)
    }
}
