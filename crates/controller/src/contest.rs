//! Another client writes what the operator writes (invariant 28).
//!
//! A write that reduces exposure follows each foreign write at once, so that their rate bounds ours: were it delayed, a tool that keeps
//! applying a partition of 0 would roll every pod through a pause. Everything else backs off.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};
use stateward_core::event::{EventReason, Notice};
use stateward_core::plan::Fingerprint;
use stateward_core::world::Action;
use stateward_plugin::Observation;

/// How often the same may be written within [`A_WHILE`] before it backs off.
const OFTEN: usize = 6;
/// How often the same was written within [`A_WHILE`] when another client is said to contest it.
const CONTESTED: usize = 3;
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
    fn within_a_while(&self, now: Timestamp) -> usize {
        let recent = |time: &&Timestamp| now.duration_since(**time) < A_WHILE;
        self.times.iter().filter(recent).count()
    }

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
    /// It reduced exposure.
    reduced: bool,
    /// An autoscaler that changes its mind is no contest.
    replicas: Option<u32>,
    times: Times,
    /// Who contests it, once that was found out.
    by: Option<String>,
}

impl Round {
    /// Whether an action sets again what this one did. One that reduces exposure does so where another client has written the partition
    /// since; as many pods are the same, whether they are counted or a percentage.
    fn is(&self, action: &Action, seen: &Observation) -> bool {
        let (Action::Release(before), Action::Release(now)) = (&self.action, action) else {
            return self.action == *action && self.replicas == replicas(seen);
        };
        let Some(replicas_then) = self.replicas else {
            return before == now && replicas(seen).is_none();
        };
        if self.reduced && reduces_exposure(action, seen) {
            return partition(seen) != Some(i64::from(replicas_then - before.of(replicas_then)));
        }
        before.of(replicas_then) == now.of(replicas_then) && self.replicas == replicas(seen)
    }
}

/// Whether an action takes pods of a version back, or keeps Kubernetes from giving it to more.
pub(crate) fn reduces_exposure(action: &Action, seen: &Observation) -> bool {
    match (action, &seen.workload) {
        (Action::Release(share), Ok(workload)) => i64::from(share.of(workload.replicas)) < workload.released,
        (Action::Restore(_) | Action::Remove { .. }, _) => true,
        _ => false,
    }
}

/// The partition that is set.
fn partition(seen: &Observation) -> Option<i64> {
    let workload = seen.workload.as_ref().ok()?;
    Some(i64::from(workload.replicas) - workload.released)
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
        for field in ["skipCurrentStep", "force", "requestedBy"] {
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
    /// Whether this action repeats what another client has undone again and again, and it is not known yet who that is.
    pub(crate) fn is_news(&self, uid: &str, action: &Action, seen: &Observation, now: Timestamp) -> bool {
        let rounds = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        let round = rounds.get(uid).filter(|round| round.is(action, seen));
        round.is_some_and(|round| round.by.is_none() && round.times.within_a_while(now) >= CONTESTED)
    }

    /// Takes note of who contests what was written last.
    pub(crate) fn found(&self, uid: &str, by: String) {
        let mut rounds = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(round) = rounds.get_mut(uid) {
            round.by = Some(by);
        }
    }

    /// Who contests the workload of an object, and until when that is said if they stop.
    pub(crate) fn contested(&self, uid: &str, now: Timestamp) -> Option<(String, Timestamp)> {
        let rounds = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        let round = rounds.get(uid)?;
        let last = round.times.times.last()?.saturating_add(A_WHILE).ok()?;
        Some((round.by.clone().filter(|_| last > now)?, last))
    }

    /// Whether this action has to wait, because it was undone too often.
    pub(crate) fn wait(
        &self,
        uid: &str,
        action: &Action,
        seen: &Observation,
        now: Timestamp,
    ) -> Option<Later> {
        if reduces_exposure(action, seen) {
            return None;
        }
        let mut rounds = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        let round = rounds.get_mut(uid).filter(|round| round.is(action, seen))?;
        let (at, tell) = round.times.wait(now)?;
        let notice = Notice {
            reason: EventReason::WorkloadContested,
            message: format!(
                "what was set in the workload was undone {OFTEN} times within a minute; it would release more pods, and is set \
                 again more slowly now"
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
        if !matches!(action, Action::Release(_) | Action::Restore(_)) {
            return;
        }
        let mut rounds = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        let again = rounds.get(uid).is_some_and(|round| round.is(action, seen));
        let before = rounds.remove(uid).filter(|_| again);
        let (times, by) = before.map(|round| (round.times, round.by)).unwrap_or_default();
        let round = Round {
            action: action.clone(),
            reduced: reduces_exposure(action, seen),
            replicas: replicas(seen),
            times,
            by,
        };
        rounds.insert(uid.to_owned(), round);
        if let Some(round) = rounds.get_mut(uid) {
            let times = &mut round.times.times;
            times.retain(|time| now.duration_since(*time) < A_WHILE);
            if times.is_empty() {
                round.by = None;
            }
            times.push(now);
        }
    }

    /// Whether `new` has to wait, because it was written too often in the place of what another client had written. `object` is how
    /// kubectl names it: `rolloutplugin db -n prod`.
    pub(crate) fn wait_to_say(
        &self,
        uid: &str,
        object: &str,
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
            reason: EventReason::StatusContested,
            message: format!(
                "another client writes this object's status too: it was changed {OFTEN} times within a minute, and is put \
                 right more slowly now; see who with: kubectl get {object} -o yaml --show-managed-fields"
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
    use stateward_core::plan::{Share, Weight};
    use stateward_core::workload::{Claim, Counters, Workload};
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

    /// A workload of five pods of which all are released.
    fn released() -> Observation {
        let revision = stateward_core::revision::RevisionName::from_api("db-1");
        let workload = Workload {
            uid: "1".into(),
            observed: true,
            replicas: 5,
            released: 5,
            current: revision.clone(),
            update: revision,
            template: Fingerprint::of(""),
            current_template: None,
            forgotten: None,
            setting: "0".into(),
            kept_setting: None,
            claim: Claim::Ours,
            ordered: true,
            min_ready: SignedDuration::ZERO,
            told: Counters::default(),
            pods: Vec::new(),
        };
        Observation {
            workload: Ok(workload),
            version: Version::default(),
        }
    }

    #[test]
    fn what_reduces_exposure_never_waits_and_is_contested_until_a_minute_after_the_last() {
        let contest = Contest::default();
        let seen = released();
        for action in [Action::Release(Share::NONE), Action::Restore(Share::ALL)] {
            for time in 0..20 {
                assert!(contest.wait("1", &action, &seen, second(time)).is_none());
                assert_eq!(
                    contest.is_news("1", &action, &seen, second(time)),
                    time >= 3,
                    "{time}"
                );
                contest.done("1", &action, &seen, second(time));
            }
        }
        assert_eq!(contest.contested("1", second(20)), None, "it is not known who");
        contest.found("1", "git".into());
        assert!(!contest.is_news("1", &Action::Restore(Share::ALL), &seen, second(20)));
        assert_eq!(
            contest.contested("1", second(20)),
            Some(("git".into(), second(79)))
        );
        assert_eq!(contest.contested("1", second(79)), None);
        // More exposure waits as ever.
        let more = Action::Release(Share::ALL);
        (0..6).for_each(|time| contest.done("1", &more, &seen, second(time)));
        assert!(contest.wait("1", &more, &seen, second(6)).is_some());
    }

    /// The guard counts pods, and a step asks for a percentage.
    #[test]
    fn a_share_is_the_same_however_it_is_counted() {
        let contest = Contest::default();
        let seen = released();
        let (pods, percent) = (Share::Pods(1), Share::Percent(Weight::new(20).unwrap()));
        for (time, share) in [pods, percent, pods].into_iter().enumerate() {
            contest.done("1", &Action::Release(share), &seen, second(time as i64));
        }
        assert!(contest.is_news("1", &Action::Release(percent), &seen, second(3)));
    }

    /// Another client that sets the partition along with the replicas is found; an autoscaler sets only these.
    #[test]
    fn an_autoscaler_contests_no_partition() {
        let contest = Contest::default();
        for (foreign, contested) in [(true, true), (false, false)] {
            for time in 0..6 {
                let replicas = 5 + time % 2;
                let mut seen = released();
                // The guard is what the replicas were before.
                let released = match foreign {
                    true => i64::from(replicas),
                    false => i64::from(time % 2) * 2 - 1,
                };
                let workload = seen.workload.as_mut().unwrap();
                (workload.replicas, workload.released) = (replicas, released);
                let now = second(time.into());
                let action = Action::Release(Share::NONE);
                assert_eq!(contest.is_news("1", &action, &seen, now), contested && time >= 3);
                contest.done("1", &action, &seen, now);
            }
            contest.forget("1");
        }
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
            let waits = contest.wait_to_say("1", "rolloutplugin db -n ns", &theirs, &ours, second(time));
            assert!(waits.is_none(), "{time}");
            contest.said("1", &theirs, &ours, second(time));
        }
        let later = contest
            .wait_to_say("1", "rolloutplugin db -n ns", &theirs, &ours, second(7))
            .unwrap();
        // The first of them was the first we ever said.
        assert_eq!(later.at, second(61));
        assert!(later.notice.is_some());
        let again = contest
            .wait_to_say("1", "rolloutplugin db -n ns", &theirs, &ours, second(8))
            .unwrap();
        assert!(again.notice.is_none());
        let other = contest.wait_to_say(
            "1",
            "rolloutplugin db -n ns",
            &theirs,
            &status("other"),
            second(8),
        );
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
            let later = contest.wait_to_say("1", "rolloutplugin db -n ns", &theirs, &ours, second(time));
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
            let later = contest.wait_to_say("1", "rolloutplugin db -n ns", &theirs, &ours, second(time));
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
                assert!(
                    contest
                        .wait_to_say("1", "rolloutplugin db -n ns", &asked, &ours, second(time))
                        .is_none()
                );
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
            assert!(
                contest
                    .wait_to_say("1", "rolloutplugin db -n ns", before, after, second(time))
                    .is_none()
            );
            contest.said("1", before, after, second(time));
        }
    }
}
