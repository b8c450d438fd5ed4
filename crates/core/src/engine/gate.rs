//! Whether a step is passed (rule 3).
//!
//! Read from the pods, never computed from the setting: the released ones run the new version and have been Ready for long
//! enough, the others are where they were and Ready. The workload's own counters must tell the same story.

use jiff::Timestamp;

use super::scale::is_kept;
use crate::memory::Attempt;
use crate::revision::RevisionName;
use crate::workload::{Pod, Workload};

/// What stands between a step and the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ahead {
    /// Nothing.
    Open,
    /// This.
    Waiting {
        what: String,
        /// When waiting alone will do.
        until: Option<Timestamp>,
        /// The index of another pod that is in the way.
        held_up_by: Option<u32>,
    },
}

impl Ahead {
    fn waiting(what: String) -> Self {
        Self::Waiting {
            what,
            until: None,
            held_up_by: None,
        }
    }

    /// Waiting for the pod at `index`. Where one pod waits for another, an unwell one below keeps it from being made.
    fn waiting_for(workload: &Workload, index: u32, mut what: String) -> Self {
        let below = (0..index).filter_map(|index| workload.at(index));
        let unwell = below.filter(|_| workload.ordered).find(|pod| !pod.ready());
        if let Some(pod) = unwell {
            what += &format!(", held up by pod {}{}", pod.name, details(pod));
        }
        Self::Waiting {
            what,
            until: None,
            held_up_by: unwell.map(|pod| pod.index),
        }
    }

    /// Whether waiting alone will do.
    pub(super) fn passes_by_itself(&self) -> bool {
        matches!(self, Self::Waiting { until: Some(_), .. })
    }

    /// Whether what is in the way was so before the attempt.
    pub(super) fn is_held_up_by_old_trouble(&self, attempt: &Attempt) -> bool {
        matches!(self, Self::Waiting { held_up_by: Some(index), .. } if attempt.excused.contains(index))
    }

    /// To be put behind a sentence: `: waiting for pod db-2 to be Ready`, or nothing.
    pub(super) fn clause(&self) -> String {
        match self {
            Self::Open => String::new(),
            Self::Waiting { what, .. } => format!(": {what}"),
        }
    }
}

/// Looks at every pod from the last to the first, as Kubernetes updates them, and names the first that is not there yet. With
/// `all_available`, also those that are not released must have been Ready for long enough.
pub(super) fn gate(
    workload: &Workload,
    attempt: &Attempt,
    stable: Option<RevisionName>,
    due: u32,
    all_available: bool,
    now: Timestamp,
) -> Ahead {
    if workload.replicas == 0 {
        return Ahead::waiting("waiting for replicas: scaled to zero".into());
    }
    let first_released = workload.first_released(due);
    // Where Kubernetes no longer knows the stable revision, pods outside the share cannot be sent back to it.
    let home = stable.filter(|stable| *stable == workload.current);
    for index in (0..workload.replicas).rev() {
        let released = index >= first_released;
        let Some(pod) = workload.at(index) else {
            if !released && attempt.excused.contains(&index) {
                continue;
            }
            let what = format!("waiting for pod {index} to be created");
            return Ahead::waiting_for(workload, index, what);
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
            return Ahead::waiting_for(workload, index, what);
        }
        let released = released || kept;
        let excused = !released && attempt.excused.contains(&index);
        let next = index + 1 == first_released;
        if excused && all_available && workload.ordered && !next && !pod.ready() {
            // Kubernetes would move no pod, and by the time it does the checks are old.
            return Ahead::Waiting {
                what: format!("{}, which is in the way of every other", unready(pod)),
                until: None,
                held_up_by: Some(index),
            };
        }
        if excused {
            continue;
        }
        if released || all_available {
            match available(pod, workload, now) {
                Ahead::Open => {}
                waiting => return waiting,
            }
        } else if !pod.ready() {
            return Ahead::waiting(unready(pod));
        }
    }
    if workload.pods.len() > workload.replicas as usize {
        return Ahead::waiting("waiting for pods that scaling down takes away".into());
    }
    watches_agree(workload)
}

/// Whether the pods that are released are available, and both watches show the same pods. Until then no further pod is released.
pub(super) fn released_pods(workload: &Workload, attempt: &Attempt, now: Timestamp) -> Ahead {
    let released = u32::try_from(workload.released).unwrap_or(0);
    for index in (workload.first_released(released)..workload.replicas).rev() {
        let Some(pod) = workload.at(index) else {
            let what = format!("waiting for pod {index} to be created");
            return Ahead::waiting_for(workload, index, what);
        };
        // It was unwell on the old version; on the new one it has to be well as any other.
        if attempt.excused.contains(&index) && !pod.runs(&attempt.target) {
            continue;
        }
        if !pod.runs(&attempt.target) {
            let what = format!("waiting for pod {} to run {}", pod.name, attempt.target);
            return Ahead::waiting_for(workload, index, what);
        }
        match available(pod, workload, now) {
            Ahead::Open => {}
            waiting => return waiting,
        }
    }
    let kept = attempt.kept.iter().filter_map(|index| workload.at(*index));
    for pod in kept.filter(|pod| pod.runs(&attempt.target)) {
        match available(pod, workload, now) {
            Ahead::Open => {}
            waiting => return waiting,
        }
    }
    watches_agree(workload)
}

/// Whether the workload's own counters tell the same story as its pods.
fn watches_agree(workload: &Workload) -> Ahead {
    if !workload.counters_agree() {
        return Ahead::waiting("waiting for the workload's status to agree with its pods".into());
    }
    Ahead::Open
}

fn available(pod: &Pod, workload: &Workload, now: Timestamp) -> Ahead {
    match pod.available_at(workload.min_ready) {
        Some(at) if at <= now => Ahead::Open,
        Some(at) => Ahead::Waiting {
            what: format!("waiting for pod {} to stay Ready", pod.name),
            until: Some(at),
            held_up_by: None,
        },
        None => Ahead::waiting(unready(pod)),
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
