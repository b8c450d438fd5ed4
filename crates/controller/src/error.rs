//! Errors of a reconcile, and when to retry.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;

use stateward_client::InvalidName;
use stateward_plugin::{PluginError, words};

use crate::retry::retry_error_after;

/// Why a reconcile failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The API server rejected the request, or could not be reached.
    #[error("{what}: {}", words(cause))]
    Api {
        what: &'static str,
        #[source]
        cause: kube::Error,
    },
    /// The plugin failed.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// The copy of the stable template does not exist, or is of another version than the one to roll back to.
    #[error(
        "there is no copy of the stable template of {0}; to roll back, change the template of the workload by hand"
    )]
    NoTemplate(String),
    /// A name that cannot be part of a request.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// Another object has the name of the copy.
    #[error(
        "ControllerRevision {0} exists and is not the copy of the stable template that its name says; delete it"
    )]
    NameTaken(String),
    /// A bug in the operator. The panic itself was logged where it happened.
    #[error("a defect of the operator: {0}")]
    Panicked(String),
}

/// Turns a panic into an error, so that an object that triggers a bug does not end the operator for all others. Does nothing unless
/// it is `enabled`, so that tests notice the panic.
pub(crate) async fn contain_panics<T>(
    enabled: bool,
    reconcile: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    if !enabled {
        return reconcile.await;
    }
    // State shared between reconciles is behind locks and consistent at any time.
    let ended = AssertUnwindSafe(reconcile).catch_unwind().await;
    ended.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Error::Panicked(text.unwrap_or_default()))
    })
}

impl Error {
    pub(crate) fn api(what: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |cause| Self::Api { what, cause }
    }

    /// How long to wait before the same request may be sent again; `None` for a permanent error.
    pub(crate) fn retry_after(&self, attempt: usize, who: &str) -> Option<Duration> {
        match self {
            Self::Api { cause, .. } => retry_error_after(cause, attempt, who),
            _ => None,
        }
    }

    /// Whether the request is refused however often it is sent.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::NameTaken(_) | Self::NoTemplate(_) => true,
            Self::Api {
                cause: kube::Error::Api(status),
                ..
            } => matches!(status.code, 400 | 403 | 422),
            _ => false,
        }
    }

    /// The kind of error, for metrics.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            _ if self.is_conflict() => "conflict",
            Self::Api { .. } => "api",
            Self::Plugin(_) => "plugin",
            Self::NoTemplate(_) | Self::NameTaken(_) => "no template",
            Self::Name(_) => "name",
            Self::Panicked(_) => "panic",
        }
    }

    /// Another client has changed the object: not worth reporting, and retried at once.
    pub(crate) fn is_conflict(&self) -> bool {
        match self {
            Self::Api {
                cause: kube::Error::Api(status),
                ..
            } => status.code == 409 || status.code == 404,
            Self::Plugin(PluginError::Conflict(_) | PluginError::Gone(_)) => true,
            Self::Api { .. }
            | Self::Plugin(_)
            | Self::NoTemplate(_)
            | Self::NameTaken(_)
            | Self::Name(_)
            | Self::Panicked(_) => false,
        }
    }
}

/// The longest and the shortest wait between two attempts.
const LONGEST: Duration = Duration::from_secs(30);
const SHORTEST: Duration = Duration::from_millis(50);

/// How long to wait after the `failures`th failure in a row: doubled each time, with jitter.
pub(crate) fn backoff(failures: u32, who: &str) -> Duration {
    let wait = SHORTEST.saturating_mul(1 << failures.min(10)).min(LONGEST);
    // The jitter of a quarter is derived from the object's name, so that a run can be repeated exactly.
    let spread = who.bytes().fold(u32::from(failures as u8), |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(byte))
    }) % 256;
    wait - wait.mul_f64(f64::from(spread) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_of_its_own_object() {
        let text = "index out of bounds".to_owned();
        let ended = contain_panics(true, async { panic!("{text}") }).await;
        let error = ended.map(|(): ()| ()).unwrap_err();
        assert_eq!(error.to_string(), "a defect of the operator: index out of bounds");
        assert_eq!((error.kind(), error.is_conflict()), ("panic", false));
        assert!(matches!(contain_panics(true, async { Ok(1) }).await, Ok(1)));
    }

    #[test]
    fn a_wait_grows_to_its_limit_and_differs_between_objects() {
        let waits: Vec<_> = (0..20).map(|failures| backoff(failures, "prod/db")).collect();
        assert!(waits[0] <= SHORTEST && waits[19] <= LONGEST);
        assert!(
            waits[..10].windows(2).all(|waits| waits[1] > waits[0]),
            "{waits:?}"
        );
        assert_ne!(backoff(5, "prod/db"), backoff(5, "prod/web"));
    }
}
