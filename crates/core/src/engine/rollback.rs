//! The rollback to the stable version (rules 5, 7 and 9).
//!
//! It is a phase, not a call: each decision looks at the current pods and takes one step, so it continues after a crash at any
//! point and ends only when every pod is stable and Ready. While Kubernetes still knows the stable revision, the share is held at
//! zero and a deleted pod is recreated on the stable version; the template is not changed. Once Kubernetes has forgotten it, the
//! template is restored from our copy and every pod follows it.

use super::gate::unready;
use super::scale::is_kept;
use super::{Decider, Outcome, report};
use crate::event::EventReason;
use crate::memory::{Activity, Attempt, Cause, Rollback, Stable};
use crate::plan::Share;
use crate::revision::RevisionName;
use crate::workload::{Claim, Pod, Workload};
use crate::world::{Action, Phase, Reason, Report};

impl Decider<'_> {
    /// One decision of a rollback.
    pub(super) fn roll_back(&mut self, workload: &Workload) -> Outcome {
        let (Some(stable), Activity::RollingBack(back)) = (self.memory.stable.clone(), &self.memory.activity)
        else {
            return self.idle(workload);
        };
        let back = back.clone();
        let put_back = workload.template == stable.template;
        // A restored template may get a new revision name.
        let home = if put_back && workload.current != stable.revision {
            &workload.update
        } else {
            &stable.revision
        };
        let known = workload.current == *home;
        let message = self.describe_return(&back, home, workload);
        if !known && !put_back {
            if workload.claim != Claim::Ours {
                // The workload is claimed before its template is replaced; until then no further pod is updated.
                return Outcome::act(Action::Release(Share::NONE), message);
            }
            if let Some(rejected) = &mut self.memory.rejected {
                rejected.replaced = true;
            }
            return Outcome::act(Action::Restore(Share::ALL), message);
        }
        let share = if known { Share::NONE } else { Share::ALL };
        let due = i64::from(share.of(workload.replicas));
        if workload.released != due || workload.claim != Claim::Ours {
            return Outcome::act(Action::Release(share), message);
        }
        if let Some(action) = self.next_stray(workload, home, |_| false, !known) {
            return Outcome::act(action, message);
        }
        if !known || !self.is_rollback_complete(workload, home) {
            return Outcome::wait(message);
        }
        self.notice(
            EventReason::RollbackCompleted,
            format!("every pod is back on {home} and Ready"),
        );
        self.memory.stable = Some(Stable {
            revision: home.clone(),
            ..stable
        });
        self.finish_rollback(workload)
    }

    /// Whether every pod exists, runs the stable version and is available, and the workload's counters agree.
    fn is_rollback_complete(&mut self, workload: &Workload, home: &RevisionName) -> bool {
        let now = self.world.now;
        for index in 0..workload.replicas {
            let available = workload
                .at(index)
                .filter(|pod| pod.runs(home))
                .and_then(|pod| pod.available_at(workload.min_ready));
            match available {
                Some(at) if at <= now => {}
                Some(at) => {
                    self.wake(at);
                    return false;
                }
                None => return false,
            }
        }
        workload.counters_agree()
    }

    /// The next pod to delete outside of a rollback: one outside the share on the wrong version (it was updated by accident, or the
    /// share shrank), or one inside it that is broken on the old version. Kubernetes may replace no pod while one is unhealthy, and
    /// not only with OrderedReady (k/k#67250, k/k#137409).
    pub(super) fn next_to_remove(
        &mut self,
        workload: &Workload,
        attempt: Option<&Attempt>,
        allowed: u32,
    ) -> Option<Action> {
        let first_released = workload.first_released(allowed);
        let stable = self.memory.stable.as_ref()?.revision.clone();
        let stuck = attempt.and_then(|attempt| {
            let holds_up = |pod: &&Pod| {
                pod.index >= first_released
                    && !pod.runs(&attempt.target)
                    && !pod.ready()
                    && !pod.terminating
                    && (pod.trouble.is_some() || attempt.ignored_pods.contains(&pod.index))
            };
            workload.members().find(holds_up)
        });
        if let Some(pod) = stuck {
            return Some(remove(pod, false));
        }
        if workload.current != stable {
            return None;
        }
        // Kubernetes replaces the pods inside the share; while it does, one of them may be gone before we see it.
        let replaced = |index: u32| {
            let pod = workload.at(index);
            pod.is_some_and(|pod| attempt.is_none_or(|attempt| pod.runs(&attempt.target)))
        };
        let at_rest = (first_released..workload.replicas).all(replaced);
        let belongs =
            |pod: &Pod| pod.index >= first_released || attempt.is_some_and(|attempt| is_kept(attempt, pod));
        self.next_stray(workload, &stable, belongs, !at_rest)
    }

    /// The next pod to delete so that it is recreated as `home`.
    ///
    /// A broken pod serves no client and may block the others (OrderedReady, k/k#67250), so it is deleted at once; serving pods are
    /// deleted one at a time, and only while every other pod is available by its own status and the workload's counters; a pod that
    /// is not available is deleted before them. Pods that `belong` where they are stay.
    fn next_stray(
        &mut self,
        workload: &Workload,
        home: &RevisionName,
        belongs: impl Fn(&Pod) -> bool,
        only_broken: bool,
    ) -> Option<Action> {
        let astray =
            |pod: &&Pod| !belongs(pod) && pod.revision.is_some() && !pod.runs(home) && !pod.terminating;
        if let Some(broken) = workload.members().filter(astray).find(|pod| !pod.ready()) {
            return Some(remove(broken, false));
        }
        if only_broken || !workload.counters_agree() {
            return None;
        }
        let mut fresh = Vec::new();
        for index in 0..workload.replicas {
            let pod = workload.at(index)?;
            let available = pod.available_at(workload.min_ready)?;
            if available > self.world.now {
                self.wake(available);
                fresh.push(pod);
            }
        }
        let next = match fresh.iter().copied().rfind(astray) {
            Some(pod) => Some(pod),
            None if fresh.is_empty() => workload.members().filter(astray).last(),
            None => None,
        };
        next.map(|pod| remove(pod, true))
    }

    fn describe_return(&self, back: &Rollback, home: &RevisionName, workload: &Workload) -> Report {
        let Rollback { from, cause, .. } = back;
        let there = workload
            .members()
            .filter(|pod| pod.runs(home) && pod.ready())
            .count();
        let fresh = workload.members().find(|pod| {
            let available = pod.available_at(workload.min_ready);
            pod.runs(home) && available.is_some_and(|at| at > self.world.now)
        });
        let next = fresh.map(|pod| format!("waiting for pod {} to stay Ready", pod.name));
        let others = || {
            (0..workload.replicas)
                .rev()
                .find_map(|index| match workload.at(index) {
                    Some(pod) if pod.runs(home) && pod.ready() => None,
                    Some(pod) if !pod.runs(home) && !pod.terminating => {
                        Some(format!("pod {} is next", pod.name))
                    }
                    Some(pod) => Some(unready(pod)),
                    None => Some(format!("waiting for pod {index} to be created")),
                })
        };
        let next = next
            .or_else(others)
            .map_or_else(String::new, |next| format!("; {next}"));
        let mut progress = format!(
            "returning every pod to {home}, {there} of {} are there{next}",
            workload.replicas
        );
        if *cause == Cause::ScaledToZero {
            let what = if workload.replicas == 0 {
                format!("its template gives way to that of {home}")
            } else {
                progress
            };
            progress = format!("scaled to zero while {from} was being rolled out: {what}");
        }
        if let Err(problems) = &self.world.plan {
            progress = format!("{progress}; {}", problems.join("; "));
        }
        match (cause, &self.memory.rejected) {
            (Cause::Aborted, Some(rejected)) => report(
                Phase::Failed,
                Reason::Aborting,
                format!(
                    "{} was rejected ({}): {progress}",
                    rejected.revision, rejected.reason
                ),
            ),
            (Cause::Aborted | Cause::TemplateReverted | Cause::ScaledToZero, _) => {
                report(Phase::Progressing, Reason::TemplateReverted, progress)
            }
        }
    }
}

fn remove(pod: &Pod, serving: bool) -> Action {
    Action::Remove {
        pod: pod.name.clone(),
        uid: pod.uid.clone(),
        serving,
    }
}
