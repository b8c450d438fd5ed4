//! What became of a revision, as far as anything records it. Nothing is guessed.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use stateward_core::memory::Activity;

use crate::rollout::Rollout;
use crate::session::Session;
use crate::stage::Stage;
use crate::table::age;

/// What became of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is the stable version.
    Stable,
    /// It is being rolled: where it stands.
    Rolling(String),
    /// It was turned down and pods return from it, or its template was put back.
    Returning,
    /// It was turned down: what for, and when.
    TurnedDown(String, Option<Timestamp>),
    /// Every pod ran it once.
    Completed(Option<Timestamp>),
    /// The template asks for it, and no operator has looked yet.
    Asked,
    /// Nothing records it.
    Unknown,
}

impl Outcome {
    /// For people.
    pub(crate) fn in_words(&self, now: Timestamp) -> String {
        let ago =
            |at: &Option<Timestamp>| at.map_or_else(String::new, |at| format!(" {} ago", age(Some(at), now)));
        match self {
            Self::Stable => "stable".into(),
            Self::Rolling(place) => format!("rolling, {place}"),
            Self::Returning => "returning".into(),
            Self::TurnedDown(why, at) => format!("turned down{}: {why}", ago(at)),
            Self::Completed(at) => format!("completed{}", ago(at)),
            Self::Asked => "not looked at yet".into(),
            Self::Unknown => "unknown".into(),
        }
    }

    /// For machines.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Stable => "Stable",
            Self::Rolling(_) => "Rolling",
            Self::Returning => "Returning",
            Self::TurnedDown(..) => "TurnedDown",
            Self::Completed(_) => "Completed",
            Self::Asked => "Asked",
            Self::Unknown => "Unknown",
        }
    }
}

/// What became of a revision: from the status, and where that is silent from the events that are kept.
pub(crate) fn of(revision: &str, asked: bool, rollout: &Rollout, events: &[Event]) -> Outcome {
    let stage = Stage::of(rollout);
    let status = &stage.status;
    match &stage.activity {
        Activity::Rolling(attempt) if attempt.target.as_str() == revision => {
            return Outcome::Rolling(stage.progress_in_words().unwrap_or_default());
        }
        Activity::Returning(back) if back.from.as_str() == revision => return Outcome::Returning,
        _ => {}
    }
    if status.stable_revision.as_deref() == Some(revision) {
        return Outcome::Stable;
    }
    if status.aborted_revision.as_deref() == Some(revision) {
        let why = status.aborted_reason.clone().unwrap_or_default();
        return Outcome::TurnedDown(why, status.aborted_at);
    }
    let told = events
        .iter()
        .filter_map(|event| Some((told(revision, event)?, event_time(event))));
    if let Some((last, _)) = told.max_by_key(|(_, at)| *at) {
        return last;
    }
    if asked { Outcome::Asked } else { Outcome::Unknown }
}

/// What an event says about a revision.
fn told(revision: &str, event: &Event) -> Option<Outcome> {
    let message = event.message.as_deref()?;
    match event.reason.as_deref()? {
        "RolloutCompleted" if message == format!("every pod runs {revision}") => {
            Some(Outcome::Completed(event_time(event)))
        }
        "RolloutAborted" => {
            let why = message.strip_prefix(revision)?.strip_prefix(": ")?;
            let why = why.split_once("; returning").map_or(why, |(why, _)| why);
            Some(Outcome::TurnedDown(why.to_owned(), event_time(event)))
        }
        _ => None,
    }
}

/// When an event was last told.
pub(crate) fn event_time(event: &Event) -> Option<Timestamp> {
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let first = event.event_time.as_ref().map(|time| time.0);
    last.or(first)
        .or(event.metadata.creation_timestamp.as_ref().map(|time| time.0))
}

impl Session<'_> {
    /// The events about objects with this UID that are kept; none, where they are not ours to read.
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
    use crate::fixtures::{NOW, aborted, at_rest, paused, returning};
    use rstest::rstest;
    use serde_json::json;

    fn events() -> Vec<Event> {
        let event = |reason: &str, message: &str, at: &str| {
            json!({
                "metadata": {"name": at}, "involvedObject": {}, "reason": reason, "message": message, "lastTimestamp": at,
            })
        };
        let told = json!([
            event("RolloutCompleted", "every pod runs db-0", "2026-01-01T00:01:00Z"),
            event(
                "RolloutAborted",
                "cache-9: pod cache-2 is broken; returning every pod to the stable version",
                "2026-01-01T00:02:00Z"
            ),
            event("RolloutStarted", "db-8: beginning", "2026-01-01T00:03:00Z"),
        ]);
        serde_json::from_value(told).unwrap()
    }

    #[rstest]
    #[case(paused(), "db-1", "stable")]
    #[case(paused(), "db-2", "rolling, step 2 of 4")]
    #[case(paused(), "db-0", "completed 9m ago")]
    #[case(paused(), "db-00", "unknown")]
    #[case(paused(), "db-8", "unknown")]
    #[case(returning(), "queue-2", "returning")]
    #[case(aborted(), "queue-2", "turned down 70s ago: aborted by a user")]
    #[case(at_rest(), "cache-9", "turned down 8m ago: pod cache-2 is broken")]
    fn an_outcome_is_what_is_on_record(
        #[case] rollout: Rollout,
        #[case] revision: &str,
        #[case] expected: &str,
    ) {
        let outcome = of(revision, false, &rollout, &events());
        assert_eq!(outcome.in_words(NOW.parse().unwrap()), expected);
    }

    #[test]
    fn a_template_that_nobody_has_looked_at_says_so() {
        let outcome = of("db-9", true, &paused(), &[]);
        assert_eq!(outcome.in_words(NOW.parse().unwrap()), "not looked at yet");
    }
}
