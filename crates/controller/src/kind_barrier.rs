//! Waits until all objects that may claim a workload are listed.

use std::sync::Arc;

use kube::runtime::watcher;
use tokio::sync::watch;

/// Counts the kinds that are listed. Cheap to clone.
#[derive(Clone)]
pub(crate) struct KindBarrier(Arc<watch::Sender<usize>>);

/// How many kinds there are.
const KINDS: usize = 2;

impl Default for KindBarrier {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl KindBarrier {
    /// Records that one more kind is listed, or cannot be.
    pub(crate) fn kind_synced(&self) {
        self.0.send_modify(|kinds| *kinds += 1);
    }

    /// Waits until all kinds are.
    pub(crate) async fn all_synced(&self) {
        let mut kinds = self.0.subscribe();
        // We hold the sender, so it cannot be dropped.
        let _ = kinds.wait_for(|kinds| *kinds >= KINDS).await;
    }
}

/// Whether a kind cannot be listed because the API server lacks it or denies access: the operator is newer than its CRDs or RBAC
/// rules. Any other error is temporary.
pub(crate) fn cannot_be_listed(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => matches!(status.code, 403 | 404),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(403, true)]
    #[case(404, true)]
    #[case(500, false)]
    #[case(503, false)]
    fn a_server_that_stumbles_is_waited_for(#[case] code: u16, #[case] expected: bool) {
        let status = kube::core::Status::failure("no", "Reason").with_code(code);
        let error = watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()));
        assert_eq!(cannot_be_listed(&error), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_has_a_turn_before_every_kind_is_known() {
        let kind_barrier = KindBarrier::default();
        kind_barrier.kind_synced();
        let early = tokio::time::timeout(std::time::Duration::from_secs(60), kind_barrier.all_synced()).await;
        assert!(early.is_err());
        kind_barrier.kind_synced();
        kind_barrier.all_synced().await;
    }
}
