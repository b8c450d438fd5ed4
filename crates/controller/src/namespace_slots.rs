//! One namespace can never use all reconciles of a kind, however many objects it has and however long each of them takes.
//!
//! kube's `Controller` limits how many objects are reconciled at a time, and takes the next one whatever its namespace is. So a
//! reconcile first takes a slot of its namespace. If none is free it ends at once, and the object is queued again when one is.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

/// How many objects of one kind are reconciled at a time.
pub(crate) const TOTAL: u16 = 16;

/// How many of them may be in one namespace.
const PER_NAMESPACE: usize = 12;

/// The slots of all namespaces for objects of one kind. Cheap to clone.
pub(crate) struct NamespaceSlots<K: Resource<DynamicType = ()>> {
    namespaces: Arc<Mutex<HashMap<String, Namespace>>>,
    queue: mpsc::UnboundedSender<ObjectRef<K>>,
}

impl<K: Resource<DynamicType = ()>> Clone for NamespaceSlots<K> {
    fn clone(&self) -> Self {
        Self {
            namespaces: self.namespaces.clone(),
            queue: self.queue.clone(),
        }
    }
}

#[derive(Default)]
struct Namespace {
    taken: usize,
    waiting: Waiting,
}

/// Names of objects in order of arrival. A name that was removed from the set is skipped when its turn comes.
#[derive(Default)]
struct Waiting {
    order: VecDeque<String>,
    names: HashSet<String>,
}

impl Waiting {
    fn push(&mut self, name: &str) {
        if self.names.insert(name.to_owned()) {
            self.order.push_back(name.to_owned());
        }
    }

    fn pop(&mut self) -> Option<String> {
        while let Some(name) = self.order.pop_front() {
            if self.names.remove(&name) {
                return Some(name);
            }
        }
        None
    }
}

/// The right to reconcile an object, until it is dropped.
pub(crate) struct Slot<K: Resource<DynamicType = ()>> {
    slots: NamespaceSlots<K>,
    namespace: String,
}

impl<K: Resource<DynamicType = ()>> NamespaceSlots<K> {
    /// Free slots. Objects that have waited for one are sent to `queue`.
    pub(crate) fn new(queue: mpsc::UnboundedSender<ObjectRef<K>>) -> Self {
        Self {
            namespaces: Arc::default(),
            queue,
        }
    }

    /// Takes a slot for an object. If none is free, the object is sent to the queue later.
    pub(crate) fn take(&self, namespace: &str, name: &str) -> Option<Slot<K>> {
        let mut namespaces = self.lock();
        let of_namespace = namespaces.entry(namespace.to_owned()).or_default();
        if of_namespace.taken >= PER_NAMESPACE {
            of_namespace.waiting.push(name);
            return None;
        }
        of_namespace.taken += 1;
        of_namespace.waiting.names.remove(name);
        Some(Slot {
            slots: self.clone(),
            namespace: namespace.to_owned(),
        })
    }

    /// Queues the object that has waited longest, if there is a slot for it. Must also be called when a queued object was deleted:
    /// it does not take its slot, and another object may be waiting for one.
    pub(crate) fn queue_next(&self, namespace: &str) {
        let mut namespaces = self.lock();
        let Some(of_namespace) = namespaces.get_mut(namespace) else {
            return;
        };
        if of_namespace.taken >= PER_NAMESPACE {
            return;
        }
        match of_namespace.waiting.pop() {
            // The receiver is gone when the operator shuts down.
            Some(name) => drop(self.queue.send(ObjectRef::new(&name).within(namespace))),
            None if of_namespace.taken == 0 => drop(namespaces.remove(namespace)),
            None => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Namespace>> {
        self.namespaces.lock()
    }
}

impl<K: Resource<DynamicType = ()>> Drop for Slot<K> {
    fn drop(&mut self) {
        if let Some(of_namespace) = self.slots.lock().get_mut(&self.namespace) {
            of_namespace.taken -= 1;
        }
        self.slots.queue_next(&self.namespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateward_api::rolloutplugin::RolloutPlugin;

    type Queue = mpsc::UnboundedReceiver<ObjectRef<RolloutPlugin>>;

    fn slots() -> (NamespaceSlots<RolloutPlugin>, Queue) {
        let (queue, queued) = mpsc::unbounded_channel();
        (NamespaceSlots::new(queue), queued)
    }

    fn full(slots: &NamespaceSlots<RolloutPlugin>) -> Vec<Slot<RolloutPlugin>> {
        let taken = (0..PER_NAMESPACE).map(|number| slots.take("hostile", &number.to_string()));
        taken.map(Option::unwrap).collect()
    }

    fn queued(queue: &mut Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.try_recv().ok().map(|object| object.name)).collect()
    }

    #[test]
    fn a_namespace_never_takes_the_slots_of_others() {
        const { assert!(PER_NAMESPACE < TOTAL as usize) };
        let (slots, mut queue) = slots();
        let _taken = full(&slots);
        assert!(slots.take("hostile", "db").is_none());
        assert!(slots.take("shop", "db").is_some());
        assert_eq!(queued(&mut queue), [""; 0]);
    }

    #[test]
    fn what_waits_is_queued_once_in_its_order_as_slots_become_free() {
        let (slots, mut queue) = slots();
        let mut taken = full(&slots);
        for name in ["b", "a", "b", "c"] {
            assert!(slots.take("hostile", name).is_none());
        }
        taken.pop();
        assert_eq!(queued(&mut queue), ["b"]);
        // Another object came first: `b` waits again, behind the others.
        taken.push(slots.take("hostile", "d").unwrap());
        assert!(slots.take("hostile", "b").is_none());
        taken.clear();
        assert_eq!(queued(&mut queue), ["a", "c", "b"]);
    }

    #[test]
    fn what_got_a_slot_in_the_meantime_is_not_queued_again() {
        let (slots, mut queue) = slots();
        let mut taken = full(&slots);
        for name in ["a", "b"] {
            assert!(slots.take("hostile", name).is_none());
        }
        taken.pop();
        assert_eq!(queued(&mut queue), ["a"]);
        taken.push(slots.take("hostile", "b").unwrap());
        assert!(slots.take("hostile", "a").is_none());
        taken.clear();
        assert_eq!(queued(&mut queue), ["a"]);
    }

    #[test]
    fn an_object_that_is_gone_when_its_slot_is_free_leaves_it_to_the_next() {
        let (slots, mut queue) = slots();
        let mut taken = full(&slots);
        for name in ["gone", "db"] {
            assert!(slots.take("hostile", name).is_none());
        }
        taken.pop();
        assert_eq!(queued(&mut queue), ["gone"]);
        slots.queue_next("hostile");
        assert_eq!(queued(&mut queue), ["db"]);
    }

    #[test]
    fn namespaces_without_reconciles_take_no_memory() {
        let (slots, _queue) = slots();
        drop(full(&slots));
        drop(slots.take("shop", "db"));
        assert!(slots.lock().is_empty());
    }
}
