//! Which pods belong to a Job: its own, and orphans that its selector matches.

use std::sync::Arc;

use crate::json::{List, Value};

use super::tracked_pod::{TRACKING, is_tracked};
use super::{API_VERSION, KIND};
use crate::access::Access;
use crate::controllers::edit::{Target, add_finalizer, edit, remove_finalizer};
use crate::controllers::owner;
use crate::controllers::pod::PODS;
use crate::object;
use crate::selector::LabelSelector;
use crate::status::Status;

/// The Job's pods. Adopts orphans and releases pods that no longer match.
pub(super) fn claim(job: &Value, access: &dyn Access) -> Result<Vec<Arc<Value>>, Status> {
    let selector = LabelSelector::of(&job["spec"]["selector"])
        .map_err(|error| Status::internal(format!("couldn't convert Job selector: {error}")))?;
    let selects = |pod: &Value| selector.matches(&pod["metadata"]["labels"]);
    let mut claimed = Vec::new();
    for pod in access.list_claimable(PODS, object::namespace(job), object::uid(job)) {
        match owner::controller_of(&pod) {
            Some(controller) if controller["uid"] != object::uid(job) => {}
            Some(_) if selects(&pod) => claimed.push(pod),
            Some(_) => release(job, &pod, access)?,
            None if selects(&pod) && !object::is_terminating(&pod) => {
                claimed.extend(adopt(job, pod, access)?);
            }
            None => {}
        }
    }
    Ok(claimed)
}

fn adopt(job: &Value, pod: Arc<Value>, access: &dyn Access) -> Result<Option<Arc<Value>>, Status> {
    if object::is_terminating(job) {
        return Ok(None);
    }
    let reference = owner::controller_reference(job, API_VERSION, KIND);
    edit(access, Target::of(PODS, &pod), |pod| {
        let references = object::metadata_mut(pod)
            .entry("ownerReferences")
            .or_insert_with(|| Value::Array(List::default()));
        if let Value::Array(references) = references {
            references.push(reference.clone());
        }
        add_finalizer(pod, TRACKING);
        true
    })
}

fn release(job: &Value, pod: &Value, access: &dyn Access) -> Result<(), Status> {
    if object::is_terminating(job) {
        return Ok(());
    }
    edit(access, Target::of(PODS, pod), |pod| {
        let disowned = owner::disown(pod, &[object::uid(job)]);
        remove_finalizer(pod, TRACKING) || disowned
    })?;
    Ok(())
}

/// Removes the finalizer of a pod that has been counted, or need not be.
pub(super) fn untrack(pod: &Value, access: &dyn Access) -> Result<(), Status> {
    if is_tracked(pod) {
        edit(access, Target::of(PODS, pod), |pod| {
            remove_finalizer(pod, TRACKING)
        })?;
    }
    Ok(())
}
