//! Whether a step has passed (rule 3).
//!
//! It follows from the pods, never from the partition: the released pods run the new version and are available, the others are
//! unchanged and Ready. The workload's own counters must agree.

use jiff::Timestamp;

use super::scale::is_kept;
use crate::memory::Attempt;
use crate::revision::RevisionName;
use crate::workload::{Pod, Workload};

/// Whether the gate between a step and the next is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GateStatus {
    /// The step has passed.
    Open,
    /// The step waits for something.
    Waiting {
        what: String,
        /// When it passes by itself.
        until: Option<Timestamp>,
        /// The index of another pod that blocks it.
        held_up_by: Option<u32>,
    },
}

impl GateStatus {
    fn waiting(what: String) -> Self {
        Self::Waiting {
            what,
            until: None,
            held_up_by: None,
        }
    }

    /// Waiting for the pod at `index`. With ordered updates, an unready pod below prevents its creation.
    fn waiting_for(workload: &Workload, index: u32, mut what: String) -> Self {
        let below = (0..index).filter_map(|index| workload.at(index));
        let unwell = below.filter(|_| workload.ordered).find(|pod| !pod.ready());
        if let Some(pod) = unwell {
            what += &format!(", blocked by pod {}{}", pod.name, details(pod));
        }
        Self::Waiting {
            what,
            until: None,
            held_up_by: unwell.map(|pod| pod.index),
        }
    }

    /// Whether the gate opens by itself.
    pub(super) fn passes_by_itself(&self) -> bool {
        matches!(self, Self::Waiting { until: Some(_), .. })
    }

    /// Whether the blocking pod was already unready before the attempt.
    pub(super) fn is_held_up_by_old_trouble(&self, attempt: &Attempt) -> bool {
        matches!(self, Self::Waiting { held_up_by: Some(index), .. } if attempt.ignored_pods.contains(index))
    }

    /// For the end of a sentence: `: waiting for pod db-2 to be Ready`, or nothing.
    pub(super) fn clause(&self) -> String {
        match self {
            Self::Open => String::new(),
            Self::Waiting { what, .. } => format!(": {what}"),
        }
    }
}

/// Checks every pod from the last to the first, as Kubernetes updates them, and names the first that does not pass. With
/// `all_available`, pods that are not released must be available too.
pub(super) fn gate(
    workload: &Workload,
    attempt: &Attempt,
    stable: Option<RevisionName>,
    due: u32,
    all_available: bool,
    now: Timestamp,
) -> GateStatus {
    if workload.replicas == 0 {
        return GateStatus::waiting("waiting for replicas: scaled to zero".into());
    }
    let first_released = workload.first_released(due);
    // If Kubernetes no longer knows the stable revision, pods outside the share cannot be rolled back to it.
    let home = stable.filter(|stable| *stable == workload.current);
    for index in (0..workload.replicas).rev() {
        let released = index >= first_released;
        let Some(pod) = workload.at(index) else {
            if !released && attempt.ignored_pods.contains(&index) {
                continue;
            }
            let what = format!("waiting for pod {index} to be created");
            return GateStatus::waiting_for(workload, index, what);
        };
        let kept = is_kept(attempt, pod);
        let astray = if kept {
            false
        } else if released {
            !pod.runs(&attempt.target)
        } else {
            pod.runs(&attempt.target) || home.as_ref().is_some_and(|home| !pod.runs(home))
        };
        if astray {
            let goal = if released {
                Some(&attempt.target)
            } else {
                home.as_ref()
            };
            let goal = goal.map_or_else(|| "its version".to_owned(), ToString::to_string);
            let what = format!("waiting for pod {} to run {goal}", pod.name);
            return GateStatus::waiting_for(workload, index, what);
        }
        let released = released || kept;
        let ignored = !released && attempt.ignored_pods.contains(&index);
        let next = index + 1 == first_released;
        if ignored && all_available && workload.ordered && !next && !pod.ready() {
            // Kubernetes would replace no pod, and by the time it does the checks have expired.
            return GateStatus::Waiting {
                what: format!("{}, which is in the way of every other", unready(pod)),
                until: None,
                held_up_by: Some(index),
            };
        }
        if ignored {
            continue;
        }
        if released || all_available {
            match available(pod, workload, now) {
                GateStatus::Open => {}
                waiting => return waiting,
            }
        } else if !pod.ready() {
            return GateStatus::waiting(unready(pod));
        }
    }
    if workload.pods.len() > workload.replicas as usize {
        return GateStatus::waiting("waiting for pods that scaling down takes away".into());
    }
    watches_agree(workload)
}

/// Whether the released pods are available and both watches agree. Until then no further pod is released.
pub(super) fn released_pods(workload: &Workload, attempt: &Attempt, now: Timestamp) -> GateStatus {
    let released = u32::try_from(workload.released).unwrap_or(0);
    for index in (workload.first_released(released)..workload.replicas).rev() {
        let Some(pod) = workload.at(index) else {
            let what = format!("waiting for pod {index} to be created");
            return GateStatus::waiting_for(workload, index, what);
        };
        // It was unready on the old version; on the new one it must be available like any other.
        if attempt.ignored_pods.contains(&index) && !pod.runs(&attempt.target) {
            continue;
        }
        if !pod.runs(&attempt.target) {
            let what = format!("waiting for pod {} to run {}", pod.name, attempt.target);
            return GateStatus::waiting_for(workload, index, what);
        }
        match available(pod, workload, now) {
            GateStatus::Open => {}
            waiting => return waiting,
        }
    }
    let kept = attempt.kept.iter().filter_map(|index| workload.at(*index));
    for pod in kept.filter(|pod| pod.runs(&attempt.target)) {
        match available(pod, workload, now) {
            GateStatus::Open => {}
            waiting => return waiting,
        }
    }
    watches_agree(workload)
}

/// Whether the workload's own counters agree with its pods.
fn watches_agree(workload: &Workload) -> GateStatus {
    if !workload.counters_agree() {
        return GateStatus::waiting("waiting for the workload's status to agree with its pods".into());
    }
    GateStatus::Open
}

fn available(pod: &Pod, workload: &Workload, now: Timestamp) -> GateStatus {
    match pod.available_at(workload.min_ready) {
        Some(at) if at <= now => GateStatus::Open,
        Some(at) => GateStatus::Waiting {
            what: format!("waiting for pod {} to stay Ready", pod.name),
            until: Some(at),
            held_up_by: None,
        },
        None => GateStatus::waiting(unready(pod)),
    }
}

/// `waiting for pod db-2 to be Ready (CrashLoopBackOff, 3 restarts)`
pub(super) fn unready(pod: &Pod) -> String {
    if pod.terminating {
        return format!("waiting for pod {} to stop", pod.name);
    }
    format!("waiting for pod {} to be Ready{}", pod.name, details(pod))
}

/// ` (CrashLoopBackOff, 3 restarts, last exit code 1)`, or nothing.
fn details(pod: &Pod) -> String {
    let mut details = Vec::new();
    match (&pod.trouble, &pod.unready) {
        (Some(trouble), _) => details.push(trouble.reason.clone()),
        (None, Some(unready)) => details.push(unready.message.clone()),
        (None, None) => {}
    }
    match pod.restarts {
        0 => {}
        1 => details.push("1 restart".into()),
        restarts => details.push(format!("{restarts} restarts")),
    }
    details.extend(pod.last_exit.map(|code| format!("last exit code {code}")));
    if details.is_empty() {
        String::new()
    } else {
        format!(" ({})", details.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixture::settled;
    use crate::workload::{Trouble, Unready};
    use rstest::rstest;

    #[rstest]
    #[case::nothing_known(|_: &mut Pod| {}, "")]
    #[case::reported(unschedulable, " (Unschedulable: no node fits)")]
    #[case::restarted(|pod: &mut Pod| (pod.restarts, pod.last_exit) = (1, Some(137)), " (1 restart, last exit code 137)")]
    #[case::broken(
        |pod: &mut Pod| {
            unschedulable(pod);
            pod.trouble = Some(Trouble { reason: "CrashLoopBackOff".into(), message: String::new() });
            (pod.restarts, pod.last_exit) = (3, Some(1));
        },
        " (CrashLoopBackOff, 3 restarts, last exit code 1)",
    )]
    fn what_is_waited_for_comes_with_what_is_reported(#[case] change: fn(&mut Pod), #[case] details: &str) {
        let mut world = settled();
        let pod = &mut world.view().pods[4];
        pod.ready_since = None;
        change(pod);
        assert_eq!(unready(pod), format!("waiting for pod db-4 to be Ready{details}"));
    }

    fn unschedulable(pod: &mut Pod) {
        pod.unready = Some(Unready {
            reason: "Unschedulable".into(),
            message: "Unschedulable: no node fits".into(),
        });
    }
}
