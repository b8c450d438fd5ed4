//! Empties namespaces that are being deleted, and creates the initial objects of new ones.
//!
//! [`NamespaceController`] deletes the objects in a namespace, pods first, reports in its conditions what is left, and then removes its
//! finalizer. [`bootstrap`] has the initial objects.

pub(crate) mod bootstrap;
mod conditions;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::json::{Value, json};
use jiff::Timestamp;

use self::conditions::{Conditions, Findings};
use super::edit::with_status;
use super::pod::{self, PODS};
use super::{Changed, Controller, Next, moment};
use crate::access::{Access, ResourceInfo};
use crate::object;
use crate::status::Status;
use crate::store::Key;

const NAMESPACES: &str = "namespaces";

/// The finalizer in a namespace's spec that belongs to this controller.
const FINALIZER: &str = "kubernetes";

/// How long a deletion waits, so that other servers observe it before the contents are deleted.
const GRACE: Duration = Duration::from_secs(5);

/// How long objects with finalizers are expected to stay.
const FINALIZER_ESTIMATE: i64 = 15;

pub(crate) struct NamespaceController;

impl Controller for NamespaceController {
    fn name(&self) -> &'static str {
        "namespace-controller"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[NAMESPACES]
    }

    fn concerned(&self, change: &Changed, _access: &dyn Access) -> Vec<Key> {
        let namespace = change
            .after
            .as_ref()
            .filter(|namespace| object::is_terminating(namespace));
        namespace
            .map(|namespace| Key::new("", object::name(namespace)))
            .into_iter()
            .collect()
    }

    fn delay(&self, _change: &Changed) -> Duration {
        GRACE
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        let name = key.name.as_str();
        let Some(namespace) = access
            .get(NAMESPACES, "", name)
            .filter(|namespace| object::is_terminating(namespace))
        else {
            return Ok(Next::Wait);
        };
        let namespace = terminating(namespace, access)?;
        if finalizers(&namespace).next().is_none() {
            return Ok(Next::Wait);
        }
        let remaining = empty(&namespace, access)?;
        if remaining > 0 {
            return Ok(Next::After(moment::seconds(remaining / 2 + 1)));
        }
        release(name, access)
    }
}

/// The namespace with the phase Terminating.
fn terminating(namespace: Arc<Value>, access: &dyn Access) -> Result<Arc<Value>, Status> {
    if namespace["status"]["phase"] == "Terminating" {
        return Ok(namespace);
    }
    let mut status = namespace["status"].as_object().cloned().unwrap_or_default();
    status.insert("phase".into(), "Terminating".into());
    access.update_status(
        NAMESPACES,
        "",
        object::name(&namespace),
        with_status(&namespace, status.into()),
    )
}

fn finalizers(namespace: &Value) -> impl Iterator<Item = &str> {
    namespace["spec"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Removes our finalizer only.
fn release(name: &str, access: &dyn Access) -> Result<Next, Status> {
    let Some(namespace) = access.get(NAMESPACES, "", name) else {
        return Ok(Next::Wait);
    };
    let mut left: Vec<_> = finalizers(&namespace)
        .filter(|finalizer| *finalizer != FINALIZER)
        .collect();
    left.sort_unstable();
    let mut released = (*namespace).clone();
    if let Some(spec) = released.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("finalizers".into(), json!(left));
    }
    match access.finalize_namespace(name, released) {
        Err(status) if !status.is_not_found() => Err(status),
        _ => Ok(Next::Wait),
    }
}

/// Deletes everything in a namespace. Returns the seconds until the next sync, 0 if nothing is left.
fn empty(namespace: &Value, access: &dyn Access) -> Result<i64, Status> {
    let name = object::name(namespace);
    let deleted_at = moment::read(&namespace["metadata"]["deletionTimestamp"]).unwrap_or(Timestamp::MIN);
    let mut findings = Findings::default();
    let mut resources: BTreeMap<_, _> = BTreeMap::new();
    for info in access.resources().into_iter().filter(|info| info.namespaced) {
        resources.entry(info.resource.clone()).or_insert(info);
    }
    // Pods go first, while the policies, secrets and claims that they may need for a clean shutdown still exist.
    let pods = resources.remove(PODS);
    let estimate = pods.map_or(0, |pods| empty_of(&pods, name, deleted_at, access, &mut findings));
    let only_pods = findings.has_remaining();
    let estimate = if only_pods {
        estimate
    } else {
        let estimates = resources
            .values()
            .map(|info| empty_of(info, name, deleted_at, access, &mut findings));
        estimates.max().unwrap_or(0).max(estimate)
    };
    let mut conditions = Conditions::read(namespace);
    if conditions.update(&findings, only_pods, access.now()) {
        let mut status = namespace["status"].clone();
        status["conditions"] = conditions.to_value();
        // A concurrent write triggers another sync; the contents matter more than the status.
        let _ = access.update_status(NAMESPACES, "", name, with_status(namespace, status));
    }
    match findings.errors() {
        [] => Ok(estimate),
        errors => Err(Status::internal(errors.join(", "))),
    }
}

/// Deletes all objects of one resource and records what stays.
fn empty_of(
    info: &ResourceInfo,
    namespace: &str,
    deleted_at: Timestamp,
    access: &dyn Access,
    findings: &mut Findings,
) -> i64 {
    let objects = access.list(&info.resource, namespace);
    let estimate = if &*info.resource == PODS {
        longest_grace(&objects)
    } else {
        0
    };
    // Once the grace period has passed, the estimate is no longer valid.
    let passed = access.now() >= moment::later(deleted_at, moment::seconds(estimate));
    let estimate = if passed { 0 } else { estimate };
    for object in &objects {
        let options = json!({"propagationPolicy": "Background"});
        match access.delete(&info.resource, namespace, object::name(object), options) {
            Err(status) if !status.is_not_found() => {
                findings.fail(status.to_string());
                return estimate;
            }
            _ => {}
        }
    }
    let left = access.list(&info.resource, namespace);
    findings.note(info, &left);
    if left.is_empty() {
        0
    } else if estimate > 0 {
        estimate
    } else if left.iter().any(|object| object::has_finalizers(object)) {
        FINALIZER_ESTIMATE
    } else {
        findings.fail(unexpected(info, namespace));
        0
    }
}

fn longest_grace(pods: &[Arc<Value>]) -> i64 {
    let running = pods.iter().filter(|pod| !pod::is_terminal(pod));
    running
        .filter_map(|pod| pod["spec"]["terminationGracePeriodSeconds"].as_i64())
        .max()
        .unwrap_or(0)
        .max(0)
}

fn unexpected(info: &ResourceInfo, namespace: &str) -> String {
    let (group, version) = info
        .api_version
        .split_once('/')
        .unwrap_or(("", &info.api_version));
    let plural = info
        .resource
        .split_once('.')
        .map_or(&*info.resource, |(plural, _)| plural);
    format!(
        "unexpected items still remain in namespace: {namespace} for gvr: {group}/{version}, Resource={plural}"
    )
}
