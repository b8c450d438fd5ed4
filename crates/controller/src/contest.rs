//! Somebody else writes what we write: it is put back, but not at any rate (invariant 28).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use stateward_core::world::{Action, Notice};
use stateward_plugin::Observation;

/// How often the same may be set within [`A_WHILE`].
const OFTEN: usize = 6;
const A_WHILE: SignedDuration = SignedDuration::from_mins(1);

/// What was set when, by the UID of the object that asked for it.
#[derive(Default)]
pub(crate) struct Contest(Mutex<HashMap<String, Round>>);

struct Round {
    action: Action,
    /// An autoscaler that changes its mind is no contest.
    replicas: Option<u32>,
    times: Vec<Timestamp>,
    told: bool,
}

impl Round {
    fn is(&self, action: &Action, seen: &Observation) -> bool {
        self.action == *action && self.replicas == replicas(seen)
    }
}

fn replicas(seen: &Observation) -> Option<u32> {
    seen.workload.as_ref().map(|workload| workload.replicas).ok()
}

/// To be tried again later, and what to tell about it the first time.
pub(crate) struct Later {
    pub(crate) at: Timestamp,
    pub(crate) notice: Option<Notice>,
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
        let mut rounds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let round = rounds.get_mut(uid).filter(|round| round.is(action, seen))?;
        round.times.retain(|time| now.duration_since(*time) < A_WHILE);
        let [first, ..] = round.times.as_slice() else {
            round.told = false;
            return None;
        };
        if round.times.len() < OFTEN {
            return None;
        }
        let notice = Notice {
            warning: true,
            reason: "WorkloadContested",
            message: format!(
                "somebody else writes the workload's partition or template too: what was set was undone {OFTEN} times within \
                 a minute, and is put back more slowly now; see who with: kubectl get statefulset -o yaml --show-managed-fields"
            ),
        };
        Some(Later {
            at: first.saturating_add(A_WHILE).unwrap_or(now),
            notice: (!std::mem::replace(&mut round.told, true)).then_some(notice),
        })
    }

    /// It was carried out.
    pub(crate) fn done(&self, uid: &str, action: &Action, seen: &Observation, now: Timestamp) {
        // Pods are removed by their UID: the same one goes only once.
        if !matches!(action, Action::Release(_) | Action::Restore) {
            return;
        }
        let mut rounds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match rounds.get_mut(uid) {
            Some(round) if round.is(action, seen) => round.times.push(now),
            _ => {
                let round = Round {
                    action: action.clone(),
                    replicas: replicas(seen),
                    times: vec![now],
                    told: false,
                };
                rounds.insert(uid.to_owned(), round);
            }
        }
    }

    /// The object is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
