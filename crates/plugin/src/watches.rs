//! Which watches work: what nobody watches is rolled by nobody, and that has to be told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Resource;
use kube::runtime::watcher;

use crate::words_of_watch;

/// How the watches of an operator are. Cheap to clone; clones tell of the same.
#[derive(Clone, Debug, Default)]
pub struct Watches(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Why a watch does not work, by the path of what it watches.
    broken: BTreeMap<String, String>,
    /// How often one broke off since somebody asked.
    breaks: u64,
}

impl Watches {
    /// Takes note of what a watch of `path` has told.
    pub fn note<K>(&self, path: &str, told: &watcher::Result<watcher::Event<K>>)
    where
        K: Resource<DynamicType = ()>,
    {
        match told {
            // It is about to ask, and has no answer yet.
            Ok(watcher::Event::Init) => {}
            Ok(_) => self.works(path),
            Err(error) => {
                tracing::warn!(kind = %K::kind(&()), %error, "the watch broke off; it is tried again");
                self.broke(path, &words_of_watch(error));
            }
        }
    }

    /// Takes note of an answer to a watch of `path`: one that begins where another broke off may have nothing to tell for long.
    pub fn works(&self, path: &str) {
        self.lock().broken.remove(path);
    }

    /// Takes note of a watch of `path` that broke off.
    pub fn broke(&self, path: &str, why: &str) {
        let mut state = self.lock();
        state.breaks += 1;
        state.broken.insert(path.to_owned(), why.to_owned());
    }

    /// What is not seen, and why; `None` while every watch works.
    pub fn complaint(&self) -> Option<String> {
        let state = self.lock();
        let lines = state.broken.iter();
        let lines = lines.map(|(path, why)| format!("the watch of {path} does not work: {why}"));
        Some(lines.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
    }

    /// How often a watch broke off since the last time this was asked.
    pub fn take_breaks(&self) -> u64 {
        std::mem::take(&mut self.lock().breaks)
    }

    /// Forgets them: nobody watches any more.
    pub fn end(&self) {
        self.lock().broken.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change above is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
