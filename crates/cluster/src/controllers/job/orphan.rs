//! Pods that no Job will count any more: their Job is gone or finished. The controller removes their finalizer.

use crate::json::Value;

use super::claim::untrack;
use super::spec::is_managed_elsewhere;
use super::status::finished;
use super::tracked_pod::is_tracked;
use super::{API_VERSION, JOBS, KIND, job_of};
use crate::access::Access;
use crate::controllers::pod::PODS;
use crate::controllers::{Changed, Controller, Next, owner};
use crate::object;
use crate::selector::label_selector_matches;
use crate::status::Status;
use crate::store::Key;

/// The part of the Job controller whose keys are pods.
pub(crate) struct OrphanController;

impl Controller for OrphanController {
    fn name(&self) -> &'static str {
        "job-controller"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[JOBS, PODS]
    }

    fn concerned(&self, change: &Changed, access: &dyn Access) -> Vec<Key> {
        match (&*change.resource, &change.before, &change.after) {
            (PODS, _, Some(pod)) if is_tracked(pod) && is_left(pod, access) => vec![key(pod)],
            (JOBS, Some(_), Some(job)) if finished(job).is_some() => pods_of(job, access),
            (JOBS, Some(job), None) => pods_of(job, access),
            _ => Vec::new(),
        }
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        if let Some(pod) = access.get(PODS, &key.namespace, &key.name)
            && !is_wanted(&pod, access)
        {
            untrack(&pod, access)?;
        }
        Ok(Next::Wait)
    }
}

/// Whether a change of the pod itself requires a check. One with a controller is ignored until it is deleted.
fn is_left(pod: &Value, access: &dyn Access) -> bool {
    match owner::controller_of(pod) {
        None => true,
        Some(_) => {
            object::is_terminating(pod) && job_of(pod, access).is_none_or(|job| finished(&job).is_some())
        }
    }
}

/// Whether a Job will still count the pod.
fn is_wanted(pod: &Value, access: &dyn Access) -> bool {
    let Some(controller) = owner::controller_of(pod) else {
        return false;
    };
    if controller["kind"] != KIND || controller["apiVersion"] != API_VERSION {
        return true;
    }
    job_of(pod, access).is_some_and(|job| is_managed_elsewhere(&job) || finished(&job).is_none())
}

fn pods_of(job: &Value, access: &dyn Access) -> Vec<Key> {
    let selects = |pod: &Value| label_selector_matches(&job["spec"]["selector"], &pod["metadata"]["labels"]);
    let pods = access.list(PODS, object::namespace(job));
    pods.iter()
        .filter(|pod| is_tracked(pod) && selects(pod))
        .map(|pod| key(pod))
        .collect()
}

fn key(object: &Value) -> Key {
    Key::new(object::namespace(object), object::name(object))
}
