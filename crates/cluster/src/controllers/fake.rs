//! A small in-memory API server and a loop that runs controllers against it, for tests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::json::{Value, json};
use jiff::Timestamp;

use super::{Changed, Controller, Next, moment};
use crate::access::{Access, EventKind, ResourceInfo};
use crate::object;
use crate::status::{About, Status};
use crate::store::Key;

/// Objects of any resource. Supports finalizers, graceful deletion of pods, preconditions and optimistic locking.
pub(crate) struct Fake {
    state: Mutex<State>,
}

struct State {
    now: Timestamp,
    revision: u64,
    resources: Vec<ResourceInfo>,
    objects: BTreeMap<(String, String, String), Arc<Value>>,
    changes: VecDeque<Changed>,
    events: Vec<String>,
    /// Requests to reject: the verb, the resource, the name or its prefix.
    refusals: Vec<(&'static str, &'static str, &'static str, Status)>,
    requests: Vec<String>,
    history: Vec<Changed>,
}

impl Default for Fake {
    fn default() -> Self {
        let known = [
            ("pods", "v1", "Pod", true),
            ("configmaps", "v1", "ConfigMap", true),
            ("serviceaccounts", "v1", "ServiceAccount", true),
            ("persistentvolumeclaims", "v1", "PersistentVolumeClaim", true),
            ("persistentvolumes", "v1", "PersistentVolume", false),
            ("namespaces", "v1", "Namespace", false),
            ("statefulsets.apps", "apps/v1", "StatefulSet", true),
            ("replicasets.apps", "apps/v1", "ReplicaSet", true),
            ("deployments.apps", "apps/v1", "Deployment", true),
            ("jobs.batch", "batch/v1", "Job", true),
            (
                "poddisruptionbudgets.policy",
                "policy/v1",
                "PodDisruptionBudget",
                true,
            ),
            (
                "customresourcedefinitions.apiextensions.k8s.io",
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                false,
            ),
            ("rollouts.example.com", "example.com/v1", "Rollout", true),
        ];
        let info = |(resource, api_version, kind, namespaced): (&str, &str, &str, bool)| ResourceInfo {
            resource: resource.into(),
            api_version: api_version.into(),
            kind: kind.into(),
            namespaced,
        };
        let state = State {
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            revision: 0,
            resources: known.into_iter().map(info).collect(),
            objects: BTreeMap::new(),
            changes: VecDeque::new(),
            events: Vec::new(),
            refusals: Vec::new(),
            requests: Vec::new(),
            history: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
        }
    }
}

impl Fake {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Creates an object as a user would.
    pub(crate) fn put(&self, resource: &str, object: Value) -> Arc<Value> {
        let namespace = object::namespace(&object).to_owned();
        self.create(resource, &namespace, object).unwrap()
    }

    /// Changes any part of an object, including its status.
    pub(crate) fn change(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let mut object = (*self.get(resource, namespace, name).unwrap()).clone();
        change(&mut object);
        self.state().store(resource, object);
    }

    /// Removes an object, whatever its finalizers.
    pub(crate) fn remove(&self, resource: &str, namespace: &str, name: &str) {
        self.state().take(resource, namespace, name);
    }

    /// Rejects every such request until the end of the test.
    pub(crate) fn refuse(
        &self,
        verb: &'static str,
        resource: &'static str,
        name: &'static str,
        status: Status,
    ) {
        self.state().refusals.push((verb, resource, name, status));
    }

    pub(crate) fn relent(&self) {
        self.state().refusals.clear();
    }

    /// The recorded events: `Normal SuccessfulCreate Created pod: a-1`.
    pub(crate) fn events(&self) -> Vec<String> {
        self.state().events.clone()
    }

    /// The writes since the last call: `delete pods a {"preconditions":…}`.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state().requests)
    }

    /// The states that an object went through.
    pub(crate) fn history(&self, resource: &str, name: &str) -> Vec<Arc<Value>> {
        let state = self.state();
        let states = state
            .history
            .iter()
            .filter(|change| &*change.resource == resource);
        states
            .filter_map(|change| change.after.clone())
            .filter(|object| object::name(object) == name)
            .collect()
    }

    pub(crate) fn names(&self, resource: &str, namespace: &str) -> Vec<String> {
        self.list(resource, namespace)
            .iter()
            .map(|object| object::name(object).to_owned())
            .collect()
    }

    /// Sets a pod Running, with this readiness.
    pub(crate) fn run_pod(&self, namespace: &str, name: &str, ready: bool) {
        let since = moment::shown(self.now());
        self.change("pods", namespace, name, |pod| {
            let status = if ready { "True" } else { "False" };
            let condition = json!({"type": "Ready", "status": status, "lastTransitionTime": since});
            pod["status"] = json!({"phase": "Running", "conditions": [condition]});
        });
    }

    /// Ends a pod's container.
    pub(crate) fn end_pod(&self, namespace: &str, name: &str, exit_code: i64) {
        let ended = json!({"terminated": {"exitCode": exit_code, "finishedAt": moment::shown(self.now())}});
        self.change("pods", namespace, name, |pod| {
            let phase = if exit_code == 0 { "Succeeded" } else { "Failed" };
            pod["status"] = json!({"phase": phase, "containerStatuses": [{"name": "c", "state": ended}]});
        });
    }
}

impl State {
    fn key(resource: &str, namespace: &str, name: &str) -> (String, String, String) {
        (resource.to_owned(), namespace.to_owned(), name.to_owned())
    }

    fn store(&mut self, resource: &str, mut object: Value) -> Arc<Value> {
        let key = Self::key(resource, object::namespace(&object), object::name(&object));
        let before = self.objects.get(&key).cloned();
        if before.as_deref() == Some(&object) {
            return Arc::new(object);
        }
        self.revision += 1;
        object["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let graceful = object["metadata"]["deletionGracePeriodSeconds"]
            .as_i64()
            .unwrap_or(0)
            > 0;
        let finalized =
            resource != "namespaces" || object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        let object = Arc::new(object);
        if object::is_terminating(&object) && !object::has_finalizers(&object) && !graceful && finalized {
            self.objects.remove(&key);
            self.tell(resource, before, None);
        } else {
            self.objects.insert(key, object.clone());
            self.tell(resource, before, Some(object.clone()));
        }
        object
    }

    fn tell(&mut self, resource: &str, before: Option<Arc<Value>>, after: Option<Arc<Value>>) {
        let change = Changed {
            resource: resource.into(),
            before,
            after,
        };
        self.history.push(change.clone());
        self.changes.push_back(change);
    }

    fn take(&mut self, resource: &str, namespace: &str, name: &str) {
        let before = self.objects.remove(&Self::key(resource, namespace, name));
        self.tell(resource, before, None);
    }

    fn refused(&mut self, verb: &str, resource: &str, name: &str) -> Result<(), Status> {
        let hit =
            |(v, r, n, _): &&(&str, &str, &str, Status)| *v == verb && *r == resource && name.starts_with(n);
        self.refusals
            .iter()
            .find(hit)
            .map_or(Ok(()), |(.., status)| Err(status.clone()))
    }

    /// No object can be created in a namespace that is being deleted or was.
    fn has_room(&self, resource: &str, namespace: &str, name: &str) -> Result<(), Status> {
        let live = self.objects.get(&Self::key("namespaces", "", namespace));
        let mut known = self
            .history
            .iter()
            .filter(|change| &*change.resource == "namespaces");
        let existed = known.any(|change| {
            change
                .after
                .as_ref()
                .is_some_and(|object| object::name(object) == namespace)
        });
        match live {
            None if existed => Err(Status::not_found(about("namespaces", namespace))),
            Some(live) if object::is_terminating(live) => {
                let mut status =
                    Status::forbidden(about(resource, name), "its namespace is being terminated");
                status.details = Some(json!({"causes": [{"reason": "NamespaceTerminating"}]}));
                Err(status)
            }
            _ => Ok(()),
        }
    }

    fn live(
        &mut self,
        verb: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Value>, Status> {
        self.refused(verb, resource, name)?;
        let key = Self::key(resource, namespace, name);
        self.objects
            .get(&key)
            .cloned()
            .ok_or_else(|| Status::not_found(about(resource, name)))
    }
}

fn about<'a>(resource: &'a str, name: &'a str) -> About<'a> {
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    About {
        group,
        plural,
        kind: plural,
        name,
    }
}

fn is_current(live: &Value, claimed: &Value) -> bool {
    let claimed = object::resource_version(claimed);
    claimed.is_empty() || claimed == object::resource_version(live)
}

impl Access for Fake {
    fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.state()
            .objects
            .get(&State::key(resource, namespace, name))
            .cloned()
    }

    fn list(&self, resource: &str, namespace: &str) -> Vec<Arc<Value>> {
        let state = self.state();
        let here =
            |(r, n, _): &(String, String, String)| r == resource && (namespace.is_empty() || n == namespace);
        state
            .objects
            .iter()
            .filter(|(key, _)| here(key))
            .map(|(_, object)| object.clone())
            .collect()
    }

    fn create(&self, resource: &str, namespace: &str, mut object: Value) -> Result<Arc<Value>, Status> {
        let mut state = self.state();
        let number = state.revision + 1;
        let generated = object["metadata"]["generateName"]
            .as_str()
            .map(|prefix| format!("{prefix}{number:05}"));
        let name = generated.unwrap_or_else(|| object::name(&object).to_owned());
        state.refused("create", resource, &name)?;
        state.has_room(resource, namespace, &name)?;
        if state
            .objects
            .contains_key(&State::key(resource, namespace, &name))
        {
            return Err(Status::already_exists(about(resource, &name)));
        }
        state.requests.push(format!("create {resource} {name}"));
        let now = moment::shown(state.now);
        let metadata = object::metadata_mut(&mut object);
        metadata.insert("name".into(), name.into());
        if !namespace.is_empty() {
            metadata.insert("namespace".into(), namespace.into());
        }
        metadata
            .entry("uid")
            .or_insert_with(|| format!("uid-{number}").into());
        metadata.insert("creationTimestamp".into(), now.into());
        metadata.insert("generation".into(), 1.into());
        if resource == "pods" && object["status"].is_null() {
            object["status"] = json!({"phase": "Pending"});
        }
        Ok(state.store(resource, object))
    }

    fn update(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        mut object: Value,
    ) -> Result<Arc<Value>, Status> {
        let mut state = self.state();
        let live = state.live("update", resource, namespace, name)?;
        if !is_current(&live, &object) {
            return Err(Status::modified(about(resource, name)));
        }
        state.requests.push(format!("update {resource} {name}"));
        if live["spec"] != object["spec"] {
            object["metadata"]["generation"] = (object::generation(&live) + 1).into();
        }
        if !live["status"].is_null() {
            object["status"] = live["status"].clone();
        }
        Ok(state.store(resource, object))
    }

    fn update_status(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        object: Value,
    ) -> Result<Arc<Value>, Status> {
        let mut state = self.state();
        let live = state.live("status", resource, namespace, name)?;
        if !is_current(&live, &object) {
            return Err(Status::modified(about(resource, name)));
        }
        state.requests.push(format!("status {resource} {name}"));
        let mut changed = (*live).clone();
        changed["status"] = object["status"].clone();
        Ok(state.store(resource, changed))
    }

    fn delete(&self, resource: &str, namespace: &str, name: &str, options: Value) -> Result<(), Status> {
        let mut state = self.state();
        let live = state.live("delete", resource, namespace, name)?;
        let conditions = &options["preconditions"];
        let fits = |field: &str, has: &str| conditions[field].as_str().is_none_or(|wanted| wanted == has);
        if !fits("uid", object::uid(&live)) || !fits("resourceVersion", object::resource_version(&live)) {
            return Err(Status::conflict(
                about(resource, name),
                "the precondition does not hold",
            ));
        }
        state.requests.push(format!("delete {resource} {name} {options}"));
        let mut object = (*live).clone();
        let finalizer = match options["propagationPolicy"].as_str() {
            Some("Foreground") => Some("foregroundDeletion"),
            Some("Orphan") => Some("orphan"),
            _ => None,
        };
        if let Some(finalizer) = finalizer {
            super::edit::add_finalizer(&mut object, finalizer);
        }
        if !object::is_terminating(&object) {
            let runs = resource == "pods"
                && !super::pod::node(&object).is_empty()
                && !super::pod::is_terminal(&object);
            let grace = if runs {
                object["spec"]["terminationGracePeriodSeconds"]
                    .as_i64()
                    .unwrap_or(30)
            } else {
                0
            };
            object["metadata"]["deletionTimestamp"] =
                moment::shown(moment::later(state.now, moment::seconds(grace))).into();
            object["metadata"]["deletionGracePeriodSeconds"] = grace.into();
            if resource == "namespaces" {
                object["status"]["phase"] = "Terminating".into();
            }
        }
        state.store(resource, object);
        Ok(())
    }

    fn resources(&self) -> Vec<ResourceInfo> {
        self.state().resources.clone()
    }

    fn event(&self, about: &Value, kind: EventKind, reason: &str, message: &str) {
        assert!(!object::name(about).is_empty(), "an event is about something");
        self.state().events.push(format!("{kind:?} {reason} {message}"));
    }

    fn now(&self) -> Timestamp {
        self.state().now
    }
}

/// Controllers running on a [`Fake`], with time that advances only on request.
pub(crate) struct Lab {
    pub(crate) fake: Fake,
    controllers: Vec<Box<dyn Controller>>,
    timers: Vec<(Timestamp, usize, Key)>,
}

impl Lab {
    pub(crate) fn new(controllers: Vec<Box<dyn Controller>>) -> Self {
        Self {
            fake: Fake::default(),
            controllers,
            timers: Vec::new(),
        }
    }

    /// Syncs until nothing changes any more, without advancing time. Failed syncs are repeated a second later.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            let Some(change) = self.fake.state().changes.pop_front() else {
                return;
            };
            for number in 0..self.controllers.len() {
                let watches = self.controllers[number].watches();
                if watches.iter().any(|one| *one == "*" || *one == &*change.resource) {
                    for key in self.controllers[number].concerned(&change, &self.fake) {
                        self.sync(number, key);
                    }
                }
            }
        }
        panic!("the controllers do not come to rest");
    }

    fn sync(&mut self, number: usize, key: Key) {
        let now = self.fake.now();
        let wait = match self.controllers[number].sync(&key, &self.fake) {
            Ok(Next::Wait) => return,
            Ok(Next::After(wait)) => wait,
            Err(_) => Duration::from_secs(1),
        };
        self.timers.push((moment::later(now, wait), number, key));
    }

    /// Advances time, and runs everything that falls due.
    pub(crate) fn advance(&mut self, by: Duration) {
        let end = moment::later(self.fake.now(), by);
        self.settle();
        for _ in 0..10_000 {
            let due = (0..self.timers.len()).min_by_key(|timer| self.timers[*timer].0);
            let Some(due) = due.filter(|timer| self.timers[*timer].0 <= end) else {
                self.fake.state().now = end;
                return;
            };
            let (time, number, key) = self.timers.swap_remove(due);
            let now = self.fake.now();
            self.fake.state().now = now.max(time);
            self.sync(number, key);
            self.settle();
        }
        panic!("the controllers do not come to rest");
    }

    pub(crate) fn seconds(&mut self, seconds: u64) {
        self.advance(Duration::from_secs(seconds));
    }
}
