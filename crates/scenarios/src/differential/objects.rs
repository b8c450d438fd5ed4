//! Every object in a namespace that a portrait may show: from watches, or listed once.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::harness::{Doing, Outcome};

/// Objects by kind and name.
pub(crate) type Objects = BTreeMap<(&'static str, String), Value>;

pub(crate) const POD: &str = "Pod";
pub(crate) const SET: &str = "StatefulSet";
pub(crate) const REVISION: &str = "ControllerRevision";
pub(crate) const CLAIM: &str = "PersistentVolumeClaim";
pub(crate) const JOB: &str = "Job";
pub(crate) const EVENT: &str = "Event";

fn kinds() -> [(&'static str, ApiResource); 6] {
    [
        (POD, ApiResource::erase::<Pod>(&())),
        (SET, ApiResource::erase::<StatefulSet>(&())),
        (REVISION, ApiResource::erase::<ControllerRevision>(&())),
        (CLAIM, ApiResource::erase::<PersistentVolumeClaim>(&())),
        (JOB, ApiResource::erase::<Job>(&())),
        (EVENT, ApiResource::erase::<Event>(&())),
    ]
}

/// The objects of one kind.
pub(crate) fn of_kind<'o>(
    objects: &'o Objects,
    kind: &'static str,
) -> impl Iterator<Item = (&'o str, &'o Value)> {
    objects
        .iter()
        .filter(move |((one, _), _)| *one == kind)
        .map(|((_, name), object)| (name.as_str(), object))
}

/// Lists all objects of a namespace now.
pub(crate) async fn read(client: &Client, namespace: &str) -> Outcome<Objects> {
    let lists = kinds().map(|(kind, resource)| async move {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let list = api.list(&ListParams::default()).await;
        list.doing(format!("list {}", resource.plural))
            .map(|list| (kind, list.items))
    });
    let mut objects = Objects::new();
    for (kind, items) in try_join_all(lists).await? {
        objects.extend(
            items
                .into_iter()
                .map(|item| ((kind, item.name_any()), value(&item))),
        );
    }
    Ok(objects)
}

/// Watches of all objects of a namespace.
pub(crate) struct Watched {
    shared: Arc<Shared>,
    _watches: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    objects: Mutex<Objects>,
    moves: Mutex<Vec<String>>,
    changed: watch::Sender<()>,
}

impl Watched {
    pub(crate) fn start(client: &Client, namespace: &str) -> Self {
        let shared = Arc::new(Shared::default());
        let mut watches = JoinSet::new();
        for (kind, resource) in kinds() {
            let api = Api::namespaced_with(client.clone(), namespace, &resource);
            watches.spawn(follow(kind, api, shared.clone()));
        }
        Self {
            shared,
            _watches: watches,
        }
    }

    /// Wakes at every change.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changed.subscribe()
    }

    /// The pods created and the pods whose deletion began since the last call, in that order.
    pub(crate) fn take_moves(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.moves())
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&Objects) -> T) -> T {
        look(&self.shared.objects())
    }
}

impl Shared {
    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock()
    }

    fn moves(&self) -> MutexGuard<'_, Vec<String>> {
        self.moves.lock()
    }

    fn note(&self, name: &str, before: Option<&Value>, after: Option<&Value>) {
        let going =
            |pod: Option<&Value>| pod.is_none_or(|pod| !pod["metadata"]["deletionTimestamp"].is_null());
        let same = before.map(|pod| &pod["metadata"]["uid"]) == after.map(|pod| &pod["metadata"]["uid"]);
        if before.is_some() && !going(before) && (going(after) || !same) {
            self.moves().push(format!("{name} goes"));
        }
        if after.is_some() && !same {
            self.moves().push(format!("{name} comes"));
        }
    }
}

async fn follow(kind: &'static str, api: Api<DynamicObject>, shared: Arc<Shared>) {
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let mut objects = shared.objects();
        match event {
            // An object that is no longer in a relist was deleted while the watch was interrupted.
            Ok(watcher::Event::Init) => objects.retain(|(one, _), _| *one != kind),
            Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                let (name, object) = (object.name_any(), value(&object));
                let before = objects.insert((kind, name.clone()), object.clone());
                if kind == POD {
                    shared.note(&name, before.as_ref(), Some(&object));
                }
            }
            Ok(watcher::Event::Delete(object)) => {
                let name = object.name_any();
                let before = objects.remove(&(kind, name.clone()));
                if kind == POD {
                    shared.note(&name, before.as_ref(), None);
                }
            }
            Ok(watcher::Event::InitDone) | Err(_) => {}
        }
        drop(objects);
        shared.changed.send_replace(());
    }
}

/// An object that was read from JSON can be written as JSON.
fn value(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
