//! Taking a workload on: which version is the good one (rule 4).

use super::step::{begin_at, begin_without_plan};
use super::{Outcome, Turn, report};
use crate::event::EventReason;
use crate::memory::{Activity, Cause, Stable};
use crate::plan::Share;
use crate::workload::{Claim, Workload};
use crate::world::{Action, Phase, Reason};

impl Turn<'_> {
    /// Stops Kubernetes where it rolls a version out by itself to a workload that is to be taken on. Before that has come about nothing is
    /// remembered of the change: it may be over by then, and a version that runs everywhere is the stable one.
    pub(super) fn stop_native(&mut self, workload: &Workload) -> Option<Outcome> {
        if self.memory.stable.is_some() || !self.may_manage() || workload.forgotten.is_some() {
            return None;
        }
        let exposed = workload.exposed_from_the_top(&workload.update);
        let stopped = workload.released <= i64::from(exposed);
        // With a valid plan the first step claims it.
        let claimed = workload.claim == Claim::Ours || self.world.plan.is_ok();
        if !is_changing(workload) || stopped && claimed {
            return None;
        }
        self.take_note(workload);
        let found = format!(
            "found {} on its way to {}: stopping it where it is",
            workload.current, workload.update
        );
        Some(Outcome::act(
            Action::Release(Share::Pods(exposed)),
            match &self.world.plan {
                Ok(_) => report(Phase::Progressing, Reason::Guarding, found),
                Err(problems) => self.invalid_at_rest(workload, problems),
            },
        ))
    }

    /// Whether the workload is this object's to guard. That does not depend on its plan: one that is invalid releases no pod.
    pub(super) fn may_manage(&self) -> bool {
        self.world.plan.is_ok() || self.world.reference_valid
    }

    /// Remembers which workload it is, and how it was set before us.
    fn take_note(&mut self, workload: &Workload) {
        let left_to_itself =
            workload.claim == Claim::Ours && workload.released == i64::from(workload.replicas);
        if self.memory.workload.is_none() || self.memory.setting.is_none() {
            self.memory.setting = Some(self.setting(workload));
        } else if self.world.memory.stable.is_none() && left_to_itself {
            self.notice(
                EventReason::ManagementResumed,
                "taken back from Kubernetes' own rolling update: pods are checked again".into(),
            );
        }
        self.memory.workload = Some(workload.uid.clone());
    }

    /// Remembers a workload that is seen for the first time.
    ///
    /// One that is on a single version is stable on it, also when it is still being made. One in the middle of a change
    /// is stable on what it comes from: its steps begin at the first, or where they are counted by pods at the gate before the
    /// next pod, and pods that are already new stay so. One that was made anew around its pods is stable on what they run: that is
    /// put back into its template, or Kubernetes and we would give the new version to every pod unasked.
    pub(super) fn adopt(&mut self, workload: &Workload) {
        if self.memory.stable.is_some() || !self.may_manage() {
            return;
        }
        self.take_note(workload);
        if let Some(stable) = workload.forgotten.clone() {
            self.notice(
                EventReason::WorkloadRecreated,
                format!(
                    "the workload was made anew with {} around pods that run {}, of which Kubernetes knows nothing: that template is put \
                     back, so that no pod moves unasked; apply {0} again to roll it out",
                    workload.update, stable.revision
                ),
            );
            self.memory.withdrawn = Some(workload.update.clone());
            self.memory.stable = Some(stable);
            self.go_back(workload.update.clone(), Cause::PutBack);
            return;
        }
        match workload
            .current_template
            .clone()
            .filter(|_| is_changing(workload))
        {
            Some(template) => {
                self.memory.stable = Some(Stable {
                    revision: workload.current.clone(),
                    template,
                });
                let exposed = workload.exposed_from_the_top(&workload.update);
                let attempt = match &self.world.plan {
                    Ok(plan) => begin_at(exposed, plan, workload, self.world.now),
                    Err(_) => begin_without_plan(exposed, workload, self.world.now),
                };
                self.notice(
                    EventReason::RolloutStarted,
                    format!("found {} on its way to {}", workload.current, workload.update),
                );
                self.memory.activity = Activity::Rolling(attempt);
            }
            // Kubernetes itself takes the new revision for the old one when the old one is gone.
            None => {
                self.memory.stable = Some(Stable {
                    revision: workload.update.clone(),
                    template: workload.template.clone(),
                });
            }
        }
    }

    /// How the workload is to be set when we let go of it at rest: as it was kept from before, or else as it is. Where one pod
    /// goes after the other, a partition in the middle of a change is what another operator has left, or we ourselves, and not a
    /// user's wish.
    pub(super) fn setting(&self, workload: &Workload) -> String {
        let by_pod = self.world.plan.as_ref().is_ok_and(|plan| plan.by_pod);
        match &workload.kept_setting {
            Some(kept) => kept.clone(),
            None if by_pod && workload.current != workload.update => "0".into(),
            None => workload.setting.clone(),
        }
    }
}

/// Whether a workload is on its way from one version to another, both of which are known.
fn is_changing(workload: &Workload) -> bool {
    workload.current != workload.update && workload.replicas > 0 && workload.current_template.is_some()
}
