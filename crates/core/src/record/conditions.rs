//! A report as conditions: our own, and the three that kstatus, Argo CD and Flux read.

use jiff::Timestamp;
use stateward_api::rollout::Condition;

use crate::world::{Phase, Reason, Report};

/// Another client writes what the operator writes. Present only while that is true.
pub(super) const CONTESTED: &str = "Contested";

/// The conditions for `report`. A condition that keeps its status keeps its transition time.
pub(super) fn of(
    report: &Report,
    contested: Option<&str>,
    old: &[Condition],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let reason = reason(report.reason);
    let returning = matches!(report.reason, Reason::Aborting | Reason::TemplateReverted);
    let (paused, done, failed) = (
        report.phase == Phase::Paused,
        report.phase == Phase::Successful,
        report.phase == Phase::Failed,
    );
    let progressing = match report.phase {
        Phase::Paused => "Unknown",
        Phase::Progressing => "True",
        Phase::Failed | Phase::Successful => "False",
    };
    let mut conditions = vec![
        ("Progressing", progressing),
        ("Paused", truth(paused)),
        ("Healthy", truth(done)),
        ("Completed", truth(done)),
        ("Ready", truth(done)),
        ("Reconciling", truth(!done && (!failed || returning))),
        ("Stalled", truth(failed && !returning)),
    ];
    // A reference to a workload that cannot be rolled out is invalid too.
    if let Reason::InvalidSpec | Reason::WorkloadUnfit | Reason::WorkloadClaimed = report.reason {
        conditions.push(("InvalidSpec", "True"));
    }
    let condition = |(kind, status): (&str, &str)| {
        let before = old
            .iter()
            .find(|before| before.kind == kind && before.status == status);
        Condition {
            kind: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message: report.message.clone(),
            last_transition_time: before.map_or(now, |before| before.last_transition_time),
            observed_generation: generation,
        }
    };
    let mut conditions: Vec<_> = conditions.into_iter().map(condition).collect();
    conditions.extend(contested.map(|contested| Condition {
        reason: "ForeignWriter".into(),
        message: contested.into(),
        ..condition((CONTESTED, "True"))
    }));
    conditions
}

/// The reason with this API value. If several share one, they are equally urgent.
pub fn read_reason(word: &str) -> Option<Reason> {
    let said = |one: &Reason| word == reason(*one) || word == of_phased_rollout(reason(*one));
    Reason::ALL.into_iter().find(said)
}

/// The API value of a reason in a PhasedRollout.
pub(crate) fn of_phased_rollout(word: &str) -> String {
    word.replace("RolloutPlugin", "Rollout")
}

fn truth(is: bool) -> &'static str {
    if is { "True" } else { "False" }
}

/// The API value of a reason: Argo Rollouts' own where it has one.
pub(crate) fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::InvalidSpec => "InvalidSpec",
        Reason::WorkloadMissing => "WorkloadMissing",
        Reason::WorkloadUnfit => "WorkloadUnfit",
        Reason::WorkloadClaimed => "WorkloadClaimed",
        Reason::Stable => "RolloutPluginCompleted",
        Reason::NotReady => "PodsNotReady",
        Reason::Guarding => "Guarding",
        Reason::Rejected => "RolledBack",
        Reason::Aborting => "RollingBack",
        Reason::Stepping | Reason::Converging => "RolloutPluginProgressing",
        Reason::StepPaused | Reason::ManuallyPaused => "RolloutPluginPaused",
        Reason::Analysing => "RolloutPluginAnalyzing",
        Reason::Inconclusive => "InconclusiveAnalysisRun",
        Reason::ChecksFailed => "ChecksFailed",
        Reason::DeadlineExceeded => "ProgressDeadlineExceeded",
        Reason::PodBroken => "PodBroken",
        Reason::TemplateReverted => "TemplateReverted",
        Reason::Releasing => "Releasing",
        Reason::Suspended => "Suspended",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// How `kubectl wait`, kstatus and Argo CD interpret a phase.
    #[rstest]
    #[case::on_the_way(Phase::Progressing, Reason::Stepping, ["Progressing", "Reconciling"])]
    #[case::in_a_pause(Phase::Paused, Reason::StepPaused, ["Paused", "Reconciling"])]
    #[case::done(Phase::Successful, Reason::Stable, ["Healthy", "Completed", "Ready"])]
    #[case::stuck(Phase::Failed, Reason::PodBroken, ["Stalled"])]
    #[case::on_the_way_back(Phase::Failed, Reason::Aborting, ["Reconciling"])]
    fn a_phase_says_these_and_no_others<const N: usize>(
        #[case] phase: Phase,
        #[case] reason: Reason,
        #[case] said: [&str; N],
    ) {
        let report = Report {
            phase,
            reason,
            message: String::new(),
        };
        let conditions = of(&report, None, &[], Some(7), Timestamp::UNIX_EPOCH);
        assert!(conditions.iter().all(|one| one.observed_generation == Some(7)));
        let said_now = conditions.iter().filter(|one| one.status == "True");
        let said_now: Vec<_> = said_now.map(|one| one.kind.as_str()).collect();
        assert_eq!(said_now, said);
    }
}
