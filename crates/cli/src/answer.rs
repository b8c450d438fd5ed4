//! The operator's answer to a command: it removes the command from the object, and records in the same write whether it carried it out.

use futures::StreamExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{DefaultBackoff, watch_object};
use stateward_api::rollout::{CommandReceipt, CommandResult};

use crate::command::Command;
use crate::rollout::{Rollout, parse};
use crate::session::Session;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The operator carried out the command.
    Taken,
    /// The operator refused the command; the receipt says why.
    Refused(Option<CommandReceipt>),
    /// The object was deleted.
    Gone,
}

impl Command {
    /// The answer in `now`, where `written` is the object with the command. `None` if there is no answer yet.
    pub(crate) fn answer(self, seen: &Rollout, written: &Rollout, now: &Rollout) -> Option<Answer> {
        if now.uid() != written.uid() {
            return Some(Answer::Gone);
        }
        if version(now) < version(written) {
            return None;
        }
        let (before, after) = (
            seen.status.clone().unwrap_or_default(),
            now.status.clone().unwrap_or_default(),
        );
        let pending = match self {
            Self::Promote => after.promote || (after.controller_pause && after.pause_conditions.is_empty()),
            Self::Skip => after.skip_current_step,
            Self::PromoteFull { .. } => after.promote_full,
            Self::Abort => after.abort,
            Self::Retry => after.restart,
            Self::Pause | Self::Resume => after.observed_generation < written.metadata.generation,
        };
        if pending {
            return None;
        }
        let Some(receipt) = after.last_command.filter(|_| self.is_to_status()) else {
            return Some(match self.is_to_status() {
                // Another client has removed the command.
                true => Answer::Refused(None),
                false => Answer::Taken,
            });
        };
        let ours = receipt.verb == self.name() && before.last_command.as_ref() != Some(&receipt);
        Some(match receipt.result {
            CommandResult::Accepted if ours => Answer::Taken,
            CommandResult::Refused if ours => Answer::Refused(Some(receipt)),
            // It was given at the same time and came first.
            CommandResult::Accepted | CommandResult::Refused => Answer::Refused(None),
        })
    }
}

fn version(object: &Rollout) -> u64 {
    let version = object.resource_version();
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// Waits for the answer to a command, without a timeout.
pub(crate) async fn wait(
    command: Command,
    seen: &Rollout,
    written: &Rollout,
    session: &Session<'_>,
) -> Answer {
    let api = session.whole_rollouts(seen.kind, false);
    let changes = watch_object(api, &seen.name_any()).backoff(DefaultBackoff::default());
    let mut answers = std::pin::pin!(changes.filter_map(|change| async {
        match change {
            Ok(Some(now)) => command.answer(seen, written, &parse(now).ok()?),
            Ok(None) => Some(Answer::Gone),
            // The watch is restarted; the caller has the timeout.
            Err(_) => None,
        }
    }));
    match answers.next().await {
        Some(answer) => answer,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, aborted, paused, returning, stepping};
    use rstest::rstest;
    use serde_json::json;
    use stateward_api::rollout::RolloutStatus;

    fn with(mut object: Rollout, change: impl FnOnce(&mut RolloutStatus)) -> Rollout {
        change(object.status.as_mut().unwrap());
        object
    }

    /// The operator has answered.
    fn answered(object: Rollout, verb: &str, result: &str) -> Rollout {
        let receipt = json!({"verb": verb, "result": result, "message": "why", "at": NOW});
        with(object, |now| {
            now.last_command = serde_json::from_value(receipt).unwrap()
        })
    }

    const FULL: Command = Command::PromoteFull { force: false };

    #[rstest]
    #[case::pending(Command::Promote, paused(), with(paused(), |now| now.pause_conditions.clear()), None)]
    #[case::accepted(
        Command::Promote,
        paused(),
        answered(stepping(), "promote", "Accepted"),
        Some(true)
    )]
    #[case::refused(
        Command::Promote,
        paused(),
        answered(paused(), "promote", "Refused"),
        Some(false)
    )]
    #[case::answered_before(
        Command::Promote,
        answered(paused(), "promote", "Accepted"),
        answered(paused(), "promote", "Accepted"),
        Some(false)
    )]
    #[case::removed_by_another_client(Command::Promote, paused(), paused(), Some(false))]
    #[case::an_abort_came_first(
        Command::Promote,
        paused(),
        answered(returning(), "abort", "Accepted"),
        Some(false)
    )]
    #[case::at_a_gate(Command::Promote, stepping(), with(stepping(), |now| now.promote = true), None)]
    #[case::skip_pending(Command::Skip, stepping(), with(stepping(), |now| now.skip_current_step = true), None)]
    #[case::full(FULL, paused(), answered(paused(), "promote", "Accepted"), Some(true))]
    #[case::full_pending(FULL, paused(), with(paused(), |now| now.promote_full = true), None)]
    #[case::abort(
        Command::Abort,
        stepping(),
        answered(returning(), "abort", "Accepted"),
        Some(true)
    )]
    #[case::retry_pending(Command::Retry, aborted(), with(aborted(), |now| now.restart = true), None)]
    #[case::pause(Command::Pause, stepping(), stepping(), Some(true))]
    fn an_answer_is_read_off_the_object(
        #[case] command: Command,
        #[case] seen: Rollout,
        #[case] now: Rollout,
        #[case] expected: Option<bool>,
    ) {
        let answer = command.answer(&seen, &seen, &now);
        assert_eq!(answer.map(|answer| answer == Answer::Taken), expected);
    }

    #[test]
    fn an_older_view_is_no_answer() {
        let mut written = stepping();
        written.metadata.resource_version = Some("11".into());
        assert_eq!(Command::Abort.answer(&stepping(), &written, &stepping()), None);
    }
}
