//! Pauses: the pauses of a plan and `spec.paused` (rule 14).

use jiff::{SignedDuration, Timestamp, Unit};

use super::Decider;
use super::step::enter;
use crate::event::EventReason;
use crate::memory::Attempt;
use crate::plan::{Plan, Share, Step, StepIndex};
use crate::revision::RevisionName;
use crate::workload::Workload;
use crate::world::Report;

impl Decider<'_> {
    /// Records `spec.paused`. A paused time does not count as time without progress.
    pub(super) fn hold(&mut self, attempt: &mut Attempt, plan: &Plan, workload: &Workload) {
        if self.world.paused == attempt.paused_by_user {
            return;
        }
        attempt.paused_by_user = self.world.paused;
        attempt.progressed = self.world.now;
        if attempt.paused_by_user {
            self.notice(
                EventReason::RolloutPaused,
                format!(
                    "{}: paused by spec.paused, no further pod is released",
                    attempt.target
                ),
            );
        } else {
            self.notice(
                EventReason::RolloutResumed,
                format!("{}: spec.paused was taken back", attempt.target),
            );
            // The earlier checks have expired.
            let gate = match plan.step(attempt.step) {
                Some(Step::Analysis(_)) if !attempt.paused_at_step => Some(attempt.step),
                Some(Step::Share(share)) if is_to_move(workload, &attempt.target, share) => {
                    attempt.step.0.checked_sub(1).map(StepIndex)
                }
                _ => None,
            };
            if let Some(gate) = gate.filter(|_| plan.by_pod) {
                *attempt = enter(attempt.clone(), gate, plan, self.world.now);
            }
        }
    }

    /// A pause step whose pods are available: advances when its time is over.
    pub(super) fn pause(
        &mut self,
        attempt: &mut Attempt,
        plan: &Plan,
        duration: Option<SignedDuration>,
        workload: &Workload,
    ) -> Report {
        let over = duration.and_then(|duration| attempt.entered.saturating_add(duration).ok());
        if over.is_some_and(|over| over <= self.world.now) {
            *attempt = enter(attempt.clone(), attempt.step.next(), plan, self.world.now);
            self.notice(
                EventReason::RolloutResumed,
                format!("{}: the pause is over", attempt.target),
            );
            self.entered(attempt, plan);
        }
        self.describe_next(attempt, plan, workload)
    }
}

/// How many pods, from the last one down, stay released while an attempt is stopped.
pub(super) fn released_while_stopped(attempt: &Attempt, workload: &Workload) -> u32 {
    let stands = as_it_stands(workload, &attempt.target);
    stands.min(attempt.stopped_at.unwrap_or(stands))
}

/// Records how many pods are `released` once a stop has taken effect. Before that, pods may still be on their way; a pod that
/// another client updates afterwards is rolled back.
pub(super) fn note_stop(attempt: &mut Attempt, stopped: bool, released: u32, workload: &Workload) {
    let carried_out = workload.released == i64::from(released) && workload.same_pods();
    attempt.stopped_at = match attempt.stopped_at {
        _ if !stopped => None,
        None if carried_out => Some(released),
        noted => noted,
    };
}

/// Pods from the last one down that stay released while `spec.paused` is set: those that are updated. A lost pod is recreated on
/// its version; an old pod was not exposed yet and stays old.
fn as_it_stands(workload: &Workload, target: &RevisionName) -> u32 {
    let first_released = i64::from(workload.replicas) - workload.released;
    let stands = |index: &u32| match workload.at(*index) {
        Some(pod) => pod.runs(target),
        None => i64::from(*index) >= first_released,
    };
    (0..workload.replicas).rev().take_while(stands).count() as u32
}

/// Whether an old pod of the share is still to be updated when the pause ends.
fn is_to_move(workload: &Workload, target: &RevisionName, share: Share) -> bool {
    let first = workload.first_released(share.of(workload.replicas));
    let mut due = (first..workload.replicas).filter_map(|index| workload.at(index));
    due.any(|pod| !pod.runs(target) && !pod.terminating)
}

/// A time rounded up to seconds, for users.
pub fn to_seconds(at: Timestamp) -> Timestamp {
    at.round(
        jiff::TimestampRound::new()
            .smallest(Unit::Second)
            .mode(jiff::RoundMode::Ceil),
    )
    .unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Fingerprint;
    use crate::workload::{Claim, Counters, Pod};
    use rstest::rstest;

    /// One letter per pod: `o` old, `n` new, `-` lost.
    fn workload(pods: &str, released: i64) -> Workload {
        let row = |(index, letter): (usize, char)| Pod {
            name: format!("db-{index}"),
            uid: index.to_string(),
            index: index as u32,
            revision: Some(RevisionName::from_api(if letter == 'n' { "new" } else { "old" })),
            terminating: false,
            ready_since: None,
            unready_since: None,
            restarts: 0,
            restarted_at: None,
            trouble: None,
            unready: None,
            last_exit: None,
        };
        let there = pods.chars().enumerate().filter(|(_, letter)| *letter != '-');
        Workload {
            uid: "1".into(),
            observed: true,
            replicas: pods.len() as u32,
            released,
            current: RevisionName::from_api("old"),
            update: RevisionName::from_api("new"),
            template: Fingerprint::of("new"),
            current_template: None,
            forgotten: None,
            setting: "0".into(),
            kept_setting: None,
            claim: Claim::Ours,
            ordered: true,
            min_ready: SignedDuration::ZERO,
            told: Counters::default(),
            pods: there.map(row).collect(),
        }
    }

    #[rstest]
    #[case("ooonn", 2, 2)]
    #[case("oooon", 4, 1)]
    #[case("ooooo", 4, 0)]
    #[case("ooon-", 2, 2)]
    #[case("oooo-", 0, 0)]
    #[case("ooo-n", 2, 2)]
    fn a_pause_by_hand_keeps_what_is_new_and_what_was_lost(
        #[case] pods: &str,
        #[case] released: i64,
        #[case] expected: u32,
    ) {
        let target = RevisionName::from_api("new");
        assert_eq!(as_it_stands(&workload(pods, released), &target), expected);
    }
}
