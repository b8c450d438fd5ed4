//! When to stop believing: no progress for too long, or a new pod that will not get well (rules 11 and 12).
//!
//! The verdict is not remembered. It follows from when the attempt last got on and from the pods as they are, so a longer
//! deadline in the spec or a pod that recovers takes it back.

use jiff::Timestamp;

use super::gate::Ahead;
use super::scale::{is_kept, to_release};
use super::{Turn, report};
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

impl Turn<'_> {
    pub(super) fn failure(
        &mut self,
        attempt: &Attempt,
        plan: &Plan,
        workload: &Workload,
        ahead: &Ahead,
    ) -> Option<Verdict> {
        if attempt.held {
            return None;
        }
        let broken = match plan.on_broken_pod {
            // A user goes on all the same.
            _ if attempt.is_forced() => None,
            OnBrokenPod::Fail(policy) => self.broken(attempt, workload).map(|why| (policy, why)),
            OnBrokenPod::Wait => None,
        };
        let (reason, policy, why) = match broken {
            Some((policy, why)) => (Reason::PodBroken, policy, why),
            None => {
                let untouched = is_untouched(attempt, plan, workload);
                if untouched && ahead.passes_by_itself() {
                    return None;
                }
                let mut why = self.overdue(attempt, plan, workload, ahead)?;
                let mut old = workload.members().filter(|pod| !pod.runs(&attempt.target));
                let stopping = old.find(|pod| pod.terminating);
                if let Some(pod) = stopping {
                    why += &format!("; pod {} has not stopped", pod.name);
                }
                let stops = plan.by_pod && stopping.is_some();
                // On the old version that pod would be in the way of the return, too.
                let policy = if untouched || stops || ahead.is_held_up_by_old_trouble(attempt) {
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

    /// An old pod that is not well may hold up every step, and the way back just as well: in order it does, and where Kubernetes
    /// counts it as the one that may be unavailable (k/k#137409). No step mends it before its turn; going on to the end does.
    fn ways_out(&self, attempt: &Attempt, workload: &Workload, reason: Reason, why: &str) -> String {
        let unwell = |pod: &Pod| !pod.ready() && !pod.terminating && !pod.runs(&attempt.target);
        let abort = self.command_for(&attempt.target, "abort");
        // A version that is broken itself cures none.
        if reason != Reason::PodBroken && workload.members().any(unwell) {
            let replace = self.command_for(&attempt.target, "promote --full");
            format!(
                "{why}; replace it and every other old pod without checks with: {replace}, or give up with: {abort}"
            )
        } else {
            format!("{why}; go back with: {abort}")
        }
    }

    /// A pod of the new version that is not Ready, and that waiting does not mend.
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

    /// Excuses old pods that have been unwell for as long as the attempt may stand before its first pod. It is not the new
    /// version's fault, and may be what it cures.
    pub(super) fn excuse_stuck(&mut self, attempt: &mut Attempt, plan: &Plan, workload: &Workload) {
        let overdue = self.deadline(attempt, plan, workload);
        if attempt.held || overdue.is_none_or(|at| at > self.world.now) {
            return;
        }
        let unwell = |pod: &&Pod| {
            // Where one pod waits for another, only the one whose turn it is can be replaced.
            let replaceable = !workload.ordered || pod.index + 1 == workload.replicas;
            replaceable && !pod.ready() && !attempt.excused.contains(&pod.index)
        };
        let mut stuck = Vec::new();
        for pod in workload.members().filter(unwell) {
            let since = if pod.trouble.is_some() {
                self.crash_loops_in_the_way_since(attempt, workload)
            } else {
                None
            };
            let since = since.or(pod.unready_since).unwrap_or(self.world.now);
            // A gate that has begun anew may have stood for hours, and its pod be unwell for a moment.
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
        attempt.excused.extend(indices);
        attempt.excused.sort_unstable();
        attempt.progressed = self.world.now;
    }

    /// Since when nothing but crash loops can have kept the gate shut. One is Ready for a moment at every turn, so that its own times
    /// tell of the last turn only; but no checks have begun, and every pod that does not crash has been available since then.
    fn crash_loops_in_the_way_since(&self, attempt: &Attempt, workload: &Workload) -> Option<Timestamp> {
        if self.run_of_step(attempt).is_some() {
            return None;
        }
        let others = (0..workload.replicas).filter(|index| !attempt.excused.contains(index));
        let others = others.map(|index| workload.at(index));
        others
            .filter(|pod| !pod.is_some_and(|pod| pod.has_crashed_lately(self.world.now)))
            .map(|pod| pod?.available_at(workload.min_ready))
            .try_fold(attempt.entered, |latest, at| Some(latest.max(at?)))
    }

    /// An excuse ends when the pod is well, and what it held up gets on. A crash loop is Ready for a moment at every turn.
    pub(super) fn end_excuses(&mut self, attempt: &mut Attempt, workload: &Workload) {
        let now = self.world.now;
        let is_well = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        let available = |index: u32| workload.at(index)?.available_at(workload.min_ready);
        let (well, unwell): (Vec<_>, Vec<_>) = attempt
            .excused
            .iter()
            .partition(|index| is_well(available(**index)));
        unwell
            .iter()
            .filter_map(|index| available(*index))
            .for_each(|at| self.wake(at));
        attempt.excused = unwell;
        if !well.is_empty() {
            attempt.progressed = now;
        }
    }

    /// When the last pod outside the share came back to the old version, or will count as back, while others have yet to.
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

    /// Until when the attempt has to get on.
    pub(super) fn deadline(&self, attempt: &Attempt, plan: &Plan, workload: &Workload) -> Option<Timestamp> {
        let since = match plan.step(attempt.step) {
            // Only what is waited for after the pause counts.
            Some(Step::Pause(duration)) => {
                let over = attempt.entered.saturating_add(duration?).ok()?;
                over.max(attempt.progressed)
            }
            // How long measuring takes is the metrics' own affair.
            Some(Step::Analysis(_)) => match self.run_of_step(attempt) {
                Some(run) => run.ended?.max(attempt.progressed),
                None => attempt.progressed,
            },
            Some(Step::Share(_)) | None => attempt.progressed,
        };
        // Pods that go where they belong get on, too, and whatever an unwell one held up gets on when that is well.
        let since = since.max(self.last_returned(attempt, plan, workload).unwrap_or(since));
        let recovered = attempt.excused.iter().filter_map(|index| {
            let available = workload.at(*index)?.available_at(workload.min_ready);
            available.filter(|at| *at <= self.world.now)
        });
        let since = since.max(recovered.max().unwrap_or(since));
        since.saturating_add(plan.deadline).ok()
    }

    /// Gives an attempt its time anew whose share is not released yet: the operator was away, or its request is refused. That
    /// is told, and no fault of the version's.
    pub(super) fn excuse(&self, attempt: &mut Attempt, plan: &Plan, workload: &Workload) {
        let late = self
            .deadline(attempt, plan, workload)
            .is_some_and(|at| at <= self.world.now);
        // Whatever was released before and came to nothing was no fault of the request's.
        if late && attempt.progressed >= attempt.entered {
            attempt.progressed = self.world.now;
        }
    }

    fn overdue(
        &mut self,
        attempt: &Attempt,
        plan: &Plan,
        workload: &Workload,
        ahead: &Ahead,
    ) -> Option<String> {
        let at = self.deadline(attempt, plan, workload)?;
        if at <= self.world.now {
            return Some(format!(
                "no progress for {:#} at {}{}",
                plan.deadline,
                plan.place(attempt.step),
                ahead.clause()
            ));
        }
        self.wake(at);
        None
    }
}

/// Whether no pod is new, and none on its way: no version is to blame, and nothing is there to return. Where pods are released
/// without checks of their own, turning the version down is what takes that back.
fn is_untouched(attempt: &Attempt, plan: &Plan, workload: &Workload) -> bool {
    let before_the_first = plan.share_at(attempt.step) == Share::NONE && attempt.floor == 0;
    let is_old = |index: u32| {
        let pod = workload.at(index);
        pod.is_some_and(|pod| !pod.runs(&attempt.target))
    };
    before_the_first || (plan.by_pod && attempt.exposed == 0 && (0..workload.replicas).all(is_old))
}
