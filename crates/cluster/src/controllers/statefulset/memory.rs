//! What the last sync has read. Syncs of one set come in rows, and hardly anything changes between two of them: an object
//! that is still the very same is not read again.

use std::sync::{Arc, Mutex, PoisonError};

use crate::json::Value;
use crate::selector::LabelSelector;

use super::object::{Metadata, Pod, Revision, Set};

/// The set that was synced last.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Seen>);

/// What was read of a set. It says nothing about a set of another UID, or one that selects otherwise.
#[derive(Debug, Default)]
pub(super) struct Seen {
    uid: String,
    written_selector: Value,
    /// The same as it was read.
    pub(super) selector: Option<Arc<LabelSelector>>,
    pub(super) history: History,
    /// The pods that were found to be the set's.
    pub(super) pods: Vec<Pod>,
}

/// The revisions of a set, and the objects that they were chosen from.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) listed: Vec<Arc<Value>>,
    /// The newest write to any revision when they were listed, where it is known.
    pub(super) newest: Option<u64>,
    pub(super) revisions: Arc<[Revision]>,
    /// The template that was last looked for among them, and where it was found.
    pub(super) found: Option<(Value, Option<usize>)>,
}

impl Memory {
    /// What is known of a set; nothing where another one was synced last.
    pub(super) fn recall(&self, set: &Set) -> Seen {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = std::mem::take(&mut *memory);
        if seen.uid == set.uid() && seen.written_selector.shares(set.selector()) {
            seen
        } else {
            Seen::default()
        }
    }

    pub(super) fn keep(&self, set: &Set, selector: Arc<LabelSelector>, history: History, pods: Vec<Pod>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Seen {
            uid: set.uid().to_owned(),
            written_selector: set.selector().clone(),
            selector: Some(selector),
            history,
            pods,
        };
    }
}

impl Seen {
    /// The pod that was read from this very object.
    pub(super) fn pod(&self, object: &Arc<Value>) -> Option<&Pod> {
        self.pods.iter().find(|pod| pod.is_read_from(object))
    }
}

impl History {
    /// Whether it was chosen from these very objects.
    pub(super) fn is_of(&self, listed: &[Arc<Value>]) -> bool {
        let is_same = |(one, other): (&Arc<Value>, &Arc<Value>)| Arc::ptr_eq(one, other);
        self.listed.len() == listed.len() && self.listed.iter().zip(listed).all(is_same)
    }
}
