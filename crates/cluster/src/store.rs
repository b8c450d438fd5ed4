//! The store: every object, and the log of changes.
//!
//! All writes go through [`Store::write`], one at a time, and each gets the next number of a single sequence: the object's
//! `resourceVersion`. Watch events, lists at an older version and the "too old" error are all derived from the same log. Objects are JSON
//! behind `Arc`, so a reader never blocks a writer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::json::Value;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, watch};

use crate::hash::Table;
use crate::object::{self, Object};
use crate::patch::Managers;

/// The storage of one kind. Kinds that share storage, such as the two Events, share a shelf.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shelf(Arc<str>);

impl Shelf {
    pub(crate) fn new(group: &str, plural: &str) -> Self {
        Self(if group.is_empty() {
            plural.into()
        } else {
            format!("{plural}.{group}").into()
        })
    }

    /// `pods`, `statefulsets.apps`
    pub(crate) fn name(&self) -> Arc<str> {
        self.0.clone()
    }
}

/// The key of an object on its shelf. Cluster-scoped ones have an empty namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// One committed write.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    /// The object after the write; for a deletion its last state, with the deletion's own resourceVersion.
    pub(crate) object: Object,
    /// The object before the write.
    pub(crate) previous: Option<Object>,
    pub(crate) deleted: bool,
}

/// The log no longer has that revision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expired;

/// Changes kept per shelf. A client that is further behind lists again, as with a real server. Each keeps an old object alive, so a long
/// log is most of the memory of a large cluster.
const LOG_LIMIT: usize = 5_000;

/// A revisioned map of JSON objects.
#[derive(Default)]
pub(crate) struct Store {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    revision: u64,
    shelves: Table<Shelf, Contents>,
    feeds: Vec<mpsc::UnboundedSender<(Shelf, Arc<Change>)>>,
}

impl Inner {
    /// Records a change and notifies all followers of the store.
    fn record(&mut self, shelf: &Shelf, change: Change) {
        let change = Arc::new(change);
        self.feeds
            .retain(|feed| feed.send((shelf.clone(), change.clone())).is_ok());
        self.shelves.entry(shelf.clone()).or_default().record(change);
    }
}

struct Contents {
    objects: BTreeMap<Key, Object>,
    /// The objects of a namespace by the UID of their controller, and by name. Orphans are under the empty UID.
    families: BTreeMap<(String, String), BTreeMap<String, Object>>,
    log: VecDeque<Arc<Change>>,
    /// The newest revision that was dropped from the log.
    forgotten: u64,
    grown: watch::Sender<u64>,
}

impl Default for Contents {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            families: BTreeMap::new(),
            log: VecDeque::new(),
            forgotten: 0,
            grown: watch::Sender::new(0),
        }
    }
}

impl Store {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Runs `work` with exclusive access to the store. Its writes stay even if it then fails: callers write last.
    pub(crate) fn write<T>(&self, work: impl FnOnce(&mut Transaction<'_>) -> T) -> T {
        let mut inner = self.inner();
        work(&mut Transaction { inner: &mut inner })
    }

    /// The newest revision.
    pub(crate) fn revision(&self) -> u64 {
        self.inner().revision
    }

    /// The newest revision of a shelf; zero if nothing was ever written to it.
    pub(crate) fn newest(&self, shelf: &Shelf) -> u64 {
        self.inner()
            .shelves
            .get(shelf)
            .map_or(0, |contents| *contents.grown.borrow())
    }

    /// One object.
    pub(crate) fn get(&self, shelf: &Shelf, key: &Key) -> Option<Object> {
        self.inner().shelves.get(shelf)?.objects.get(key).cloned()
    }

    /// The objects of one namespace (or of all), by key, with the revision they were read at.
    pub(crate) fn list(&self, shelf: &Shelf, namespace: Option<&str>) -> (Vec<Object>, u64) {
        let inner = self.inner();
        let objects = inner
            .shelves
            .get(shelf)
            .map(|contents| contents.in_namespace(namespace).cloned().collect());
        (objects.unwrap_or_default(), inner.revision)
    }

    /// The objects of a namespace that this controller owns or might adopt, by name: its own, and those without a controller.
    pub(crate) fn list_claimable(&self, shelf: &Shelf, namespace: &str, controller_uid: &str) -> Vec<Object> {
        let inner = self.inner();
        let contents = inner.shelves.get(shelf);
        contents
            .map(|contents| contents.claimable(namespace, controller_uid))
            .unwrap_or_default()
    }

    /// The same list as it was at an older revision.
    pub(crate) fn list_at(
        &self,
        shelf: &Shelf,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Vec<Object>, Expired> {
        let inner = self.inner();
        let Some(contents) = inner.shelves.get(shelf) else {
            return Ok(Vec::new());
        };
        let mut objects: BTreeMap<&Key, &Object> = contents.objects.iter().collect();
        for change in contents.since(revision)?.rev() {
            match &change.previous {
                Some(previous) => objects.insert(&change.key, previous),
                None => objects.remove(&change.key),
            };
        }
        let here = |key: &Key| namespace.is_none_or(|namespace| key.namespace == namespace);
        Ok(objects
            .into_iter()
            .filter(|(key, _)| here(key))
            .map(|(_, object)| object.clone())
            .collect())
    }

    /// The commits to a shelf after `revision`, oldest first, and the revision up to which they are complete.
    pub(crate) fn since(&self, shelf: &Shelf, revision: u64) -> Result<(Vec<Arc<Change>>, u64), Expired> {
        let inner = self.inner();
        match inner.shelves.get(shelf) {
            Some(contents) => Ok((contents.since(revision)?.cloned().collect(), inner.revision)),
            None => Ok((Vec::new(), inner.revision)),
        }
    }

    /// Wakes at every commit to a shelf.
    pub(crate) fn growth(&self, shelf: &Shelf) -> watch::Receiver<u64> {
        self.inner()
            .shelves
            .entry(shelf.clone())
            .or_default()
            .grown
            .subscribe()
    }

    /// Every future change to every shelf, in order: the input of controllers.
    pub(crate) fn feed(&self) -> mpsc::UnboundedReceiver<(Shelf, Arc<Change>)> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.inner().feeds.push(sender);
        receiver
    }

    /// Drops the log up to now, like a compaction of etcd: a client that is behind must list again.
    pub(crate) fn compact(&self) {
        let mut inner = self.inner();
        let revision = inner.revision;
        for contents in inner.shelves.values_mut() {
            contents.log.clear();
            contents.forgotten = revision;
        }
    }
}

impl Contents {
    fn in_namespace(&self, namespace: Option<&str>) -> impl Iterator<Item = &Object> {
        // Keys sort by namespace first, so one namespace is one range.
        let (from, to) = match namespace {
            Some(namespace) => (Key::new(namespace, ""), Some(namespace)),
            None => (Key::new("", ""), None),
        };
        let inside = move |key: &Key| to.is_none_or(|namespace| key.namespace == namespace);
        self.objects
            .range(from..)
            .take_while(move |(key, _)| inside(key))
            .map(|(_, object)| object)
    }

    fn claimable(&self, namespace: &str, controller_uid: &str) -> Vec<Object> {
        let mut family = (namespace.to_owned(), String::new());
        let orphans = self.families.get(&family);
        family.1.push_str(controller_uid);
        let own = self.families.get(&family).filter(|_| !controller_uid.is_empty());
        let mut members: Vec<_> = [orphans, own].into_iter().flatten().flatten().collect();
        members.sort_by_key(|(name, _)| *name);
        members.into_iter().map(|(_, object)| object.clone()).collect()
    }

    fn insert(&mut self, key: &Key, object: Object) -> Option<Object> {
        let family = object::controller_uid(&object).to_owned();
        let previous = self.objects.insert(key.clone(), object.clone());
        let moved = previous
            .as_deref()
            .is_some_and(|previous| object::controller_uid(previous) != family);
        if moved {
            self.leave_family(key, previous.as_deref());
        }
        let members = self.families.entry((key.namespace.clone(), family));
        members.or_default().insert(key.name.clone(), object);
        previous
    }

    fn remove(&mut self, key: &Key) -> Option<Object> {
        let previous = self.objects.remove(key);
        self.leave_family(key, previous.as_deref());
        previous
    }

    fn leave_family(&mut self, key: &Key, object: Option<&Value>) {
        let Some(object) = object else { return };
        let family = (key.namespace.clone(), object::controller_uid(object).to_owned());
        if let Some(names) = self.families.get_mut(&family) {
            names.remove(&key.name);
            if names.is_empty() {
                self.families.remove(&family);
            }
        }
    }

    fn since(&self, revision: u64) -> Result<impl DoubleEndedIterator<Item = &Arc<Change>>, Expired> {
        if revision < self.forgotten {
            return Err(Expired);
        }
        let first = self.log.partition_point(|change| change.revision <= revision);
        Ok(self.log.range(first..))
    }

    fn record(&mut self, change: Arc<Change>) {
        if self.log.len() == LOG_LIMIT
            && let Some(oldest) = self.log.pop_front()
        {
            self.forgotten = oldest.revision;
        }
        self.grown.send_replace(change.revision);
        self.log.push_back(change);
    }
}

/// Exclusive access to the store for one writer.
pub(crate) struct Transaction<'s> {
    inner: &'s mut Inner,
}

impl Transaction<'_> {
    pub(crate) fn get(&self, shelf: &Shelf, key: &Key) -> Option<&Object> {
        self.inner.shelves.get(shelf)?.objects.get(key)
    }

    /// Whether an object was never updated since its creation, as far as the log goes back.
    pub(crate) fn is_as_made(&self, shelf: &Shelf, key: &Key) -> bool {
        let mut log = self
            .inner
            .shelves
            .get(shelf)
            .into_iter()
            .flat_map(|contents| contents.log.iter().rev());
        log.find(|change| change.key == *key)
            .is_some_and(|last| last.previous.is_none())
    }

    /// The objects of one namespace, or of all.
    pub(crate) fn list(&self, shelf: &Shelf, namespace: Option<&str>) -> Vec<Object> {
        let contents = self.inner.shelves.get(shelf);
        contents
            .map(|contents| contents.in_namespace(namespace).cloned().collect())
            .unwrap_or_default()
    }

    /// Stores an object and sets its resourceVersion.
    pub(crate) fn put(
        &mut self,
        shelf: &Shelf,
        key: Key,
        object: Value,
        managers: impl Into<Arc<Managers>>,
    ) -> Object {
        let (revision, object) = self.stamp(object, managers);
        let contents = self.inner.shelves.entry(shelf.clone()).or_default();
        let previous = contents.insert(&key, object.clone());
        self.inner.record(
            shelf,
            Change {
                revision,
                key,
                object: object.clone(),
                previous,
                deleted: false,
            },
        );
        object
    }

    /// Deletes an object. `last` is its last state in watch events.
    pub(crate) fn remove(
        &mut self,
        shelf: &Shelf,
        key: &Key,
        last: Value,
        managers: impl Into<Arc<Managers>>,
    ) -> Object {
        let (revision, object) = self.stamp(last, managers);
        let contents = self.inner.shelves.entry(shelf.clone()).or_default();
        let previous = contents.remove(key);
        let change = Change {
            revision,
            key: key.clone(),
            object: object.clone(),
            previous,
            deleted: true,
        };
        self.inner.record(shelf, change);
        object
    }

    fn stamp(&mut self, mut object: Value, managers: impl Into<Arc<Managers>>) -> (u64, Object) {
        self.inner.revision += 1;
        object["metadata"]["resourceVersion"] = self.inner.revision.to_string().into();
        (self.inner.revision, Object::new(object, managers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    fn pods() -> Shelf {
        Shelf::new("", "pods")
    }

    fn put(store: &Store, namespace: &str, name: &str, image: &str) {
        store.write(|tx| {
            tx.put(
                &pods(),
                Key::new(namespace, name),
                json!({"metadata": {"name": name}, "image": image}),
                Managers::default(),
            )
        });
    }

    fn images(objects: &[Object]) -> Vec<&str> {
        objects
            .iter()
            .filter_map(|object| object["image"].as_str())
            .collect()
    }

    #[test]
    fn a_list_at_an_older_revision_shows_what_was_there() {
        let store = Store::default();
        put(&store, "a", "x", "v1");
        put(&store, "a", "y", "v1");
        put(&store, "a", "x", "v2");
        store.write(|tx| {
            tx.remove(
                &pods(),
                &Key::new("a", "y"),
                json!({"metadata": {}}),
                Managers::default(),
            )
        });
        put(&store, "a", "z", "v3");

        assert_eq!(images(&store.list(&pods(), Some("a")).0), ["v2", "v3"]);
        assert_eq!(
            images(&store.list_at(&pods(), Some("a"), 2).unwrap()),
            ["v1", "v1"]
        );
        assert_eq!(
            images(&store.list_at(&pods(), Some("a"), 3).unwrap()),
            ["v2", "v1"]
        );
        assert_eq!(
            images(&store.list_at(&pods(), Some("a"), 0).unwrap()),
            [] as [&str; 0]
        );
    }

    #[test]
    fn a_namespace_is_not_its_prefix() {
        let store = Store::default();
        put(&store, "a", "x", "a");
        put(&store, "ab", "x", "ab");
        assert_eq!(images(&store.list(&pods(), Some("a")).0), ["a"]);
        assert_eq!(images(&store.list(&pods(), None).0), ["a", "ab"]);
    }

    #[test]
    fn a_controller_may_claim_its_own_and_orphans() {
        let store = Store::default();
        let put = |namespace: &str, name: &str, controller: Option<&str>| {
            let owners: Vec<_> = controller
                .into_iter()
                .flat_map(|uid| [json!({"uid": "other"}), json!({"uid": uid, "controller": true})])
                .collect();
            let pod = json!({"metadata": {"ownerReferences": owners}, "image": name});
            store.write(|tx| tx.put(&pods(), Key::new(namespace, name), pod, Managers::default()));
        };
        put("a", "mine", Some("u"));
        put("a", "nobodys", None);
        put("a", "anothers", Some("v"));
        put("a", "released", Some("u"));
        put("a", "released", Some("v"));
        put("a", "adopted", Some("v"));
        put("a", "adopted", Some("u"));
        put("a", "gone", Some("u"));
        store.write(|tx| {
            tx.remove(
                &pods(),
                &Key::new("a", "gone"),
                json!({"metadata": {}}),
                Managers::default(),
            )
        });
        put("b", "elsewhere", Some("u"));
        assert_eq!(
            images(&store.list_claimable(&pods(), "a", "u")),
            ["adopted", "mine", "nobodys"]
        );
    }

    #[test]
    fn changes_come_in_order_and_a_compacted_past_is_expired() {
        let store = Store::default();
        put(&store, "a", "x", "v1");
        put(&store, "a", "x", "v2");
        let (changes, complete) = store.since(&pods(), 1).unwrap();
        assert_eq!((changes.len(), changes[0].revision, complete), (1, 2, 2));

        store.compact();
        assert_eq!(store.since(&pods(), 1).unwrap_err(), Expired);
        assert!(store.since(&pods(), 2).is_ok());
    }
}
