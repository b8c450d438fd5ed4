//! Runs the controllers: one queue, one sync at a time, in the order of events.
//!
//! kube-controller-manager runs them concurrently with caches that lag. Here every read is current and the order is fixed, so that a run is
//! reproducible; a fault plan can still delay the whole manager.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::json::Value;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::recorder::Recorder;
use super::{Changed, Controller, Next};
use crate::access::{Access, EventKind, ResourceInfo};
use crate::audit::Body;
use crate::object;
use crate::server::{Caller, Change, Server, Target, WriteOptions};
use crate::status::Status;
use crate::store::{Key, Shelf};

/// The first delay after an error; each further one doubles it.
const FIRST_RETRY: Duration = Duration::from_millis(5);
const LONGEST_RETRY: Duration = Duration::from_secs(1000);

/// Runs `controllers` until the future is dropped.
pub(crate) async fn run(server: Arc<Server>, controllers: Vec<Box<dyn Controller>>) {
    let mut feed = server.store.feed();
    let mut manager = Manager::new(server, controllers);
    manager.adopt_what_is_there();
    loop {
        while let Ok((shelf, change)) = feed.try_recv() {
            manager.notice(&shelf, &change);
        }
        manager.wake_sleepers();
        if manager.sync_one() {
            // Let clients in this process run between two syncs.
            tokio::task::yield_now().await;
            continue;
        }
        if !manager.sleep(&mut feed).await {
            return;
        }
    }
}

type Item = (usize, Key);

struct Manager {
    server: Arc<Server>,
    controllers: Vec<(Box<dyn Controller>, Hands)>,
    queue: VecDeque<Item>,
    queued: BTreeSet<Item>,
    /// When each sleeping item wakes, and the same by time.
    wakes: BTreeMap<Item, Timestamp>,
    sleepers: BTreeSet<(Timestamp, Item)>,
    failures: BTreeMap<Item, u32>,
}

impl Manager {
    fn new(server: Arc<Server>, controllers: Vec<Box<dyn Controller>>) -> Self {
        let controllers = controllers.into_iter().map(|controller| {
            let hands = Hands::new(server.clone(), &*controller);
            (controller, hands)
        });
        Self {
            controllers: controllers.collect(),
            server,
            queue: VecDeque::new(),
            queued: BTreeSet::new(),
            wakes: BTreeMap::new(),
            sleepers: BTreeSet::new(),
            failures: BTreeMap::new(),
        }
    }

    /// A controller that has just started handles existing objects as changed.
    fn adopt_what_is_there(&mut self) {
        for resource in self.server.registry.all() {
            let (objects, _) = self.server.store.list(&resource.shelf, None);
            for object in objects {
                self.tell(&Changed {
                    resource: resource.shelf.name(),
                    before: None,
                    after: Some(object.value),
                });
            }
        }
    }

    fn notice(&mut self, shelf: &Shelf, change: &crate::store::Change) {
        let before = change.previous.as_ref().map(|previous| previous.value.clone());
        let object = change.object.value.clone();
        let changed = match change.deleted {
            false => Changed {
                resource: shelf.name(),
                before,
                after: Some(object),
            },
            true => Changed {
                resource: shelf.name(),
                before: Some(object),
                after: None,
            },
        };
        self.tell(&changed);
    }

    fn tell(&mut self, changed: &Changed) {
        let mut concerned = Vec::new();
        for (index, (controller, hands)) in self.controllers.iter().enumerate() {
            let watches = controller.watches();
            if watches
                .iter()
                .any(|resource| *resource == "*" || *resource == &*changed.resource)
            {
                let (keys, delay) = (controller.concerned(changed, hands), controller.delay(changed));
                concerned.extend(keys.into_iter().map(|key| ((index, key), delay)));
            }
        }
        for (item, delay) in concerned {
            if delay.is_zero() {
                self.enqueue(item)
            } else {
                self.put_to_sleep(item, delay)
            }
        }
    }

    /// Delays an item. Of several delays the one that ends first counts.
    fn put_to_sleep(&mut self, item: Item, delay: Duration) {
        let at = self.server.now().checked_add(delay).unwrap_or(Timestamp::MAX);
        match self.wakes.get(&item) {
            Some(earlier) if *earlier <= at => return,
            Some(later) => drop(self.sleepers.remove(&(*later, item.clone()))),
            None => {}
        }
        self.wakes.insert(item.clone(), at);
        self.sleepers.insert((at, item));
    }

    fn enqueue(&mut self, item: Item) {
        if self.queued.insert(item.clone()) {
            self.queue.push_back(item);
        }
    }

    fn wake_sleepers(&mut self) {
        let now = self.server.now();
        while let Some((at, _)) = self.sleepers.first()
            && *at <= now
        {
            if let Some((_, item)) = self.sleepers.pop_first() {
                self.wakes.remove(&item);
                self.enqueue(item);
            }
        }
    }

    /// Returns whether there was anything to sync.
    fn sync_one(&mut self) -> bool {
        let Some(item) = self.queue.pop_front() else {
            return false;
        };
        self.queued.remove(&item);
        let (index, key) = &item;
        let Some((controller, hands)) = self.controllers.get(*index) else {
            return true;
        };
        let delay = match controller.sync(key, hands) {
            Ok(Next::Wait) => {
                self.failures.remove(&item);
                return true;
            }
            Ok(Next::After(delay)) => {
                self.failures.remove(&item);
                delay
            }
            Err(status) => {
                let failures = self.failures.entry(item.clone()).or_default();
                let delay = FIRST_RETRY
                    .saturating_mul(1 << (*failures).min(20))
                    .min(LONGEST_RETRY);
                *failures += 1;
                tracing::debug!(controller = controller.name(), ?key, %status, "sync failed");
                delay
            }
        };
        self.put_to_sleep(item, delay);
        true
    }

    /// Waits for a change or for the next sleeping item; `false` if there can be no more changes.
    async fn sleep(
        &mut self,
        feed: &mut mpsc::UnboundedReceiver<(Shelf, Arc<crate::store::Change>)>,
    ) -> bool {
        let next = self.sleepers.first().map_or(Timestamp::MAX, |(at, _)| *at);
        let server = self.server.clone();
        tokio::select! {
            biased;
            news = feed.recv() => match news {
                Some((shelf, change)) => {
                    self.notice(&shelf, &change);
                    true
                }
                None => false,
            },
            () = server.clock.sleep_until(next), if next < Timestamp::MAX => true,
        }
    }
}

/// One controller's access to the server.
struct Hands {
    server: Arc<Server>,
    caller: Caller,
    recorder: Recorder,
}

impl Hands {
    fn new(server: Arc<Server>, controller: &dyn Controller) -> Self {
        let caller = Caller {
            user: "system:kube-controller-manager".to_owned(),
            agent: format!("kube-controller-manager/{}", controller.name()),
        };
        Self {
            server,
            caller,
            recorder: Recorder::of(controller.event_source()),
        }
    }

    fn target(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        subresource: &str,
    ) -> Result<Target, Status> {
        let resource = self
            .server
            .registry
            .by_id(resource)
            .ok_or_else(Status::no_such_path)?;
        Ok(Target {
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
        })
    }

    /// Executes a write and records it in the audit log, like a request over HTTP.
    fn write<T>(
        &self,
        verb: &str,
        target: &Target,
        body: impl Into<Body>,
        work: impl FnOnce() -> Result<T, Status>,
    ) -> Result<T, Status> {
        let outcome = work();
        let code = match &outcome {
            Ok(_) if verb == "create" => 201,
            Ok(_) => 200,
            Err(status) => status.code(),
        };
        self.server
            .audit
            .record(target.entry(&self.caller, verb, code), body.into());
        outcome
    }

    fn replace(&self, target: &Target, object: &Value) -> Result<Arc<Value>, Status> {
        self.write("update", target, object.clone(), || {
            self.modify(target, Change::Replace(object))
        })
    }

    fn modify(&self, target: &Target, change: Change<'_>) -> Result<Arc<Value>, Status> {
        let options = WriteOptions {
            manager: "kube-controller-manager".to_owned(),
            ..WriteOptions::default()
        };
        let written = self.server.modify(target, change, &options, &self.caller)?;
        Ok(written.object.value)
    }
}

impl Access for Hands {
    fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let resource = self.server.registry.by_id(resource)?;
        let object = self
            .server
            .store
            .get(&resource.shelf, &Key::new(namespace, name))?;
        Some(object.value)
    }

    fn list(&self, resource: &str, namespace: &str) -> Vec<Arc<Value>> {
        let Some(resource) = self.server.registry.by_id(resource) else {
            return Vec::new();
        };
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let (objects, _) = self.server.store.list(&resource.shelf, namespace);
        objects.into_iter().map(|object| object.value).collect()
    }

    fn list_claimable(&self, resource: &str, namespace: &str, controller_uid: &str) -> Vec<Arc<Value>> {
        let Some(resource) = self.server.registry.by_id(resource) else {
            return Vec::new();
        };
        let objects = self
            .server
            .store
            .list_claimable(&resource.shelf, namespace, controller_uid);
        objects.into_iter().map(|object| object.value).collect()
    }

    fn newest(&self, resource: &str) -> Option<u64> {
        let resource = self.server.registry.by_id(resource)?;
        Some(self.server.store.newest(&resource.shelf))
    }

    fn create(&self, resource: &str, namespace: &str, object: Value) -> Result<Arc<Value>, Status> {
        let target = self.target(resource, namespace, "", "")?;
        let options = WriteOptions {
            manager: "kube-controller-manager".to_owned(),
            ..WriteOptions::default()
        };
        self.write("create", &target, object.clone(), || {
            self.server
                .create(&target, &object, &options, &self.caller)
                .map(|written| written.object.value)
        })
    }

    fn update(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        object: Value,
    ) -> Result<Arc<Value>, Status> {
        self.replace(&self.target(resource, namespace, name, "")?, &object)
    }

    fn update_status(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        object: Value,
    ) -> Result<Arc<Value>, Status> {
        self.replace(&self.target(resource, namespace, name, "status")?, &object)
    }

    fn replace_status(&self, resource: &str, base: &Arc<Value>, status: Value) -> Result<Arc<Value>, Status> {
        let target = self.target(resource, object::namespace(base), object::name(base), "status")?;
        let change = Change::Status {
            base,
            status: &status,
        };
        let mut body = Value::clone(base);
        body["status"] = status.clone();
        self.write("update", &target, body, || self.modify(&target, change))
    }

    fn delete(&self, resource: &str, namespace: &str, name: &str, options: Value) -> Result<(), Status> {
        let target = self.target(resource, namespace, name, "")?;
        self.write("delete", &target, options.clone(), || {
            self.server.delete(&target, &options, false).map(drop)
        })
    }

    fn resources(&self) -> Vec<ResourceInfo> {
        let all = self.server.registry.all().into_iter();
        all.filter(|resource| {
            resource.verbs.iter().any(|verb| verb == "delete") && *resource.id == *resource.shelf.name()
        })
        .map(|resource| ResourceInfo {
            resource: resource.id.clone(),
            api_version: resource.api_version().into(),
            kind: resource.kind.as_str().into(),
            namespaced: resource.namespaced,
        })
        .collect()
    }

    fn finalize_namespace(&self, name: &str, object: Value) -> Result<Arc<Value>, Status> {
        self.replace(&self.target("namespaces", "", name, "finalize")?, &object)
    }

    fn event(&self, about: &Value, kind: EventKind, reason: &str, message: &str) {
        self.recorder
            .record(&self.server, &self.caller, about, kind, reason, message);
    }

    fn now(&self) -> Timestamp {
        self.server.now()
    }
}
