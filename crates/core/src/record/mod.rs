//! The status of a rollout: the durable state, the users' commands, and the next status for a decision.

pub(crate) mod conditions;
pub mod glossary;
mod history;
mod status;

use stateward_api::rollout::{self as api, RolloutStatus};

use crate::engine::shortened;
use crate::memory::{
    Activity, Attempt, BackgroundRun, Cause, Command, Memory, Rejection, Rollback, Stable, TakenCommand,
};
use crate::plan::{Fingerprint, StepIndex};
use crate::revision::RevisionName;
use crate::world::Commands;

pub(crate) use self::conditions::of_phased_rollout;
pub use self::conditions::read_reason;
pub(crate) use self::status::{compose, outline, rides_along};
pub use self::status::{next_status, stall};

/// The commands given through the status subresource.
pub fn commands(status: &RolloutStatus) -> Commands {
    let commands = Commands {
        promote: status.promote || (status.controller_pause && status.pause_conditions.is_empty()),
        skip: status.skip_current_step,
        promote_full: status.promote_full,
        force: status.promote_full && status.force,
        abort: status.abort,
        retry: status.restart,
        by: None,
    };
    // A name without a command means nothing.
    let by = status.requested_by.as_ref().filter(|by| !by.is_empty());
    let by = by.filter(|_| commands != Commands::default());
    Commands {
        by: by.map(|by| shortened(by, LONGEST_USER).into_owned()),
        ..commands
    }
}

/// The most characters of a user's name that are kept.
const LONGEST_USER: usize = 255;

/// The durable state in a status.
pub fn memory(status: &RolloutStatus) -> Memory {
    Memory {
        workload: status.workload_uid.clone(),
        setting: status.workload_setting.clone(),
        stable: stable(status),
        activity: returning(status)
            .map(Activity::RollingBack)
            .or_else(|| attempt(status).map(Activity::Rolling))
            .unwrap_or_default(),
        rejected: rejection(status),
        withdrawn: revision(&status.withdrawn_revision),
        retries: count(status.restart_count),
        retried_at: status.restarted_at,
    }
}

fn stable(status: &RolloutStatus) -> Option<Stable> {
    Some(Stable {
        revision: revision(&status.stable_revision)?,
        template: Fingerprint::from_api(status.stable_template_hash.as_ref()?),
    })
}

fn attempt(status: &RolloutStatus) -> Option<Attempt> {
    let entered = status.current_step_started_at?;
    Some(Attempt {
        target: revision(&status.updated_revision)?,
        step: StepIndex(count(status.current_step_index)),
        steps: Fingerprint::from_api(status.current_step_hash.clone()?),
        counted: status.step_replicas.map(|pods| count(Some(pods))),
        entered,
        progressed: status.progressed_at.unwrap_or(entered),
        max_available: count(status.reached_replicas),
        max_replaced: count(status.exposed_replicas),
        min_updated: count(status.floor_replicas),
        kept: indices(&status.kept_pods),
        limit: status.share_limit.map(|pods| count(Some(pods))),
        stopped_at: status.stopped_replicas.map(|pods| count(Some(pods))),
        ignored_pods: status
            .excused_pods
            .iter()
            .map(|index| count(Some(*index)))
            .collect(),
        paused_by_user: status.manual_pause,
        fully_promoted: status.fully_promoted,
        commands: taken_commands(&status.taken_commands),
        paused_at_step: status.controller_pause && !status.background_paused,
        background: match status.background_started_at {
            None if status.background_waived => BackgroundRun::Waived,
            None => BackgroundRun::NotYet,
            Some(since) if status.background_paused => BackgroundRun::InDoubt(since),
            Some(since) => BackgroundRun::Since(since),
        },
    })
}

/// The recorded commands.
pub fn taken_commands(record: &[api::TakenCommand]) -> Vec<TakenCommand> {
    record.iter().filter_map(taken).collect()
}

/// A recorded command; `None` if this version does not know it.
fn taken(record: &api::TakenCommand) -> Option<TakenCommand> {
    let command = Command::ALL
        .into_iter()
        .find(|command| command.as_str() == record.command)?;
    Some(TakenCommand {
        command,
        from: StepIndex(count(Some(record.from_step))),
        to: StepIndex(count(Some(record.to_step))),
        by: record.by.clone(),
        at: record.at,
    })
}

fn returning(status: &RolloutStatus) -> Option<Rollback> {
    Some(Rollback {
        from: revision(&status.returning_from)?,
        cause: match status.returning.as_deref()? {
            "PutBack" => Cause::TemplateReverted,
            "ScaledToZero" => Cause::ScaledToZero,
            _ => Cause::Aborted,
        },
        since: status.returning_since?,
    })
}

fn rejection(status: &RolloutStatus) -> Option<Rejection> {
    Some(Rejection {
        revision: revision(&status.aborted_revision)?,
        at: status.aborted_at?,
        reason: status.aborted_reason.clone().unwrap_or_default(),
        replaced: status.aborted_template_replaced,
    })
}

/// Recorded indices, sorted: a user who may write the status can write them in any order.
fn indices(written: &[i32]) -> Vec<u32> {
    let mut indices: Vec<_> = written.iter().map(|index| count(Some(*index))).collect();
    indices.sort_unstable();
    indices.dedup();
    indices
}

/// A recorded revision; an empty name is `None`.
fn revision(name: &Option<String>) -> Option<RevisionName> {
    name.as_ref()
        .filter(|name| !name.is_empty())
        .map(RevisionName::from_api)
}

/// A recorded count; 0 if it is missing or negative.
fn count(number: Option<i32>) -> u32 {
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A user who may write the status can empty any of its fields.
    #[test]
    fn an_empty_revision_is_none() {
        let now = "2026-01-01T00:00:00Z";
        let mut status = json!({
            "stableRevision": "db-1", "stableTemplateHash": "h", "updatedRevision": "db-2", "currentStepHash": "s",
            "currentStepStartedAt": now, "abortedRevision": "db-3", "abortedAt": now, "withdrawnRevision": "db-4",
        });
        let memory_of = |status: &serde_json::Value| memory(&serde_json::from_value(status.clone()).unwrap());
        let kept = memory_of(&status);
        assert!(kept.stable.is_some() && kept.rejected.is_some() && kept.withdrawn.is_some());
        assert!(matches!(kept.activity, Activity::Rolling(_)));
        for field in [
            "stableRevision",
            "updatedRevision",
            "abortedRevision",
            "withdrawnRevision",
        ] {
            status[field] = json!("");
        }
        let emptied = memory_of(&status);
        assert_eq!(
            (emptied.stable, emptied.rejected, emptied.withdrawn),
            (None, None, None)
        );
        assert_eq!(emptied.activity, Activity::default());
    }
}
