//! What reconciles of any object need: its newest state, its failures in a row, and when it is due again.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use kube::runtime::controller::Action as Next;
use kube::{Resource, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use stateward_clock::Clock;

/// The result of our last write to an object, until the watch has caught up with it (rule 16).
pub(crate) struct Latest<K>(Mutex<HashMap<String, K>>);

impl<K> Default for Latest<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Resource<DynamicType = ()> + Clone> Latest<K> {
    /// The object from the watch, or from our own last write if that is newer.
    pub(crate) fn newest(&self, seen: &K) -> K {
        let mut latest = self.lock();
        let uid = seen.uid().unwrap_or_default();
        match latest.get(&uid) {
            Some(ours) if version(ours) > version(seen) => ours.clone(),
            Some(_) => {
                latest.remove(&uid);
                seen.clone()
            }
            None => seen.clone(),
        }
    }

    pub(crate) fn remember(&self, written: &K) {
        self.lock()
            .insert(written.uid().unwrap_or_default(), written.clone());
    }

    pub(crate) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, K>> {
        self.0.lock()
    }
}

/// Resource versions increase.
pub(crate) fn version(object: &impl Resource<DynamicType = ()>) -> u64 {
    let version = object.resource_version();
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// Failures in a row, by the UID of the object.
#[derive(Default)]
pub(crate) struct Failures(Mutex<HashMap<String, u32>>);

impl Failures {
    /// Counts one more failure. Returns the number of failures in a row.
    pub(crate) fn add(&self, uid: &str) -> u32 {
        let mut failures = self.lock();
        let failures = failures.entry(uid.to_owned()).or_default();
        *failures += 1;
        *failures
    }

    pub(crate) fn of(&self, uid: &str) -> u32 {
        self.lock().get(uid).copied().unwrap_or(0)
    }

    pub(crate) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.0.lock()
    }
}

/// Requeues at a time of the clock.
pub(crate) fn at(clock: &Clock, moment: Timestamp) -> Next {
    let left = Duration::try_from(moment.duration_since(clock.now())).unwrap_or(Duration::ZERO);
    // A timer may fire a moment early, when nothing is due yet.
    Next::requeue(clock.on_the_timer(left) + Duration::from_millis(1))
}
