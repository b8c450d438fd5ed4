//! A minimal API server, to check what a sync writes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::json::{Value, json};
use jiff::{SignedDuration, Timestamp};

use super::super::object::{Metadata, REVISIONS, SETS, number, text};
use super::super::{Gates, MaxUnavailable, StatefulSets};
use super::build::{SetBuilder, template};
use crate::access::{Access, EventKind};
use crate::controllers::pod::PODS;
use crate::controllers::{Controller, Next};
use crate::object::{map, map_at};
use crate::status::{About, FieldError, Status};
use crate::store::Key;

pub(super) const NOW: &str = "2026-01-01T00:00:00Z";

pub(super) struct Lab {
    gates: Gates,
    state: Mutex<State>,
}

struct State {
    objects: BTreeMap<(String, String), Arc<Value>>,
    version: u64,
    now: Timestamp,
    writes: Vec<String>,
    events: Vec<String>,
    refused: BTreeMap<String, Status>,
}

fn about<'n>(resource: &'n str, name: &'n str) -> About<'n> {
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    About {
        group,
        plural,
        kind: plural,
        name,
    }
}

impl Lab {
    pub(super) fn new() -> Self {
        let now = NOW.parse().unwrap();
        let state = State {
            objects: BTreeMap::new(),
            version: 0,
            now,
            writes: Vec::new(),
            events: Vec::new(),
            refused: BTreeMap::new(),
        };
        Self {
            gates: Gates::default(),
            state: Mutex::new(state),
        }
    }

    pub(super) fn gate(mut self, max_unavailable: MaxUnavailable) -> Self {
        self.gates.max_unavailable = max_unavailable;
        self
    }

    pub(super) fn with(self, object: impl Into<(&'static str, Value)>) -> Self {
        let (resource, object) = object.into();
        self.put(resource, object);
        self
    }

    /// Rejects a write: `create pods db-1`.
    pub(super) fn refuse(self, write: &str, status: Status) -> Self {
        self.state().refused.insert(write.to_owned(), status);
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn put(&self, resource: &str, mut object: Value) -> Arc<Value> {
        let mut state = self.state();
        state.version += 1;
        object["metadata"]["resourceVersion"] = state.version.to_string().into();
        let object = Arc::new(object);
        state
            .objects
            .insert((resource.to_owned(), object.name().to_owned()), object.clone());
        object
    }

    pub(super) fn put_raw(&self, resource: &str, object: Value) {
        self.put(resource, object);
    }

    pub(super) fn sync(&self) -> Result<Next, Status> {
        StatefulSets::new(self.gates).sync(&Key::new("lab", "db"), self)
    }

    /// The writes of one successful sync, without its status.
    pub(super) fn synced(&self) -> Vec<String> {
        self.sync().unwrap();
        let writes = std::mem::take(&mut self.state().writes);
        writes
            .into_iter()
            .filter(|write| !write.contains("/status"))
            .collect()
    }

    pub(super) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.state().writes)
    }

    pub(super) fn events(&self) -> Vec<String> {
        std::mem::take(&mut self.state().events)
    }

    pub(super) fn object(&self, resource: &str, name: &str) -> Arc<Value> {
        self.get(resource, "lab", name)
            .unwrap_or_else(|| panic!("no {resource} {name}"))
    }

    pub(super) fn set(&self) -> Arc<Value> {
        self.object(SETS, "db")
    }

    pub(super) fn status(&self, field: &str) -> Value {
        self.set()["status"][field].clone()
    }

    pub(super) fn names(&self, resource: &str) -> Vec<String> {
        self.list(resource, "lab")
            .iter()
            .map(|object| object.name().to_owned())
            .collect()
    }

    /// The images of the set's pods, by name.
    pub(super) fn images(&self) -> Vec<String> {
        let pods = self.list(PODS, "lab");
        pods.iter()
            .map(|pod| text(&pod["spec"]["containers"][0]["image"]).to_owned())
            .collect()
    }

    /// The revision numbers of the set's revisions, by image.
    pub(super) fn revisions(&self) -> Vec<(String, i64)> {
        let image = |revision: &Value| {
            text(&revision["data"]["spec"]["template"]["spec"]["containers"][0]["image"]).to_owned()
        };
        let all = self.list(REVISIONS, "lab");
        let mut all: Vec<_> = all
            .iter()
            .map(|revision| (image(revision), number(&revision["revision"])))
            .collect();
        all.sort();
        all
    }

    pub(super) fn change(&self, resource: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let mut object = (*self.object(resource, name)).clone();
        change(&mut object);
        self.put(resource, object);
    }

    /// A user's change of the set's spec.
    pub(super) fn edit(&self, change: impl FnOnce(&mut Value)) {
        self.change(SETS, "db", |set| {
            set["metadata"]["generation"] = (number(&set["metadata"]["generation"]) + 1).into();
            change(&mut set["spec"]);
        });
    }

    pub(super) fn set_image(&self, image: &str) {
        self.edit(|spec| spec["template"] = template(image));
    }

    pub(super) fn remove(&self, resource: &str, name: &str) {
        self.state()
            .objects
            .remove(&(resource.to_owned(), name.to_owned()));
    }

    pub(super) fn pass(&self, time: SignedDuration) {
        self.state().now += time;
    }

    /// Repeats syncs, with a kubelet in between: terminating pods are removed, pending ones become Ready unless their image is `bad`. Ends
    /// when nothing changes.
    pub(super) fn settle(&self) {
        for _ in 0..100 {
            let result = self.sync();
            let moved = self.kubelet();
            if self.writes().is_empty() && result.is_ok() && !moved {
                return;
            }
        }
        panic!("no end after 100 syncs");
    }

    /// Returns whether any pod changed.
    fn kubelet(&self) -> bool {
        let before = self.state().version;
        let mut moved = false;
        for pod in self.list(PODS, "lab") {
            let bad = pod["spec"]["containers"][0]["image"] == "bad";
            if pod.is_terminating() {
                self.remove(PODS, pod.name());
                moved = true;
            } else if pod["status"]["phase"] == "Pending" {
                let status = if bad { "False" } else { "True" };
                let condition =
                    json!({"type": "Ready", "status": status, "lastTransitionTime": self.now().to_string()});
                self.change(PODS, pod.name(), |pod| {
                    pod["status"] = json!({"phase": "Running", "conditions": [condition]})
                });
            }
        }
        moved || self.state().version != before
    }

    /// A lab whose set is at rest.
    pub(super) fn settled(set: SetBuilder) -> Self {
        let lab = Self::new().with(set);
        lab.settle();
        lab.events();
        lab
    }

    fn record(&self, verb: &str, resource: &str, name: &str) -> Result<(), Status> {
        let write = format!("{verb} {resource} {name}");
        let refused = self.state().refused.get(&write).cloned();
        self.state().writes.push(write);
        refused.map_or(Ok(()), Err)
    }

    fn replace(
        &self,
        resource: &str,
        name: &str,
        sent: &Value,
        object: impl FnOnce(&Value) -> Value,
    ) -> Result<Arc<Value>, Status> {
        let now = self
            .get(resource, "lab", name)
            .ok_or_else(|| Status::not_found(about(resource, name)))?;
        let version = text(&sent["metadata"]["resourceVersion"]);
        if !version.is_empty() && version != text(&now["metadata"]["resourceVersion"])
            || sent.uid() != now.uid()
        {
            return Err(Status::modified(about(resource, name)));
        }
        Ok(self.put(resource, object(&now)))
    }
}

impl Access for Lab {
    fn get(&self, resource: &str, _: &str, name: &str) -> Option<Arc<Value>> {
        self.state()
            .objects
            .get(&(resource.to_owned(), name.to_owned()))
            .cloned()
    }

    fn list(&self, resource: &str, _: &str) -> Vec<Arc<Value>> {
        self.state()
            .objects
            .iter()
            .filter(|((one, _), _)| one == resource)
            .map(|(_, object)| object.clone())
            .collect()
    }

    fn create(&self, resource: &str, _: &str, mut object: Value) -> Result<Arc<Value>, Status> {
        let name = object.name().to_owned();
        self.record("create", resource, &name)?;
        if self.get(resource, "lab", &name).is_some() {
            return Err(Status::already_exists(about(resource, &name)));
        }
        let (uid, now) = (format!("uid-{}", self.state().version), self.now().to_string());
        let metadata = map_at(&mut object, "metadata");
        metadata.insert("uid".into(), uid.into());
        metadata.insert("namespace".into(), "lab".into());
        metadata.insert("creationTimestamp".into(), now.into());
        if resource == PODS {
            map(&mut object).insert("status".into(), json!({"phase": "Pending"}));
        }
        Ok(self.put(resource, object))
    }

    fn update(&self, resource: &str, _: &str, name: &str, object: Value) -> Result<Arc<Value>, Status> {
        self.record("update", resource, name)?;
        self.replace(resource, name, &object, |_| object.clone())
    }

    fn update_status(
        &self,
        resource: &str,
        _: &str,
        name: &str,
        object: Value,
    ) -> Result<Arc<Value>, Status> {
        self.record("update", &format!("{resource}/status"), name)?;
        let counters = [
            "replicas",
            "readyReplicas",
            "availableReplicas",
            "currentReplicas",
            "updatedReplicas",
        ];
        let negative = counters
            .iter()
            .filter(|counter| number(&object["status"][counter]) < 0);
        let errors: Vec<_> = negative
            .map(|counter| {
                FieldError::invalid(
                    format!("status.{counter}"),
                    &object["status"][counter],
                    "must be non-negative",
                )
            })
            .collect();
        if !errors.is_empty() {
            return Err(Status::invalid(about(resource, name), &errors));
        }
        self.replace(resource, name, &object, |now| {
            let mut now = now.clone();
            now["status"] = object["status"].clone();
            now
        })
    }

    fn delete(&self, resource: &str, _: &str, name: &str, _: Value) -> Result<(), Status> {
        self.record("delete", resource, name)?;
        if self.get(resource, "lab", name).is_none() {
            return Err(Status::not_found(about(resource, name)));
        }
        if resource == PODS {
            self.change(PODS, name, |pod| {
                pod["metadata"]["deletionTimestamp"] = NOW.into()
            });
        } else {
            self.remove(resource, name);
        }
        Ok(())
    }

    fn event(&self, about: &Value, kind: EventKind, reason: &str, message: &str) {
        assert_eq!(about.name(), "db");
        let kind = match kind {
            EventKind::Normal => "",
            EventKind::Warning => "Warning ",
        };
        self.state().events.push(format!("{kind}{reason}: {message}"));
    }

    fn now(&self) -> Timestamp {
        self.state().now
    }
}
