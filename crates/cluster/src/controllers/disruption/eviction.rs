//! Decides whether a pod may be evicted.

use crate::json::{Value, json};
use jiff::Timestamp;

use super::set_allowed_condition;
use crate::controllers::{moment, pod};
use crate::object;
use crate::status::{About, Status};

/// The maximum number of pending deletions of a budget.
const LIMIT: usize = 2000;

const REFUSAL: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Whether a pod can be evicted without its budgets: it does not serve, or is already being deleted.
///
/// The deletion of a Pending one carries its resourceVersion as a precondition: it may have started in the meantime.
pub(crate) fn needs_no_budget(pod: &Value) -> bool {
    object::is_terminating(pod) || matches!(pod::phase(pod), "Succeeded" | "Failed" | "Pending")
}

/// Checks a budget for the eviction of a pod that it covers.
///
/// `Ok(Some(status))` is the budget's new status, to be written before the pod is deleted; if that write conflicts, read the budget and
/// check again. `Ok(None)` costs the budget nothing; the deletion must then carry the pod's resourceVersion as a precondition, so that it
/// fails if the pod has become ready, and that conflict is answered with [`try_again`].
pub(crate) fn may_evict(budget: &Value, pod: &Value, now: Timestamp) -> Result<Option<Value>, Status> {
    let status = &budget["status"];
    let number = |field: &str| status[field].as_i64().unwrap_or(0);
    let (healthy, desired) = (number("currentHealthy"), number("desiredHealthy"));
    if needs_no_budget(pod) {
        return Ok(None);
    }
    if !pod::is_ready(pod) {
        let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
        if always || (healthy >= desired && desired > 0) {
            return Ok(None);
        }
    }
    if number("observedGeneration") < object::generation(budget) {
        return Err(try_again(budget));
    }
    let allowed = number("disruptionsAllowed");
    if allowed < 0 {
        return Err(forbidden(budget, "pdb disruptions allowed is negative"));
    }
    if status["disruptedPods"]
        .as_object()
        .is_some_and(|pods| pods.len() > LIMIT)
    {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(forbidden(budget, why));
    }
    if allowed == 0 {
        return Err(Status::too_many_requests(
            REFUSAL,
            cause(why_not(budget, healthy, desired)),
            0,
        ));
    }
    Ok(Some(spent(status, object::name(pod), allowed - 1, now)))
}

/// The budget is about to change; the client should ask again soon.
pub(crate) fn try_again(budget: &Value) -> Status {
    let message = format!(
        "The disruption budget {} is still being processed by the server.",
        object::name(budget)
    );
    Status::too_many_requests(REFUSAL, cause(message), 10)
}

/// The status of a pod whose eviction was allowed, to be written before it is deleted.
pub(crate) fn marked(pod: &Value, now: Timestamp) -> Value {
    const MARK: &str = "DisruptionTarget";
    let mut status = pod["status"].as_object().cloned().unwrap_or_default();
    let mut mark = json!({
        "type": MARK, "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
        "lastProbeTime": null, "lastTransitionTime": moment::shown(now),
    });
    let mut conditions = status
        .get("conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    match conditions.iter_mut().find(|condition| condition["type"] == MARK) {
        Some(old) => {
            if old["status"] == "True" {
                mark["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = mark;
        }
        None => conditions.push(mark),
    }
    status.insert("conditions".into(), conditions.into());
    status.into()
}

/// A budget's status after one more eviction.
fn spent(status: &Value, pod: &str, allowed: i64, now: Timestamp) -> Value {
    let mut status = status.clone();
    status["disruptionsAllowed"] = allowed.into();
    if allowed == 0 {
        set_allowed_condition(&mut status, now);
    }
    if !status["disruptedPods"].is_object() {
        status["disruptedPods"] = json!({});
    }
    status["disruptedPods"][pod] = moment::shown(now).into();
    status
}

fn why_not(budget: &Value, healthy: i64, desired: i64) -> String {
    let name = object::name(budget);
    let conditions = budget["status"]["conditions"].as_array().into_iter().flatten();
    let mut refusals = conditions
        .filter(|condition| condition["type"] == "DisruptionAllowed")
        .take(1);
    let refusal = refusals.find_map(|condition| {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        (text("status") == "False" && !text("message").is_empty()).then(|| (text("reason"), text("message")))
    });
    match refusal {
        // The counts are not valid if they could not be updated.
        Some(("SyncFailed", message)) => {
            format!(
                "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
            )
        }
        _ if healthy <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        }
        Some((reason, message)) => {
            format!(
                "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
            )
        }
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

fn cause(message: String) -> Value {
    json!({"reason": "DisruptionBudget", "message": message})
}

fn forbidden(budget: &Value, why: &str) -> Status {
    let plural = "poddisruptionbudget";
    Status::forbidden(
        About {
            group: "policy",
            plural,
            kind: plural,
            name: object::name(budget),
        },
        why,
    )
}
