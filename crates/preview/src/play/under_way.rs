//! How a rollout that has begun comes to where it stands, before the preview of it begins.

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
    /// What somebody has to say for a gate that came to no good end. Until then it stands, here as if by hand.
    pub(super) fn verb_of_the_gate(&self) -> Option<&'static str> {
        let status = self.cast.subject.status();
        let Activity::Rolling(attempt) = record::memory(&status).activity else {
            return None;
        };
        let step = self.plan.steps.get(attempt.step.0 as usize);
        let is_gate = matches!(step, Some(Step::Analysis(_))) && self.cast.replaced.is_none();
        // Whoever has said so already is not called again.
        let stands = is_gate && attempt.pausing && record::commands(&status) == Commands::default();
        stands.then_some(if self.plan.by_pod { "retry" } else { "promote" })
    }

    /// Gives the commands that wait for an operator, for it to take them when this begins.
    pub(super) async fn give_what_waits(&mut self) -> Result<(), Error> {
        let Commands {
            promote,
            skip,
            promote_full,
            force,
            abort,
            retry: _,
            by: _,
        } = record::commands(&self.cast.subject.status());
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
        let under_way = self.cast.replaced.is_none();
        let Some((_, verb, status)) = given.into_iter().find(|(given, ..)| *given && under_way) else {
            return Ok(());
        };
        self.cast.notes.push(format!(
            "{verb} was asked for, and the operator takes it when this begins"
        ));
        self.scribe
            .tell(Happening::Done { what_if: verb.into() }, self.now());
        self.scribe.status.abort |= abort;
        self.world
            .patch(&self.cast.rollout, json!({"status": status}))
            .await
    }

    /// The template changes while another is rolled and no operator looks: Kubernetes gives it to the pods that were released.
    pub(super) async fn overtake(&mut self) -> Result<(), Error> {
        self.world.stop_operator();
        self.scribe.supersede();
        self.change().await?;
        let one = self.pace.ready_after + self.pace.stops_after + self.cast.min_ready();
        self.let_pass(SETTLED_FOR + one.saturating_mul(self.cast.replicas()))
            .await
    }

    /// The template changes while another is rolled; unless it is that one.
    pub(super) async fn supersede(&mut self) -> Result<(), Error> {
        let rolled = self.scribe.revision.clone();
        self.scribe.supersede();
        self.change().await?;
        self.let_pass(AT_ONCE).await?;
        if self.scribe.revision.update == rolled.update {
            self.scribe.carry_on(self.now());
            self.cast.replaced = None;
            return Ok(());
        }
        self.under_way = true;
        self.cast
            .notes
            .push(if self.scribe.revision.update == rolled.stable {
                "the template of the set is the stable one".into()
            } else {
                "the template of the set takes the place of the one that is rolled".into()
            });
        Ok(())
    }

    /// Plays, with nothing going wrong, up to the step that the rollout stands at.
    pub(super) async fn reach_step(&mut self) -> Result<(), Error> {
        let Start::Step(step, since) = self.cast.start else {
            return Ok(());
        };
        let deadline = self.now() + SignedDuration::from_hours(24 * 365);
        // A year is long even where nothing happens in it.
        let begun_by = self.now() + BEGINS_WITHIN;
        while self.scribe.step().is_none() {
            if self.now() > begun_by || !self.turn(begun_by).await? {
                return Err(Error::Broken("the rollout that is under way never begins".into()));
            }
        }
        while self.scribe.step() != Some(step) {
            if self.now() > deadline || !self.turn(deadline).await? {
                return Err(Error::Broken(format!("step {} is never reached", step + 1)));
            }
        }
        if let Some(Step::Pause(Some(whole))) = self.plan.steps.get(step) {
            let whole = Duration::try_from(whole).unwrap_or_default();
            // It is not over yet, or it would not stand there.
            self.let_pass(since.min(whole.saturating_sub(Duration::from_secs(1))))
                .await?;
        }
        Ok(())
    }
}
