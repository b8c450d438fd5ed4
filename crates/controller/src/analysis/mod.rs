//! Analysis: AnalysisRuns are created for rollouts, measured, and cached.
//!
//! - `runs`: the AnalysisRuns, by the rollout that owns them.
//! - `templates`: the templates that each namespace can use.
//! - `start`: executes decisions about runs.
//! - `measure`: reconciles one AnalysisRun.
//! - `prepared`: caches runs with resolved args, and plans, by their inputs.
//! - `measurement_queue`: the measurements in progress.
//! - `jobs`: measurements that run as Jobs.
//!
//! The core decides what a measurement means and when the next one is due; everything that must survive a crash is in the run's
//! status.

pub(crate) mod jobs;
pub(crate) mod measure;
pub(crate) mod measurement_queue;
mod prepared;
pub(crate) mod runs;
pub(crate) mod start;
pub(crate) mod templates;

use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use stateward_plugin::Watches;

/// The API for one namespace, or for all.
pub(crate) fn api<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// A watch that is restarted when it breaks, and reports that to `watches`.
pub(crate) fn watch<K>(
    api: Api<K>,
    config: watcher::Config,
    watches: &Watches,
) -> impl futures::Stream<Item = watcher::Result<watcher::Event<K>>> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    use futures::StreamExt;
    use kube::runtime::WatchStreamExt;
    let path = api.resource_url().to_owned();
    let watches = watches.clone();
    watcher(api, config.page_size(stateward_client::PAGE))
        .default_backoff()
        .inspect(move |told| watches.note(&path, told))
}
