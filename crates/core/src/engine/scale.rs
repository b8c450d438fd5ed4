//! Scaling in the middle of a rollout (rule 9).
//!
//! Kubernetes rolls no pod back when the guard is raised, and creates pods below it on the stable version. So scaling up raises the
//! guard above every pod: updated pods stay updated, added pods are stable, and the share is counted by what pods run, not by their
//! position. A later step releases what the share then allows.

use super::pause::released_while_stopped;
use super::step::enter;
use super::{Decider, Outcome};
use crate::event::EventReason;
use crate::memory::{Attempt, BackgroundRun};
use crate::plan::{Plan, Share, Step, StepIndex};
use crate::workload::{Pod, Workload};
use crate::world::Action;

/// How many pods, from the last one down, are released at the attempt's step. Kept pods below them count too.
pub(crate) fn to_release(attempt: &Attempt, plan: &Plan, replicas: u32) -> u32 {
    let share = plan.share_at(attempt.step).of(replicas).max(attempt.min_updated);
    release_of(attempt, share.min(attempt.limit.unwrap_or(replicas)), replicas)
}

/// The same for `share` updated pods.
pub(crate) fn release_of(attempt: &Attempt, share: u32, replicas: u32) -> u32 {
    let share = share.min(replicas);
    let kept_below = |released: u32| {
        let first = replicas - released;
        attempt.kept.partition_point(|index| *index < first) as u32
    };
    // Releasing one more pod updates one more, or none if it is a kept one.
    let fits = |released: &u32| released + kept_below(*released) <= share;
    match attempt.kept.is_empty() {
        true => share,
        false => (0..=share).rev().find(fits).unwrap_or(0),
    }
}

/// Whether a pod stays on the new version although the guard is above it.
pub(super) fn is_kept(attempt: &Attempt, pod: &Pod) -> bool {
    pod.runs(&attempt.target) && attempt.kept.binary_search(&pod.index).is_ok()
}

/// Whether pods were added since the share was computed, and some pod is to stay on the stable version.
pub(super) fn is_scaled_up(attempt: &Attempt, workload: &Workload) -> bool {
    attempt.counted.is_some_and(|counted| counted < workload.replicas) && workload.current != attempt.target
}

/// Whether every pod of `replicas` is released at the attempt's step.
fn is_everything(attempt: &Attempt, plan: &Plan, replicas: u32) -> bool {
    let share = plan.share_at(attempt.step);
    share == Share::ALL || share.of(replicas) == replicas
}

impl Decider<'_> {
    /// After scaling up, raises the guard before the share is computed again: what pods run is known only once Kubernetes has
    /// stopped updating them.
    pub(super) fn raise_guard_before_recounting(
        &self,
        attempt: &Attempt,
        workload: &Workload,
        plan: &Plan,
    ) -> Option<Outcome> {
        let counted = attempt.counted?;
        if !is_scaled_up(attempt, workload) || is_everything(attempt, &plan.counted_for(counted), counted) {
            return None;
        }
        let action = (workload.released > 0).then_some(Action::Release(Share::NONE));
        if action.is_none() && workload.same_pods() {
            return None;
        }
        Some(Outcome { action, report: None })
    }

    /// How many pods, from the last one down, an attempt may have released. `None` if the share has yet to be computed again.
    pub(super) fn released_by(&self, attempt: &Attempt, plan: &Plan, workload: &Workload) -> Option<u32> {
        let counted = attempt.counted?;
        if attempt.steps != plan.fingerprint() {
            return None;
        }
        if counted != workload.replicas {
            let everything = is_everything(attempt, &plan.counted_for(counted), counted);
            return (is_scaled_up(attempt, workload) && !everything).then_some(0);
        }
        let due = to_release(attempt, plan, workload.replicas);
        Some(
            match attempt.paused_by_user || matches!(attempt.background, BackgroundRun::InDoubt(_)) {
                true => due.min(released_while_stopped(attempt, workload)),
                false => due,
            },
        )
    }

    /// Computes the share again for another number of pods. Scaling down removes the last pods, which are updated: steps that are
    /// counted by pods go back by as many. If every pod was already released, every pod stays released: Kubernetes may have
    /// forgotten the old version.
    pub(super) fn rescale(&mut self, attempt: &mut Attempt, workload: &Workload, plan: &Plan) {
        let counted = *attempt.counted.get_or_insert(workload.replicas);
        if counted == workload.replicas {
            return self.forget_lost(attempt, workload, plan);
        }
        let was = plan.counted_for(counted);
        let everything = is_everything(attempt, &was, counted);
        attempt.counted = Some(workload.replicas);
        attempt.stopped_at = None;
        // A pod that is recreated at that index is another one.
        attempt.ignored_pods.retain(|index| *index < workload.replicas);
        attempt.kept.retain(|index| *index < workload.replicas);
        let up = counted < workload.replicas && !everything && workload.current != attempt.target;
        if up {
            attempt.kept = kept_pods(attempt, counted, plan, workload);
            attempt.min_updated = 0;
            let kept = attempt.kept.len() as u32;
            let releases = matches!(plan.step(attempt.step), Some(Step::Share(_)) | None);
            attempt.limit = (!releases && !plan.by_pod).then_some(kept);
        }
        attempt.max_replaced = workload.exposed_from_the_top(&attempt.target);
        if plan.by_pod {
            let step = if everything {
                // The number of remaining steps stays the same.
                let left = was.end().0.saturating_sub(attempt.step.0);
                plan.end().0.saturating_sub(left)
            } else {
                let gone = counted.saturating_sub(workload.replicas);
                attempt.step.0.saturating_sub(gone.saturating_mul(2))
            };
            attempt.renumber(attempt.step, StepIndex(step));
            *attempt = enter(attempt.clone(), StepIndex(step), plan, self.world.now);
        }
        let replicas = workload.replicas;
        let mut message = format!("{}: scaled from {counted} to {replicas} pods", attempt.target);
        if up && let Some(stable) = &self.memory.stable {
            message += &format!(
                "; no pod that was there is moved back, and added pods are created on {}",
                stable.revision
            );
            let early = new_pods(attempt, workload)
                .filter(|index| *index >= counted)
                .count();
            let kept = attempt.kept.iter().filter(|index| **index >= counted).count();
            if early > 0 {
                message += &format!(
                    " ({early} were created on the new version before the partition was raised: {kept} of them stay, as the share \
                     allows)"
                );
            }
        }
        if plan.by_pod {
            message += "; the step begins again";
        } else {
            message += &format!("; {}", share_in_words(attempt, plan, replicas));
        }
        self.notice(EventReason::Scaled, message);
    }

    /// A kept pod that was lost is recreated on the stable version. A step with a share makes up for it; steps that are counted by
    /// pods go back by as many.
    fn forget_lost(&self, attempt: &mut Attempt, workload: &Workload, plan: &Plan) {
        let releases = plan.by_pod || matches!(plan.step(attempt.step), Some(Step::Share(_)) | None);
        if !releases || attempt.kept.is_empty() || !workload.same_pods() {
            return;
        }
        let first = workload.first_released(to_release(attempt, plan, workload.replicas));
        // Pods that are released by now are recreated on the new version.
        attempt.kept.retain(|index| *index < first);
        let before = attempt.kept.len();
        let target = attempt.target.clone();
        let stays = |index: &u32| {
            workload
                .at(*index)
                .is_some_and(|pod| pod.runs(&target) && !pod.terminating)
        };
        attempt.kept.retain(stays);
        let lost = (before - attempt.kept.len()) as u32;
        if plan.by_pod && lost > 0 {
            let step = StepIndex(attempt.step.0.saturating_sub(lost.saturating_mul(2)));
            attempt.renumber(attempt.step, step);
            *attempt = enter(attempt.clone(), step, plan, self.world.now);
        }
    }
}

/// The pods that stay on the new version: those from before the workload was scaled up from `counted` pods, and as many of the
/// others as the share of the step still allows. Such a pod was created before the guard was raised, or was not removed yet by
/// scaling down. Keeping more would expose pods without the checks of a later step.
fn kept_pods(attempt: &Attempt, counted: u32, plan: &Plan, workload: &Workload) -> Vec<u32> {
    let (mut kept, added): (Vec<_>, Vec<_>) = new_pods(attempt, workload).partition(|index| *index < counted);
    let share = plan.share_at(attempt.step).of(workload.replicas) as usize;
    let room = share.saturating_sub(kept.len());
    kept.extend(added.into_iter().take(room));
    kept
}

/// The pods that run the new version.
fn new_pods(attempt: &Attempt, workload: &Workload) -> impl Iterator<Item = u32> {
    let new = workload
        .members()
        .filter(|pod| pod.runs(&attempt.target) && !pod.terminating);
    new.map(|pod| pod.index)
}

/// `1 of 8 pods may run the new version until the next setWeight step`
pub(super) fn share_in_words(attempt: &Attempt, plan: &Plan, replicas: u32) -> String {
    let share = plan.share_at(attempt.step).of(replicas);
    match attempt.limit.filter(|limit| *limit < share) {
        Some(limit) => {
            format!("{limit} of {replicas} pods may run the new version until the next setWeight step")
        }
        None => format!("{share} of {replicas} pods may run the new version"),
    }
}
