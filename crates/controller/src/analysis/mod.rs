//! Analysis: runs are created for rollouts, measured, and kept in sight.
//!
//! - `runs`: the runs that are ours, by the rollout they belong to.
//! - `templates`: what there is to measure.
//! - `start`: from a decision about a run to its request.
//! - `measure`: one run: see what is due, ask, write down what came of it.
//! - `prepared`: runs with their args filled in and plans, worked out once for every input.
//! - `asks`: questions under way.
//! - `jobs`: measurements that are Jobs.
//!
//! What a measurement means and when the next is due is decided in the core; everything that must survive a crash is in the
//! run's status.

pub(crate) mod asks;
pub(crate) mod jobs;
pub(crate) mod measure;
mod prepared;
pub(crate) mod runs;
pub(crate) mod start;
pub(crate) mod templates;

use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use stateward_plugin::Watches;

/// The objects of a namespace, or of all.
pub(crate) fn api<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// A watch that tries again when it breaks off, and tells `watches` about it.
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
