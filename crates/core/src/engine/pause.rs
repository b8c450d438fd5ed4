//! Standing still: the pauses of a plan and `spec.paused` (rule 14).

use jiff::{SignedDuration, Timestamp, Unit};

use super::Turn;
use super::step::enter;
use crate::memory::Attempt;
use crate::plan::Plan;
use crate::workload::Workload;
use crate::world::Report;

impl Turn<'_> {
    /// Takes note of `spec.paused`. The time it stands does not count as time without progress.
    pub(super) fn hold(&mut self, attempt: &mut Attempt) {
        if self.world.paused == attempt.held {
            return;
        }
        attempt.held = self.world.paused;
        attempt.progressed = self.world.now;
        if attempt.held {
            self.notice(
                "RolloutPaused",
                format!(
                    "{}: paused by spec.paused, no further pod is released",
                    attempt.target
                ),
            );
        } else {
            self.notice(
                "RolloutResumed",
                format!("{}: spec.paused was taken back", attempt.target),
            );
        }
    }

    /// A pause whose pods are well: goes on when its time is over.
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
            self.notice("RolloutResumed", format!("{}: the pause is over", attempt.target));
            self.entered(attempt, plan);
        }
        self.describe_next(attempt, plan, workload)
    }
}

/// A time as people read it, never before it is reached.
pub(super) fn to_seconds(at: Timestamp) -> Timestamp {
    at.round(
        jiff::TimestampRound::new()
            .smallest(Unit::Second)
            .mode(jiff::RoundMode::Ceil),
    )
    .unwrap_or(at)
}
