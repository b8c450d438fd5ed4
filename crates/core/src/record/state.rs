//! The durable state in a status.

use stateward_api::rollout::{
    self as api, AttemptState, RejectionState, RollbackCause, RollbackState, RolloutState, StableState,
};

use crate::memory::{
    Activity, Attempt, BackgroundRun, Cause, Command, Memory, Rejection, Rollback, Stable, TakenCommand,
};
use crate::plan::{Fingerprint, StepIndex};
use crate::revision::RevisionName;

/// The durable state in a status.
pub(super) fn read(state: &RolloutState) -> Memory {
    let rolling_back = state.rollback.as_ref().and_then(rollback);
    let rolling = || state.rollout.as_ref().and_then(attempt);
    Memory {
        workload: state.workload_uid.clone(),
        setting: state.original_partition.clone(),
        stable: state.stable.as_ref().and_then(stable),
        activity: rolling_back
            .map(Activity::RollingBack)
            .or_else(|| rolling().map(Activity::Rolling))
            .unwrap_or_default(),
        rejected: state.rejected.as_ref().and_then(rejection),
        withdrawn: state.withdrawn_revision.as_deref().and_then(revision),
        retries: count(state.restart_count),
        retried_at: state.restarted_at,
    }
}

fn stable(state: &StableState) -> Option<Stable> {
    Some(Stable {
        revision: revision(&state.revision)?,
        template: Fingerprint::from_api(&state.template_hash),
    })
}

fn attempt(state: &AttemptState) -> Option<Attempt> {
    Some(Attempt {
        target: revision(&state.revision)?,
        step: StepIndex(count(state.step_index)),
        steps: Fingerprint::from_api(&state.steps_hash),
        counted: state.step_replicas.map(count),
        entered: state.step_started_at,
        progressed: state.progressed_at,
        max_available: count(state.max_available),
        max_replaced: count(state.max_replaced),
        min_updated: count(state.min_updated),
        kept: indices(&state.kept_pods),
        limit: state.share_limit.map(count),
        stopped_at: state.stopped_replicas.map(count),
        ignored_pods: indices(&state.ignored_pods),
        paused_by_user: state.paused_by_user,
        paused_at_step: state.paused_at_step,
        fully_promoted: state.fully_promoted,
        background: match state.background_started_at {
            None if state.background_waived => BackgroundRun::Waived,
            None => BackgroundRun::NotYet,
            Some(since) if state.background_inconclusive => BackgroundRun::InDoubt(since),
            Some(since) => BackgroundRun::Since(since),
        },
        commands: taken_commands(&state.taken_commands),
    })
}

fn rollback(state: &RollbackState) -> Option<Rollback> {
    Some(Rollback {
        from: revision(&state.from_revision)?,
        cause: match state.cause {
            RollbackCause::Aborted | RollbackCause::Unknown => Cause::Aborted,
            RollbackCause::TemplateReverted => Cause::TemplateReverted,
            RollbackCause::ScaledToZero => Cause::ScaledToZero,
        },
        since: state.started_at,
    })
}

fn rejection(state: &RejectionState) -> Option<Rejection> {
    Some(Rejection {
        revision: revision(&state.revision)?,
        at: state.rejected_at,
        reason: state.message.clone(),
        replaced: state.template_replaced,
    })
}

/// The recorded commands.
pub fn taken_commands(record: &[api::TakenCommand]) -> Vec<TakenCommand> {
    record.iter().filter_map(taken).collect()
}

/// A recorded command; `None` if this version does not know it.
fn taken(record: &api::TakenCommand) -> Option<TakenCommand> {
    Some(TakenCommand {
        command: Command::parse(&record.command)?,
        from: StepIndex(count(record.from_step)),
        to: StepIndex(count(record.to_step)),
        by: record.by.clone(),
        at: record.at,
    })
}

/// Recorded indices, sorted: a user who may write the status can write them in any order.
fn indices(written: &[i32]) -> Vec<u32> {
    let mut indices: Vec<_> = written.iter().map(|index| count(*index)).collect();
    indices.sort_unstable();
    indices.dedup();
    indices
}

/// A recorded revision; an empty name is `None`.
fn revision(name: &str) -> Option<RevisionName> {
    (!name.is_empty()).then(|| RevisionName::from_api(name))
}

/// A recorded count; 0 if it is negative.
fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// The durable state as it is recorded. The copy of the stable template is not part of it: the controller adds it.
pub(super) fn write(memory: &Memory) -> RolloutState {
    // Without `..`, so that no new field can be forgotten here.
    let Memory {
        workload,
        setting,
        stable,
        activity,
        rejected,
        withdrawn,
        retries,
        retried_at,
    } = memory;
    RolloutState {
        workload_uid: workload.clone(),
        original_partition: setting.clone(),
        stable: stable.as_ref().map(|stable| StableState {
            revision: stable.revision.to_string(),
            template_hash: stable.template.as_str().to_owned(),
            template_copy: None,
        }),
        former_template_copies: false,
        rollout: match activity {
            Activity::Rolling(attempt) => Some(write_attempt(attempt)),
            Activity::Idle | Activity::RollingBack(_) => None,
        },
        rollback: match activity {
            Activity::RollingBack(back) => Some(write_rollback(back)),
            Activity::Idle | Activity::Rolling(_) => None,
        },
        rejected: rejected.as_ref().map(|rejected| RejectionState {
            revision: rejected.revision.to_string(),
            rejected_at: rejected.at,
            message: rejected.reason.clone(),
            template_replaced: rejected.replaced,
        }),
        withdrawn_revision: withdrawn.as_ref().map(ToString::to_string),
        restart_count: number(*retries),
        restarted_at: *retried_at,
    }
}

fn write_attempt(attempt: &Attempt) -> AttemptState {
    let Attempt {
        target,
        step,
        steps,
        counted,
        entered,
        progressed,
        max_available,
        max_replaced,
        min_updated,
        kept,
        limit,
        stopped_at,
        ignored_pods,
        paused_by_user,
        paused_at_step,
        fully_promoted,
        background,
        commands,
    } = attempt;
    AttemptState {
        revision: target.to_string(),
        step_index: number(step.0),
        steps_hash: steps.as_str().to_owned(),
        step_replicas: counted.map(number),
        step_started_at: *entered,
        progressed_at: *progressed,
        max_available: number(*max_available),
        max_replaced: number(*max_replaced),
        min_updated: number(*min_updated),
        kept_pods: kept.iter().map(|index| number(*index)).collect(),
        share_limit: limit.map(number),
        stopped_replicas: stopped_at.map(number),
        ignored_pods: ignored_pods.iter().map(|index| number(*index)).collect(),
        paused_by_user: *paused_by_user,
        paused_at_step: *paused_at_step,
        fully_promoted: *fully_promoted,
        background_started_at: match background {
            BackgroundRun::Since(since) | BackgroundRun::InDoubt(since) => Some(*since),
            BackgroundRun::NotYet | BackgroundRun::Waived => None,
        },
        background_inconclusive: matches!(background, BackgroundRun::InDoubt(_)),
        background_waived: *background == BackgroundRun::Waived,
        taken_commands: write_commands(commands),
    }
}

fn write_rollback(back: &Rollback) -> RollbackState {
    RollbackState {
        from_revision: back.from.to_string(),
        cause: match back.cause {
            Cause::Aborted => RollbackCause::Aborted,
            Cause::TemplateReverted => RollbackCause::TemplateReverted,
            Cause::ScaledToZero => RollbackCause::ScaledToZero,
        },
        started_at: back.since,
    }
}

/// Commands in the form of the API.
pub(super) fn write_commands(commands: &[TakenCommand]) -> Vec<api::TakenCommand> {
    let written = |taken: &TakenCommand| api::TakenCommand {
        command: taken.command.as_str().into(),
        from_step: number(taken.from.0),
        to_step: number(taken.to.0),
        by: taken.by.clone(),
        at: taken.at,
    };
    commands.iter().map(written).collect()
}

/// The API counts in i32.
pub(super) fn number(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    const NOW: &str = "2026-01-01T00:00:00Z";

    /// A user who may write the status can empty any of its fields.
    #[test]
    fn an_empty_revision_is_none() {
        let mut state = json!({
            "stable": {"revision": "db-1", "templateHash": "h"},
            "rollout": {"revision": "db-2", "stepsHash": "s", "stepStartedAt": NOW, "progressedAt": NOW},
            "rejected": {"revision": "db-3", "rejectedAt": NOW},
            "withdrawnRevision": "db-4",
        });
        let memory_of = |state: &Value| read(&serde_json::from_value(state.clone()).unwrap());
        let kept = memory_of(&state);
        assert!(kept.stable.is_some() && kept.rejected.is_some() && kept.withdrawn.is_some());
        assert!(matches!(kept.activity, Activity::Rolling(_)));
        for field in ["stable", "rollout", "rejected"] {
            state[field]["revision"] = json!("");
        }
        state["withdrawnRevision"] = json!("");
        assert_eq!(memory_of(&state), Memory::default());
    }

    fn memory(activity: Activity) -> Memory {
        Memory {
            workload: Some("uid".into()),
            setting: Some("3".into()),
            stable: Some(Stable {
                revision: RevisionName::from_api("a"),
                template: Fingerprint::of("a"),
            }),
            activity,
            rejected: Some(Rejection {
                revision: RevisionName::from_api("z"),
                at: at(1),
                reason: "aborted by a user".into(),
                replaced: true,
            }),
            withdrawn: Some(RevisionName::from_api("y")),
            retries: 2,
            retried_at: Some(at(2)),
        }
    }

    fn at(second: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(second).unwrap()
    }

    fn attempt(background: BackgroundRun) -> Activity {
        Activity::Rolling(Attempt {
            target: RevisionName::from_api("b"),
            step: StepIndex(3),
            steps: Fingerprint::of("steps"),
            counted: Some(5),
            entered: at(3),
            progressed: at(4),
            max_available: 5,
            max_replaced: 6,
            min_updated: 6,
            kept: vec![2, 3],
            limit: Some(4),
            stopped_at: Some(3),
            ignored_pods: vec![7, 8],
            paused_by_user: true,
            paused_at_step: true,
            fully_promoted: true,
            background,
            commands: vec![TakenCommand {
                command: Command::Skip,
                from: StepIndex(2),
                to: StepIndex(3),
                by: Some("alice".into()),
                at: at(11),
            }],
        })
    }

    #[rstest]
    #[case::idle(Activity::Idle)]
    #[case::rolling(attempt(BackgroundRun::NotYet))]
    #[case::with_a_background_analysis(attempt(BackgroundRun::Since(at(10))))]
    #[case::inconclusive(attempt(BackgroundRun::InDoubt(at(10))))]
    #[case::waived(attempt(BackgroundRun::Waived))]
    #[case::aborted(rolling_back(Cause::Aborted))]
    #[case::reverted(rolling_back(Cause::TemplateReverted))]
    #[case::scaled_to_zero(rolling_back(Cause::ScaledToZero))]
    fn the_durable_state_is_read_as_it_was_written(#[case] activity: Activity) {
        let memory = memory(activity);
        let stored = json!(write(&memory));
        assert_eq!(read(&serde_json::from_value(stored).unwrap()), memory);
    }

    fn rolling_back(cause: Cause) -> Activity {
        Activity::RollingBack(Rollback {
            from: RevisionName::from_api("b"),
            cause,
            since: at(9),
        })
    }
}
