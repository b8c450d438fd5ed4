//! The gates of a PhasedRollout and the pods behind them, in lines: one for each pod, or for many that are alike.

use jiff::Timestamp;
use stateward_core::memory::{Activity, Attempt};

use crate::stage::{Stage, skipped_in_words};
use crate::style::{Lines, Style};
use crate::table::age;

/// More pods than this are folded: those behind and those ahead are one line each.
const UNFOLDED: usize = 8;

/// Every gate with its pod, and the one after the last. `behind` is how many steps are; `first` is the lowest ordinal, where the set
/// can be seen.
pub(crate) fn lines(
    stage: &Stage<'_>,
    behind: usize,
    first: Option<u32>,
    style: Style,
    marks: &Lines,
    now: Timestamp,
) -> Vec<String> {
    let pods = stage.steps() / 2;
    let done = (behind / 2).min(pods);
    let name = |pod: usize| match first {
        Some(first) => format!("{}-{}", stage.object.workload, first as usize + pods - 1 - pod),
        None => format!("{} of {pods}", pod + 1),
    };
    let rows = |mark: &str, from: usize, to: usize, words: &str| -> Vec<String> {
        if pods > UNFOLDED && to > from + 1 {
            let (from, to, count) = (name(from), name(to - 1), to - from);
            return vec![format!("{mark} gate, pod: {from} to {to}, {count} pods{words}")];
        }
        let row = |pod| format!("{mark} gate, pod {}{words}", name(pod));
        (from..to).map(row).collect()
    };
    // The gate before a pod is the step before it.
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

fn waits_for(stage: &Stage<'_>, attempt: &Attempt) -> String {
    match &stage.object.checks {
        _ if stage.object.paused => "held by spec.paused".into(),
        _ if !stage.is_at_gate() => "waits for it to be available".into(),
        _ if attempt.pausing => "failed, waits for a word".into(),
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
    use crate::fixtures::{NOW, commands, phased};
    use crate::rollout::Rollout;
    use rstest::rstest;

    fn drawn(rollout: &Rollout, behind: usize, first: Option<u32>) -> Vec<String> {
        let style = Style::default();
        let stage = Stage::of(rollout);
        lines(&stage, behind, first, style, &style.lines(), NOW.parse().unwrap())
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
