//! The durable state as versions before `status.state` recorded it, in fields of the status itself.

use stateward_api::rollout::{
    AttemptState, FormerState, RejectionState, RollbackCause, RollbackState, RolloutState, RolloutStatus,
    StableState,
};

/// The status with its state where this version keeps it, too; `None` if it is there. The next status has it only there: the
/// definition of the object may be too old for it, and then nothing must be lost.
pub fn moved(status: &RolloutStatus) -> Option<RolloutStatus> {
    let state = state(status)?;
    (state != *status.state).then(|| RolloutStatus {
        state: Box::new(state),
        ..status.clone()
    })
}

/// The state that an earlier version recorded. This version removes its fields, so where they are, that version wrote last, even if
/// there is a `status.state`: the operator was downgraded for a while.
pub(super) fn state(status: &RolloutStatus) -> Option<RolloutState> {
    let former = &status.former;
    // Every version records it first of all.
    let workload_uid = former.workload_uid.clone()?;
    Some(RolloutState {
        workload_uid: Some(workload_uid),
        original_partition: former.workload_setting.clone(),
        stable: stable(status),
        former_template_copies: former.former_template_copies,
        rollout: rollout(status),
        rollback: rollback(former),
        rejected: rejection(status),
        withdrawn_revision: status.withdrawn_revision.clone(),
        restart_count: status.restart_count.unwrap_or(0),
        restarted_at: status.restarted_at,
    })
}

fn stable(status: &RolloutStatus) -> Option<StableState> {
    Some(StableState {
        revision: status.stable_revision.clone()?,
        template_hash: status.former.stable_template_hash.clone()?,
        template_copy: status.former.stable_template_copy.clone(),
    })
}

fn rollout(status: &RolloutStatus) -> Option<AttemptState> {
    let former = &status.former;
    let step_started_at = status.current_step_started_at?;
    Some(AttemptState {
        revision: status.updated_revision.clone()?,
        step_index: status.current_step_index.unwrap_or(0),
        steps_hash: status.current_step_hash.clone()?,
        step_replicas: former.step_replicas,
        step_started_at,
        progressed_at: former.progressed_at.unwrap_or(step_started_at),
        max_available: former.reached_replicas.unwrap_or(0),
        max_replaced: former.exposed_replicas.unwrap_or(0),
        min_updated: former.floor_replicas.unwrap_or(0),
        kept_pods: former.kept_pods.clone(),
        share_limit: former.share_limit,
        stopped_replicas: former.stopped_replicas,
        ignored_pods: former.excused_pods.clone(),
        paused_by_user: former.manual_pause,
        paused_at_step: status.controller_pause && !former.background_paused,
        fully_promoted: former.fully_promoted,
        background_started_at: former.background_started_at,
        background_inconclusive: former.background_paused,
        background_waived: former.background_waived,
        taken_commands: former.taken_commands.clone(),
    })
}

fn rollback(former: &FormerState) -> Option<RollbackState> {
    Some(RollbackState {
        from_revision: former.returning_from.clone()?,
        cause: match former.returning.as_deref()? {
            "PutBack" => RollbackCause::TemplateReverted,
            "ScaledToZero" => RollbackCause::ScaledToZero,
            _ => RollbackCause::Aborted,
        },
        started_at: former.returning_since?,
    })
}

fn rejection(status: &RolloutStatus) -> Option<RejectionState> {
    Some(RejectionState {
        revision: status.aborted_revision.clone()?,
        rejected_at: status.aborted_at?,
        message: status.aborted_reason.clone().unwrap_or_default(),
        template_replaced: status.aborted_template_replaced,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    /// Fields that only versions before `status.state` wrote, from a real status in the middle of a rollout.
    fn rolling() -> Value {
        json!({
            "phase": "Paused", "currentStepIndex": 1, "currentStepHash": "7c9f", "updatedRevision": "db-2",
            "stableRevision": "db-1", "stableTemplateHash": "5d41", "stableTemplateCopy": "db-stable-5d41",
            "workloadUid": "uid", "workloadSetting": "0", "stepReplicas": 5, "reachedReplicas": 1,
            "currentStepStartedAt": "2026-01-01T00:01:00Z", "progressedAt": "2026-01-01T00:02:00Z",
            "controllerPause": true, "pauseConditions": [{"reason": "CanaryPauseStep", "startTime": "2026-01-01T00:01:00Z"}],
            "excusedPods": [0], "keptPods": [3], "shareLimit": 2, "stoppedReplicas": 1, "floorReplicas": 1,
            "exposedReplicas": 2, "manualPause": true, "fullyPromoted": true, "formerTemplateCopies": true,
            "backgroundStartedAt": "2026-01-01T00:00:30Z", "restartCount": 2, "restartedAt": "2026-01-01T00:00:10Z",
            "takenCommands": [{"command": "skip", "fromStep": 0, "toStep": 1, "at": "2026-01-01T00:01:00Z"}],
        })
    }

    fn read(status: Value) -> RolloutStatus {
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn a_rollout_in_progress_is_moved_with_every_field() {
        let moved = moved(&read(rolling())).unwrap();
        assert_eq!(
            json!(moved.state),
            json!({
                "workloadUid": "uid", "originalPartition": "0", "formerTemplateCopies": true,
                "restartCount": 2, "restartedAt": "2026-01-01T00:00:10Z",
                "stable": {"revision": "db-1", "templateHash": "5d41", "templateCopy": "db-stable-5d41"},
                "rollout": {
                    "revision": "db-2", "stepIndex": 1, "stepsHash": "7c9f", "stepReplicas": 5,
                    "stepStartedAt": "2026-01-01T00:01:00Z", "progressedAt": "2026-01-01T00:02:00Z",
                    "maxAvailable": 1, "maxReplaced": 2, "minUpdated": 1, "keptPods": [3], "shareLimit": 2,
                    "stoppedReplicas": 1, "ignoredPods": [0], "pausedByUser": true, "pausedAtStep": true,
                    "fullyPromoted": true, "backgroundStartedAt": "2026-01-01T00:00:30Z",
                    "takenCommands": [{"command": "skip", "fromStep": 0, "toStep": 1, "at": "2026-01-01T00:01:00Z"}],
                },
            })
        );
        assert_eq!(super::moved(&moved), None, "once");
    }

    /// After a downgrade, `status.state` is as old as the version that wrote it.
    #[test]
    fn what_an_earlier_version_wrote_later_counts() {
        let mut status = rolling();
        status["state"] = json!({"workloadUid": "uid", "rollout": {
            "revision": "db-0", "stepsHash": "7c9f", "stepStartedAt": "2025-01-01T00:01:00Z",
            "progressedAt": "2025-01-01T00:01:00Z",
        }});
        let moved = moved(&read(status)).unwrap();
        assert_eq!(moved.state.rollout.unwrap().revision, "db-2");
    }

    #[rstest]
    #[case("Aborted", RollbackCause::Aborted)]
    #[case("PutBack", RollbackCause::TemplateReverted)]
    #[case("ScaledToZero", RollbackCause::ScaledToZero)]
    fn a_rollback_is_moved(#[case] returning: &str, #[case] cause: RollbackCause) {
        let state = state(&read(json!({
            "workloadUid": "uid", "returning": returning, "returningFrom": "db-2",
            "returningSince": "2026-01-01T00:01:00Z", "abortedRevision": "db-2", "abortedAt": "2026-01-01T00:01:00Z",
            "abortedReason": "aborted by a user", "abortedTemplateReplaced": true,
        })))
        .unwrap();
        let rollback = state.rollback.unwrap();
        assert_eq!((rollback.cause, rollback.from_revision.as_str()), (cause, "db-2"));
        let rejected = state.rejected.unwrap();
        assert_eq!(
            (rejected.message.as_str(), rejected.template_replaced),
            ("aborted by a user", true)
        );
    }

    /// An inconclusive background analysis sets the same pause as a step.
    #[test]
    fn a_pause_of_the_background_analysis_is_not_one_of_the_step() {
        let mut status = rolling();
        status["backgroundPaused"] = json!(true);
        let rollout = state(&read(status)).unwrap().rollout.unwrap();
        assert!(rollout.background_inconclusive && !rollout.paused_at_step);
    }

    #[test]
    fn a_status_of_this_version_is_left_alone() {
        let status = json!({"stableRevision": "db-1", "state": {"workloadUid": "uid"}});
        assert_eq!(moved(&read(status)), None);
        assert_eq!(moved(&RolloutStatus::default()), None);
    }
}
