//! Access to the API server for controllers in this process: no HTTP, the same rules.

use std::sync::Arc;

use crate::json::Value;
use jiff::Timestamp;

use crate::object;
use crate::status::Status;

/// Reads and writes with a controller's rights. `resource` is `pods`, `statefulsets.apps`, `jobs.batch`, …
///
/// Reads return the newest state; writes go through defaulting, validation, field ownership and optimistic locking like any client's, and
/// appear in the audit log under the controller's name.
pub(crate) trait Access: Send + Sync {
    /// One object; `None` if there is none.
    fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// The objects of a namespace, by name; of all namespaces if it is empty.
    fn list(&self, resource: &str, namespace: &str) -> Vec<Arc<Value>>;

    /// The objects of a namespace that this controller owns or might adopt, by name: its own, and those without a controller.
    fn list_claimable(&self, resource: &str, namespace: &str, controller_uid: &str) -> Vec<Arc<Value>> {
        let mut objects = self.list(resource, namespace);
        objects.retain(|object| ["", controller_uid].contains(&object::controller_uid(object)));
        objects
    }

    /// The revision of the newest write to any object of a resource. `None` if it is unknown.
    fn newest(&self, _resource: &str) -> Option<u64> {
        None
    }

    fn create(&self, resource: &str, namespace: &str, object: Value) -> Result<Arc<Value>, Status>;

    /// Replaces an object; a `metadata.resourceVersion` in it must still be the current one.
    fn update(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        object: Value,
    ) -> Result<Arc<Value>, Status>;

    /// Replaces an object's status.
    fn update_status(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        object: Value,
    ) -> Result<Arc<Value>, Status>;

    /// Replaces the status of an object that was read: like `update_status` with a copy of it.
    fn replace_status(&self, resource: &str, base: &Arc<Value>, status: Value) -> Result<Arc<Value>, Status> {
        let mut object = Value::clone(base);
        object::map(&mut object).insert("status".into(), status);
        self.update_status(resource, object::namespace(base), object::name(base), object)
    }

    /// Deletes an object with these DeleteOptions (`{}` for none): `preconditions`, `gracePeriodSeconds`, `propagationPolicy`.
    fn delete(&self, resource: &str, namespace: &str, name: &str, options: Value) -> Result<(), Status>;

    /// Every version of every resource whose objects can be listed, watched and deleted, including custom ones.
    fn resources(&self) -> Vec<ResourceInfo> {
        Vec::new()
    }

    /// Replaces a namespace's `spec.finalizers` through its `finalize` subresource; without any left it is deleted.
    fn finalize_namespace(&self, name: &str, object: Value) -> Result<Arc<Value>, Status> {
        self.update("namespaces", "", name, object)
    }

    /// Records an event about an object.
    fn event(&self, about: &Value, kind: EventKind, reason: &str, message: &str);

    fn now(&self) -> Timestamp;
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Normal,
    Warning,
}

/// One version of a served resource, for controllers that work on all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResourceInfo {
    /// `pods`, `statefulsets.apps`, …
    pub(crate) resource: Arc<str>,
    /// `v1`, `apps/v1`, …
    pub(crate) api_version: Arc<str>,
    pub(crate) kind: Arc<str>,
    pub(crate) namespaced: bool,
}
