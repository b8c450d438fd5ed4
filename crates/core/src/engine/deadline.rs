//! When an attempt fails: no progress until the deadline, or a new pod that will not become Ready (rules 11 and 12).
//!
//! The verdict is not stored. It follows from the last progress and the current pods, so a longer deadline in the spec or a
//! recovered pod revokes it.

use jiff::Timestamp;

use super::gate::GateStatus;
use super::scale::{is_kept, to_release};
use super::{Decider, report};
use crate::event::EventReason;
use crate::memory::Attempt;
use crate::plan::{OnBrokenPod, OnFailure, Plan, Share, Step};
use crate::workload::{Pod, Workload};
use crate::world::{Phase, Reason, Report};

/// A failed attempt.
pub(super) struct Verdict {
    pub(super) abort: bool,
    pub(super) why: String,
    pub(super) report: Report,
}

impl Decider<'_> {
    pub(super) fn failure(
        &mut self,
        attempt: &Attempt,
        plan: &Plan,
        workload: &Workload,
        gate_status: &GateStatus,
    ) -> Option<Verdict> {
        if attempt.paused_by_user {
            return None;
        }
        let broken = match plan.on_broken_pod {
            // A user chose to continue anyway.
            _ if attempt.is_forced() => None,
            OnBrokenPod::Fail(policy) => self.broken(attempt, workload).map(|why| (policy, why)),
            OnBrokenPod::Wait => None,
        };
        let (reason, policy, why) = match broken {
            Some((policy, why)) => (Reason::PodBroken, policy, why),
            None => {
                let untouched = is_untouched(attempt, plan, workload);
                if untouched && gate_status.passes_by_itself() {
                    return None;
                }
                let mut why = self.overdue(attempt, plan, workload, gate_status)?;
                let mut old = workload.members().filter(|pod| !pod.runs(&attempt.target));
                let stopping = old.find(|pod| pod.terminating);
                if let Some(pod) = stopping {
                    why += &format!("; pod {} has not stopped", pod.name);
                }
                let stops = plan.by_pod && stopping.is_some();
                // On the old version that pod would block the rollback too.
                let policy = if untouched || stops || gate_status.is_held_up_by_old_trouble(attempt) {
                    OnFailure::Hold
                } else {
                    plan.on_failure
                };
                (Reason::DeadlineExceeded, policy, why)
            }
        };
        Some(Verdict {
            abort: policy == OnFailure::Abort,
            report: report(
                Phase::Failed,
                reason,
                self.ways_out(attempt, workload, reason, &why),
            ),
            why,
        })
    }

    /// An old pod that is not Ready may block every step, and the rollback too: with ordered updates it does, and where Kubernetes
    /// counts it as the one pod that may be unavailable (k/k#137409). No step fixes it before its turn; a full promotion does.
    fn ways_out(&self, attempt: &Attempt, workload: &Workload, reason: Reason, why: &str) -> String {
        let unwell = |pod: &Pod| !pod.ready() && !pod.terminating && !pod.runs(&attempt.target);
        let abort = self.command_for(&attempt.target, "abort");
        // A version that is itself broken fixes nothing.
        if reason != Reason::PodBroken && workload.members().any(unwell) {
            let replace = self.command_for(&attempt.target, "promote --full");
            format!(
                "{why}; replace it and every other old pod without checks with: {replace}, or give up with: {abort}"
            )
        } else {
            format!("{why}; go back with: {abort}")
        }
    }

    /// A pod of the new version that is not Ready, and that waiting does not fix.
    pub(super) fn broken(&self, attempt: &Attempt, workload: &Workload) -> Option<String> {
        let new = workload
            .members()
            .filter(|pod| pod.runs(&attempt.target) && !pod.terminating);
        new.filter(|pod| pod.ready_since.is_none())
            .find_map(|pod| Some((pod, pod.trouble.as_ref()?)))
            .map(|(pod, trouble)| {
                let message = match trouble.message.as_str() {
                    "" => String::new(),
                    message => format!(": {message}"),
                };
                format!(
                    "pod {} is broken on {}: {}{message}",
                    pod.name, attempt.target, trouble.reason
                )
            })
    }

    /// Ignores old pods that have not been Ready for longer than the deadline. That is not the new version's fault, and the new
    /// version may fix it.
    pub(super) fn ignore_stuck_pods(&mut self, attempt: &mut Attempt, plan: &Plan, workload: &Workload) {
        let overdue = self.deadline(attempt, plan, workload);
        if attempt.paused_by_user || overdue.is_none_or(|at| at > self.world.now) {
            return;
        }
        let unwell = |pod: &&Pod| {
            // With ordered updates, only the next pod can be replaced.
            let replaceable = !workload.ordered || pod.index + 1 == workload.replicas;
            replaceable && !pod.ready() && !attempt.ignored_pods.contains(&pod.index)
        };
        let mut stuck = Vec::new();
        for pod in workload.members().filter(unwell) {
            let since = if pod.trouble.is_some() {
                self.crash_loops_in_the_way_since(attempt, workload)
            } else {
                None
            };
            let since = since.or(pod.unready_since).unwrap_or(self.world.now);
            // A restarted gate may be hours old while its pod has been unready only for a moment.
            match since.max(attempt.entered).saturating_add(plan.deadline) {
                Ok(at) if at <= self.world.now => stuck.push(pod),
                Ok(at) => self.wake(at),
                Err(_) => {}
            }
        }
        if stuck.is_empty() {
            return;
        }
        let names: Vec<_> = stuck.iter().map(|pod| pod.name.as_str()).collect();
        self.notice(
            EventReason::UnreadyPodsIgnored,
            format!(
                "{}: not waiting any longer for {}, which ran the old version and did not get Ready within {:#}",
                attempt.target,
                names.join(", "),
                plan.deadline
            ),
        );
        let indices: Vec<_> = stuck.iter().map(|pod| pod.index).collect();
        attempt.ignored_pods.extend(indices);
        attempt.ignored_pods.sort_unstable();
        attempt.progressed = self.world.now;
    }

    /// Since when only crash loops can have kept the gate closed. A crash-looping pod is Ready for a moment after every restart, so
    /// its own times cover only the last restart; but no checks have begun, and all other pods have been available since then.
    fn crash_loops_in_the_way_since(&self, attempt: &Attempt, workload: &Workload) -> Option<Timestamp> {
        if self.run_of_step(attempt).is_some() {
            return None;
        }
        let others = (0..workload.replicas).filter(|index| !attempt.ignored_pods.contains(index));
        let others = others.map(|index| workload.at(index));
        others
            .filter(|pod| !pod.is_some_and(|pod| pod.has_crashed_lately(self.world.now)))
            .map(|pod| pod?.available_at(workload.min_ready))
            .try_fold(attempt.entered, |latest, at| Some(latest.max(at?)))
    }

    /// Stops ignoring pods that are available again, which counts as progress. A crash-looping pod is Ready for a moment after
    /// every restart.
    pub(super) fn stop_ignoring_available_pods(&mut self, attempt: &mut Attempt, workload: &Workload) {
        let now = self.world.now;
        let is_well = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        let available = |index: u32| workload.at(index)?.available_at(workload.min_ready);
        let (well, unwell): (Vec<_>, Vec<_>) = attempt
            .ignored_pods
            .iter()
            .partition(|index| is_well(available(**index)));
        unwell
            .iter()
            .filter_map(|index| available(*index))
            .for_each(|at| self.wake(at));
        attempt.ignored_pods = unwell;
        if !well.is_empty() {
            attempt.progressed = now;
        }
    }

    /// When the last pod outside the share became, or will become, available on the old version, while others are not back yet.
    fn last_returned(&self, attempt: &Attempt, plan: &Plan, workload: &Workload) -> Option<Timestamp> {
        let stable = self.memory.stable.as_ref().map(|stable| &stable.revision)?;
        let first_released = workload.first_released(to_release(attempt, plan, workload.replicas));
        let outside = || {
            let below = workload.members().filter(|pod| pod.index < first_released);
            below.filter(|pod| !is_kept(attempt, pod))
        };
        let astray = outside().any(|pod| pod.revision.is_some() && !pod.runs(stable));
        let back = outside().filter(|pod| pod.runs(stable));
        let back = back.filter_map(|pod| pod.available_at(workload.min_ready));
        back.max().filter(|_| astray)
    }

    /// The deadline for the attempt's next progress.
    pub(super) fn deadline(&self, attempt: &Attempt, plan: &Plan, workload: &Workload) -> Option<Timestamp> {
        let since = match plan.step(attempt.step) {
            // Only the wait after the pause counts.
            Some(Step::Pause(duration)) => {
                let over = attempt.entered.saturating_add(duration?).ok()?;
                over.max(attempt.progressed)
            }
            // The time that measuring takes does not count.
            Some(Step::Analysis(_)) => match self.run_of_step(attempt) {
                Some(run) => run.ended?.max(attempt.progressed),
                None => attempt.progressed,
            },
            Some(Step::Share(_)) | None => attempt.progressed,
        };
        // Pods that return to the old version are progress, and so is the recovery of an ignored pod.
        let since = since.max(self.last_returned(attempt, plan, workload).unwrap_or(since));
        let recovered = attempt.ignored_pods.iter().filter_map(|index| {
            let available = workload.at(*index)?.available_at(workload.min_ready);
            available.filter(|at| *at <= self.world.now)
        });
        let since = since.max(recovered.max().unwrap_or(since));
        since.saturating_add(plan.deadline).ok()
    }

    /// Restarts the deadline of an attempt whose share is not released yet: the operator was down, or its request is refused. The
    /// status reports that, and it is not the version's fault.
    pub(super) fn restart_deadline(&self, attempt: &mut Attempt, plan: &Plan, workload: &Workload) {
        let late = self
            .deadline(attempt, plan, workload)
            .is_some_and(|at| at <= self.world.now);
        // A failure of pods that were released before is not the request's fault.
        if late && attempt.progressed >= attempt.entered {
            attempt.progressed = self.world.now;
        }
    }

    fn overdue(
        &mut self,
        attempt: &Attempt,
        plan: &Plan,
        workload: &Workload,
        gate_status: &GateStatus,
    ) -> Option<String> {
        let at = self.deadline(attempt, plan, workload)?;
        if at <= self.world.now {
            return Some(format!(
                "no progress for {:#} at {}{}",
                plan.deadline,
                plan.place(attempt.step),
                gate_status.clause()
            ));
        }
        self.wake(at);
        None
    }
}

/// Whether no pod is updated or being updated, so that no version is to blame and there is nothing to roll back. In plans that are
/// not partitioned by pod, released pods count as touched, because rejecting the version unreleases them.
fn is_untouched(attempt: &Attempt, plan: &Plan, workload: &Workload) -> bool {
    let before_the_first = plan.share_at(attempt.step) == Share::NONE && attempt.min_updated == 0;
    let is_old = |index: u32| {
        let pod = workload.at(index);
        pod.is_some_and(|pod| !pod.runs(&attempt.target))
    };
    before_the_first || (plan.by_pod && attempt.max_replaced == 0 && (0..workload.replicas).all(is_old))
}
