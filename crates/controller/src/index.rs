//! Which objects care about a workload.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;
use stateward_api::rolloutplugin::RolloutPlugin;

/// From a workload to the objects that refer to it. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Index(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// Namespace and name of a workload to the names of its objects.
    objects: HashMap<(String, String), BTreeSet<String>>,
    /// Namespace and name of an object to the name of its workload.
    workloads: HashMap<(String, String), String>,
}

impl Index {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change below is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of an object, and of the workload it now refers to.
    pub(crate) fn put(&self, object: &RolloutPlugin) {
        self.take(object);
        let namespace = object.namespace().unwrap_or_default();
        let workload = object.spec.workload_ref.name.clone();
        let mut inner = self.lock();
        inner
            .workloads
            .insert((namespace.clone(), object.name_any()), workload.clone());
        let objects = inner.objects.entry((namespace, workload)).or_default();
        objects.insert(object.name_any());
    }

    /// Forgets an object.
    pub(crate) fn take(&self, object: &RolloutPlugin) {
        let namespace = object.namespace().unwrap_or_default();
        let mut inner = self.lock();
        let Some(workload) = inner.workloads.remove(&(namespace.clone(), object.name_any())) else {
            return;
        };
        let here = (namespace, workload);
        if let Some(objects) = inner.objects.get_mut(&here) {
            objects.remove(&object.name_any());
            if objects.is_empty() {
                inner.objects.remove(&here);
            }
        }
    }

    /// The names of the objects that refer to a workload.
    pub(crate) fn of(&self, namespace: &str, workload: &str) -> Vec<String> {
        let inner = self.lock();
        let objects = inner.objects.get(&(namespace.to_owned(), workload.to_owned()));
        objects.into_iter().flatten().cloned().collect()
    }
}
