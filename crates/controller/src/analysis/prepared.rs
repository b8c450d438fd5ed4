//! Caches expensive results of users' input: runs with resolved args, and the plans of rollouts with analyses.
//!
//! The cost is up to the author within the limits of the core, so each result is computed once for every input, by the [`Workers`] of its
//! namespace. A reconcile does not wait for it, because reconciles are limited and shared by all namespaces: the object is reconciled
//! again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use stateward_analysis::Workers;
use tokio::runtime::{Handle, RuntimeFlavor};

/// The result for each object, computed from an `Input`.
pub(crate) struct Prepared<Key, Input, Output> {
    known: Known<Key, Input, Output>,
    workers: Workers,
}

type Known<Key, Input, Output> = Arc<Mutex<HashMap<Key, Entry<Input, Output>>>>;

enum Entry<Input, Output> {
    UnderWay,
    Ready(Input, Arc<Output>),
}

impl<Key, Input, Output> Prepared<Key, Input, Output>
where
    Key: Clone + Eq + Hash + Send + 'static,
    Input: PartialEq + Send + 'static,
    Output: Send + Sync + 'static,
{
    pub(crate) fn new(workers: Workers) -> Self {
        Self {
            known: Arc::default(),
            workers,
        }
    }

    /// The result for `input`. `None` while it is computed, one at a time for each object; `ready` is called after that.
    pub(crate) fn get(
        &self,
        namespace: &str,
        key: &Key,
        input: Input,
        work: impl FnOnce(&Input) -> Output + Send + 'static,
        ready: impl FnOnce() + Send + 'static,
    ) -> Option<Arc<Output>> {
        let mut known = lock(&self.known);
        match known.get(key) {
            Some(Entry::Ready(from, output)) if *from == input => return Some(output.clone()),
            Some(Entry::UnderWay) => return None,
            Some(Entry::Ready(..)) | None => {}
        }
        // In virtual time there is one thread, and computing at once keeps the order deterministic.
        if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            let output = Arc::new(work(&input));
            known.insert(key.clone(), Entry::Ready(input, output.clone()));
            return Some(output);
        }
        known.insert(key.clone(), Entry::UnderWay);
        drop(known);
        let (workers, namespace) = (self.workers.clone(), namespace.to_owned());
        let under_way = UnderWay {
            known: self.known.clone(),
            key: key.clone(),
        };
        tokio::spawn(async move {
            let worked_out = move || {
                let output = work(&input);
                (input, output)
            };
            let (input, output) = workers.run(&namespace, worked_out).await;
            under_way.end(input, output);
            ready();
        });
        None
    }

    /// Removes an object that is complete or deleted.
    pub(crate) fn forget(&self, key: &Key) {
        lock(&self.known).remove(key);
    }
}

/// A computation in progress. If it panics, the next reconcile starts it again.
struct UnderWay<Key: Eq + Hash, Input, Output> {
    known: Known<Key, Input, Output>,
    key: Key,
}

impl<Key: Eq + Hash, Input, Output> UnderWay<Key, Input, Output> {
    fn end(self, input: Input, output: Output) {
        // The result for an object that was removed meanwhile is dropped.
        if let Some(entry) = lock(&self.known).get_mut(&self.key) {
            *entry = Entry::Ready(input, Arc::new(output));
        }
    }
}

impl<Key: Eq + Hash, Input, Output> Drop for UnderWay<Key, Input, Output> {
    fn drop(&mut self) {
        let mut known = lock(&self.known);
        if let Some(Entry::UnderWay) = known.get(&self.key) {
            known.remove(&self.key);
        }
    }
}

fn lock<T>(known: &Mutex<T>) -> MutexGuard<'_, T> {
    known.lock()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::mpsc;

    type Doubled = Prepared<(String, u32), u32, u32>;

    fn key(namespace: &str) -> (String, u32) {
        (namespace.to_owned(), 1)
    }

    fn at_once(doubled: &Doubled, namespace: &str, input: u32) -> Arc<u32> {
        let found = doubled.get(namespace, &key(namespace), input, |input| input * 2, || {});
        found.unwrap()
    }

    #[tokio::test]
    async fn it_is_worked_out_once_for_every_input_and_namespace() {
        let doubled = Doubled::new(Workers::default());
        let first = at_once(&doubled, "a", 1);
        assert!(
            Arc::ptr_eq(&first, &at_once(&doubled, "a", 1)),
            "it was worked out again"
        );
        assert_eq!(*at_once(&doubled, "b", 7), 14);
        assert!(
            Arc::ptr_eq(&first, &at_once(&doubled, "a", 1)),
            "another namespace took its place"
        );
        assert_eq!(*at_once(&doubled, "a", 2), 4);
        doubled.forget(&key("a"));
        doubled.forget(&key("b"));
        assert!(lock(&doubled.known).is_empty());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_turn_does_not_wait_and_there_is_one_at_a_time() {
        let doubled = Doubled::new(Workers::default());
        let (sender, mut ready) = mpsc::unbounded_channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let begun = Arc::new(AtomicUsize::new(0));
        let counted = begun.clone();
        let slow = move |input: &u32| {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = ended.recv();
            input * 2
        };
        let first = sender.clone();
        let found = doubled.get("a", &key("a"), 1, slow, move || first.send("slow").unwrap());
        assert_eq!(found, None);
        // Its input has changed before the result was ready.
        let counted = begun.clone();
        let again = move |input: &u32| {
            counted.fetch_add(1, Ordering::SeqCst);
            input * 2
        };
        assert_eq!(doubled.get("a", &key("a"), 2, again.clone(), || {}), None);
        drop(end);
        assert_eq!(ready.recv().await, Some("slow"));
        assert_eq!(begun.load(Ordering::SeqCst), 1, "both were begun");
        let found = doubled.get("a", &key("a"), 2, again, move || sender.send("again").unwrap());
        assert_eq!(found, None, "the outcome of another input was taken");
        assert_eq!(ready.recv().await, Some("again"));
        let found = doubled.get("a", &key("a"), 2, |_| 0, || {});
        assert_eq!(found.as_deref(), Some(&4));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_that_panics_is_begun_again() {
        let doubled = Doubled::new(Workers::default());
        let (sender, mut ready) = mpsc::unbounded_channel::<()>();
        let found = doubled.get("a", &key("a"), 1, |_| panic!("a defect"), move || drop(sender));
        assert_eq!(found, None);
        assert_eq!(ready.recv().await, None);
        while lock(&doubled.known).contains_key(&key("a")) {
            tokio::task::yield_now().await;
        }
        let (sender, mut ready) = mpsc::unbounded_channel();
        let found = doubled.get(
            "a",
            &key("a"),
            1,
            |input| input * 2,
            move || sender.send(()).unwrap(),
        );
        assert_eq!((found, ready.recv().await), (None, Some(())));
    }
}
