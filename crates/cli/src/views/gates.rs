//! The gates of a PhasedRollout and their pods as lines: one per pod, or one for many similar pods.

use std::ops::Range;

use jiff::Timestamp;
use stateward_core::memory::{Activity, Attempt, pod_number};

use crate::stage::{Stage, skipped_in_words};
use crate::views::pod_row::PodRow;
use crate::views::style::{Lines, Style};
use crate::views::table::age;

/// Beyond this number of pods, those before and after the current one are folded into one line each.
const UNFOLDED: usize = 8;

/// Every gate with its pod, and the last gate. `behind` is the number of finished steps; `first` is the lowest ordinal, if the StatefulSet
/// can be read; `pods_seen` are its pods, if they can be read.
pub(crate) fn lines(
    stage: &Stage<'_>,
    behind: usize,
    first: Option<u32>,
    pods_seen: &[PodRow],
    style: Style,
    marks: &Lines,
    now: Timestamp,
) -> Vec<String> {
    let pods = stage.steps() / 2;
    let done = (behind / 2).min(pods);
    let order = Order::of(stage, done, first, pods_seen);
    let name = |pod: usize| match first {
        Some(first) => format!(
            "{}-{}",
            stage.object.workload,
            first.saturating_add(order.index(pod))
        ),
        None => format!("{} of {pods}", pod + 1),
    };
    let rows = |mark: &str, from: usize, to: usize, words: &str| -> Vec<String> {
        let row = |pod| format!("{mark} gate, pod {}{words}", name(pod));
        if pods <= UNFOLDED {
            return (from..to).map(row).collect();
        }
        let fold = |pods: Range<usize>| match pods.len() {
            1 => row(pods.start),
            count => {
                let (from, to) = (name(pods.start), name(pods.end - 1));
                format!("{mark} gate, pod: {from} to {to}, {count} pods{words}")
            }
        };
        order.in_a_row(from..to).into_iter().map(fold).collect()
    };
    // The gate before a pod is the previous step.
    let skipped = |pod: usize| stage.skipped(pod * 2).map(skipped_in_words);
    let mut lines = Vec::new();
    let mut at = 0;
    while at < done {
        let words = skipped(at);
        let to = (at..done).find(|pod| skipped(*pod) != words).unwrap_or(done);
        let mark = if words.is_some() {
            marks.skipped
        } else {
            marks.done
        };
        lines.extend(rows(mark, at, to, &words.unwrap_or_default()));
        at = to;
    }
    let mut ahead = done;
    let mut after = format!("{} gate after the last pod", marks.ahead);
    if let Activity::Rolling(attempt) = &stage.activity {
        let time = format!("for {}", age(Some(attempt.entered), now));
        let waits = waits_for(stage, attempt);
        let here = |what: &str| style.strong(&format!("{} {what}, {time}: {waits}", marks.here));
        if done < pods {
            lines.push(here(&if stage.is_at_gate() {
                format!("gate before pod {}", name(done))
            } else {
                format!("pod {}", name(done))
            }));
            ahead += 1;
        } else if behind < stage.steps() {
            after = here("gate after the last pod");
        }
    }
    if behind >= stage.steps() {
        after = match skipped(pods) {
            Some(words) => format!("{} gate after the last pod{words}", marks.skipped),
            None => format!("{} gate after the last pod", marks.done),
        };
    }
    lines.extend(rows(marks.ahead, ahead, pods, ""));
    lines.push(after);
    lines
}

/// The order of the pods: first those that were already updated when the StatefulSet was scaled up, then the others from the highest
/// ordinal down.
struct Order {
    pods: u32,
    /// The indices of the pods that were already updated, sorted.
    kept: Vec<u32>,
}

/// An object with more kept pods was not written by the operator.
const MOST_KEPT: usize = 1000;

impl Order {
    fn of(stage: &Stage<'_>, done: usize, first: Option<u32>, pods_seen: &[PodRow]) -> Self {
        let pods = u32::try_from(stage.steps() / 2).unwrap_or(u32::MAX);
        let kept = match &stage.activity {
            Activity::Rolling(attempt) if attempt.kept.len() <= MOST_KEPT => {
                let passed = first.map(|first| passed_over(stage, attempt, done, first, pods_seen));
                let mut kept = attempt.kept.clone();
                kept.extend(passed.unwrap_or_default());
                kept.sort_unstable();
                kept.dedup();
                kept
            }
            _ => Vec::new(),
        };
        Self { pods, kept }
    }

    /// The index of the pod at this place, from 0.
    fn index(&self, place: usize) -> u32 {
        let number = u32::try_from(place).unwrap_or(u32::MAX).saturating_add(1);
        pod_number(&self.kept, number, self.pods).unwrap_or_default()
    }

    /// Groups places whose pods have consecutive ordinals.
    fn in_a_row(&self, places: Range<usize>) -> Vec<Range<usize>> {
        let kept = self.kept.len();
        let others = self.kept.iter().rev().enumerate();
        // A kept pod leaves a gap between the others.
        let gaps = others.map(|(above, index)| {
            kept + (self.pods.saturating_sub(index + 1) as usize).saturating_sub(above)
        });
        let mut starts: Vec<_> = (0..=kept).chain(gaps).filter(|at| places.contains(at)).collect();
        starts.push(places.start);
        starts.sort_unstable();
        starts.dedup();
        starts.retain(|at| *at == places.start || self.index(at - 1) != self.index(*at) + 1);
        let ends = starts.iter().skip(1).copied().chain([places.end]);
        let rows = starts.iter().zip(ends).map(|(start, end)| *start..end);
        rows.filter(|row| !row.is_empty()).collect()
    }
}

/// Updated pods that the partition has passed while a pod above them is still being replaced: they no longer count as kept, but come
/// before that pod.
fn passed_over(
    stage: &Stage<'_>,
    attempt: &Attempt,
    done: usize,
    first: u32,
    pods_seen: &[PodRow],
) -> Range<u32> {
    let pods = u32::try_from(stage.steps() / 2).unwrap_or(u32::MAX);
    let number = u32::try_from(done).unwrap_or(u32::MAX).saturating_add(1);
    let Some(due) = attempt.pod_number(number, pods).filter(|_| !stage.is_at_gate()) else {
        return 0..0;
    };
    let index = |pod: &PodRow| pod.ordinal.checked_sub(first).filter(|index| *index < pods);
    let is_new = |pod: &PodRow| pod.revision.as_deref() == Some(attempt.target.as_str());
    let replaced = pods_seen
        .iter()
        .filter(|pod| !is_new(pod) || !pod.is_ready())
        .filter_map(index)
        .filter(|index| *index > due && attempt.kept.binary_search(index).is_err())
        .max();
    let Some(replaced) = replaced else {
        return 0..0;
    };
    let new_below = pods_seen
        .iter()
        .filter(|pod| is_new(pod))
        .filter_map(index)
        .filter(|index| (due..replaced).contains(index));
    if new_below.count() == (replaced - due) as usize {
        due..replaced
    } else {
        0..0
    }
}

fn waits_for(stage: &Stage<'_>, attempt: &Attempt) -> String {
    match &stage.object.checks {
        _ if stage.object.paused => "held by spec.paused".into(),
        _ if !stage.is_at_gate() => "waits for it to be available".into(),
        _ if attempt.paused_at_step => "failed, waits for a command".into(),
        Some((check, checks)) => match checks.status.as_str() {
            "WaitForInitialDelay" => "waits for the initial delay".into(),
            "WaitForAllPodsToBeAvailable" => "waits for every pod to be available".into(),
            _ => format!(
                "{} of {} checks in a row",
                checks.consecutive_successful_checks, check.success_threshold
            ),
        },
        None => "waits for every pod to be available".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, commands, phased, pods};
    use crate::rollout::Rollout;
    use rstest::rstest;

    fn drawn(rollout: &Rollout, behind: usize, first: Option<u32>) -> Vec<String> {
        seen(rollout, behind, first, &[])
    }

    fn seen(rollout: &Rollout, behind: usize, first: Option<u32>, pods: &[PodRow]) -> Vec<String> {
        let style = Style::default();
        let stage = Stage::of(rollout);
        lines(
            &stage,
            behind,
            first,
            pods,
            style,
            &style.lines(),
            NOW.parse().unwrap(),
        )
    }

    fn at(pods: i32, step: i32) -> Vec<String> {
        drawn(&phased(pods, step), step as usize, Some(0))
    }

    #[rstest]
    #[case::at_the_first_gate(0, &[
        "▶ gate before pod web-2, for 20s: 1 of 3 checks in a row", "· gate, pod web-1", "· gate, pod web-0",
        "· gate after the last pod",
    ])]
    #[case::at_a_pod(3, &[
        "✓ gate, pod web-2", "▶ pod web-1, for 20s: waits for it to be available", "· gate, pod web-0",
        "· gate after the last pod",
    ])]
    #[case::at_the_last_gate(6, &[
        "✓ gate, pod web-2", "✓ gate, pod web-1", "✓ gate, pod web-0",
        "▶ gate after the last pod, for 20s: 1 of 3 checks in a row",
    ])]
    #[case::past_it(7, &[
        "✓ gate, pod web-2", "✓ gate, pod web-1", "✓ gate, pod web-0", "✓ gate after the last pod",
    ])]
    fn a_gate_and_its_pod_are_one_line(#[case] step: i32, #[case] expected: &[&str]) {
        assert_eq!(at(3, step), expected);
    }

    #[test]
    fn a_gate_whose_checks_were_skipped_was_not_passed() {
        let mut rollout = phased(3, 5);
        let status = rollout.status.as_mut().unwrap();
        status.taken_commands = commands(&[("promote", 0, 1, Some("alice")), ("skip", 4, 5, None)]);
        assert_eq!(
            drawn(&rollout, 5, Some(0))[..3],
            [
                "» gate, pod web-2, skipped by alice",
                "✓ gate, pod web-1",
                "▶ pod web-0, for 20s: waits for it to be available",
            ]
        );
        let mut rollout = phased(20, 41);
        let status = rollout.status.as_mut().unwrap();
        status.taken_commands = commands(&[("promote --full", 10, 41, None)]);
        assert_eq!(
            drawn(&rollout, 41, Some(0)),
            [
                "✓ gate, pod: web-19 to web-15, 5 pods",
                "» gate, pod: web-14 to web-0, 15 pods, skipped",
                "» gate after the last pod, skipped",
            ]
        );
    }

    #[test]
    fn many_are_folded_around_the_one_that_is_waited_for() {
        assert_eq!(
            at(500, 401),
            [
                "✓ gate, pod: web-499 to web-300, 200 pods",
                "▶ pod web-299, for 20s: waits for it to be available",
                "· gate, pod: web-298 to web-0, 299 pods",
                "· gate after the last pod",
            ]
        );
        assert_eq!(
            at(9, 15)[1..],
            [
                "▶ pod web-1, for 20s: waits for it to be available",
                "· gate, pod web-0",
                "· gate after the last pod",
            ]
        );
    }

    #[test]
    fn ordinals_begin_where_the_set_says_and_are_not_guessed() {
        let rollout = phased(2, 1);
        assert_eq!(
            drawn(&rollout, 1, Some(5))[..2],
            [
                "▶ pod web-6, for 20s: waits for it to be available",
                "· gate, pod web-5"
            ]
        );
        assert_eq!(drawn(&rollout, 1, None)[1], "· gate, pod 2 of 2");
    }

    /// One of three pods was updated when the StatefulSet was scaled up to five.
    #[rstest]
    #[case::at_a_gate(2, &[2], ["✓ gate, pod web-2", "▶ gate before pod web-4", "· gate, pod web-3"])]
    #[case::at_the_pod(3, &[2], ["✓ gate, pod web-2", "▶ pod web-4", "· gate, pod web-3"])]
    #[case::at_the_one_beside_it(4, &[2], ["✓ gate, pod web-2", "✓ gate, pod web-4", "▶ gate before pod web-3"])]
    // Releasing this pod also releases the kept one.
    #[case::past_it(5, &[], ["✓ gate, pod web-2", "✓ gate, pod web-4", "▶ pod web-3"])]
    fn pods_that_were_new_before_scaling_up_have_come_first(
        #[case] step: i32,
        #[case] kept: &[i32],
        #[case] expected: [&str; 3],
    ) {
        let mut rollout = phased(5, step);
        rollout.status.as_mut().unwrap().kept_pods = kept.to_vec();
        let revisions = ["web-1", "web-1", "web-2", "web-1", "web-2"];
        let lines = seen(&rollout, step as usize, Some(0), &pods("web", &revisions));
        let lines = lines.iter().map(|line| line.split(", for").next().unwrap());
        assert_eq!(lines.take(3).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn folded_pods_follow_each_other() {
        let mut rollout = phased(20, 8);
        rollout.status.as_mut().unwrap().kept_pods = vec![8, 9, 15];
        assert_eq!(
            drawn(&rollout, 8, Some(0)),
            [
                "✓ gate, pod web-15",
                "✓ gate, pod: web-9 to web-8, 2 pods",
                "✓ gate, pod web-19",
                "▶ gate before pod web-18, for 20s: 1 of 3 checks in a row",
                "· gate, pod: web-17 to web-16, 2 pods",
                "· gate, pod: web-14 to web-10, 5 pods",
                "· gate, pod: web-7 to web-0, 8 pods",
                "· gate after the last pod",
            ]
        );
    }

    #[rstest]
    #[case::held(|rollout: &mut Rollout| rollout.paused = true, "held by spec.paused")]
    #[case::delayed(|rollout: &mut Rollout| checks(rollout, "WaitForInitialDelay"), "waits for the initial delay")]
    #[case::unwell(|rollout: &mut Rollout| checks(rollout, "WaitForAllPodsToBeAvailable"), "waits for every pod to be available")]
    #[case::before_any(|rollout: &mut Rollout| rollout.checks = None, "waits for every pod to be available")]
    fn a_gate_says_what_it_waits_for(#[case] change: fn(&mut Rollout), #[case] expected: &str) {
        let mut rollout = phased(2, 0);
        change(&mut rollout);
        assert_eq!(
            drawn(&rollout, 0, Some(0))[0],
            format!("▶ gate before pod web-1, for 20s: {expected}")
        );
    }

    fn checks(rollout: &mut Rollout, status: &str) {
        let (_, checks) = rollout.checks.as_mut().unwrap();
        checks.status = status.to_owned();
    }
}
