//! The commits of a real control plane, for the same invariants as in a simulation.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use kube::api::{ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use serde_json::Value;
use stateward_cluster::Commit;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep};

use super::invariants;
use crate::harness::{Cluster, Doing, Failure, Outcome};

/// The kinds that invariants read: resource in commits, group, version and kind.
const KINDS: [(&str, &str, &str, &str); 5] = [
    ("statefulsets.apps", "apps", "v1", "StatefulSet"),
    ("pods", "", "v1", "Pod"),
    (
        "rolloutplugins.argoproj.io",
        "argoproj.io",
        "v1alpha1",
        "RolloutPlugin",
    ),
    ("phasedrollouts.sts.plus", "sts.plus", "v1alpha1", "PhasedRollout"),
    (
        "analysisruns.argoproj.io",
        "argoproj.io",
        "v1alpha1",
        "AnalysisRun",
    ),
];

/// How long a commit may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(50);

/// Follows a namespace from here on, commit by commit, until it is dropped.
pub struct Watched {
    commits: Arc<Mutex<Vec<Commit>>>,
    apis: Vec<(&'static str, Api<DynamicObject>)>,
    _watches: JoinSet<()>,
}

impl Watched {
    /// Begins with the existing objects.
    pub async fn start(cluster: &Cluster) -> Outcome<Self> {
        let commits = Arc::new(Mutex::new(Vec::new()));
        let mut watches = JoinSet::new();
        let mut apis = Vec::new();
        for (resource, group, version, kind) in KINDS {
            let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            let api = Api::namespaced_with(cluster.client(), cluster.namespace(), &kind);
            let list = api
                .list(&ListParams::default())
                .await
                .doing(format!("list {resource}"))?;
            let from = list.metadata.resource_version.clone().unwrap_or_default();
            for object in list.items {
                push(&commits, commit(resource, &object, false)?);
            }
            watches.spawn(follow(api.clone(), resource, from, commits.clone()));
            apis.push((resource, api));
        }
        Ok(Self {
            commits,
            apis,
            _watches: watches,
        })
    }

    /// Expects that no commit so far has violated an invariant. Other clients must not write partitions, nor any part of a status but the
    /// commands: the operator's writes are recognised by these.
    pub async fn expect_unbroken(&self, cluster: &Cluster) -> Outcome {
        self.catch_up(cluster).await?;
        let mut commits = self.lock().clone();
        // Revisions of one store have one order across all kinds.
        commits.sort_by_key(|commit| commit.revision);
        let mut held = HashMap::new();
        let broken = invariants::broken(commits.iter().map(|commit| {
            let by_us = match commit.resource.as_ref() {
                "statefulsets.apps" => {
                    let now = grip(commit);
                    held.insert(&commit.name, now.clone())
                        .is_some_and(|before| before != now)
                }
                resource => resource != "pods",
            };
            (commit, by_us)
        }));
        if broken.is_empty() {
            Ok(())
        } else {
            Err(cluster.unmet("every invariant holds", broken.join("\n")))
        }
    }

    /// Waits until the watches have seen the current objects.
    async fn catch_up(&self, cluster: &Cluster) -> Outcome {
        let began = Instant::now();
        for (resource, api) in &self.apis {
            let now = api
                .list(&ListParams::default())
                .await
                .doing(format!("list {resource}"))?;
            for object in now.items {
                let now = commit(resource, &object, false)?;
                let seen = |seen: &Commit| {
                    seen.resource == now.resource && seen.name == now.name && seen.revision >= now.revision
                };
                while !self.lock().iter().any(seen) {
                    if began.elapsed() > PATIENCE {
                        return Err(cluster.unmet(format!("a watch shows {}", now.name), "it was cut"));
                    }
                    sleep(GLANCE).await;
                }
            }
        }
        Ok(())
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Vec<Commit>> {
        self.commits.lock()
    }
}

/// Watches from one version on. A watch that ends is resumed; one that fails leaves a gap that [`Watched::catch_up`] cannot close.
async fn follow(
    api: Api<DynamicObject>,
    resource: &'static str,
    mut from: String,
    commits: Arc<Mutex<Vec<Commit>>>,
) {
    while let Ok(events) = api.watch(&WatchParams::default(), &from).await {
        let mut events = events.boxed();
        while let Some(event) = events.next().await {
            let (object, deleted) = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (object, false),
                Ok(WatchEvent::Deleted(object)) => (object, true),
                Ok(WatchEvent::Bookmark(_)) => continue,
                Ok(WatchEvent::Error(_)) => return,
                // Cut in the middle of a line: the rest comes again.
                Err(_) => break,
            };
            let Ok(commit) = commit(resource, &object, deleted) else {
                return;
            };
            from = commit.revision.to_string();
            push(&commits, commit);
        }
    }
}

/// The fields of a set that only the operator writes: the partition and the claim.
fn grip(commit: &Commit) -> [Value; 2] {
    let Commit { object, .. } = commit;
    [
        object["spec"]["updateStrategy"]["rollingUpdate"]["partition"].clone(),
        object["metadata"]["annotations"]["stateward.dev/managed-by"].clone(),
    ]
}

fn push(commits: &Mutex<Vec<Commit>>, commit: Commit) {
    commits.lock().push(commit);
}

fn commit(resource: &str, object: &DynamicObject, deleted: bool) -> Outcome<Commit> {
    let revision = object.resource_version().unwrap_or_default();
    Ok(Commit {
        revision: revision
            .parse()
            .map_err(|_| Failure::NotHere(format!("resourceVersion {revision:?} is not a number")))?,
        resource: resource.into(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        object: serde_json::to_value(object)
            .map_err(kube::Error::SerdeError)
            .doing("write an object")?
            .into(),
        deleted,
    })
}
