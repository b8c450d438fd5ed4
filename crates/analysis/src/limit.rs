//! Limits for resources that namespaces share: a total, and a smaller limit per namespace.
//!
//! A namespace waits for its own permit before it queues for the shared one, so the shared queue never holds more entries of a namespace
//! than its limit, and no namespace can starve the others with many queries.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limit of concurrent operations.
#[derive(Clone, Debug)]
pub struct NamespaceLimit {
    total: Arc<Semaphore>,
    per_namespace: usize,
    namespaces: Arc<Mutex<HashMap<String, Arc<Semaphore>>>>,
}

/// A permit, which counts until it is dropped.
#[derive(Debug)]
pub struct Permit {
    namespace: OwnedSemaphorePermit,
    _total: OwnedSemaphorePermit,
}

impl Permit {
    /// Releases the shared permit, and keeps that of the namespace until the returned permit is dropped.
    pub fn into_namespace(self) -> OwnedSemaphorePermit {
        self.namespace
    }
}

impl NamespaceLimit {
    /// At most `per_namespace` operations of one namespace, and `total` of all.
    pub fn new(per_namespace: usize, total: usize) -> Self {
        Self {
            total: Arc::new(Semaphore::new(total)),
            per_namespace,
            namespaces: Arc::default(),
        }
    }

    /// Waits for a permit of this namespace. `None` only if the limit was closed, which never happens.
    pub async fn acquire(&self, namespace: &str) -> Option<Permit> {
        let of_namespace = self.of(namespace).acquire_owned().await.ok()?;
        let of_total = self.total.clone().acquire_owned().await.ok()?;
        Some(Permit {
            namespace: of_namespace,
            _total: of_total,
        })
    }

    fn of(&self, namespace: &str) -> Arc<Semaphore> {
        let mut namespaces = self.namespaces.lock();
        if let Some(semaphore) = namespaces.get(namespace) {
            return semaphore.clone();
        }
        // Permits and waiting tasks hold their semaphore: one that only the map holds is unused.
        namespaces.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let semaphore = Arc::new(Semaphore::new(self.per_namespace));
        namespaces.insert(namespace.to_owned(), semaphore.clone());
        semaphore
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn one_namespace_never_has_more_than_its_limit_and_all_together_the_total() {
        let limit = NamespaceLimit::new(2, 3);
        let first = limit.acquire("a").await;
        let second = limit.acquire("a").await;
        assert!(limit.acquire("a").now_or_never().is_none(), "a third of a");
        let other = limit.acquire("b").now_or_never();
        assert!(other.is_some(), "b has its own");
        assert!(limit.acquire("c").now_or_never().is_none(), "a fourth of all");
        drop(first);
        assert!(limit.acquire("c").now_or_never().is_some());
        drop((second, other));
    }

    #[tokio::test]
    async fn a_namespace_that_queues_up_keeps_nobody_else_waiting() {
        let limit = NamespaceLimit::new(2, 3);
        let held = [limit.acquire("a").await, limit.acquire("a").await];
        let mut queued: Vec<_> = (0..20).map(|_| Box::pin(limit.acquire("a"))).collect();
        for waiting in &mut queued {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        for _ in 0..20 {
            assert!(limit.acquire("b").now_or_never().is_some());
        }
        drop(held);
    }

    #[tokio::test]
    async fn a_namespace_can_be_kept_waiting_without_the_others() {
        let limit = NamespaceLimit::new(1, 1);
        let resting = limit.acquire("a").await.map(Permit::into_namespace);
        assert!(limit.acquire("b").now_or_never().is_some(), "b waits for a");
        assert!(limit.acquire("a").now_or_never().is_none(), "a does not wait");
        drop(resting);
        assert!(limit.acquire("a").now_or_never().is_some());
    }

    #[tokio::test]
    async fn namespaces_that_are_gone_are_not_remembered() {
        let limit = NamespaceLimit::new(1, 2);
        let held = limit.acquire("held").await;
        for index in 0..100 {
            limit.acquire(&format!("gone-{index}")).await;
        }
        assert_eq!(limit.namespaces.lock().len(), 2);
        assert!(limit.acquire("held").now_or_never().is_none());
        drop(held);
    }
}
