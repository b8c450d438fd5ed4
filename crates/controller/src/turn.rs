//! What turns of any object need: the newest view of it, how often it failed in a row, and when it is due again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::runtime::controller::Action as Next;
use kube::{Resource, ResourceExt};
use stateward_clock::Clock;

/// What our last write to an object gave back, until the watch has caught up with it (rule 16).
pub(crate) struct Latest<K>(Mutex<HashMap<String, K>>);

impl<K> Default for Latest<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Resource<DynamicType = ()> + Clone> Latest<K> {
    /// The object as the watch shows it, or as our own last write left it if that is newer.
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
        // Every change above is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Versions count up.
pub(crate) fn version(object: &impl Resource<DynamicType = ()>) -> u64 {
    let version = object.resource_version();
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// Failures in a row, by the UID of what failed.
#[derive(Default)]
pub(crate) struct Failures(Mutex<HashMap<String, u32>>);

impl Failures {
    /// One more. How many there are now.
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
        // Every change above is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A turn at a moment of the clock's.
pub(crate) fn at(clock: &Clock, moment: Timestamp) -> Next {
    let left = Duration::try_from(moment.duration_since(clock.now())).unwrap_or(Duration::ZERO);
    // A timer may come a moment early, and then nothing is due yet.
    Next::requeue(clock.on_the_timer(left) + Duration::from_millis(1))
}
