//! What a status says about what is waited for, the commands that help, and the last command.

use jiff::Timestamp;
use stateward_api::rollout::{CommandReceipt, CommandResult, RolloutStatus, SuggestedCommand, WaitingFor};

use super::conditions;
use crate::guidance::{Receipt, Suggestion, WaitKind};
use crate::memory::{Activity, Command, Memory};
use crate::world::Report;

/// What a report waits for, since the first status that said so.
pub(super) fn waiting_for(
    report: &Report,
    old: &RolloutStatus,
    memory: &Memory,
    now: Timestamp,
) -> Option<WaitingFor> {
    let awaited = report.waiting_for.as_ref()?;
    let reason = awaited.reason.as_deref();
    let new = WaitingFor {
        kind: awaited.kind.as_str().into(),
        name: awaited.name.clone(),
        reason: reason.unwrap_or_else(|| conditions::reason(report.reason)).into(),
        since: now,
    };
    // The reason of a pod changes while it starts; without a name, another reason is another wait.
    let same = |old: &&WaitingFor| {
        let same_reason = new.name.is_some() || old.reason == new.reason;
        old.kind == new.kind && old.name == new.name && same_reason
    };
    let since = match (awaited.kind, &memory.activity) {
        (WaitKind::Pause, Activity::Rolling(attempt)) => Some(attempt.entered),
        _ => old.waiting_for.as_ref().filter(same).map(|old| old.since),
    };
    Some(WaitingFor {
        since: since.unwrap_or(now),
        ..new
    })
}

/// Suggestions in the form of the API.
pub(super) fn suggestions(suggestions: &[Suggestion]) -> Vec<SuggestedCommand> {
    let written = |suggestion: &Suggestion| {
        let (verb, arguments) = words(suggestion.command);
        SuggestedCommand {
            verb,
            arguments,
            revision: suggestion.revision.as_ref().map(ToString::to_string),
            effect: suggestion.effect.into(),
        }
    };
    suggestions.iter().map(written).collect()
}

/// A receipt in the form of the API.
pub(super) fn receipt(receipt: &Receipt) -> CommandReceipt {
    let (verb, arguments) = words(receipt.command);
    CommandReceipt {
        verb,
        arguments,
        revision: receipt.revision.as_ref().map(ToString::to_string),
        by: receipt.by.clone(),
        result: match receipt.refusal {
            Some(_) => CommandResult::Refused,
            None => CommandResult::Accepted,
        },
        message: receipt.refusal.clone().unwrap_or_default(),
        alternatives: suggestions(&receipt.instead),
        at: receipt.at,
    }
}

/// The verb of a command, and its arguments.
fn words(command: Command) -> (String, Vec<String>) {
    let mut words = command.as_str().split(' ').map(str::to_owned);
    (words.next().unwrap_or_default(), words.collect())
}
