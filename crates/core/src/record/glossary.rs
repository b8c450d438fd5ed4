//! The conditions and reasons of a status and its events, with their meaning: the reference is generated from these tables.

use jiff::Timestamp;

use super::conditions::{self, CONTESTED};
use crate::world::{Phase, Reason, Report};

/// A term and its meaning.
pub struct Word {
    /// The term.
    pub word: &'static str,
    /// When it is reported.
    pub when: &'static str,
}

const fn word(word: &'static str, when: &'static str) -> Word {
    Word { word, when }
}

/// The conditions of every rollout, and `InvalidSpec` and `Contested`, which are present only while they are true.
pub const CONDITIONS: [Word; 9] = [
    word(
        "Progressing",
        "pods are on their way, or something is waited for; `Unknown` in a pause",
    ),
    word(
        "Paused",
        "a pause stands: one of a step, of `spec.paused`, or for want of a verdict",
    ),
    word(
        "Healthy",
        "every pod runs the version that the workload asks for, or that was kept, and is Ready",
    ),
    word(
        "Completed",
        "the same, under the name that Argo Rollouts has for it",
    ),
    word("Ready", "the same, for tools that wait for `Ready`"),
    word(
        "Reconciling",
        "it is not done and goes on by itself or by a command, for tools that read kstatus",
    ),
    word(
        "Stalled",
        "it does not continue without a user, for tools that read kstatus",
    ),
    word(
        "InvalidSpec",
        "what the spec asks for cannot be done; the message names the field, or the workload",
    ),
    word(
        CONTESTED,
        "another client keeps changing what the operator sets in the workload; the message names its field manager and the field, \
         and the reason is `ForeignWriter`",
    ),
];

/// A reason.
pub struct ReasonWord {
    /// The reason.
    pub word: &'static str,
    /// When it is reported.
    pub when: &'static str,
    /// Whether a user has to act soon.
    pub urgent: bool,
}

/// Every reason of the conditions, as a RolloutPlugin reports it.
pub fn reasons() -> Vec<ReasonWord> {
    let mut words: Vec<ReasonWord> = Vec::new();
    for reason in Reason::ALL {
        let told = self::reason(reason);
        if !words.iter().any(|word| word.word == told) {
            words.push(ReasonWord {
                word: told,
                when: when(reason),
                urgent: reason.is_urgent(),
            });
        }
    }
    words
}

/// The API value of a reason.
pub fn reason(reason: Reason) -> &'static str {
    conditions::reason(reason)
}

/// A new reason belongs in [`Reason::ALL`] too.
fn when(reason: Reason) -> &'static str {
    match reason {
        Reason::InvalidSpec => "the spec, or an analysis template that it names, cannot be carried out",
        Reason::WorkloadMissing => "there is no such workload yet",
        Reason::WorkloadUnfit => "the workload is not one that can be rolled, such as one with `OnDelete`",
        Reason::WorkloadClaimed => "another object manages the workload",
        Reason::Stable => "nothing is rolled, and every pod is Ready",
        Reason::NotReady => "nothing is rolled, and pods are not Ready",
        Reason::Guarding => "the partition is being put up, so that no pod moves unasked",
        Reason::Rejected => "the version was aborted, and every pod is back on the stable version",
        Reason::Aborting => "the version was aborted, and pods return to the stable version",
        Reason::Stepping | Reason::Converging => "pods are released, and waited for",
        Reason::StepPaused | Reason::ManuallyPaused => "a step pauses, or `spec.paused` is set",
        Reason::Analysing => "an analysis, or the checks before the next pod, are under way",
        Reason::Inconclusive => "an analysis came to no verdict: a user has to promote or abort",
        Reason::ChecksFailed => "the checks before the next pod have failed `maxTries` times",
        Reason::DeadlineExceeded => "nothing has got on for `progressDeadlineSeconds`",
        Reason::PodBroken => "a new pod crashes, has no image, or is killed for its memory",
        Reason::TemplateReverted => "the template is the stable one again, and pods roll back to it",
        Reason::Releasing => "the object is deleted, and the operator releases the workload",
        Reason::Suspended => "the workload is left to Kubernetes' own rolling update",
    }
}

/// The conditions that are `True` for a rollout in this phase for this reason.
pub fn true_conditions(phase: Phase, reason: Reason) -> Vec<String> {
    let message = String::new();
    let report = Report {
        phase,
        reason,
        message,
    };
    conditions::of(&report, None, &[], None, Timestamp::UNIX_EPOCH)
        .into_iter()
        .filter(|condition| condition.status == "True")
        .map(|condition| condition.kind)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const PHASES: [Phase; 4] = [
        Phase::Progressing,
        Phase::Paused,
        Phase::Successful,
        Phase::Failed,
    ];

    #[test]
    fn every_condition_that_is_told_is_explained() {
        let told: BTreeSet<_> = PHASES
            .into_iter()
            .flat_map(|phase| Reason::ALL.map(|reason| (phase, reason)))
            .flat_map(|(phase, reason)| true_conditions(phase, reason))
            .chain([CONTESTED.to_owned()])
            .collect();
        let explained: BTreeSet<_> = CONDITIONS.iter().map(|word| word.word.to_owned()).collect();
        assert_eq!(told, explained);
    }

    /// A reader of a status can tell the reason, and whether it is urgent.
    #[test]
    fn every_reason_is_read_from_its_word() {
        for reason in Reason::ALL {
            let word = super::reason(reason);
            for word in [word.to_owned(), conditions::of_phased_rollout(word)] {
                let read = conditions::read_reason(&word).unwrap();
                assert_eq!(super::reason(read), super::reason(reason));
                assert_eq!(read.is_urgent(), reason.is_urgent(), "{word}");
            }
        }
        assert_eq!(conditions::read_reason(""), None);
    }

    #[test]
    fn every_reason_is_listed_once() {
        let all: BTreeSet<_> = Reason::ALL.map(|reason| reason as usize).into();
        assert_eq!(all, (0..Reason::ALL.len()).collect());
    }
}
