//! The words that a status and its events are told in, and what each means: the reference is made from these tables.

use jiff::Timestamp;

use super::conditions::{self, CONTESTED};
use crate::world::{Phase, Reason, Report};

/// A word, and when it is said.
pub struct Word {
    /// As it is written.
    pub word: &'static str,
    /// When it is said.
    pub when: &'static str,
}

const fn word(word: &'static str, when: &'static str) -> Word {
    Word { word, when }
}

/// An event.
pub struct Event {
    /// Its reason.
    pub reason: &'static str,
    /// Whether somebody should look.
    pub warning: bool,
    /// When it is told.
    pub when: &'static str,
}

const fn normal(reason: &'static str, when: &'static str) -> Event {
    let warning = false;
    Event {
        reason,
        warning,
        when,
    }
}

const fn warning(reason: &'static str, when: &'static str) -> Event {
    let warning = true;
    Event {
        reason,
        warning,
        when,
    }
}

/// The conditions that every rollout has; and `InvalidSpec` and `Contested`, which it has only while they are true.
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
        "it does not go on without somebody, for tools that read kstatus",
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
    /// As it is written.
    pub word: &'static str,
    /// When it is said.
    pub when: &'static str,
    /// Whether a person has to act soon.
    pub urgent: bool,
}

/// Every reason of the conditions, in the words of a RolloutPlugin.
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

/// The word for a reason.
pub fn reason(reason: Reason) -> &'static str {
    conditions::reason(reason)
}

/// Whoever adds a reason adds it to [`Reason::ALL`] too.
fn when(reason: Reason) -> &'static str {
    match reason {
        Reason::InvalidSpec => "the spec, or an analysis template that it names, cannot be carried out",
        Reason::WorkloadMissing => "there is no such workload yet",
        Reason::WorkloadUnfit => "the workload is not one that can be rolled, such as one with `OnDelete`",
        Reason::WorkloadClaimed => "somebody else rolls the workload",
        Reason::Stable => "nothing is rolled, and every pod is Ready",
        Reason::NotReady => "nothing is rolled, and pods are not Ready",
        Reason::Guarding => "the partition is being put up, so that no pod moves unasked",
        Reason::Rejected => "the version was aborted, and every pod is back on the stable version",
        Reason::Aborting => "the version was aborted, and pods return to the stable version",
        Reason::Stepping | Reason::Converging => "pods are released, and waited for",
        Reason::StepPaused | Reason::ManuallyPaused => "a step pauses, or `spec.paused` is set",
        Reason::Analysing => "an analysis, or the checks before the next pod, are under way",
        Reason::Inconclusive => "an analysis came to no verdict: somebody has to say go on or abort",
        Reason::ChecksFailed => "the checks before the next pod have failed `maxTries` times",
        Reason::DeadlineExceeded => "nothing has got on for `progressDeadlineSeconds`",
        Reason::PodBroken => "a new pod crashes, has no image, or is killed for its memory",
        Reason::PuttingBack => "the template is the stable one again, and pods return to it",
        Reason::LettingGo => "the object is deleted, and the workload is let go of",
        Reason::Suspended => "the workload is left to Kubernetes' own rolling update",
    }
}

/// The conditions that are `True` of a rollout in this phase for this reason.
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

/// Every event of a rollout that tells of something that happened. Beside these, what a rollout gets stuck on is told once, with
/// the reason of its conditions.
pub const EVENTS: [Event; 35] = [
    normal(
        "RolloutStarted",
        "a new version is rolled out, or takes the place of another one",
    ),
    normal("RolloutPaused", "a step pauses, or `spec.paused` is set"),
    normal("RolloutResumed", "the pause is over, or somebody has ended it"),
    normal("RolloutPromoted", "a user skips the remaining steps"),
    normal("StepSkipped", "a user skips the current step"),
    normal("RolloutCompleted", "every pod runs the new version"),
    warning(
        "RolloutAborted",
        "the version is turned down, by somebody or by the operator, and pods return",
    ),
    normal(
        "RolloutReturned",
        "every pod is back on the stable version and Ready",
    ),
    normal("RolloutRetried", "a version that was turned down is tried again"),
    normal(
        "TemplatePutBack",
        "the template is the stable one again in the middle of a rollout, and pods return",
    ),
    normal(
        "TemplateRestored",
        "the object is deleted after an abort, and the stable template takes the place of the rejected one, so that no pod moves",
    ),
    normal(
        "StepsChanged",
        "the steps were edited in the middle of a rollout, which begins at the first",
    ),
    normal(
        "Scaled",
        "the workload was scaled in the middle of a rollout; the message says what became of the share",
    ),
    warning(
        "ScaledToZero",
        "the workload was scaled to zero in the middle of a rollout, and the stable template is put back",
    ),
    warning(
        "TakenOnUnchecked",
        "a version was applied while there were no pods, and is the stable one without any step or check",
    ),
    warning(
        "StableTemplateUnavailable",
        "there is no copy of the stable template, and none can be made: an abort after every pod is new cannot put it back",
    ),
    warning(
        "MadeAnew",
        "the workload was made anew with another template around pods that stayed: the template that they run is put back",
    ),
    warning(
        "PodsExcused",
        "pods on the old version did not get Ready before the first new one, for as long as the deadline: they are not waited for any longer",
    ),
    warning(
        "RolledByHand",
        "somebody else has rolled a version out to every pod, which is the stable one now",
    ),
    warning(
        "RolloutFrozen",
        "the object was deleted in the middle of a rollout, and every pod stays as it is",
    ),
    warning(
        "CommandRefused",
        "a command cannot be carried out; the message says why",
    ),
    warning(
        "RequestRefused",
        "the API server refuses what the operator asks of it, again and again, or a disruption budget does",
    ),
    warning(
        "WorkloadContested",
        "another client keeps changing what the operator sets in the workload; the message names it",
    ),
    warning("StatusContested", "somebody else keeps changing this status"),
    warning(
        "Unreadable",
        "a field holds what no rollout can be made of, which a definition other than ours has let through: nothing is done",
    ),
    normal("AnalysisRunSuccessful", "the analysis of a step was good"),
    warning(
        "AnalysisRunInconclusive",
        "an analysis came to no verdict, and the rollout pauses",
    ),
    normal(
        "ChecksPassed",
        "the checks before a pod were good (PhasedRollout)",
    ),
    warning(
        "ChecksFailed",
        "the checks before a pod have failed `maxTries` times (PhasedRollout)",
    ),
    normal(
        "ChecksRestarted",
        "the checks before a pod begin anew (PhasedRollout)",
    ),
    warning("CheckFailed", "a row of failed checks begins (PhasedRollout)"),
    warning(
        "PrometheusError",
        "a row of checks without an answer begins (PhasedRollout)",
    ),
    normal("CheckRecovered", "such a row ends (PhasedRollout)"),
    normal(
        "TakenBack",
        "the workload is taken back from Kubernetes' own rolling update (PhasedRollout)",
    ),
    warning(
        "Suspended",
        "the workload is left to Kubernetes' own rolling update (PhasedRollout)",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

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

    /// What reads a status knows which reason is meant, and whether that is urgent.
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

    /// The words that follow `notice(`, `warn(` and `Notice {` in the sources, and those that are chosen between before.
    #[test]
    fn every_event_that_is_told_is_explained_and_every_one_explained_is_told() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut sources = String::new();
        for dir in ["src/engine", "src/phasedrollout", "../controller/src"] {
            for entry in fs::read_dir(root.join(dir)).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().and_then(|name| name.to_str()).unwrap();
                if name.ends_with(".rs") && !["fixture.rs", "tests.rs"].contains(&name) {
                    let text = fs::read_to_string(path).unwrap();
                    sources.push_str(text.split("#[cfg(test)]").next().unwrap_or_default());
                }
            }
        }
        let is_explained = |reason: &str| EVENTS.iter().any(|event| event.reason == reason);
        for start in [".notice(", ".warn(", "Notice {"] {
            for (at, _) in sources.match_indices(start) {
                let rest = sources[at + start.len()..].trim_start();
                let rest = rest.strip_prefix("warning: true,").unwrap_or(rest).trim_start();
                let rest = rest.strip_prefix("reason: ").unwrap_or(rest);
                let Some(word) = rest.strip_prefix('"').and_then(|rest| rest.split('"').next()) else {
                    continue;
                };
                assert!(is_explained(word), "the event {word} is not in the glossary");
            }
        }
        for event in &EVENTS {
            let literal = format!("\"{}\"", event.reason);
            assert!(sources.contains(&literal), "{literal} is told nowhere");
        }
    }
}
