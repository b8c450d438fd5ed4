//! The status of a rollout: what it remembers, what people have asked for in it, and what a decision makes of it.

pub(crate) mod conditions;
pub mod glossary;
mod history;
mod status;

use stateward_api::rollout::{self as api, RolloutStatus};

use crate::engine::shortened;
use crate::memory::{
    Activity, Attempt, Beside, Cause, Command, Memory, Rejection, Return, Stable, TakenCommand,
};
use crate::plan::{Fingerprint, StepIndex};
use crate::revision::RevisionName;
use crate::world::Commands;

pub(crate) use self::conditions::of_phased_rollout;
pub use self::conditions::read_reason;
pub(crate) use self::status::{compose, outline, rides_along};
pub use self::status::{next_status, stall};

/// What was asked for through the status subresource.
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
    // A name alone asks for nothing.
    let by = status.requested_by.as_ref().filter(|by| !by.is_empty());
    let by = by.filter(|_| commands != Commands::default());
    Commands {
        by: by.map(|by| shortened(by, LONGEST_USER).into_owned()),
        ..commands
    }
}

/// The longest name of a user that is kept.
const LONGEST_USER: usize = 255;

/// What the status remembers.
pub fn memory(status: &RolloutStatus) -> Memory {
    Memory {
        workload: status.workload_uid.clone(),
        setting: status.workload_setting.clone(),
        stable: stable(status),
        activity: returning(status)
            .map(Activity::Returning)
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
        reached: count(status.reached_replicas),
        exposed: count(status.exposed_replicas),
        floor: count(status.floor_replicas),
        kept: indices(&status.kept_pods),
        limit: status.share_limit.map(|pods| count(Some(pods))),
        stopped_at: status.stopped_replicas.map(|pods| count(Some(pods))),
        excused: status
            .excused_pods
            .iter()
            .map(|index| count(Some(*index)))
            .collect(),
        held: status.manual_pause,
        fully_promoted: status.fully_promoted,
        commands: taken_commands(&status.taken_commands),
        pausing: status.controller_pause && !status.background_paused,
        beside: match status.background_started_at {
            None if status.background_waived => Beside::Waived,
            None => Beside::NotYet,
            Some(since) if status.background_paused => Beside::InDoubt(since),
            Some(since) => Beside::Since(since),
        },
    })
}

/// The commands on record.
pub fn taken_commands(record: &[api::TakenCommand]) -> Vec<TakenCommand> {
    record.iter().filter_map(taken).collect()
}

/// A command on record; one that this version does not know is none.
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

fn returning(status: &RolloutStatus) -> Option<Return> {
    Some(Return {
        from: revision(&status.returning_from)?,
        cause: match status.returning.as_deref()? {
            "PutBack" => Cause::PutBack,
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

/// Indices that were written down, sorted: who may write the status can write them in any order.
fn indices(written: &[i32]) -> Vec<u32> {
    let mut indices: Vec<_> = written.iter().map(|index| count(Some(*index))).collect();
    indices.sort_unstable();
    indices.dedup();
    indices
}

/// A revision that was written down; a name that was edited to be empty is none.
fn revision(name: &Option<String>) -> Option<RevisionName> {
    name.as_ref()
        .filter(|name| !name.is_empty())
        .map(RevisionName::from_api)
}

/// A count that was written down; what never was, or was edited to be less than nothing, is 0.
fn count(number: Option<i32>) -> u32 {
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Who may write the status can empty any of its fields.
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
