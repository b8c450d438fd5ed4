//! Write backoff when another client keeps changing what the operator writes (invariant 28).
//!
//! A write that reduces exposure follows each foreign write at once, so their rate bounds ours: if it were delayed, a tool that
//! keeps applying a partition of 0 would update every pod through a pause. Every other write backs off.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use stateward_core::event::{EventReason, Notice};
use stateward_core::plan::Fingerprint;
use stateward_core::world::Action;
use stateward_plugin::Observation;

/// How many identical writes within [`A_WHILE`] start the backoff.
const OFTEN: usize = 6;
/// How many identical writes within [`A_WHILE`] count as contention.
const CONTESTED: usize = 3;
const A_WHILE: SignedDuration = SignedDuration::from_mins(1);

/// Recent writes, by the UID of their object.
#[derive(Default)]
pub(crate) struct Contention {
    workloads: Mutex<HashMap<String, Round>>,
    statuses: Mutex<HashMap<String, WriteRecord>>,
}

/// When to retry, and the event to post the first time.
pub(crate) struct Later {
    pub(crate) at: Timestamp,
    pub(crate) notice: Option<Notice>,
}

/// When identical writes were made.
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

    /// Until when to wait, and whether that is still to be reported.
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

/// An action that was executed, possibly repeatedly.
struct Round {
    action: Action,
    /// Whether it reduced exposure.
    reduced: bool,
    /// The replicas at that time: changes by an autoscaler are not contention.
    replicas: Option<u32>,
    times: Times,
    /// The contending client, once it is known.
    by: Option<String>,
}

impl Round {
    /// Whether `action` repeats this one. An action that reduces exposure repeats it if another client has changed the partition
    /// since. Shares are compared in pods, whether they are given as a number or a percentage.
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

/// Whether an action rolls pods back, or keeps Kubernetes from updating more.
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

/// Recent writes of a status.
struct WriteRecord {
    last: Fingerprint,
    /// Writes that replaced another client's change.
    again: HashMap<Fingerprint, Times>,
}

/// A status without users' commands, which are removed when they are answered.
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

/// A digest of a status that ignores times.
fn status_digest(status: &impl Serialize) -> Fingerprint {
    let mut status_digest = record(status);
    // Their names contain times.
    status_digest["canary"] = Value::Null;
    if let Some(checks) = status_digest
        .get_mut("rollingPodStatus")
        .and_then(Value::as_object_mut)
    {
        checks.remove("gate");
    }
    forget_times(&mut status_digest);
    fingerprint(&status_digest)
}

/// A digest that distinguishes our writes from those of others.
fn exactly(status: &impl Serialize) -> Fingerprint {
    fingerprint(&record(status))
}

fn fingerprint(record: &Value) -> Fingerprint {
    // Serializing a JSON value cannot fail.
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

impl Contention {
    /// Whether this action repeats one that another client keeps undoing, and that client is not known yet.
    pub(crate) fn is_news(&self, uid: &str, action: &Action, seen: &Observation, now: Timestamp) -> bool {
        let rounds = self.workloads.lock();
        let round = rounds.get(uid).filter(|round| round.is(action, seen));
        round.is_some_and(|round| round.by.is_none() && round.times.within_a_while(now) >= CONTESTED)
    }

    /// Records who contends for the last write.
    pub(crate) fn found(&self, uid: &str, by: String) {
        let mut rounds = self.workloads.lock();
        if let Some(round) = rounds.get_mut(uid) {
            round.by = Some(by);
        }
    }

    /// The client that contends for the workload of an object, and until when to report it if it stops.
    pub(crate) fn contested(&self, uid: &str, now: Timestamp) -> Option<(String, Timestamp)> {
        let rounds = self.workloads.lock();
        let round = rounds.get(uid)?;
        let last = round.times.times.last()?.saturating_add(A_WHILE).ok()?;
        Some((round.by.clone().filter(|_| last > now)?, last))
    }

    /// Whether this action must wait because it was undone too often.
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
        let mut rounds = self.workloads.lock();
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

    /// Records an executed action.
    pub(crate) fn done(&self, uid: &str, action: &Action, seen: &Observation, now: Timestamp) {
        // Pods are deleted by UID, so each deletion happens only once.
        if !matches!(action, Action::Release(_) | Action::Restore(_)) {
            return;
        }
        let mut rounds = self.workloads.lock();
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

    /// Whether writing `new` must wait because it has replaced another client's change too often. `object` is how kubectl names it:
    /// `rolloutplugin db -n prod`.
    pub(crate) fn wait_to_say(
        &self,
        uid: &str,
        object: &str,
        recorded: &impl Serialize,
        new: &impl Serialize,
        now: Timestamp,
    ) -> Option<Later> {
        let mut statuses = self.statuses.lock();
        let said = statuses.get_mut(uid)?;
        if said.last == exactly(recorded) {
            return None;
        }
        let (at, tell) = said.again.get_mut(&status_digest(new))?.wait(now)?;
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

    /// Records that `new` has replaced `recorded`.
    pub(crate) fn said(&self, uid: &str, recorded: &impl Serialize, new: &impl Serialize, now: Timestamp) {
        let mut statuses = self.statuses.lock();
        let last = exactly(new);
        let Some(said) = statuses.get_mut(uid) else {
            let again = HashMap::new();
            statuses.insert(uid.to_owned(), WriteRecord { last, again });
            return;
        };
        if said.last != exactly(recorded) {
            said.again
                .retain(|_, times| times.times.iter().any(|time| now.duration_since(*time) < A_WHILE));
            said.again.entry(status_digest(new)).or_default().times.push(now);
        }
        said.last = last;
    }

    /// Forgets a deleted object.
    pub(crate) fn forget(&self, uid: &str) {
        self.workloads.lock().remove(uid);
        self.statuses.lock().remove(uid);
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
        let contention = Contention::default();
        let guard = Action::Release(Share::NONE);
        for time in 0..6 {
            assert!(contention.wait("1", &guard, &seen(), second(time)).is_none());
            contention.done("1", &guard, &seen(), second(time));
        }
        let later = contention.wait("1", &guard, &seen(), second(6)).unwrap();
        assert_eq!(later.at, second(60));
        assert!(later.notice.is_some());
        assert!(
            contention
                .wait("1", &guard, &seen(), second(7))
                .unwrap()
                .notice
                .is_none()
        );
        assert!(
            contention.wait("2", &guard, &seen(), second(7)).is_none(),
            "another object"
        );
        assert!(
            contention
                .wait("1", &Action::Release(Share::ALL), &seen(), second(7))
                .is_none(),
            "another step"
        );
        assert!(
            contention.wait("1", &guard, &seen(), second(60)).is_none(),
            "the first is a minute ago"
        );
    }

    /// A workload of five pods, all released.
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
        let contention = Contention::default();
        let seen = released();
        for action in [Action::Release(Share::NONE), Action::Restore(Share::ALL)] {
            for time in 0..20 {
                assert!(contention.wait("1", &action, &seen, second(time)).is_none());
                assert_eq!(
                    contention.is_news("1", &action, &seen, second(time)),
                    time >= 3,
                    "{time}"
                );
                contention.done("1", &action, &seen, second(time));
            }
        }
        assert_eq!(contention.contested("1", second(20)), None, "it is not known who");
        contention.found("1", "git".into());
        assert!(!contention.is_news("1", &Action::Restore(Share::ALL), &seen, second(20)));
        assert_eq!(
            contention.contested("1", second(20)),
            Some(("git".into(), second(79)))
        );
        assert_eq!(contention.contested("1", second(79)), None);
        // An action that increases exposure still waits.
        let more = Action::Release(Share::ALL);
        (0..6).for_each(|time| contention.done("1", &more, &seen, second(time)));
        assert!(contention.wait("1", &more, &seen, second(6)).is_some());
    }

    /// The guard is a number of pods, and a step a percentage.
    #[test]
    fn a_share_is_the_same_however_it_is_counted() {
        let contention = Contention::default();
        let seen = released();
        let (pods, percent) = (Share::Pods(1), Share::Percent(Weight::new(20).unwrap()));
        for (time, share) in [pods, percent, pods].into_iter().enumerate() {
            contention.done("1", &Action::Release(share), &seen, second(time as i64));
        }
        assert!(contention.is_news("1", &Action::Release(percent), &seen, second(3)));
    }

    /// Another client that sets both the partition and the replicas is contention; an autoscaler sets only the replicas.
    #[test]
    fn an_autoscaler_contests_no_partition() {
        let contention = Contention::default();
        for (foreign, contested) in [(true, true), (false, false)] {
            for time in 0..6 {
                let replicas = 5 + time % 2;
                let mut seen = released();
                // The guard is the former number of replicas.
                let released = match foreign {
                    true => i64::from(replicas),
                    false => i64::from(time % 2) * 2 - 1,
                };
                let workload = seen.workload.as_mut().unwrap();
                (workload.replicas, workload.released) = (replicas, released);
                let now = second(time.into());
                let action = Action::Release(Share::NONE);
                assert_eq!(
                    contention.is_news("1", &action, &seen, now),
                    contested && time >= 3
                );
                contention.done("1", &action, &seen, now);
            }
            contention.forget("1");
        }
    }

    #[test]
    fn steps_that_follow_each_other_are_no_contest() {
        let contention = Contention::default();
        for pods in 0..20 {
            let step = Action::Release(Share::Pods(pods));
            assert!(contention.wait("1", &step, &seen(), second(0)).is_none());
            contention.done("1", &step, &seen(), second(0));
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
        let contention = Contention::default();
        let (ours, theirs) = (status("ours"), status("theirs"));
        for time in 0..7 {
            let waits = contention.wait_to_say("1", "rolloutplugin db -n ns", &theirs, &ours, second(time));
            assert!(waits.is_none(), "{time}");
            contention.said("1", &theirs, &ours, second(time));
        }
        let later = contention
            .wait_to_say("1", "rolloutplugin db -n ns", &theirs, &ours, second(7))
            .unwrap();
        // Our first write was one of them.
        assert_eq!(later.at, second(61));
        assert!(later.notice.is_some());
        let again = contention
            .wait_to_say("1", "rolloutplugin db -n ns", &theirs, &ours, second(8))
            .unwrap();
        assert!(again.notice.is_none());
        let other = contention.wait_to_say(
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
        let contention = Contention::default();
        let says = |status: &str| PhasedRolloutStatus {
            rolling_pod_status: Some(RollingPodStatus {
                status: status.into(),
                ..RollingPodStatus::default()
            }),
            ..PhasedRolloutStatus::default()
        };
        let (ours, theirs) = (says("WaitForChecks"), says("WaitForAllPodsToBeAvailable"));
        let waits = (0..20).any(|time| {
            let later = contention.wait_to_say("1", "rolloutplugin db -n ns", &theirs, &ours, second(time));
            contention.said("1", &theirs, &ours, second(time));
            later.is_some()
        });
        assert!(waits);
    }

    /// Two operators that restart the same step repeatedly, each at its own time.
    #[test]
    fn times_can_be_fought_over() {
        let contention = Contention::default();
        let began = |time: i64| RolloutStatus {
            current_step_started_at: Some(second(time)),
            ..status("at the gate")
        };
        let waits = (0..20).any(|time| {
            let (theirs, ours) = (began(2 * time), began(2 * time + 1));
            let later = contention.wait_to_say("1", "rolloutplugin db -n ns", &theirs, &ours, second(time));
            contention.said("1", &theirs, &ours, second(time));
            later.is_some()
        });
        assert!(waits);
    }

    #[test]
    fn what_users_ask_for_is_no_contest_however_often() {
        let contention = Contention::default();
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
                    contention
                        .wait_to_say("1", "rolloutplugin db -n ns", &asked, &ours, second(time))
                        .is_none()
                );
                contention.said("1", &asked, &ours, second(time));
            }
        }
    }

    #[test]
    fn what_only_we_write_is_no_contest() {
        let contention = Contention::default();
        let (ready, unready) = (status("5 of 5"), status("4 of 5"));
        for time in 0..20 {
            let (before, after) = if time % 2 == 0 {
                (&ready, &unready)
            } else {
                (&unready, &ready)
            };
            assert!(
                contention
                    .wait_to_say("1", "rolloutplugin db -n ns", before, after, second(time))
                    .is_none()
            );
            contention.said("1", before, after, second(time));
        }
    }
}
