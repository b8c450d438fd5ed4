//! Requests to the API server: watches that restart, and a classification of errors.

use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use k8s_openapi::NamespaceResourceScope;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use stateward_clock::Clock;
use tracing::debug;

/// The field manager of every write.
pub(crate) const MANAGER: &str = "stateward-kubelet";
/// Marks the Nodes and PersistentVolumes that this kubelet created.
pub(crate) const PLAYED_BY: &str = "stateward.dev/played-by";

/// The namespaces that a kubelet manages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope(Option<String>);

impl Scope {
    pub(crate) fn namespace(namespace: impl Into<String>) -> Self {
        Self(Some(namespace.into()))
    }

    pub(crate) fn holds(&self, namespace: &str) -> bool {
        self.0.as_deref().is_none_or(|ours| ours == namespace)
    }

    pub(crate) fn api<K>(&self, client: Client) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        match &self.0 {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        }
    }
}

/// The namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }
}

/// The object's resource version as a number; zero if it is not one. Kubernetes guarantees that they compare.
pub(crate) fn version(object: &impl Resource) -> u64 {
    object
        .meta()
        .resource_version
        .as_deref()
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The object is not as last seen: deleted, replaced by a successor, or changed meanwhile.
    #[error("{0} is not as it was seen: {1}")]
    Stale(String, #[source] kube::Error),
    /// The server cannot answer now or rejects the request.
    #[error("{0} could not be written: {1}")]
    Failed(String, #[source] kube::Error),
}

impl Refusal {
    pub(crate) fn of(object: &str, error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if matches!(status.code, 404 | 409 | 410 | 422) => {
                Self::Stale(object.into(), error)
            }
            _ => Self::Failed(object.into(), error),
        }
    }

    /// The server's `Retry-After`.
    pub(crate) fn retry_after(&self) -> Duration {
        let (Self::Stale(_, error) | Self::Failed(_, error)) = self;
        match error {
            kube::Error::Api(status) => {
                let seconds = status
                    .details
                    .as_ref()
                    .map_or(0, |details| details.retry_after_seconds);
                Duration::from_secs(u64::from(seconds))
            }
            _ => Duration::ZERO,
        }
    }
}

/// The wait after the n-th failure in a row: 50 ms doubling to 5 s.
pub(crate) fn backoff(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(7);
    Duration::from_millis(50 * (1 << doublings)).min(Duration::from_secs(5))
}

/// Watches everything behind `api` forever; a broken watch restarts after a back-off.
pub(crate) fn watch<K>(api: Api<K>, clock: Clock) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let events = watcher(api, watcher::Config::default()).boxed();
    stream::unfold((events, clock), |(mut events, clock)| async move {
        let mut failures = 0;
        loop {
            match events.next().await? {
                Ok(event) => return Some((event, (events, clock))),
                Err(error) => {
                    failures += 1;
                    debug!("watch of {} broke: {error}", K::plural(&()));
                    clock.sleep(backoff(failures)).await;
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(1, 50)]
    #[case(2, 100)]
    #[case(5, 800)]
    #[case(8, 5000)]
    #[case(1000, 5000)]
    fn retries_slow_down(#[case] failures: u32, #[case] millis: u64) {
        assert_eq!(backoff(failures), Duration::from_millis(millis));
    }
}
