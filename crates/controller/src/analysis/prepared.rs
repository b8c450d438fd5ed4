//! What takes long to work out from what users write: runs with their args filled in, and the plans of rollouts with analyses.
//!
//! It costs what its author likes within the limits of the core, so it is worked out once for every input and by the [`Workers`] of
//! its namespace. A turn does not wait for that, because turns are few and shared by all namespaces: the object gets another one.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stateward_analysis::Workers;
use tokio::runtime::{Handle, RuntimeFlavor};

/// What was worked out for each object, from an `Input`.
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

    /// What follows from `input`. `None` while it is worked out, of which there is one at a time for each object; `ready` is called
    /// after that.
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
        // In virtual time there is one thread, and the order of things is the same every time.
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

    /// Forgets an object that is over or gone.
    pub(crate) fn forget(&self, key: &Key) {
        lock(&self.known).remove(key);
    }
}

/// Work that has begun. Should it panic, the next turn begins it again.
struct UnderWay<Key: Eq + Hash, Input, Output> {
    known: Known<Key, Input, Output>,
    key: Key,
}

impl<Key: Eq + Hash, Input, Output> UnderWay<Key, Input, Output> {
    fn end(self, input: Input, output: Output) {
        // Of an object that was forgotten meanwhile nothing is kept.
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
    // Every change above is complete before anything can panic.
    known.lock().unwrap_or_else(PoisonError::into_inner)
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
        // Its input has changed before it was worked out.
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
