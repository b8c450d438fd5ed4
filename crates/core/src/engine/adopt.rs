//! Adopts a workload: determines its stable version (rule 4).

use super::step::{begin_at, begin_without_plan};
use super::{Decider, Outcome, report};
use crate::event::EventReason;
use crate::memory::{Activity, Cause, Stable};
use crate::plan::Share;
use crate::workload::{Claim, Workload};
use crate::world::{Action, Phase, Reason};

impl Decider<'_> {
    /// Stops a native rolling update of a workload that is to be adopted. Until it has stopped, no stable version is recorded: the
    /// update may complete first, and then its version is the stable one.
    pub(super) fn stop_native(&mut self, workload: &Workload) -> Option<Outcome> {
        if self.memory.stable.is_some() || !self.may_manage() || workload.forgotten.is_some() {
            return None;
        }
        let exposed = workload.exposed_from_the_top(&workload.update);
        let stopped = workload.released <= i64::from(exposed);
        // With a valid plan, the first step claims the workload.
        let claimed = workload.claim == Claim::Ours || self.world.plan.is_ok();
        if !is_changing(workload) || stopped && claimed {
            return None;
        }
        self.record_workload(workload);
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

    /// Whether this object guards the workload. That does not depend on its plan: an invalid plan releases no pod.
    pub(super) fn may_manage(&self) -> bool {
        self.world.plan.is_ok() || self.world.reference_valid
    }

    /// Records the workload's UID and its update setting before it was adopted.
    fn record_workload(&mut self, workload: &Workload) {
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

    /// Determines the stable version of a workload that is seen for the first time.
    ///
    /// A workload on a single version is stable on it, even while its pods are being created. A workload in the middle of an update
    /// is stable on the old version: the rollout begins at the first step, or with partition by pod at the gate before the next
    /// pod, and updated pods stay updated. A workload that was recreated around its pods is stable on their version: its template
    /// is restored, or every pod would get the new version without checks.
    pub(super) fn adopt(&mut self, workload: &Workload) {
        if self.memory.stable.is_some() || !self.may_manage() {
            return;
        }
        self.record_workload(workload);
        if let Some(stable) = workload.forgotten.clone() {
            self.notice(
                EventReason::WorkloadRecreated,
                format!(
                    "the workload was recreated with {} around pods that run {}, of which Kubernetes knows nothing: that template is put \
                     back, so that no pod moves unasked; apply {0} again to roll it out",
                    workload.update, stable.revision
                ),
            );
            self.memory.withdrawn = Some(workload.update.clone());
            self.memory.stable = Some(stable);
            self.start_rollback(workload.update.clone(), Cause::TemplateReverted);
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
            // Kubernetes itself makes the new revision the current one once the old one is gone.
            None => {
                self.memory.stable = Some(Stable {
                    revision: workload.update.clone(),
                    template: workload.template.clone(),
                });
            }
        }
    }

    /// The setting to restore when the workload is released at rest: the recorded one, or else the current one. With partition by
    /// pod, a partition in the middle of an update was left by an operator and was not set by a user.
    pub(super) fn setting(&self, workload: &Workload) -> String {
        let by_pod = self.world.plan.as_ref().is_ok_and(|plan| plan.by_pod);
        match &workload.kept_setting {
            Some(kept) => kept.clone(),
            None if by_pod && workload.current != workload.update => "0".into(),
            None => workload.setting.clone(),
        }
    }
}

/// Whether a workload is being updated from one known version to another.
fn is_changing(workload: &Workload) -> bool {
    workload.current != workload.update && workload.replicas > 0 && workload.current_template.is_some()
}
