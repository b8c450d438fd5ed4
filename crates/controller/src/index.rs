//! Which objects reference a workload.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use kube::ResourceExt;
use parking_lot::{Mutex, MutexGuard};

use crate::kind::Rollout;

/// From a workload to the objects that reference it. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Index(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// From the namespace and name of a workload to the names of its objects.
    objects: HashMap<(String, String), BTreeSet<String>>,
    /// The UID and the workload of an object, by its namespace and name.
    known: HashMap<(String, String), Known>,
}

struct Known {
    uid: String,
    workload: String,
}

/// An object that does not exist any more, or a reference that has changed.
pub(crate) struct Gone {
    pub(crate) uid: String,
    pub(crate) namespace: String,
    /// The workload that it referenced, which may be free now.
    pub(crate) workload: String,
}

impl Index {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock()
    }

    /// Records an object and the workload that it references. Returns the object that had this name before, or its own former
    /// reference.
    pub(crate) fn put(&self, object: &impl Rollout) -> Option<Gone> {
        let namespace = object.namespace().unwrap_or_default();
        let uid = object.uid().unwrap_or_default();
        let before = self.take(&namespace, &object.name_any());
        let workload = object.workload().to_owned();
        let mut inner = self.lock();
        let known = Known {
            uid: uid.clone(),
            workload: workload.clone(),
        };
        let differs = |before: &Gone| before.uid != uid || before.workload != workload;
        let before = before.filter(differs);
        inner.known.insert((namespace.clone(), object.name_any()), known);
        let objects = inner.objects.entry((namespace, workload)).or_default();
        objects.insert(object.name_any());
        before
    }

    /// Removes an object.
    pub(crate) fn take(&self, namespace: &str, name: &str) -> Option<Gone> {
        let mut inner = self.lock();
        let Known { uid, workload } = inner.known.remove(&(namespace.to_owned(), name.to_owned()))?;
        let here = (namespace.to_owned(), workload.clone());
        if let Some(objects) = inner.objects.get_mut(&here) {
            objects.remove(name);
            if objects.is_empty() {
                inner.objects.remove(&here);
            }
        }
        Some(Gone {
            uid,
            namespace: here.0,
            workload,
        })
    }

    /// Removes every object that is not among `uids`: a new list is complete.
    pub(crate) fn retain(&self, uids: &HashSet<String>) -> Vec<Gone> {
        let gone: Vec<_> = {
            let inner = self.lock();
            let known = inner.known.iter();
            let gone = known.filter(|(_, known)| !uids.contains(&known.uid));
            gone.map(|(key, _)| key.clone()).collect()
        };
        gone.iter()
            .filter_map(|(namespace, name)| self.take(namespace, name))
            .collect()
    }

    /// The names of the objects that reference a workload.
    pub(crate) fn of(&self, namespace: &str, workload: &str) -> Vec<String> {
        let inner = self.lock();
        let objects = inner.objects.get(&(namespace.to_owned(), workload.to_owned()));
        objects.into_iter().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use stateward_api::rolloutplugin::RolloutPlugin;

    fn object(name: &str, uid: &str, workload: &str) -> RolloutPlugin {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutPlugin",
            "metadata": {"name": name, "namespace": "ns", "uid": uid},
            "spec": {
                "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": workload},
                "plugin": {"name": "statefulset"}, "strategy": {"canary": {}},
            },
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn an_object_is_found_by_the_workload_it_is_meant_for_now() {
        let index = Index::default();
        assert!(index.put(&object("first", "1", "db")).is_none());
        assert!(index.put(&object("second", "2", "db")).is_none());
        assert_eq!(index.of("ns", "db"), ["first", "second"]);
        let before = index.put(&object("first", "1", "cache"));
        assert_eq!(
            before.map(|before| (before.uid, before.workload)),
            Some(("1".to_owned(), "db".to_owned()))
        );
        assert_eq!(
            (index.of("ns", "db"), index.of("ns", "cache")),
            (vec!["second".to_owned()], vec!["first".to_owned()])
        );
    }

    #[test]
    fn what_a_new_list_does_not_show_is_gone() {
        let index = Index::default();
        index.put(&object("first", "1", "db"));
        index.put(&object("second", "2", "db"));
        let gone = index.retain(&HashSet::from(["2".to_owned()]));
        let gone: Vec<_> = gone.iter().map(|gone| (&*gone.uid, &*gone.workload)).collect();
        assert_eq!(gone, [("1", "db")]);
        assert_eq!(index.of("ns", "db"), ["second"]);
    }

    #[test]
    fn another_object_of_the_same_name_ends_the_first() {
        let index = Index::default();
        index.put(&object("first", "1", "db"));
        let replaced = index.put(&object("first", "2", "db"));
        assert_eq!(replaced.map(|gone| gone.uid).as_deref(), Some("1"));
    }
}
