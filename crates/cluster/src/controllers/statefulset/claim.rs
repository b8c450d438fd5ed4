//! Ownership of pods: adopts matching orphans, releases pods that no longer match.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::json::Value;

use crate::access::Access;
use crate::controllers::owner::controller_reference;
use crate::controllers::pod::PODS;
use crate::object::map_at;
use crate::selector::LabelSelector;
use crate::status::Status;

use super::error::{DEFAULT_RETRY, all_of, doing, failure, retry_on_conflict};
use super::memory::Seen;
use super::object::{Metadata, Pod, SETS, Set, text};

/// The pods of a set, from one list: the whole sync acts on this snapshot. An orphan that could not be adopted or a pod that could not be
/// released ends the sync.
pub(super) fn pods(
    access: &dyn Access,
    set: &Set,
    selector: &LabelSelector,
    seen: &Seen,
) -> Result<Vec<Pod>, Status> {
    let may_adopt = OnceCell::new();
    let (mut claimed, mut errors) = (Vec::new(), Vec::new());
    let candidates = access.list_claimable(PODS, set.namespace(), set.uid());
    for object in candidates {
        if let Some(known) = seen.pod(&object) {
            claimed.push(known.clone());
            continue;
        }
        let pod = Pod::new(object);
        let ours = match (claim(set, selector, &pod), set.is_terminating()) {
            (Claim::Keep, _) => Ok(true),
            (Claim::Ignore, _) | (_, true) => Ok(false),
            (Claim::Release, false) => release(access, set, &pod).map(|()| false),
            (Claim::Adopt, false) => may_adopt
                .get_or_init(|| still_there(access, set))
                .clone()
                .map_err(|status| doing(&format!("cannot adopt pod {}", pod.name()), status))
                .and_then(|()| adopt(access, PODS, set, &pod)),
        };
        match ours {
            Ok(true) => claimed.push(pod),
            Ok(false) => {}
            Err(status) => errors.push(status),
        }
    }
    all_of(errors).map(|()| claimed)
}

enum Claim {
    Keep,
    Release,
    Adopt,
    Ignore,
}

fn claim(set: &Set, selector: &LabelSelector, pod: &Pod) -> Claim {
    let member =
        || selector.matches(pod.labels()) && pod.parent().is_some_and(|(parent, _)| parent == set.name());
    match pod.controller() {
        Some(owner) if !set.is_named_by(owner) => Claim::Ignore,
        Some(_) if member() => Claim::Keep,
        Some(_) => Claim::Release,
        None if member() && !pod.is_terminating() => Claim::Adopt,
        None => Claim::Ignore,
    }
}

/// Whether the set may still adopt: read again, because a set that is about to be deleted must not take other objects with it (k/k#42639).
pub(super) fn still_there(access: &dyn Access, set: &Set) -> Result<(), Status> {
    let (namespace, name) = (set.namespace(), set.name());
    match access.get(SETS, namespace, name) {
        None => Err(failure(format!("StatefulSet {namespace}/{name} is gone"))),
        Some(now) if now.uid() != set.uid() => Err(failure(format!(
            "StatefulSet {namespace}/{name} is another one now: {}, not {}",
            now.uid(),
            set.uid()
        ))),
        Some(now) if now.is_terminating() => Err(failure(format!(
            "StatefulSet {namespace}/{name} is being deleted since {}",
            text(&now["metadata"]["deletionTimestamp"])
        ))),
        Some(_) => Ok(()),
    }
}

/// Makes the set the controller of an orphan. `false` if the object is gone.
pub(super) fn adopt(
    access: &dyn Access,
    resource: &str,
    set: &Set,
    orphan: &impl Metadata,
) -> Result<bool, Status> {
    let owner = controller_reference(set, "apps/v1", "StatefulSet");
    let adopted = rewrite(access, resource, orphan, |owners| {
        match owners.iter_mut().find(|one| one["uid"] == set.uid()) {
            Some(already) => *already = owner.clone(),
            None => owners.push(owner.clone()),
        }
    })?;
    Ok(adopted.is_some())
}

/// Removes the set from a pod's owners. A pod that is gone, or whose update the API server rejects as invalid, is ignored.
fn release(access: &dyn Access, set: &Set, pod: &Pod) -> Result<(), Status> {
    match rewrite(access, PODS, pod, |owners| {
        owners.retain(|owner| owner["uid"] != set.uid())
    }) {
        Err(status) if matches!(status.code, 404 | 422) => Ok(()),
        done => done.map(drop),
    }
}

/// Changes the owners of an object's current version. Upstream sends a patch with the UID; this has the same effect.
fn rewrite(
    access: &dyn Access,
    resource: &str,
    object: &impl Metadata,
    change: impl Fn(&mut Vec<Value>),
) -> Result<Option<Arc<Value>>, Status> {
    let (namespace, name) = (object.namespace(), object.name());
    retry_on_conflict(DEFAULT_RETRY, || {
        let Some(now) = access.get(resource, namespace, name) else {
            return Ok(None);
        };
        if now.uid() != object.uid() {
            return Err(failure(format!(
                "{resource} {namespace}/{name} is another one now"
            )));
        }
        let mut owners = now.owners().to_vec();
        change(&mut owners);
        match access.update(resource, namespace, name, with_owners(&now, owners)) {
            Err(status) if status.is_not_found() => Ok(None),
            done => done.map(Some),
        }
    })
}

/// The object with these owners; an empty list is written as an absent field, as in Go.
pub(super) fn with_owners(object: &Value, owners: Vec<Value>) -> Value {
    let mut object = object.clone();
    let metadata = map_at(&mut object, "metadata");
    if owners.is_empty() {
        metadata.remove("ownerReferences");
    } else {
        metadata.insert("ownerReferences".into(), owners.into());
    }
    object
}
