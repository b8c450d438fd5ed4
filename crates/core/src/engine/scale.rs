//! Steps that are counted by pods, when the number of pods changes (rule 9).

use super::Turn;
use super::step::enter;
use crate::memory::Attempt;
use crate::plan::{Plan, Share, StepIndex};
use crate::workload::Workload;

impl Turn<'_> {
    /// Finds the step again. Scaling down takes the last pods away, which are new: so many fewer are. Scaling up exposes no
    /// further pod. Where every pod was released already, every pod stays so: Kubernetes may have forgotten the old version.
    pub(super) fn rescale(&mut self, attempt: &mut Attempt, workload: &Workload, plan: &Plan) {
        let Some(counted) = attempt.counted.filter(|counted| *counted != workload.replicas) else {
            return;
        };
        let was = Plan {
            steps: crate::plan::pod_by_pod(counted),
            ..plan.clone()
        };
        let share = was.share_at(attempt.step);
        let step = if share == Share::ALL || share.of(counted) == counted {
            // As far from the end as it was.
            let left = was.end().0.saturating_sub(attempt.step.0);
            plan.end().0.saturating_sub(left)
        } else {
            let gone = counted.saturating_sub(workload.replicas);
            attempt.step.0.saturating_sub(gone.saturating_mul(2))
        };
        attempt.counted = Some(workload.replicas);
        attempt.exposed = workload.exposed_from_the_top(&attempt.target);
        // A pod that comes again at that place is another one.
        attempt.excused.retain(|index| *index < workload.replicas);
        *attempt = enter(attempt.clone(), StepIndex(step), plan, self.world.now);
        self.notice(
            "Scaled",
            format!(
                "{}: scaled from {counted} to {} pods, the step begins anew",
                attempt.target, workload.replicas
            ),
        );
    }
}
