//! Deletes objects whose owners are gone, and keeps owners while their dependents are deleted or orphaned.
//!
//! [`graph`] maps owners to dependents, by uid, from changes alone, so that a change costs only what it touches. Whether an owner exists is
//! always checked with the server. Keys are uids.
//!
//! | the object | what happens |
//! |---|---|
//! | is being deleted, finalizer `orphan` | its dependents lose their reference to it, then it its finalizer |
//! | is being deleted, finalizer `foregroundDeletion` | dependents that block it are deleted first, then its finalizer is removed |
//! | is being deleted otherwise | nothing |
//! | has an owner that stays | references to owners that are gone or wait for it are removed |
//! | has only owners that are gone or wait for it | it is deleted |

mod graph;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::json::{Value, json};
use parking_lot::{Mutex, MutexGuard};

use self::graph::{Graph, Identity, Reference};
use super::edit::{Target, edit, remove_finalizer};
use super::{Changed, Controller, Next, owner};
use crate::access::{Access, EventKind};
use crate::object;
use crate::status::Status;
use crate::store::Key;

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

#[derive(Default)]
pub(crate) struct GarbageCollector {
    graph: Mutex<Graph>,
}

impl Controller for GarbageCollector {
    fn name(&self) -> &'static str {
        "garbage-collector-controller"
    }

    fn watches(&self) -> &'static [&'static str] {
        &["*"]
    }

    fn concerned(&self, change: &Changed, access: &dyn Access) -> Vec<Key> {
        let Changed {
            resource,
            before,
            after,
        } = change;
        if matches!(&**resource, "events" | "events.events.k8s.io") {
            return Vec::new();
        }
        let mut graph = self.graph();
        if let (Some(before), Some(after)) = (before, after)
            && is_no_news(before, after)
            && graph.identity(object::uid(after)).is_some()
        {
            return Vec::new();
        }
        let mut uids = Vec::new();
        let replaced = |before: &&Arc<Value>| {
            after
                .as_ref()
                .is_none_or(|after| object::uid(after) != object::uid(before))
        };
        if let Some(gone) = before.as_ref().filter(replaced) {
            uids.extend(graph.remove(object::uid(gone)));
        }
        if let Some(object) = after {
            let seen = graph.see(resource, object);
            uids.extend(seen.to_check);
            if starts(ORPHAN, before.as_deref(), object) {
                uids.push(object::uid(object).to_owned());
            } else if starts(FOREGROUND, before.as_deref(), object) {
                uids.extend(graph.dependents(object::uid(object)));
                uids.push(object::uid(object).to_owned());
            }
            drop(graph);
            for stray in seen.strays {
                tell_stray(&stray, access);
            }
        }
        uids.into_iter().map(|uid| Key::new("", &uid)).collect()
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        self.attend(&key.name, access)?;
        Ok(Next::Wait)
    }
}

/// Whether a change touches nothing that the graph records, as most writes.
fn is_no_news(before: &Value, after: &Value) -> bool {
    // A custom object may come in another version than before.
    if before["apiVersion"] != after["apiVersion"] {
        return false;
    }
    let (before, after) = (&before["metadata"], &after["metadata"]);
    ["uid", "ownerReferences", "finalizers", "deletionTimestamp"]
        .iter()
        .all(|field| before[field].shares(&after[field]))
}

impl GarbageCollector {
    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock()
    }

    /// Applies the table above to one object.
    fn attend(&self, uid: &str, access: &dyn Access) -> Result<(), Status> {
        let Some((identity, live)) = self.find(uid, access) else {
            return Ok(());
        };
        if !object::is_terminating(&live) {
            self.collect(&identity, &live, access)?;
        } else if has_finalizer(&live, ORPHAN) {
            self.orphan_dependents(uid, access)?;
            edit(access, Target::of(&identity.resource, &live), |owner| {
                remove_finalizer(owner, ORPHAN)
            })?;
        } else if has_finalizer(&live, FOREGROUND) {
            self.wait_for_dependents(&identity, &live, access)?;
        }
        Ok(())
    }

    /// The object on the server, if it is still the same one.
    fn find(&self, uid: &str, access: &dyn Access) -> Option<(Identity, Arc<Value>)> {
        let identity = self.graph().identity(uid).cloned()?;
        let live = access.get(&identity.resource, &identity.namespace, &identity.name)?;
        (object::uid(&live) == uid).then_some((identity, live))
    }

    fn orphan_dependents(&self, uid: &str, access: &dyn Access) -> Result<(), Status> {
        let dependents = self.graph().dependents(uid);
        for dependent in dependents {
            let Some(identity) = self.graph().identity(&dependent).cloned() else {
                continue;
            };
            edit(access, identity.target(&dependent), |object| {
                owner::disown(object, &[uid])
            })?;
        }
        Ok(())
    }

    fn wait_for_dependents(
        &self,
        identity: &Identity,
        live: &Value,
        access: &dyn Access,
    ) -> Result<(), Status> {
        let blocking = self.graph().blocking_dependents(object::uid(live));
        if blocking.is_empty() {
            edit(access, Target::of(&identity.resource, live), |owner| {
                remove_finalizer(owner, FOREGROUND)
            })?;
        }
        for dependent in blocking {
            if let Some((identity, live)) = self.find(&dependent, access)
                && !object::is_terminating(&live)
            {
                self.collect(&identity, &live, access)?;
            }
        }
        Ok(())
    }

    /// Deletes an object that no owner keeps.
    fn collect(&self, identity: &Identity, live: &Value, access: &dyn Access) -> Result<(), Status> {
        let Owners {
            keeping,
            gone,
            waiting,
        } = match self.owners(identity, live, access) {
            Ok(owners) => owners,
            Err(Unknown::Kind(reference)) => return Err(no_such_kind(&reference)),
            // It never becomes valid, so there is no retry.
            Err(Unknown::Scope) => return Ok(()),
        };
        let (uid, target) = (object::uid(live), Target::of(&identity.resource, live));
        if keeping == 0 {
            if gone.is_empty() && waiting.is_empty() {
                return Ok(());
            }
            if waiting.is_empty() || !self.graph().has_dependents(uid) {
                return delete(target, live, policy_of(live), access);
            }
            let mut live = Arc::new(live.clone());
            if self.graph().has_dependent_deleting_dependents(uid) {
                // A cycle: without this each would wait for the other.
                let Some(unblocked) = edit(access, target, unblock_owners)? else {
                    return Ok(());
                };
                live = unblocked;
            }
            return delete(Target::of(&identity.resource, &live), &live, "Foreground", access);
        }
        let dropped: Vec<_> = gone.iter().chain(&waiting).map(String::as_str).collect();
        if !dropped.is_empty() {
            edit(access, target, |object| owner::disown(object, &dropped))?;
        }
        Ok(())
    }

    /// Looks up every owner on the server.
    fn owners(&self, identity: &Identity, live: &Value, access: &dyn Access) -> Result<Owners, Unknown> {
        let mut owners = Owners::default();
        for reference in owner::owners(live).map(Reference::read) {
            match self.owner(&reference, identity, access)? {
                None => owners.gone.push(reference.uid),
                Some(owner) if object::is_terminating(&owner) && has_finalizer(&owner, FOREGROUND) => {
                    owners.waiting.push(reference.uid);
                }
                Some(_) => owners.keeping += 1,
            }
        }
        Ok(owners)
    }

    fn owner(
        &self,
        reference: &Reference,
        of: &Identity,
        access: &dyn Access,
    ) -> Result<Option<Arc<Value>>, Unknown> {
        let known = self
            .graph()
            .identity(&reference.uid)
            .filter(|owner| owner.fits(reference))
            .cloned();
        let (resource, namespaced) = match known {
            Some(owner) => (owner.resource, !owner.namespace.is_empty()),
            None => {
                let info = access.resources().into_iter().find(|info| {
                    *info.api_version == *reference.api_version && *info.kind == *reference.kind
                });
                let info = info.ok_or_else(|| Unknown::Kind(reference.clone()))?;
                (info.resource, info.namespaced)
            }
        };
        if namespaced && of.namespace.is_empty() {
            return Err(Unknown::Scope);
        }
        let namespace = if namespaced { of.namespace.as_str() } else { "" };
        Ok(access
            .get(&resource, namespace, &reference.name)
            .filter(|owner| object::uid(owner) == reference.uid))
    }
}

/// The owners of an object, by their effect on it.
#[derive(Default)]
struct Owners {
    /// The number of owners that stay.
    keeping: usize,
    gone: Vec<String>,
    /// Owners that are being deleted and wait for their dependents.
    waiting: Vec<String>,
}

/// Why it is unknown whether an owner exists.
enum Unknown {
    /// The kind is not served, at least not yet.
    Kind(Reference),
    /// A cluster-scoped object names a namespaced owner.
    Scope,
}

fn no_such_kind(reference: &Reference) -> Status {
    let Reference {
        api_version, kind, ..
    } = reference;
    Status::internal(format!("unable to get REST mapping for {api_version}/{kind}."))
}

/// Deletes the version that was checked, or a newer one if it has the same owners.
fn delete(target: Target<'_>, live: &Value, policy: &str, access: &dyn Access) -> Result<(), Status> {
    let Target {
        resource,
        namespace,
        name,
        uid,
    } = target;
    let options = |preconditions: Value| json!({"preconditions": preconditions, "propagationPolicy": policy});
    let seen = json!({"uid": uid, "resourceVersion": object::resource_version(live)});
    let result = match access.delete(resource, namespace, name, options(seen)) {
        Err(status) if status.is_conflict() => {
            let newer = access
                .get(resource, namespace, name)
                .filter(|newer| object::uid(newer) == uid);
            match newer {
                Some(newer) if owner::owners(&newer).eq(owner::owners(live)) => {
                    access.delete(resource, namespace, name, options(json!({"uid": uid})))
                }
                Some(_) => Err(status),
                None => Ok(()),
            }
        }
        result => result,
    };
    result.or_else(|status| {
        if status.is_not_found() {
            Ok(())
        } else {
            Err(status)
        }
    })
}

/// An existing finalizer decides how the dependents are treated.
fn policy_of(object: &Value) -> &'static str {
    if has_finalizer(object, ORPHAN) {
        "Orphan"
    } else if has_finalizer(object, FOREGROUND) {
        "Foreground"
    } else {
        "Background"
    }
}

fn unblock_owners(object: &mut Value) -> bool {
    let references = object::metadata_mut(object)
        .get_mut("ownerReferences")
        .and_then(Value::as_array_mut);
    let mut changed = false;
    for reference in references
        .into_iter()
        .flatten()
        .filter(|reference| reference["blockOwnerDeletion"] == true)
    {
        reference["blockOwnerDeletion"] = false.into();
        changed = true;
    }
    changed
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    object::finalizers(object).any(|one| one == finalizer)
}

/// Whether this change begins the deletion that a finalizer belongs to.
fn starts(finalizer: &str, before: Option<&Value>, after: &Value) -> bool {
    let held = |object: &Value| object::is_terminating(object) && has_finalizer(object, finalizer);
    held(after) && !before.is_some_and(|before| object::uid(before) == object::uid(after) && held(before))
}

/// Records an event that an object names an owner in another namespace.
fn tell_stray(stray: &graph::Stray, access: &dyn Access) {
    let Identity {
        resource,
        namespace,
        name,
        ..
    } = &stray.dependent;
    let Some(object) = access.get(resource, namespace, name) else {
        return;
    };
    let Reference {
        api_version,
        kind,
        name,
        uid,
        ..
    } = &stray.reference;
    let owner = format!("[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]");
    let message = format!("ownerRef {owner} does not exist in namespace \"{namespace}\"");
    access.event(&object, EventKind::Warning, "OwnerRefInvalidNamespace", &message);
}
