//! Small changes to an object that other clients write too.

use std::sync::Arc;

use crate::json::{List, Value};

use crate::access::Access;
use crate::object;
use crate::status::Status;

/// The number of attempts at a conflict, as in client-go.
const ATTEMPTS: usize = 5;

/// The object to change: it must still have this uid.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) resource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
}

impl<'a> Target<'a> {
    pub(crate) fn of(resource: &'a str, object: &'a Value) -> Self {
        let (namespace, name, uid) = (
            object::namespace(object),
            object::name(object),
            object::uid(object),
        );
        Self {
            resource,
            namespace,
            name,
            uid,
        }
    }
}

/// Changes the newest state, like a patch, and retries at a conflict. `change` returns whether it changed anything.
///
/// `None` if the object is gone.
pub(crate) fn edit(
    access: &dyn Access,
    target: Target<'_>,
    change: impl Fn(&mut Value) -> bool,
) -> Result<Option<Arc<Value>>, Status> {
    let Target {
        resource,
        namespace,
        name,
        uid,
    } = target;
    let mut attempt = 1;
    loop {
        let Some(live) = access
            .get(resource, namespace, name)
            .filter(|live| object::uid(live) == uid)
        else {
            return Ok(None);
        };
        let mut changed = (*live).clone();
        if !change(&mut changed) {
            return Ok(Some(live));
        }
        match access.update(resource, namespace, name, changed) {
            Ok(object) => return Ok(Some(object)),
            Err(status) if status.is_not_found() => return Ok(None),
            Err(status) if status.is_conflict() && attempt < ATTEMPTS => attempt += 1,
            Err(status) => return Err(status),
        }
    }
}

/// Removes a finalizer. Returns whether it was there.
pub(crate) fn remove_finalizer(object: &mut Value, finalizer: &str) -> bool {
    let metadata = object::metadata_mut(object);
    let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) else {
        return false;
    };
    let before = finalizers.len();
    finalizers.retain(|one| one != finalizer);
    let changed = finalizers.len() != before;
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    }
    changed
}

/// Adds a finalizer. Returns whether it was missing.
pub(crate) fn add_finalizer(object: &mut Value, finalizer: &str) -> bool {
    if object::finalizers(object).any(|one| one == finalizer) {
        return false;
    }
    let finalizers = object::metadata_mut(object)
        .entry("finalizers")
        .or_insert_with(|| Value::Array(List::default()));
    if let Value::Array(finalizers) = finalizers {
        finalizers.push(finalizer.into());
    } else {
        *finalizers = vec![finalizer].into();
    }
    true
}

/// The object with another status.
pub(crate) fn with_status(object: &Value, status: Value) -> Value {
    let mut object = object.clone();
    if let Value::Object(fields) = &mut object {
        fields.insert("status".into(), status);
    }
    object
}
