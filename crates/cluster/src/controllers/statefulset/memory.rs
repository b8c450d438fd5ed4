//! What the last sync has read. Syncs of one set come in rows, and hardly anything changes between two of them: an object
//! that is still the very same is not read again.

use std::sync::{Arc, Mutex, PoisonError};

use crate::json::Value;

use super::object::{Metadata, Pod, Revision, Set};

/// The set that was synced last.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Seen>);

/// What was read of a set. It says nothing about a set of another UID, or one that selects otherwise.
#[derive(Debug, Default)]
pub(super) struct Seen {
    uid: String,
    selector: Value,
    pub(super) history: History,
    /// The pods that were found to be the set's.
    pub(super) pods: Vec<Pod>,
}

/// The revisions of a set, and the objects that they were chosen from.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) listed: Vec<Arc<Value>>,
    pub(super) revisions: Arc<[Revision]>,
}

impl Memory {
    /// What is known of a set; nothing where another one was synced last.
    pub(super) fn recall(&self, set: &Set) -> Seen {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = std::mem::take(&mut *memory);
        if seen.uid == set.uid() && seen.selector.shares(set.selector()) {
            seen
        } else {
            Seen::default()
        }
    }

    pub(super) fn keep(&self, set: &Set, history: History, pods: Vec<Pod>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Seen {
            uid: set.uid().to_owned(),
            selector: set.selector().clone(),
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
