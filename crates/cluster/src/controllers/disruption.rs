//! PodDisruptionBudgets: how many of an application's pods may be disrupted at once.
//!
//! [`DisruptionController`] updates a budget's status, the server calls [`eviction`] before it evicts a pod, and [`stale`] clears the
//! condition of an eviction that did not happen. [`expected`] computes how many pods there should be.

pub(crate) mod eviction;
mod expected;
mod printed;
pub(crate) mod stale;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::json::{Map, Value, json};
use jiff::Timestamp;

use self::expected::{Expected, expected};
use self::printed::printed;
use super::edit::with_status;
use super::pod::{self, PODS};
use super::{Changed, Controller, Next, moment};
use crate::access::{Access, EventKind};
use crate::object;
use crate::selector::{LabelSelector, label_selector_matches};
use crate::status::Status;
use crate::store::Key;

const BUDGETS: &str = "poddisruptionbudgets.policy";

/// An evicted pod that still exists after this time is not expected to be deleted.
const DELETION_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct DisruptionController;

impl Controller for DisruptionController {
    fn name(&self) -> &'static str {
        "disruption-controller"
    }

    fn event_source(&self) -> &'static str {
        "controllermanager"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[BUDGETS, PODS]
    }

    fn concerned(&self, change: &Changed, access: &dyn Access) -> Vec<Key> {
        let Some(object) = change.after.as_ref().or(change.before.as_ref()) else {
            return Vec::new();
        };
        let key = |object: &Value| Key::new(object::namespace(object), object::name(object));
        if &*change.resource == BUDGETS {
            return vec![key(object)];
        }
        let budgets = covering(object, &access.list(BUDGETS, object::namespace(object)));
        if let [first, _, ..] = budgets.as_slice() {
            let (namespace, name, first) = (
                object::namespace(object),
                object::name(object),
                object::name(first),
            );
            let message = format!(
                "Pod \"{namespace}\"/\"{name}\" matches multiple PodDisruptionBudgets.  Chose \"{first}\" arbitrarily."
            );
            access.event(
                object,
                EventKind::Warning,
                "MultiplePodDisruptionBudgets",
                &message,
            );
        }
        // The real controller syncs one of several, at random; over time that is all of them.
        budgets.iter().map(|budget| key(budget)).collect()
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        let Some(budget) = access.get(BUDGETS, &key.namespace, &key.name) else {
            return Ok(Next::Wait);
        };
        match refresh(&budget, access) {
            Ok(next) => Ok(next),
            Err(Trouble::Refused(status)) if status.is_conflict() => Err(status),
            Err(Trouble::Refused(status)) => forbid(&budget, &status.to_string(), access),
            Err(Trouble::Uncountable(why)) => forbid(&budget, &why, access),
        }
    }
}

/// Why a budget's status could not be updated.
enum Trouble {
    Refused(Status),
    Uncountable(String),
}

/// The budgets that cover a pod.
pub(crate) fn covering(pod: &Value, budgets: &[Arc<Value>]) -> Vec<Arc<Value>> {
    let covers = |budget: &&Arc<Value>| {
        object::namespace(budget) == object::namespace(pod)
            && label_selector_matches(&budget["spec"]["selector"], &pod["metadata"]["labels"])
    };
    budgets.iter().filter(covers).cloned().collect()
}

fn refresh(budget: &Value, access: &dyn Access) -> Result<Next, Trouble> {
    let event = |kind, reason: &str, message: &str| access.event(budget, kind, reason, message);
    let selector = LabelSelector::of(&budget["spec"]["selector"]).map_err(|error| {
        event(
            EventKind::Warning,
            "NoPods",
            &format!("Failed to get pods: {error}"),
        );
        Trouble::Uncountable(error.to_string())
    })?;
    let pods = access.list(PODS, object::namespace(budget)).into_iter();
    let pods: Vec<_> = pods
        .filter(|pod| selector.matches(&pod["metadata"]["labels"]))
        .collect();
    if pods.is_empty() {
        event(EventKind::Normal, "NoPods", "No matching pods found");
    }
    let Expected {
        pods: expected,
        healthy: desired,
        unmanaged,
    } = expected(budget, &pods, access).map_err(|why| {
        let message = format!("Failed to calculate the number of expected pods: {why}");
        event(EventKind::Warning, "CalculateExpectedPodCountFailed", &message);
        Trouble::Uncountable(why)
    })?;
    if unmanaged {
        event(EventKind::Warning, "UnmanagedPods", &unmanaged_message(budget));
    }
    let now = access.now();
    let disrupted = still_disrupted(budget, &pods, access, now);
    let healthy = pods.iter().filter(|pod| is_healthy(pod, &disrupted, now)).count();
    let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
    let allowed = if expected <= 0 {
        0
    } else {
        healthy.saturating_sub(desired).max(0)
    };
    let recheck = disrupted
        .values()
        .filter_map(moment::read)
        .map(|time| moment::later(time, DELETION_TIMEOUT))
        .min();

    let mut status = json!({
        "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected, "disruptionsAllowed": allowed,
        "observedGeneration": object::generation(budget),
    });
    if !disrupted.is_empty() {
        status["disruptedPods"] = disrupted.into();
    }
    status["conditions"] = budget["status"]["conditions"].clone();
    set_allowed_condition(&mut status, now);
    if status != budget["status"] {
        write(budget, status, access).map_err(Trouble::Refused)?;
    }
    Ok(recheck.map_or(Next::Wait, |time| Next::After(moment::until(time, now))))
}

/// Allows no eviction while the counts are unknown.
fn forbid(budget: &Value, why: &str, access: &dyn Access) -> Result<Next, Status> {
    let mut status = budget["status"].clone();
    if !status.is_object() {
        status = json!({"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
    }
    status["disruptionsAllowed"] = 0.into();
    set_condition(&mut status, "False", "SyncFailed", why, access.now());
    if status != budget["status"] {
        write(budget, status, access)?;
    }
    Ok(Next::Wait)
}

fn write(budget: &Value, status: Value, access: &dyn Access) -> Result<(), Status> {
    let object = with_status(budget, status);
    access
        .update_status(BUDGETS, object::namespace(budget), object::name(budget), object)
        .map(drop)
}

/// The evicted pods whose deletion is still expected. Records an event for the others.
fn still_disrupted(budget: &Value, pods: &[Arc<Value>], access: &dyn Access, now: Timestamp) -> Map {
    let mut disrupted = Map::new();
    let noted = &budget["status"]["disruptedPods"];
    for pod in pods.iter().filter(|pod| !object::is_terminating(pod)) {
        let name = object::name(pod);
        let Some(time) = moment::read(&noted[name]) else {
            continue;
        };
        if moment::later(time, DELETION_TIMEOUT) <= now {
            let namespace = object::namespace(budget);
            // The real message names the namespace twice and never the budget.
            let message =
                format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't");
            access.event(pod, EventKind::Warning, "NotDeleted", &message);
        } else {
            disrupted.insert(name.into(), noted[name].clone());
        }
    }
    disrupted
}

fn is_healthy(pod: &Value, disrupted: &Map, now: Timestamp) -> bool {
    let expected_to_go = disrupted.get(object::name(pod)).and_then(moment::read);
    !object::is_terminating(pod)
        && expected_to_go.is_none_or(|time| moment::later(time, DELETION_TIMEOUT) <= now)
        && pod::is_ready(pod)
}

fn unmanaged_message(budget: &Value) -> String {
    format!(
        "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of \
         the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please \
         set \".spec.minAvailable\" field of the PDB to an integer value.",
        printed(&budget["spec"]["selector"])
    )
}

/// Sets the condition that follows from the number of allowed disruptions.
fn set_allowed_condition(status: &mut Value, now: Timestamp) {
    let (value, reason) = match status["disruptionsAllowed"].as_i64() {
        Some(1..) => ("True", "SufficientPods"),
        _ => ("False", "InsufficientPods"),
    };
    set_condition(status, value, reason, "", now);
}

fn set_condition(status: &mut Value, value: &str, reason: &str, message: &str, now: Timestamp) {
    const KIND: &str = "DisruptionAllowed";
    let mut new = json!({
        "type": KIND, "status": value, "reason": reason, "message": message,
        "lastTransitionTime": moment::shown(now),
    });
    if status["observedGeneration"]
        .as_i64()
        .is_some_and(|generation| generation != 0)
    {
        new["observedGeneration"] = status["observedGeneration"].clone();
    }
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    match conditions.iter_mut().find(|condition| condition["type"] == KIND) {
        Some(old) => {
            if old["status"] == value {
                new["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = new;
        }
        None => conditions.push(new),
    }
    status["conditions"] = conditions.into();
}
