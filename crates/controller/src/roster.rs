//! Whether everybody who may hold a workload is known.

use std::sync::Arc;

use kube::runtime::watcher;
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

/// Whether objects of a kind cannot be known because the server does not have it, or does not let us see them: an operator that is
/// newer than its definitions or rights. Anything else passes.
pub(crate) fn is_beyond_us(error: &watcher::Error) -> bool {
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
        assert_eq!(is_beyond_us(&error), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_has_a_turn_before_every_kind_is_known() {
        let roster = Roster::default();
        roster.one_more();
        let early = tokio::time::timeout(std::time::Duration::from_secs(60), roster.complete()).await;
        assert!(early.is_err());
        roster.one_more();
        roster.complete().await;
    }
}
