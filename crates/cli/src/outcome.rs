//! The outcome of a revision, as far as it is recorded. Nothing is guessed.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use stateward_api::rollout::{PastRollout, RolloutEnd};
use stateward_core::memory::{Activity, TakenCommand};
use stateward_core::record::{memory, taken_commands};

use crate::rollout::{Kind, Rollout};
use crate::session::Session;
use crate::stage::Stage;
use crate::views::table::age;

/// The outcome of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is the stable version.
    Stable,
    /// It is being rolled out, at this position.
    Rolling(String),
    /// Its rollout failed, and is held at this position until a user decides.
    Failed(String),
    /// It was rejected and pods are being rolled back, or its template was replaced by the stable one.
    Returning,
    /// It was rejected: the reason and the time.
    TurnedDown(String, Option<Timestamp>),
    /// Its rollout ended early: how and when.
    LeftOff(String, Option<Timestamp>),
    /// Every pod ran it.
    Completed(Option<Timestamp>),
    /// It was there when the operator adopted the workload, or was rolled out without the operator.
    TakenOn(Option<Timestamp>),
    /// It is in the template, and no operator has seen it yet.
    Asked,
    /// Its outcome is not recorded.
    Unknown,
}

impl Outcome {
    /// The outcome, for people.
    pub(crate) fn in_words(&self, now: Timestamp) -> String {
        let ago =
            |at: &Option<Timestamp>| at.map_or_else(String::new, |at| format!(" {} ago", age(Some(at), now)));
        let word = self.in_a_word();
        match self {
            Self::Rolling(place) | Self::Failed(place) if place.is_empty() => word.into(),
            Self::Rolling(place) | Self::Failed(place) => format!("{word}, {place}"),
            Self::TurnedDown(why, at) => format!("{word}{}: {why}", ago(at)),
            Self::LeftOff(_, at) | Self::Completed(at) | Self::TakenOn(at) => format!("{word}{}", ago(at)),
            Self::Stable | Self::Returning | Self::Asked | Self::Unknown => word.into(),
        }
    }

    /// The outcome in one word, for people.
    pub(crate) fn in_a_word(&self) -> &str {
        match self {
            Self::Stable => "stable",
            Self::Rolling(_) => "rolling",
            Self::Failed(_) => "failed",
            Self::Returning => "returning",
            Self::TurnedDown(..) => "rejected",
            Self::LeftOff(how, _) => how,
            Self::Completed(_) => "completed",
            Self::TakenOn(_) => "taken on",
            Self::Asked => "not looked at yet",
            Self::Unknown => "unknown",
        }
    }

    /// The outcome, for tools.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Stable => "Stable",
            Self::Rolling(_) => "Rolling",
            Self::Failed(_) => "Failed",
            Self::Returning => "Returning",
            Self::TurnedDown(..) => "TurnedDown",
            Self::LeftOff(..) => "LeftOff",
            Self::Completed(_) => "Completed",
            Self::TakenOn(_) => "TakenOn",
            Self::Asked => "Asked",
            Self::Unknown => "Unknown",
        }
    }
}

/// The outcome of a revision.
pub(crate) fn of(revision: &str, asked: bool, rollout: &Rollout) -> Outcome {
    let stage = Stage::of(rollout);
    let status = &stage.status;
    match &stage.activity {
        Activity::Rolling(attempt) if attempt.target.as_str() == revision => {
            // If it has passed all its steps, the skipped ones are shown with the user who skipped them.
            let skipped = skips(revision, rollout).is_some() && attempt.step.0 as usize >= stage.steps();
            let place = stage.progress_in_words().filter(|_| !skipped).unwrap_or_default();
            return if stage.phase() == "Failed" {
                Outcome::Failed(place)
            } else {
                Outcome::Rolling(place)
            };
        }
        Activity::RollingBack(back) if back.from.as_str() == revision => return Outcome::Returning,
        _ => {}
    }
    if status.stable_revision.as_deref() == Some(revision) {
        return Outcome::Stable;
    }
    if status.aborted_revision.as_deref() == Some(revision) {
        let why = status.aborted_reason.clone().unwrap_or_default();
        return Outcome::TurnedDown(why, status.aborted_at);
    }
    let past = status.history.iter().find(|past| past.revision == revision);
    match past {
        Some(past) => ended(past),
        None if asked => Outcome::Asked,
        None => Outcome::Unknown,
    }
}

/// The skipped steps of a revision's rollout, as text: `steps 2 to 4 skipped by alice`, or `gate 2 skipped`.
pub(crate) fn skips(revision: &str, rollout: &Rollout) -> Option<String> {
    let words = |taken: &TakenCommand| {
        let (from, to, unit) = match rollout.kind {
            Kind::RolloutPlugin => (taken.from.0 + 1, taken.to.0, "step"),
            // Pods cannot be skipped, only the gates before them and after the last.
            Kind::PhasedRollout => (taken.from.0.div_ceil(2) + 1, taken.to.0.div_ceil(2), "gate"),
        };
        let steps = if from >= to {
            format!("{unit} {from}")
        } else {
            format!("{unit}s {from} to {to}")
        };
        let by = taken.by.as_ref();
        let by = by.map_or_else(String::new, |by| format!(" by {by}"));
        format!("{steps} skipped{by}")
    };
    let skipped: Vec<_> = commands(revision, rollout)
        .iter()
        .filter(|taken| taken.command.skips() && taken.from < taken.to)
        .map(words)
        .collect();
    (!skipped.is_empty()).then(|| skipped.join(", "))
}

/// The commands that the rollout of a revision carried out, as far as recorded.
pub(crate) fn commands(revision: &str, rollout: &Rollout) -> Vec<TakenCommand> {
    let status = rollout.status.as_ref();
    match memory(&status.cloned().unwrap_or_default()).activity {
        Activity::Rolling(attempt) if attempt.target.as_str() == revision => attempt.commands,
        _ => {
            let mut past = status.iter().flat_map(|status| &status.history);
            let past = past.find(|past| past.revision == revision);
            past.map_or_else(Vec::new, |past| taken_commands(&past.taken_commands))
        }
    }
}

/// The outcome of a finished rollout.
fn ended(past: &PastRollout) -> Outcome {
    let at = Some(past.ended_at);
    let what = match past.outcome {
        RolloutEnd::Successful => return Outcome::Completed(at),
        RolloutEnd::TakenOn => return Outcome::TakenOn(at),
        RolloutEnd::Aborted => return Outcome::TurnedDown(past.message.clone().unwrap_or_default(), at),
        RolloutEnd::Unknown => return Outcome::Unknown,
        RolloutEnd::Replaced => "replaced",
        RolloutEnd::PutBack => "put back",
        RolloutEnd::ScaledToZero => "taken out when scaled to zero",
        RolloutEnd::LeftToKubernetes => "left to Kubernetes",
    };
    let why = past.message.as_ref();
    let why = why.map_or_else(String::new, |why| format!(" {why}"));
    Outcome::LeftOff(format!("{what}{why}"), at)
}

/// When an event last occurred.
pub(crate) fn event_time(event: &Event) -> Option<Timestamp> {
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let first = event.event_time.as_ref().map(|time| time.0);
    last.or(first)
        .or(event.metadata.creation_timestamp.as_ref().map(|time| time.0))
}

impl Session<'_> {
    /// The events of objects with this UID; empty if they cannot be read.
    pub(crate) async fn events_of(&self, uid: Option<String>) -> Vec<Event> {
        let Some(uid) = uid else {
            return Vec::new();
        };
        let api: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
        let mut events = api
            .list(&params)
            .await
            .map_or_else(|_| Vec::new(), |list| list.items);
        events.sort_by_key(event_time);
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, aborted, at_rest, commands, paused, returning, stepping};
    use rstest::rstest;
    use serde_json::json;

    /// A rollout with a history.
    fn experienced(mut rollout: Rollout) -> Rollout {
        let past = json!([
            {"revision": "db-0", "outcome": "Successful", "endedAt": "2026-01-01T00:01:00Z"},
            {"revision": "cache-9", "outcome": "Aborted", "message": "pod cache-2 is broken", "endedAt": "2026-01-01T00:02:00Z"},
            {"revision": "db-7", "outcome": "Replaced", "message": "by db-8", "endedAt": "2026-01-01T00:03:00Z"},
            {"revision": "db-6", "outcome": "ScaledToZero", "endedAt": "2026-01-01T00:03:00Z"},
            {"revision": "db-5", "outcome": "SomethingNew", "endedAt": "2026-01-01T00:03:00Z"},
        ]);
        let status = rollout.status.get_or_insert_default();
        status.history = serde_json::from_value(past).unwrap();
        rollout
    }

    /// A new pod crashes, and no decision was made about it yet.
    fn broken() -> Rollout {
        let mut rollout = stepping();
        rollout.status.get_or_insert_default().phase = "Failed".into();
        rollout
    }

    #[rstest]
    #[case(paused(), "db-1", "stable")]
    #[case(paused(), "db-2", "rolling, step 2 of 4")]
    #[case(broken(), "db-2", "failed, step 1 of 4")]
    #[case(paused(), "db-0", "completed 9m ago")]
    #[case(paused(), "db-00", "unknown")]
    #[case(paused(), "db-5", "unknown")]
    #[case(paused(), "db-6", "taken out when scaled to zero 7m ago")]
    #[case(paused(), "db-7", "replaced by db-8 7m ago")]
    #[case(returning(), "queue-2", "returning")]
    #[case(aborted(), "queue-2", "rejected 70s ago: aborted by a user")]
    #[case(at_rest(), "cache-9", "rejected 8m ago: pod cache-2 is broken")]
    fn an_outcome_is_what_is_on_record(
        #[case] rollout: Rollout,
        #[case] revision: &str,
        #[case] expected: &str,
    ) {
        let outcome = of(revision, false, &experienced(rollout));
        assert_eq!(outcome.in_words(NOW.parse().unwrap()), expected);
    }

    #[test]
    fn what_was_skipped_and_by_whom_is_on_record() {
        let mut rollout = experienced(at_rest());
        let status = rollout.status.as_mut().unwrap();
        status.history[0].taken_commands = commands(&[
            ("promote", 0, 1, Some("bob")),
            ("skip", 1, 2, Some("alice")),
            ("promote --full", 2, 5, None),
        ]);
        assert_eq!(
            skips("db-0", &rollout).as_deref(),
            Some("step 2 skipped by alice, steps 3 to 5 skipped")
        );
        assert_eq!(skips("db-7", &rollout), None);
        let mut rolling = paused();
        let status = rolling.status.as_mut().unwrap();
        status.taken_commands = commands(&[("skip", 0, 1, Some("alice"))]);
        assert_eq!(
            skips("db-2", &rolling).as_deref(),
            Some("step 1 skipped by alice")
        );
    }

    #[test]
    fn a_template_that_nobody_has_looked_at_says_so() {
        let outcome = of("db-9", true, &paused());
        assert_eq!(outcome.in_words(NOW.parse().unwrap()), "not looked at yet");
    }
}
