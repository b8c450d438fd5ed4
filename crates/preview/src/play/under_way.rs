//! Brings a rollout in progress to its current step, before its preview begins.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;
use stateward_core::memory::Activity;
use stateward_core::plan::Step;
use stateward_core::record;
use stateward_core::world::Commands;

use super::{AT_ONCE, BEGINS_WITHIN, Play, SETTLED_FOR};
use crate::Error;
use crate::preview::Happening;
use crate::subject::Start;

impl Play {
    /// The command that a user must give for a failed gate. Until then the gate stands, here as a manual pause.
    pub(super) fn verb_of_the_gate(&self) -> Option<&'static str> {
        let status = self.fixture.subject.status();
        let Activity::Rolling(attempt) = record::memory(&status).activity else {
            return None;
        };
        let step = self.plan.steps.get(attempt.step.0 as usize);
        let is_gate = matches!(step, Some(Step::Analysis(_))) && self.fixture.replaced.is_none();
        // If a command is pending, the user has already decided.
        let stands = is_gate && attempt.paused_at_step && record::commands(&status) == Commands::default();
        stands.then_some(if self.plan.by_pod { "retry" } else { "promote" })
    }

    /// Writes the pending commands, for the operator to take them when the preview begins.
    pub(super) async fn give_what_waits(&mut self) -> Result<(), Error> {
        let Commands {
            promote,
            skip,
            promote_full,
            force,
            abort,
            retry: _,
            by: _,
        } = record::commands(&self.fixture.subject.status());
        let given = [
            (abort, "abort", json!({"abort": true})),
            (
                promote_full,
                "promote --full",
                json!({"promoteFull": true, "force": force}),
            ),
            (skip, "skip", json!({"skipCurrentStep": true})),
            (
                promote,
                "promote",
                json!({"promote": true, "pauseConditions": null}),
            ),
        ];
        let under_way = self.fixture.replaced.is_none();
        let Some((_, verb, status)) = given.into_iter().find(|(given, ..)| *given && under_way) else {
            return Ok(());
        };
        self.fixture.notes.push(format!(
            "{verb} was asked for, and the operator takes it when this begins"
        ));
        self.recorder
            .tell(Happening::Done { what_if: verb.into() }, self.now());
        self.recorder.status.abort |= abort;
        self.world
            .patch(&self.fixture.rollout, json!({"status": status}))
            .await
    }

    /// The template changes during another rollout while no operator runs: Kubernetes gives it to the released pods.
    pub(super) async fn overtake(&mut self) -> Result<(), Error> {
        self.world.stop_operator();
        self.recorder.supersede();
        self.change().await?;
        let one = self.pace.ready_after + self.pace.stops_after + self.fixture.min_ready();
        self.let_pass(SETTLED_FOR + one.saturating_mul(self.fixture.replicas()))
            .await
    }

    /// Changes the template during another rollout, unless it is the same.
    pub(super) async fn supersede(&mut self) -> Result<(), Error> {
        let rolled = self.recorder.revision.clone();
        self.recorder.supersede();
        self.change().await?;
        self.let_pass(AT_ONCE).await?;
        if self.recorder.revision.update == rolled.update {
            self.recorder.carry_on(self.now());
            self.fixture.replaced = None;
            return Ok(());
        }
        self.under_way = true;
        self.fixture
            .notes
            .push(if self.recorder.revision.update == rolled.stable {
                "the template of the set is the stable one".into()
            } else {
                "the template of the set takes the place of the one that is rolled".into()
            });
        Ok(())
    }

    /// Simulates, without failures, up to the rollout's current step.
    pub(super) async fn reach_step(&mut self) -> Result<(), Error> {
        let Start::Step(step, since) = self.fixture.start else {
            return Ok(());
        };
        let deadline = self.now() + SignedDuration::from_hours(24 * 365);
        // A year takes long to simulate even if nothing happens in it.
        let begun_by = self.now() + BEGINS_WITHIN;
        while self.recorder.step().is_none() {
            if self.now() > begun_by || !self.turn(begun_by).await? {
                return Err(Error::Broken("the rollout that is under way never begins".into()));
            }
        }
        while self.recorder.step() != Some(step) {
            if self.now() > deadline || !self.turn(deadline).await? {
                return Err(Error::Broken(format!("step {} is never reached", step + 1)));
            }
        }
        if let Some(Step::Pause(Some(whole))) = self.plan.steps.get(step) {
            let whole = Duration::try_from(whole).unwrap_or_default();
            // The step has not ended, or the rollout would not be at it.
            self.let_pass(since.min(whole.saturating_sub(Duration::from_secs(1))))
                .await?;
        }
        Ok(())
    }
}
