//! A cache of every StatefulSet and its pods, filled by watches.
//!
//! Decisions must not be based on stale state: a set is hidden until the watch has shown our own writes to it and our own
//! deletions of its pods.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, future};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use serde::de::DeserializeOwned;
use stateward_core::world::NoWorkload;
use tokio::sync::{mpsc, watch};

use super::PEER_MANAGED_BY;
use super::read::{self, Named};
use super::view::{Owned, PodRow, PodView, SetView};
use crate::{Manager, Observation, Target, Version, Watches};

/// Namespace and name.
type Key = (String, String);

/// A set that may have changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Changed {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The name of the object that holds it, which may reference another set by now.
    pub holder: Option<String>,
}

/// All sets and pods. Cheap to clone.
#[derive(Clone)]
pub struct Caches {
    inner: Arc<Mutex<Inner>>,
    changed: mpsc::UnboundedSender<Changed>,
    synced: Arc<watch::Sender<usize>>,
}

#[derive(Default)]
struct Inner {
    sets: HashMap<Key, Arc<SetView>>,
    /// The names of the sets with each claim, by namespace and claim: both come from an annotation that any tenant can copy.
    held: HashMap<Key, BTreeSet<String>>,
    /// By [`set_id`].
    pods: HashMap<Arc<str>, PodsOfSet>,
    /// The [`set_id`] of each pod's set, to find the set when only the pod is known.
    owners: HashMap<Key, Arc<str>>,
    /// The newest version of a set that we wrote and the watch has not shown yet.
    written: HashMap<Key, u64>,
    /// The UID of a pod that we deleted and whose deletion the watch has not shown yet.
    removed: HashMap<Key, String>,
    /// The objects that may hold a claim, by UID.
    managers: HashMap<String, Target>,
    /// The UIDs of those that sts-plus-operator identifies by name.
    phased: HashMap<Key, String>,
}

/// The pods of one set.
#[derive(Default)]
struct PodsOfSet {
    /// The set's name.
    set: String,
    /// By name.
    rows: HashMap<String, Box<PodRow>>,
}

impl Inner {
    /// Removes a pod, and returns its set.
    fn remove_pod(&mut self, key: &Key) -> Option<(Changed, Box<PodRow>)> {
        let set = self.owners.remove(key)?;
        let pods = self.pods.get_mut(&set)?;
        let row = pods.rows.remove(&key.1)?;
        let told = changed((key.0.clone(), pods.set.clone()), None);
        if pods.rows.is_empty() {
            self.pods.remove(&set);
        }
        Some((told, row))
    }

    fn insert_set(&mut self, key: Key, set: SetView) -> Option<Arc<SetView>> {
        let before = self.remove_set(&key);
        if let Some(holder) = holder(&set) {
            let held = self.held.entry((key.0.clone(), holder)).or_default();
            held.insert(key.1.clone());
        }
        self.sets.insert(key, Arc::new(set));
        before
    }

    fn remove_set(&mut self, key: &Key) -> Option<Arc<SetView>> {
        let before = self.sets.remove(key)?;
        if let Some(holder) = holder(&before)
            && let Entry::Occupied(mut held) = self.held.entry((key.0.clone(), holder))
        {
            held.get_mut().remove(&key.1);
            if held.get().is_empty() {
                held.remove();
            }
        }
        Some(before)
    }
}

/// The holder of a set: the object in its claim, or in the annotation of sts-plus-operator, which may be stale without a guard.
fn holder(set: &SetView) -> Option<String> {
    let peers = set.peer_claim.as_deref().filter(|_| set.is_guarded());
    let claim = set.claim().map(str::to_owned);
    claim.or_else(|| peers.map(peer_holder))
}

fn peer_holder(name: &str) -> String {
    format!("{PEER_MANAGED_BY}/{name}")
}

/// Identifies a set among those of all namespaces. The UID alone does not: a pod names the UID of its owner itself, and a pod in
/// another namespace can name any.
fn set_id(namespace: &str, uid: &str) -> String {
    format!("{namespace}/{uid}")
}

/// The label that every pod of a StatefulSet has.
const POD_OF_A_SET: &str = "statefulset.kubernetes.io/pod-name";

/// How many pods a page of a list has: pods are the most numerous objects.
const PODS_PAGE: u32 = 25;

impl Caches {
    /// Empty caches, and the receiver of the sets that have changed.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Changed>) {
        let (changed, told) = mpsc::unbounded_channel();
        let caches = Self {
            inner: Arc::default(),
            changed,
            synced: Arc::new(watch::Sender::new(0)),
        };
        (caches, told)
    }

    /// Keeps the caches filled from one namespace, or from all. Never ends.
    pub async fn run(&self, client: Client, namespace: Option<&str>, watches: &Watches) {
        let namespace = namespace.unwrap_or_default();
        let sets = watcher::Config::default().page_size(stateward_client::PAGE);
        let sets = self.follow::<SetView>(api(&client, namespace), namespace, sets, watches);
        let pods = watcher::Config::default()
            .labels(POD_OF_A_SET)
            .page_size(PODS_PAGE);
        let pods = self.follow::<PodView>(api(&client, namespace), namespace, pods, watches);
        future::join(sets, pods).await;
    }

    /// Waits until both initial lists are complete.
    pub async fn synced(&self) {
        let mut synced = self.synced.subscribe();
        // We hold the sender, so it cannot be dropped.
        let _ = synced.wait_for(|watches| *watches == 2).await;
    }

    async fn follow<K: Cached>(
        &self,
        api: Api<K>,
        namespace: &str,
        config: watcher::Config,
        watches: &Watches,
    ) {
        let path = api.resource_url().to_owned();
        let mut listed: Vec<K::Kept> = Vec::new();
        let mut first = true;
        let mut events = watcher(api, config)
            .default_backoff()
            .inspect(|told| watches.note(&path, told))
            .boxed();
        loop {
            match events.try_next().await {
                Ok(Some(watcher::Event::Init)) => listed.clear(),
                Ok(Some(watcher::Event::InitApply(object))) => listed.extend(object.keep()),
                Ok(Some(watcher::Event::InitDone)) => {
                    let changed = K::replace(&mut self.lock(), namespace, std::mem::take(&mut listed));
                    self.tell(changed);
                    if std::mem::take(&mut first) {
                        self.synced.send_modify(|count| *count += 1);
                    }
                }
                Ok(Some(watcher::Event::Apply(object))) => {
                    let changed = object.keep().and_then(|kept| K::put(kept, &mut self.lock()));
                    self.tell(changed);
                }
                Ok(Some(watcher::Event::Delete(object))) => {
                    let changed = object.keep().and_then(|kept| K::take(kept, &mut self.lock()));
                    self.tell(changed);
                }
                Ok(None) => return,
                // Recorded above; the watch retries.
                Err(_) => {}
            }
        }
    }

    fn tell(&self, changed: impl IntoIterator<Item = Changed>) {
        for changed in changed {
            // The receiver is gone only when the operator shuts down.
            let _ = self.changed.send(changed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    pub(super) fn set(&self, namespace: &str, name: &str) -> Option<Arc<SetView>> {
        self.lock().sets.get(&key(namespace, name)).cloned()
    }

    /// Another set that the target's manager holds, if there is one. Ignores sets that we have written until the watch has shown
    /// the write.
    pub(super) fn held_elsewhere(&self, target: &Target) -> Option<String> {
        let manager = &target.manager;
        let peers = (manager.kind == read::PHASED).then(|| peer_holder(&manager.name));
        let holders = [Some(manager.claim()), peers];
        let inner = self.lock();
        let mut held = holders
            .into_iter()
            .flatten()
            .filter_map(|holder| inner.held.get(&(target.namespace.clone(), holder)))
            .flatten();
        let elsewhere = held.find(|name| {
            let key = key(&target.namespace, name);
            let written = inner.written.get(&key).copied().unwrap_or(0);
            let seen = inner.sets.get(&key).map_or(0, |set| version(set.as_ref()));
            **name != target.name && seen >= written
        });
        elsewhere.cloned()
    }

    /// Records an object that may hold a claim, and the workload that it references.
    pub fn manager_lives(&self, target: Target) {
        let mut inner = self.lock();
        let Manager { kind, name, uid } = &target.manager;
        if kind == read::PHASED {
            inner.phased.insert(key(&target.namespace, name), uid.clone());
        }
        inner.managers.insert(uid.clone(), target);
    }

    /// Triggers a reconcile of every object that is interested in a set.
    pub fn touch(&self, namespace: &str, name: &str) {
        self.tell([changed(key(namespace, name), None)]);
    }

    /// Records that an object is deleted.
    pub fn manager_gone(&self, uid: &str) {
        let mut inner = self.lock();
        let Some(gone) = inner.managers.remove(uid) else {
            return;
        };
        // Another object may have its name by now.
        if let Entry::Occupied(of_that_name) = inner.phased.entry(key(&gone.namespace, &gone.manager.name))
            && of_that_name.get() == uid
        {
            of_that_name.remove();
        }
    }

    /// Records the version of our write to a set.
    pub(super) fn wrote_set(&self, namespace: &str, name: &str, version: Option<String>) {
        let Some(version) = version.and_then(|version| version.parse::<u64>().ok()) else {
            return;
        };
        let mut inner = self.lock();
        let newest = inner.written.entry(key(namespace, name)).or_default();
        *newest = version.max(*newest);
    }

    /// The version of this pod in the cache, unless it is Ready there.
    pub(super) fn version_not_ready(&self, namespace: &str, name: &str, uid: &str) -> Option<String> {
        let inner = self.lock();
        let pods = inner.pods.get(inner.owners.get(&key(namespace, name))?)?;
        let pod = pods.rows.get(name)?;
        (pod.uid == uid && pod.status.ready_since.is_none()).then(|| pod.version.clone())
    }

    /// Records that we have deleted this pod.
    pub(super) fn removed_pod(&self, namespace: &str, name: &str, uid: &str) {
        let mut inner = self.lock();
        inner.removed.insert(key(namespace, name), uid.to_owned());
    }

    /// The set and its pods. `None` while the cache is older than our own writes.
    pub(super) fn observe(&self, target: &Target) -> Option<Observation> {
        let mut inner = self.lock();
        let here = key(&target.namespace, &target.name);
        let Some(set) = inner.sets.get(&here).cloned() else {
            return Some(Observation {
                workload: Err(NoWorkload::Missing(format!("StatefulSet {}", target.name))),
                version: Version::default(),
            });
        };
        if let Entry::Occupied(written) = inner.written.entry(here) {
            if version(set.as_ref()) < *written.get() {
                return None;
            }
            written.remove();
        }
        let none = HashMap::new();
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        let Inner {
            pods,
            removed,
            managers,
            phased,
            ..
        } = &mut *inner;
        let pods = pods
            .get(set_id(&target.namespace, uid).as_str())
            .map_or(&none, |pods| &pods.rows);
        for (name, pod) in pods {
            if let Entry::Occupied(gone) = removed.entry(key(&target.namespace, name)) {
                if pod.uid == *gone.get() && !pod.terminating {
                    return None;
                }
                gone.remove();
            }
        }
        let lives = |named: Named<'_>| match named {
            Named::Uid(uid) => managers
                .get(uid)
                .is_some_and(|other| other.namespace == target.namespace),
            Named::Phased(name) => phased
                .get(&key(&target.namespace, name))
                .and_then(|uid| managers.get(uid))
                .is_some_and(|other| other.name == target.name),
        };
        Some(Observation {
            workload: read::workload(
                &set,
                pods.iter().map(|(name, pod)| (name.as_str(), &**pod)),
                &target.manager,
                lives,
            ),
            version: Version(set.resource_version().unwrap_or_default()),
        })
    }
}

fn api<K>(client: &Client, namespace: &str) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    if namespace.is_empty() {
        Api::all(client.clone())
    } else {
        Api::namespaced(client.clone(), namespace)
    }
}

fn key(namespace: &str, name: &str) -> Key {
    (namespace.to_owned(), name.to_owned())
}

fn key_of(object: &impl Resource<DynamicType = ()>) -> Key {
    let meta = object.meta();
    key(
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    )
}

/// Resource versions increase; one that is not a number counts as 0.
fn version(object: &impl Resource<DynamicType = ()>) -> u64 {
    let version = object.meta().resource_version.as_deref();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or(u64::MAX)
}

/// A kind of object that the caches hold.
trait Cached:
    Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
    + Clone
    + DeserializeOwned
    + std::fmt::Debug
    + Send
    + 'static
{
    /// The part that is kept.
    type Kept: Send;

    /// `None` for an object that is not relevant.
    fn keep(self) -> Option<Self::Kept>;

    /// Inserts an object, and returns the set that changed.
    fn put(kept: Self::Kept, inner: &mut Inner) -> Option<Changed>;

    /// Removes an object.
    fn take(kept: Self::Kept, inner: &mut Inner) -> Option<Changed>;

    /// Replaces everything in `namespace` with `all`.
    fn replace(inner: &mut Inner, namespace: &str, all: Vec<Self::Kept>) -> Vec<Changed>;
}

fn changed((namespace, name): Key, holder: Option<String>) -> Changed {
    Changed {
        namespace,
        name,
        holder,
    }
}

impl Cached for SetView {
    type Kept = Self;

    fn keep(self) -> Option<Self> {
        Some(self)
    }

    fn put(set: Self, inner: &mut Inner) -> Option<Changed> {
        let key = key_of(&set);
        let holder = set.holder();
        let before = inner.insert_set(key.clone(), set);
        let holder = holder.or_else(|| before?.holder());
        Some(changed(key, holder))
    }

    fn take(set: Self, inner: &mut Inner) -> Option<Changed> {
        let key = key_of(&set);
        inner.remove_set(&key);
        inner.written.remove(&key);
        Some(changed(key, set.holder()))
    }

    fn replace(inner: &mut Inner, namespace: &str, all: Vec<Self>) -> Vec<Changed> {
        let here = |key: &Key| namespace.is_empty() || key.0 == namespace;
        let before = inner.sets.iter().filter(|(key, _)| here(key));
        let mut told: Vec<_> = before.map(|(key, set)| (key.clone(), set.holder())).collect();
        for (key, _) in &told {
            inner.remove_set(key);
        }
        for set in all {
            let key = key_of(&set);
            told.push((key.clone(), set.holder()));
            inner.insert_set(key, set);
        }
        told.sort();
        told.dedup();
        told.into_iter()
            .map(|(key, holder)| changed(key, holder))
            .collect()
    }
}

impl Cached for PodView {
    type Kept = Owned;

    fn keep(self) -> Option<Owned> {
        self.owned()
    }

    fn put(pod: Owned, inner: &mut Inner) -> Option<Changed> {
        let Owned { key, owner, row } = pod;
        let set = set_id(&key.0, &owner.uid);
        // A pod of the same name may belong to a new set of the same name.
        if inner.owners.get(&key).is_some_and(|before| **before != *set) {
            inner.remove_pod(&key);
        }
        let known = inner.pods.get_key_value(set.as_str());
        let set = known.map_or_else(|| Arc::from(set.as_str()), |(set, _)| Arc::clone(set));
        inner.owners.insert(key.clone(), Arc::clone(&set));
        let (namespace, name) = key;
        let pods = inner.pods.entry(set).or_default();
        pods.set.clone_from(&owner.name);
        let row = match pods.rows.get(&name) {
            Some(before) => row.after(before),
            None => row,
        };
        pods.rows.insert(name, Box::new(row));
        Some(changed((namespace, owner.name), None))
    }

    fn take(pod: Owned, inner: &mut Inner) -> Option<Changed> {
        inner.removed.remove(&pod.key);
        inner.remove_pod(&pod.key).map(|(changed, _)| changed)
    }

    fn replace(inner: &mut Inner, namespace: &str, all: Vec<Owned>) -> Vec<Changed> {
        let here = |key: &Key| namespace.is_empty() || key.0 == namespace;
        let gone: Vec<Key> = inner.owners.keys().filter(|key| here(key)).cloned().collect();
        let mut told = Vec::new();
        let mut before = HashMap::new();
        for key in gone {
            let (changed, row) = inner.remove_pod(&key).unzip();
            told.extend(changed);
            before.extend(row.map(|row| (key, row)));
        }
        told.extend(all.into_iter().filter_map(|mut pod| {
            if let Some(before) = before.get(&pod.key) {
                pod.row = pod.row.after(before);
            }
            Self::put(pod, inner)
        }));
        // Pods that were deleted while the watch was down have no event.
        let Inner { owners, removed, .. } = inner;
        removed.retain(|key, _| !here(key) || owners.contains_key(key));
        told.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
        told.dedup();
        told
    }
}

#[cfg(test)]
mod tests {
    use super::super::MANAGED_BY;
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};
    use stateward_core::workload::Claim;

    fn target() -> Target {
        Target {
            namespace: "ns".into(),
            name: "db".into(),
            manager: Manager {
                kind: "RolloutPlugin".into(),
                name: "db".into(),
                uid: "us".into(),
            },
        }
    }

    fn set_manifest(version: &str) -> Value {
        json!({
            "metadata": {"name": "db", "namespace": "ns", "uid": "set", "resourceVersion": version},
            "spec": {"template": {}, "updateStrategy": {"type": "RollingUpdate"}},
            "status": {"updateRevision": "a"},
        })
    }

    fn set(version: &str) -> SetView {
        serde_json::from_value(set_manifest(version)).unwrap()
    }

    fn pod_manifest(uid: &str) -> Value {
        let owner = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "set", "controller": true,
        });
        json!({"metadata": {"name": "db-0", "namespace": "ns", "uid": uid, "ownerReferences": [owner]}})
    }

    fn pod(uid: &str, leaves: bool) -> PodView {
        let mut pod = pod_manifest(uid);
        if leaves {
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        serde_json::from_value(pod).unwrap()
    }

    /// A pod whose container waits for this reason.
    fn waiting(uid: &str, reason: &str, message: &str) -> PodView {
        let mut pod = pod_manifest(uid);
        let container = json!({
            "name": "db", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": reason, "message": message}},
        });
        pod["status"] = json!({"phase": "Pending", "containerStatuses": [container]});
        serde_json::from_value(pod).unwrap()
    }

    /// A kubelet that fails to pull an image alternates between two reasons, with another port in every message.
    #[test]
    fn an_image_that_cannot_be_pulled_is_one_trouble() {
        let (caches, _changed) = Caches::new();
        put(&caches, set("7"));
        let shown = || {
            caches
                .observe(&target())
                .unwrap()
                .workload
                .unwrap()
                .pods
                .remove(0)
        };
        put(&caches, waiting("1", "ErrImagePull", "port 1"));
        assert_eq!(shown().trouble, None, "the second try follows");
        put(&caches, waiting("1", "ImagePullBackOff", "port 2"));
        let broken = shown();
        assert!(broken.trouble.is_some());
        put(&caches, waiting("1", "ErrImagePull", "port 3"));
        assert_eq!(shown().trouble, broken.trouble);
        put(&caches, waiting("1", "ImagePullBackOff", "port 4"));
        assert_eq!(shown().trouble, broken.trouble);
        // Also after a relist.
        let listed = waiting("1", "ErrImagePull", "port 5").keep().unwrap();
        PodView::replace(&mut caches.lock(), "", vec![listed]);
        assert_eq!(shown().trouble, broken.trouble);
        put(&caches, waiting("1", "ContainerCreating", ""));
        assert_eq!(shown().trouble, None, "the image is there");
        put(&caches, waiting("1", "ImagePullBackOff", "port 6"));
        put(&caches, waiting("2", "ErrImagePull", "port 7"));
        assert_eq!(shown().trouble, None, "another pod of that name");
    }

    fn put<K: Cached>(caches: &Caches, object: K) {
        K::put(object.keep().unwrap(), &mut caches.lock());
    }

    /// Rule 16
    #[test]
    fn a_set_is_not_shown_before_our_own_write_is_back() {
        let (caches, _changed) = Caches::new();
        put(&caches, set("7"));
        assert!(caches.observe(&target()).is_some());
        caches.wrote_set("ns", "db", Some("9".into()));
        put(&caches, set("8"));
        assert!(caches.observe(&target()).is_none());
        put(&caches, set("9"));
        assert!(caches.observe(&target()).is_some());
    }

    /// Rule 16
    #[test]
    fn a_pod_that_we_removed_is_not_shown_as_if_it_stayed() {
        let (caches, _changed) = Caches::new();
        put(&caches, set("7"));
        put(&caches, pod("1", false));
        caches.removed_pod("ns", "db-0", "1");
        assert!(caches.observe(&target()).is_none());
        put(&caches, pod("1", true));
        assert!(caches.observe(&target()).is_some());
        caches.removed_pod("ns", "db-0", "1");
        put(&caches, pod("2", false));
        assert!(
            caches.observe(&target()).is_some(),
            "another one has taken its place"
        );
    }

    #[test]
    fn a_set_is_that_of_the_phasedrollout_that_another_operator_names_while_it_is_meant_for_it() {
        let (caches, _changed) = Caches::new();
        let mut named = set("7");
        named.peer_claim = Some("first".into());
        put(&caches, named);
        let claim = || caches.observe(&target()).unwrap().workload.unwrap().claim;
        let phased = |uid: &str, kind: &str, set: &str| Target {
            name: set.into(),
            manager: Manager {
                kind: kind.into(),
                name: "first".into(),
                uid: uid.into(),
            },
            ..target()
        };
        caches.manager_lives(phased("0", "RolloutPlugin", "db"));
        assert_eq!(claim(), Claim::Free, "that is another kind");
        caches.manager_lives(phased("1", "PhasedRollout", "db"));
        assert_eq!(
            claim(),
            Claim::Other("PhasedRollout first, as its annotation sts.plus/phasedRollout says".into())
        );
        caches.manager_lives(phased("1", "PhasedRollout", "cache"));
        assert_eq!(claim(), Claim::Free, "it is meant for another set");
        caches.manager_lives(phased("2", "PhasedRollout", "db"));
        caches.manager_gone("1");
        assert_eq!(
            claim(),
            Claim::Other("PhasedRollout first, as its annotation sts.plus/phasedRollout says".into()),
            "another one has taken its name"
        );
        caches.manager_gone("2");
        assert_eq!(claim(), Claim::Free);
    }

    /// An object in another namespace that copies every name and UID that a tenant can write.
    fn elsewhere<K: DeserializeOwned>(mut object: Value, changes: Value) -> K {
        json_patch::merge(&mut object, &json!({"metadata": {"namespace": "other"}}));
        json_patch::merge(&mut object, &changes);
        serde_json::from_value(object).unwrap()
    }

    /// The creator of a pod writes its owner references, so a pod in another namespace can name any set.
    #[test]
    fn a_pod_of_another_namespace_is_not_counted_and_its_deletion_hides_none() {
        let (caches, _changed) = Caches::new();
        put(&caches, set("7"));
        put(&caches, pod("1", false));
        let forged = || elsewhere::<PodView>(pod_manifest("2"), json!({}));
        let second = elsewhere::<PodView>(pod_manifest("3"), json!({"metadata": {"name": "db-1"}}));
        put(&caches, forged());
        put(&caches, second);
        let uids = || {
            let pods = caches.observe(&target()).unwrap().workload.unwrap().pods;
            pods.into_iter().map(|pod| pod.uid).collect::<Vec<_>>()
        };
        assert_eq!(uids(), ["1"]);
        PodView::take(forged().keep().unwrap(), &mut caches.lock());
        assert_eq!(uids(), ["1"]);
    }

    #[rstest]
    #[case::another_group(json!({"apiVersion": "example.com/v1"}))]
    #[case::another_kind(json!({"kind": "ReplicaSet"}))]
    #[case::not_its_controller(json!({"controller": false}))]
    fn a_pod_counts_only_for_the_set_that_controls_it(#[case] change: Value) {
        let mut pod = pod_manifest("1");
        json_patch::merge(&mut pod["metadata"]["ownerReferences"][0], &change);
        let pod: PodView = serde_json::from_value(pod).unwrap();
        assert!(pod.keep().is_none());
    }

    /// The claim is an annotation, so a user who may write a set can copy it from another one.
    #[rstest]
    #[case::our_claim(json!({"metadata": {"name": "copy", "annotations": {MANAGED_BY: "RolloutPlugin/db/us"}}}))]
    #[case::of_sts_plus(json!({
        "metadata": {"name": "copy", "annotations": {PEER_MANAGED_BY: "db"}},
        "spec": {"replicas": 1, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
    }))]
    fn a_claim_in_another_namespace_is_not_held(#[case] change: Value) {
        for kind in ["RolloutPlugin", "PhasedRollout"] {
            let (caches, _changed) = Caches::new();
            put(&caches, set("7"));
            put(&caches, elsewhere::<SetView>(set_manifest("8"), change.clone()));
            let mut target = target();
            target.manager.kind = kind.into();
            assert_eq!(caches.held_elsewhere(&target), None, "{kind}");
        }
    }

    /// A set may name any UID in its annotation: the UID of an object in another namespace does not prevent claiming the set.
    #[test]
    fn a_claim_by_an_object_of_another_namespace_blocks_nobody() {
        let (caches, _changed) = Caches::new();
        let mut claimed = set_manifest("7");
        claimed["metadata"]["annotations"] = json!({MANAGED_BY: "RolloutPlugin/theirs/them"});
        put(&caches, serde_json::from_value::<SetView>(claimed).unwrap());
        let theirs = |namespace: &str| Target {
            namespace: namespace.into(),
            name: "db".into(),
            manager: Manager {
                kind: "RolloutPlugin".into(),
                name: "theirs".into(),
                uid: "them".into(),
            },
        };
        let claim = || caches.observe(&target()).unwrap().workload.unwrap().claim;
        caches.manager_lives(theirs("other"));
        assert_eq!(claim(), Claim::Free);
        caches.manager_lives(theirs("ns"));
        assert_eq!(claim(), Claim::Other("RolloutPlugin theirs".into()));
    }

    #[test]
    fn a_pod_that_went_while_nobody_watched_is_not_waited_for() {
        let (caches, _changed) = Caches::new();
        put(&caches, set("7"));
        put(&caches, pod("1", false));
        caches.removed_pod("ns", "db-0", "1");
        PodView::replace(&mut caches.lock(), "other", vec![]);
        assert!(caches.observe(&target()).is_none(), "that is another namespace");
        PodView::replace(&mut caches.lock(), "ns", vec![pod("1", false).keep().unwrap()]);
        assert!(caches.observe(&target()).is_none(), "it is still there");
        PodView::replace(&mut caches.lock(), "", vec![]);
        assert!(caches.observe(&target()).is_some());
        assert!(caches.lock().removed.is_empty());
    }
}
