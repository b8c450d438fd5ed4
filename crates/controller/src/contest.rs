//! Somebody else writes what we write: it is put back, but not at any rate (invariant 28).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};
use stateward_core::plan::Fingerprint;
use stateward_core::world::{Action, Notice};
use stateward_plugin::Observation;

/// How often the same may be written within [`A_WHILE`].
const OFTEN: usize = 6;
const A_WHILE: SignedDuration = SignedDuration::from_mins(1);

/// What was written when, by the UID of the object it is about.
#[derive(Default)]
pub(crate) struct Contest {
    workloads: Mutex<HashMap<String, Round>>,
    statuses: Mutex<HashMap<String, Said>>,
}

/// To be tried again later, and what to tell about it the first time.
pub(crate) struct Later {
    pub(crate) at: Timestamp,
    pub(crate) notice: Option<Notice>,
}

/// When the same was written.
#[derive(Default)]
struct Times {
    times: Vec<Timestamp>,
    told: bool,
}

impl Times {
    /// Until when to wait, and whether that is yet to be told.
    fn wait(&mut self, now: Timestamp) -> Option<(Timestamp, bool)> {
        self.times.retain(|time| now.duration_since(*time) < A_WHILE);
        let [first, ..] = self.times.as_slice() else {
            self.told = false;
            return None;
        };
        let until = first.saturating_add(A_WHILE).unwrap_or(now);
        (self.times.len() >= OFTEN).then(|| (until, !std::mem::replace(&mut self.told, true)))
    }
}

/// An action that was carried out, maybe again and again.
struct Round {
    action: Action,
    /// An autoscaler that changes its mind is no contest.
    replicas: Option<u32>,
    times: Times,
}

impl Round {
    fn is(&self, action: &Action, seen: &Observation) -> bool {
        self.action == *action && self.replicas == replicas(seen)
    }
}

fn replicas(seen: &Observation) -> Option<u32> {
    seen.workload.as_ref().map(|workload| workload.replicas).ok()
}

/// What a status was told to be.
struct Said {
    last: Fingerprint,
    /// What was said because somebody else had said something different.
    again: HashMap<Fingerprint, Times>,
}

/// A status without what people have asked for in it: that is taken out again with the answer.
fn record(status: &impl Serialize) -> Value {
    let mut record = json!(status);
    if record["controllerPause"] == true {
        record["pauseConditions"] = Value::Null;
    }
    if let Some(fields) = record.as_object_mut() {
        for field in ["abort", "restart", "promote", "promoteFull", "history"] {
            fields.remove(field);
        }
    }
    record
}

/// What a status says, whenever it says it.
fn gist(status: &impl Serialize) -> Fingerprint {
    let mut gist = record(status);
    // These are named after times.
    gist["canary"] = Value::Null;
    if let Some(checks) = gist.get_mut("rollingPodStatus").and_then(Value::as_object_mut) {
        checks.remove("gate");
    }
    forget_times(&mut gist);
    fingerprint(&gist)
}

/// Tells apart what we have said from what somebody else has.
fn exactly(status: &impl Serialize) -> Fingerprint {
    fingerprint(&record(status))
}

fn fingerprint(record: &Value) -> Fingerprint {
    // Any JSON can be written.
    Fingerprint::of(&serde_json::to_string(record).unwrap_or_default())
}

fn forget_times(value: &mut Value) {
    match value {
        Value::String(text) if text.parse::<Timestamp>().is_ok() => *value = Value::Null,
        Value::Array(values) => values.iter_mut().for_each(forget_times),
        Value::Object(fields) => fields.values_mut().for_each(forget_times),
        _ => {}
    }
}

impl Contest {
    /// Whether this action has to wait, because it was undone too often.
    pub(crate) fn wait(
        &self,
        uid: &str,
        action: &Action,
        seen: &Observation,
        now: Timestamp,
    ) -> Option<Later> {
        let mut rounds = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        let round = rounds.get_mut(uid).filter(|round| round.is(action, seen))?;
        let (at, tell) = round.times.wait(now)?;
        let notice = Notice {
            warning: true,
            reason: "WorkloadContested",
            message: format!(
                "somebody else writes the workload's partition or template too: what was set was undone {OFTEN} times within \
                 a minute, and is put back more slowly now; see who with: kubectl get statefulset -o yaml --show-managed-fields"
            ),
        };
        Some(Later {
            at,
            notice: tell.then_some(notice),
        })
    }

    /// It was carried out.
    pub(crate) fn done(&self, uid: &str, action: &Action, seen: &Observation, now: Timestamp) {
        // Pods are removed by their UID: the same one goes only once.
        if !matches!(action, Action::Release(_) | Action::Restore) {
            return;
        }
        let mut rounds = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        if !rounds.get(uid).is_some_and(|round| round.is(action, seen)) {
            let round = Round {
                action: action.clone(),
                replicas: replicas(seen),
                times: Times::default(),
            };
            rounds.insert(uid.to_owned(), round);
        }
        if let Some(round) = rounds.get_mut(uid) {
            round.times.times.push(now);
        }
    }

    /// Whether `new` has to wait, because it was said too often in the place of what somebody else had written.
    pub(crate) fn wait_to_say(
        &self,
        uid: &str,
        recorded: &impl Serialize,
        new: &impl Serialize,
        now: Timestamp,
    ) -> Option<Later> {
        let mut statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let said = statuses.get_mut(uid)?;
        if said.last == exactly(recorded) {
            return None;
        }
        let (at, tell) = said.again.get_mut(&gist(new))?.wait(now)?;
        let notice = Notice {
            warning: true,
            reason: "StatusContested",
            message: format!(
                "somebody else writes this object's status too: it was changed {OFTEN} times within a minute, and is put \
                 right more slowly now; see who with: kubectl get -o yaml --show-managed-fields"
            ),
        };
        Some(Later {
            at,
            notice: tell.then_some(notice),
        })
    }

    /// `new` was written in the place of `recorded`.
    pub(crate) fn said(&self, uid: &str, recorded: &impl Serialize, new: &impl Serialize, now: Timestamp) {
        let mut statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let last = exactly(new);
        let Some(said) = statuses.get_mut(uid) else {
            let again = HashMap::new();
            statuses.insert(uid.to_owned(), Said { last, again });
            return;
        };
        if said.last != exactly(recorded) {
            said.again
                .retain(|_, times| times.times.iter().any(|time| now.duration_since(*time) < A_WHILE));
            said.again.entry(gist(new)).or_default().times.push(now);
        }
        said.last = last;
    }

    /// The object is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.workloads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(uid);
        self.statuses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateward_api::phasedrollout::{PhasedRolloutStatus, RollingPodStatus};
    use stateward_api::rollout::{PauseCondition, RolloutStatus};
    use stateward_core::plan::Share;
    use stateward_core::world::NoWorkload;
    use stateward_plugin::Version;

    fn seen() -> Observation {
        Observation {
            workload: Err(NoWorkload::Missing(String::new())),
            version: Version::default(),
        }
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_is_undone_again_and_again_is_put_back_more_slowly_and_told_once() {
        let contest = Contest::default();
        let guard = Action::Release(Share::NONE);
        for time in 0..6 {
            assert!(contest.wait("1", &guard, &seen(), second(time)).is_none());
            contest.done("1", &guard, &seen(), second(time));
        }
        let later = contest.wait("1", &guard, &seen(), second(6)).unwrap();
        assert_eq!(later.at, second(60));
        assert!(later.notice.is_some());
        assert!(
            contest
                .wait("1", &guard, &seen(), second(7))
                .unwrap()
                .notice
                .is_none()
        );
        assert!(
            contest.wait("2", &guard, &seen(), second(7)).is_none(),
            "another object"
        );
        assert!(
            contest
                .wait("1", &Action::Release(Share::ALL), &seen(), second(7))
                .is_none(),
            "another step"
        );
        assert!(
            contest.wait("1", &guard, &seen(), second(60)).is_none(),
            "the first is a minute ago"
        );
    }

    #[test]
    fn steps_that_follow_each_other_are_no_contest() {
        let contest = Contest::default();
        for pods in 0..20 {
            let step = Action::Release(Share::Pods(pods));
            assert!(contest.wait("1", &step, &seen(), second(0)).is_none());
            contest.done("1", &step, &seen(), second(0));
        }
    }

    fn status(message: &str) -> RolloutStatus {
        RolloutStatus {
            message: message.into(),
            ..RolloutStatus::default()
        }
    }

    #[test]
    fn a_status_that_others_change_again_and_again_is_put_right_more_slowly_and_told_once() {
        let contest = Contest::default();
        let (ours, theirs) = (status("ours"), status("theirs"));
        for time in 0..7 {
            let waits = contest.wait_to_say("1", &theirs, &ours, second(time));
            assert!(waits.is_none(), "{time}");
            contest.said("1", &theirs, &ours, second(time));
        }
        let later = contest.wait_to_say("1", &theirs, &ours, second(7)).unwrap();
        // The first of them was the first we ever said.
        assert_eq!(later.at, second(61));
        assert!(later.notice.is_some());
        let again = contest.wait_to_say("1", &theirs, &ours, second(8)).unwrap();
        assert!(again.notice.is_none());
        let other = contest.wait_to_say("1", &theirs, &status("other"), second(8));
        assert!(other.is_none(), "what was not said before");
    }

    #[test]
    fn all_of_a_status_can_be_fought_over() {
        let contest = Contest::default();
        let says = |status: &str| PhasedRolloutStatus {
            rolling_pod_status: Some(RollingPodStatus {
                status: status.into(),
                ..RollingPodStatus::default()
            }),
            ..PhasedRolloutStatus::default()
        };
        let (ours, theirs) = (says("WaitForChecks"), says("WaitForAllPodsToBeAvailable"));
        let waits = (0..20).any(|time| {
            let later = contest.wait_to_say("1", &theirs, &ours, second(time));
            contest.said("1", &theirs, &ours, second(time));
            later.is_some()
        });
        assert!(waits);
    }

    /// Two who begin the same step again and again, each at a time of its own.
    #[test]
    fn times_can_be_fought_over() {
        let contest = Contest::default();
        let began = |time: i64| RolloutStatus {
            current_step_started_at: Some(second(time)),
            ..status("at the gate")
        };
        let waits = (0..20).any(|time| {
            let (theirs, ours) = (began(2 * time), began(2 * time + 1));
            let later = contest.wait_to_say("1", &theirs, &ours, second(time));
            contest.said("1", &theirs, &ours, second(time));
            later.is_some()
        });
        assert!(waits);
    }

    #[test]
    fn what_users_ask_for_is_no_contest_however_often() {
        let contest = Contest::default();
        let ours = RolloutStatus {
            controller_pause: true,
            pause_conditions: vec![PauseCondition {
                reason: "CanaryPauseStep".into(),
                start_time: second(0),
            }],
            ..status("5 of 5")
        };
        let flag = RolloutStatus {
            promote: true,
            ..ours.clone()
        };
        let emptied = RolloutStatus {
            pause_conditions: Vec::new(),
            ..ours.clone()
        };
        for asked in [flag, emptied] {
            for time in 0..20 {
                assert!(contest.wait_to_say("1", &asked, &ours, second(time)).is_none());
                contest.said("1", &asked, &ours, second(time));
            }
        }
    }

    #[test]
    fn what_only_we_write_is_no_contest() {
        let contest = Contest::default();
        let (ready, unready) = (status("5 of 5"), status("4 of 5"));
        for time in 0..20 {
            let (before, after) = if time % 2 == 0 {
                (&ready, &unready)
            } else {
                (&unready, &ready)
            };
            assert!(contest.wait_to_say("1", before, after, second(time)).is_none());
            contest.said("1", before, after, second(time));
        }
    }
}
