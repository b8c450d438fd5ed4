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
    Refused(CommandReceipt),
    /// The command was removed without an answer: the last answer is for another command, or there is none.
    Unanswered(Option<CommandReceipt>),
    /// The object was deleted.
    Gone,
}

impl Command {
    /// The answer in `now`, where `written` is the object with the command. `None` if there is no answer yet.
    pub(crate) fn answer(self, written: &Rollout, now: &Rollout) -> Option<Answer> {
        if now.uid() != written.uid() {
            return Some(Answer::Gone);
        }
        if version(now) < version(written) {
            return None;
        }
        let before = written.status.as_ref();
        let before = before.and_then(|status| status.last_command.as_ref());
        let after = now.status.clone().unwrap_or_default();
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
        if !self.is_to_status() {
            return Some(Answer::Taken);
        }
        let receipt = after.last_command.filter(|receipt| before != Some(receipt));
        Some(match receipt {
            Some(receipt) if self.is_meant_by(&receipt) => match receipt.result {
                CommandResult::Accepted => Answer::Taken,
                CommandResult::Refused | CommandResult::Unknown => Answer::Refused(receipt),
            },
            receipt => Answer::Unanswered(receipt),
        })
    }

    /// Whether a receipt is for this command. Another user may have added `--force`.
    fn is_meant_by(self, receipt: &CommandReceipt) -> bool {
        let full = receipt.arguments.iter().any(|argument| argument == "--full");
        receipt.verb == self.name() && full == matches!(self, Self::PromoteFull { .. })
    }
}

fn version(object: &Rollout) -> u64 {
    let version = object.resource_version();
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// Waits for the answer to a command, without a timeout.
pub(crate) async fn wait(command: Command, written: &Rollout, session: &Session<'_>) -> Answer {
    let api = session.whole_rollouts(written.kind, false);
    let changes = watch_object(api, &written.name_any()).backoff(DefaultBackoff::default());
    let mut answers = std::pin::pin!(changes.filter_map(|change| async {
        match change {
            Ok(Some(now)) => command.answer(written, &parse(now).ok()?),
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

    /// The operator has answered a command, as it is typed.
    fn answered(object: Rollout, command: &str, result: &str) -> Rollout {
        let words: Vec<_> = command.split(' ').collect();
        let receipt =
            json!({"verb": words[0], "arguments": words[1..], "result": result, "message": "why", "at": NOW});
        with(object, |now| {
            now.last_command = serde_json::from_value(receipt).unwrap()
        })
    }

    const FULL: Command = Command::PromoteFull { force: false };

    #[rstest]
    #[case::promote(Command::Promote, with(paused(), |now| now.pause_conditions.clear()))]
    #[case::at_a_gate(Command::Promote, with(stepping(), |now| now.promote = true))]
    #[case::skip(Command::Skip, with(stepping(), |now| now.skip_current_step = true))]
    #[case::full(FULL, with(paused(), |now| now.promote_full = true))]
    #[case::abort(Command::Abort, with(paused(), |now| now.abort = true))]
    #[case::retry(Command::Retry, with(aborted(), |now| now.restart = true))]
    fn a_command_that_is_still_there_has_no_answer(#[case] command: Command, #[case] now: Rollout) {
        assert_eq!(command.answer(&now, &now), None);
    }

    #[rstest]
    #[case::accepted(Command::Promote, answered(stepping(), "promote", "Accepted"), "taken")]
    #[case::refused(Command::Promote, answered(paused(), "promote", "Refused"), "refused")]
    #[case::full(FULL, answered(paused(), "promote --full", "Accepted"), "taken")]
    #[case::full_of_another_user(FULL, answered(paused(), "promote --full --force", "Accepted"), "taken")]
    #[case::only_the_step(FULL, answered(paused(), "promote", "Accepted"), "unanswered")]
    #[case::all_steps(
        Command::Promote,
        answered(paused(), "promote --full", "Accepted"),
        "unanswered"
    )]
    #[case::abort(Command::Abort, answered(returning(), "abort", "Accepted"), "taken")]
    #[case::an_abort_came_first(Command::Promote, answered(returning(), "abort", "Accepted"), "unanswered")]
    #[case::without_a_receipt(Command::Promote, stepping(), "unanswered")]
    #[case::pause(Command::Pause, stepping(), "taken")]
    fn an_answer_is_read_off_the_object(
        #[case] command: Command,
        #[case] now: Rollout,
        #[case] expected: &str,
    ) {
        let answer = match command.answer(&paused(), &now).unwrap() {
            Answer::Taken => "taken",
            Answer::Refused(_) => "refused",
            Answer::Unanswered(_) => "unanswered",
            Answer::Gone => "gone",
        };
        assert_eq!(answer, expected);
    }

    #[test]
    fn the_answer_to_an_earlier_command_is_no_answer_to_this_one() {
        let written = answered(paused(), "promote", "Accepted");
        assert_eq!(
            Command::Promote.answer(&written, &written),
            Some(Answer::Unanswered(None))
        );
    }

    #[test]
    fn an_older_view_is_no_answer() {
        let mut written = stepping();
        written.metadata.resource_version = Some("11".into());
        assert_eq!(Command::Abort.answer(&written, &stepping()), None);
    }
}
