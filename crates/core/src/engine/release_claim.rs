//! Releases the workload: the object is being deleted, or references another workload (rule 20).

use super::{Decider, Outcome, report};
use crate::event::EventReason;
use crate::memory::Activity;
use crate::plan::Share;
use crate::workload::{Claim, Workload};
use crate::world::{Action, LeftAs, Phase, Reason};

impl Decider<'_> {
    /// At rest, the guard is lowered and the user's own setting restored. In the middle of a rollout the workload stays as it is:
    /// neither releasing pods nor rolling them back is ours to choose then.
    ///
    /// After an abort the template may still ask for the rejected version. With the guard lowered, Kubernetes would roll it out to
    /// every pod; with the guard left up, every later change would be blocked silently. So the stable template is restored first,
    /// which replaces no pod.
    pub(super) fn release_claim(&mut self, workload: &Workload) -> Outcome {
        let message = report(
            Phase::Progressing,
            Reason::Releasing,
            "releasing the workload".into(),
        );
        if !matches!(workload.claim, Claim::Ours | Claim::Inherited) {
            return Outcome::wait(message);
        }
        // A version that is held by the guard would be released with it.
        let known = match &self.memory.stable {
            Some(stable) => workload.update == stable.revision && workload.template == stable.template,
            None => workload.observed,
        };
        let settled = (known || self.world.suspended) && workload.current == workload.update;
        let at_rest = self.memory.activity == Activity::Idle;
        let idle = at_rest && settled;
        if at_rest && !settled && !workload.observed && self.memory.rejected.is_some() {
            // Whether the template was just restored or has yet to be is known once its controller has observed the workload.
            return Outcome::wait(message);
        }
        if at_rest && !settled && self.world.can_restore && self.is_rolled_back(workload) {
            self.notice(
                EventReason::TemplateRestored,
                format!(
                    "the stable template takes the place of {}, which was rejected and would be rolled out to every pod now that \
                     the workload is released",
                    workload.update
                ),
            );
            // The guard stays until the workload's controller has observed the template: a version applied in between is not the stable
            // one.
            return Outcome::act(Action::Restore(Share::NONE), message);
        }
        let remembered = self.memory.setting.as_ref().or(workload.kept_setting.as_ref());
        let setting = remembered.unwrap_or(&workload.setting).clone();
        if !idle && !self.world.suspended {
            self.notice(
                EventReason::RolloutFrozen,
                format!(
                    "released the workload in the middle of a rollout of {}: every pod stays as it is; go on by setting the \
                     partition by hand, or by putting the object back",
                    workload.update
                ),
            );
        }
        let leave = if idle {
            LeftAs::BeforeAdoption(setting)
        } else {
            LeftAs::Frozen(setting)
        };
        Outcome::act(Action::ReleaseClaim(leave), message)
    }

    /// Whether the template asks for a rejected version and every pod is back on the stable one.
    fn is_rolled_back(&self, workload: &Workload) -> bool {
        let Some(stable) = &self.memory.stable else {
            return false;
        };
        workload.observed
            && workload.claim == Claim::Ours
            && self.is_rejected(workload)
            && workload.current == stable.revision
            && workload.same_pods()
            && workload.members().all(|pod| pod.runs(&stable.revision))
    }
}
