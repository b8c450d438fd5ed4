//! Whether everybody who may hold a workload is known.

use std::sync::Arc;

use tokio::sync::watch;

/// The kinds whose objects are known. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Roster(Arc<watch::Sender<usize>>);

/// How many kinds there are.
const KINDS: usize = 2;

impl Default for Roster {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Roster {
    /// All objects of one more kind are known, or it is known that they cannot be.
    pub(crate) fn one_more(&self) {
        self.0.send_modify(|kinds| *kinds += 1);
    }

    /// Waits for the last of them.
    pub(crate) async fn complete(&self) {
        let mut kinds = self.0.subscribe();
        // The sender lives as long as we do.
        let _ = kinds.wait_for(|kinds| *kinds >= KINDS).await;
    }
}
