//! The operator's answer to a command: it takes the command out of the object and carries it out, or gives the reason for a refusal in an
//! event.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, DefaultBackoff, watch_object, watcher};

use crate::command::Command;
use crate::rollout::{Rollout, parse};
use crate::session::Session;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The operator carried out the command.
    Taken,
    /// The operator refused the command.
    Refused,
    /// The object was deleted.
    Gone,
}

/// How long after the answer the event with the reason may arrive.
const REASON_WITHIN: Duration = Duration::from_secs(2);

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
        let same_revision = after.updated_revision == before.updated_revision;
        let same_step = after.current_step_index == before.current_step_index
            && after.current_step_started_at == before.current_step_started_at;
        // An inconclusive background analysis is resolved without moving the rollout.
        let waived = after.background_waived && !before.background_waived;
        let taken = match self {
            // A gate may start again without moving the rollout.
            Self::Promote => {
                same_revision && (after.current_step_index != before.current_step_index || waived)
            }
            Self::Skip => same_revision && after.current_step_index != before.current_step_index,
            Self::PromoteFull { .. } => same_revision && (!same_step || waived),
            Self::Abort => after.aborted_revision == before.updated_revision,
            Self::Retry => {
                let again = before.current_step_started_at.is_some() && same_revision && !same_step;
                after.restarted_at != before.restarted_at || again
            }
            Self::Pause | Self::Resume => true,
        };
        Some(if taken { Answer::Taken } else { Answer::Refused })
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

/// The operator's reason for a refusal, if its event arrives in time and can be read.
pub(crate) async fn reason(command: Command, written: &Rollout, session: &Session<'_>) -> Option<String> {
    let events: Api<Event> = Api::namespaced(session.client.clone(), &session.namespace);
    let fields = format!(
        "involvedObject.uid={},reason=CommandRefused",
        written.uid().unwrap_or_default()
    );
    let told = watcher(events, watcher::Config::default().fields(&fields)).applied_objects();
    let mut reasons = std::pin::pin!(told.try_filter_map(|event| async {
        let about = event.involved_object.resource_version;
        let later = about
            .and_then(|version| version.parse::<u64>().ok())
            .is_some_and(|at| at >= version(written));
        let prefix = format!("{}: ", command.verb());
        let reason = event
            .message
            .and_then(|message| message.strip_prefix(&prefix).map(str::to_owned));
        Ok(reason.filter(|_| later))
    }));
    let first = tokio::time::timeout(REASON_WITHIN, reasons.next()).await;
    first.ok().flatten().and_then(Result::ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{aborted, at_rest, paused, returning, stepping};
    use rstest::rstest;
    use stateward_api::rollout::RolloutStatus;

    fn with(mut object: Rollout, change: impl FnOnce(&mut RolloutStatus)) -> Rollout {
        change(object.status.as_mut().unwrap());
        object
    }

    #[rstest]
    #[case::pending(Command::Promote, paused(), with(paused(), |now| now.pause_conditions.clear()), None)]
    #[case::next_step(Command::Promote, paused(), with(paused(), |now| {
        now.current_step_index = Some(2);
        now.controller_pause = false;
        now.pause_conditions.clear();
    }), Some(Answer::Taken))]
    #[case::back_at_the_pause(Command::Promote, paused(), paused(), Some(Answer::Refused))]
    #[case::another_revision(Command::Promote, paused(), with(stepping(), |now| now.updated_revision = Some("db-3".into())), Some(Answer::Refused))]
    #[case::without_a_verdict_beside_the_steps(Command::Promote, with(paused(), |seen| seen.background_paused = true), with(paused(), |now| {
        now.background_paused = false;
        now.background_waived = true;
    }), Some(Answer::Taken))]
    #[case::long_without_one(Command::Promote, with(paused(), |seen| seen.background_waived = true), with(paused(), |now| now.background_waived = true), Some(Answer::Refused))]
    #[case::at_a_gate(Command::Promote, stepping(), with(stepping(), |now| now.promote = true), None)]
    #[case::that_begins_anew(Command::Promote, stepping(), with(stepping(), |now| now.current_step_started_at = "2026-01-01T00:09:00Z".parse().ok()), Some(Answer::Refused))]
    #[case::skip(Command::Skip, stepping(), with(stepping(), |now| now.current_step_index = Some(1)), Some(Answer::Taken))]
    #[case::skip_pending(Command::Skip, stepping(), with(stepping(), |now| now.skip_current_step = true), None)]
    #[case::skip_refused(Command::Skip, stepping(), stepping(), Some(Answer::Refused))]
    #[case::full(Command::PromoteFull { force: false }, paused(), with(paused(), |now| now.current_step_index = Some(4)), Some(Answer::Taken))]
    #[case::full_pending(Command::PromoteFull { force: false }, paused(), with(paused(), |now| now.promote_full = true), None)]
    #[case::abort(Command::Abort, with(returning(), |now| now.aborted_revision = None), returning(), Some(Answer::Taken))]
    #[case::abort_at_rest(Command::Abort, at_rest(), at_rest(), Some(Answer::Refused))]
    #[case::retry(Command::Retry, aborted(), with(aborted(), |now| now.restarted_at = "2026-01-01T00:09:00Z".parse().ok()), Some(Answer::Taken))]
    #[case::retry_refused(Command::Retry, aborted(), aborted(), Some(Answer::Refused))]
    #[case::pause(Command::Pause, stepping(), stepping(), Some(Answer::Taken))]
    fn an_answer_is_read_off_the_object(
        #[case] command: Command,
        #[case] seen: Rollout,
        #[case] now: Rollout,
        #[case] expected: Option<Answer>,
    ) {
        assert_eq!(command.answer(&seen, &seen, &now), expected);
    }

    #[test]
    fn an_older_view_is_no_answer() {
        let mut written = stepping();
        written.metadata.resource_version = Some("11".into());
        assert_eq!(Command::Abort.answer(&stepping(), &written, &stepping()), None);
    }
}
