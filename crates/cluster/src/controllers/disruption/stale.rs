//! Clears the disruption condition of a pod that was evicted but not deleted.

use std::time::Duration;

use crate::json::{Value, json};
use jiff::Timestamp;

use crate::access::Access;
use crate::controllers::edit::with_status;
use crate::controllers::pod::{self, PODS};
use crate::controllers::{Changed, Controller, Next, moment};
use crate::object;
use crate::status::Status;
use crate::store::Key;

const MARK: &str = "DisruptionTarget";
const TIMEOUT: Duration = Duration::from_secs(120);

/// The part of the disruption controller whose keys are pods.
pub(crate) struct StaleDisruptionController;

impl Controller for StaleDisruptionController {
    fn name(&self) -> &'static str {
        "disruption-controller"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[PODS]
    }

    fn concerned(&self, change: &Changed, _access: &dyn Access) -> Vec<Key> {
        let pod = change.after.as_ref().filter(|pod| stale_at(pod).is_some());
        pod.map(|pod| Key::new(object::namespace(pod), object::name(pod)))
            .into_iter()
            .collect()
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        let Key { namespace, name } = key;
        let Some(pod) = access.get(PODS, namespace, name) else {
            return Ok(Next::Wait);
        };
        let Some(stale_at) = stale_at(&pod) else {
            return Ok(Next::Wait);
        };
        let now = access.now();
        let left = moment::until(stale_at, now);
        if !left.is_zero() {
            return Ok(Next::After(left));
        }
        access.update_status(PODS, namespace, name, with_status(&pod, cleared(&pod, now)))?;
        Ok(Next::Wait)
    }
}

/// When a pod's condition becomes stale. The kubelet's own never does: its pods may take their time.
fn stale_at(pod: &Value) -> Option<Timestamp> {
    let mark = pod::condition(pod, MARK)?;
    let is_set = mark["status"] == "True" && mark["reason"] != "TerminationByKubelet";
    if !is_set || object::is_terminating(pod) || pod::is_terminal(pod) {
        return None;
    }
    let since = moment::read(&mark["lastTransitionTime"]).unwrap_or(Timestamp::UNIX_EPOCH);
    Some(moment::later(since, TIMEOUT))
}

fn cleared(pod: &Value, now: Timestamp) -> Value {
    let mut status = pod["status"].clone();
    let conditions = status["conditions"].as_array_mut().into_iter().flatten();
    for mark in conditions.filter(|condition| condition["type"] == MARK) {
        *mark = json!({
            "type": MARK, "status": "False", "observedGeneration": object::generation(pod),
            "lastProbeTime": null, "lastTransitionTime": moment::shown(now),
        });
    }
    status
}
