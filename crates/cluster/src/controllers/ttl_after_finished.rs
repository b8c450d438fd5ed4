//! Deletes Jobs some time after they finished: `ttlSecondsAfterFinished`.

use crate::json::{Value, json};
use jiff::Timestamp;

use super::job::{JOBS, finished};
use super::{Changed, Controller, Next, moment};
use crate::access::Access;
use crate::object;
use crate::status::Status;
use crate::store::Key;

pub(crate) struct TtlAfterFinishedController;

impl Controller for TtlAfterFinishedController {
    fn name(&self) -> &'static str {
        "ttl-after-finished-controller"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[JOBS]
    }

    fn concerned(&self, change: &Changed, _access: &dyn Access) -> Vec<Key> {
        let job = change.after.as_ref().filter(|job| expiry(job).is_some());
        job.map(|job| Key::new(object::namespace(job), object::name(job)))
            .into_iter()
            .collect()
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        let Key { namespace, name } = key;
        let Some(job) = access.get(JOBS, namespace, name) else {
            return Ok(Next::Wait);
        };
        let Some(expiry) = expiry(&job) else {
            return Ok(Next::Wait);
        };
        let left = moment::until(expiry, access.now());
        if !left.is_zero() {
            return Ok(Next::After(left));
        }
        let options = json!({"propagationPolicy": "Foreground", "preconditions": {"uid": object::uid(&job)}});
        match access.delete(JOBS, namespace, name, options) {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(Next::Wait),
        }
    }
}

/// When the Job must be deleted, if it has finished and has a TTL.
fn expiry(job: &Value) -> Option<Timestamp> {
    if object::is_terminating(job) {
        return None;
    }
    let ttl = moment::seconds(job["spec"]["ttlSecondsAfterFinished"].as_i64()?);
    Some(moment::later(
        moment::read(&finished(job)?["lastTransitionTime"])?,
        ttl,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::fake::Lab;

    fn ended(name: &str, spec: Value) -> Value {
        let condition =
            json!({"type": "Failed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        json!({"metadata": {"name": name, "namespace": "n"}, "spec": spec, "status": {"conditions": [condition]}})
    }

    #[test]
    fn a_job_that_ended_is_deleted_in_the_foreground_when_its_time_is_up() {
        let mut lab = Lab::new(vec![Box::new(TtlAfterFinishedController)]);
        lab.fake
            .put(JOBS, ended("short", json!({"ttlSecondsAfterFinished": 5})));
        lab.fake.put(JOBS, ended("kept", json!({})));
        lab.seconds(4);
        assert!(
            lab.fake
                .list(JOBS, "n")
                .iter()
                .all(|job| !object::is_terminating(job))
        );

        lab.seconds(1);
        let job = lab.fake.get(JOBS, "n", "short").unwrap();
        assert!(object::is_terminating(&job));
        assert_eq!(
            object::finalizers(&job).collect::<Vec<_>>(),
            ["foregroundDeletion"]
        );
        assert!(!object::is_terminating(&lab.fake.get(JOBS, "n", "kept").unwrap()));
    }
}
