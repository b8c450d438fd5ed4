//! The health of the watches: an object that is not watched is not reconciled, so a broken watch is reported.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Resource;
use kube::runtime::watcher;
use parking_lot::{Mutex, MutexGuard};

use crate::words_of_watch;

/// The health of an operator's watches. Cheap to clone; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Watches(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Why a watch is broken, by the path that it watches.
    broken: BTreeMap<String, String>,
    /// How often a watch broke since `take_breaks` was last called.
    breaks: u64,
}

impl Watches {
    /// Records an event of the watch of `path`.
    pub fn note<K>(&self, path: &str, told: &watcher::Result<watcher::Event<K>>)
    where
        K: Resource<DynamicType = ()>,
    {
        match told {
            // The request is about to be sent.
            Ok(watcher::Event::Init) => {}
            Ok(_) => self.works(path),
            Err(error) => {
                tracing::warn!(kind = %K::kind(&()), %error, "the watch broke off; it is tried again");
                self.broke(path, &words_of_watch(error));
            }
        }
    }

    /// Records a response to the watch of `path`: a new watch may have no events for a long time.
    pub fn works(&self, path: &str) {
        self.lock().broken.remove(path);
    }

    /// Records that the watch of `path` broke.
    pub fn broke(&self, path: &str, why: &str) {
        let mut state = self.lock();
        state.breaks += 1;
        state.broken.insert(path.to_owned(), why.to_owned());
    }

    /// What is not watched, and why; `None` while every watch works.
    pub fn complaint(&self) -> Option<String> {
        let state = self.lock();
        let lines = state.broken.iter();
        let lines = lines.map(|(path, why)| format!("the watch of {path} does not work: {why}"));
        Some(lines.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
    }

    /// How often a watch broke since the last call.
    pub fn take_breaks(&self) -> u64 {
        std::mem::take(&mut self.lock().breaks)
    }

    /// Forgets all errors: the watches have ended.
    pub fn end(&self) {
        self.lock().broken.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}
