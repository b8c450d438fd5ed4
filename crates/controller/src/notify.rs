//! Events: each one posted once, and rate-limited.

use std::borrow::Cow;
use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use serde_json::json;
use stateward_core::event::{EventReason, EventType, Notice};
use stateward_core::plan::Fingerprint;

use crate::kind::Rollout;

/// The API server's limit for an event's message.
const LONGEST_MESSAGE: usize = 1024;

/// How often similar events of an object at one step are posted within [`A_WHILE`]: a pod whose readiness flaps is not news. The
/// numbers are those of Kubernetes' event recorder.
const OFTEN: usize = 10;
const A_WHILE: SignedDuration = SignedDuration::from_mins(10);
/// How many events of one object are posted and remembered within [`A_WHILE`] in all: the likeness of events depends on the status,
/// which a user may write.
const MOST: usize = 300;
const FOR_NOW: &str = " (repeated often: for a while only the log of the operator has more of these)";

/// Recently posted events, by the UID of their object.
#[derive(Default)]
pub(crate) struct Told(Mutex<HashMap<String, Lately>>);

/// Recent events, by likeness.
type Lately = HashMap<Fingerprint, Vec<Recent>>;

/// A recent event.
struct Recent {
    name: String,
    at: Timestamp,
    /// The API server has it.
    posted: bool,
}

/// Whether to post an event.
#[derive(Debug, PartialEq, Eq)]
enum Worth {
    Telling,
    /// Post it; the next one like it is suppressed.
    TellingForNow,
    /// The API server has it: a reconcile that posted it was restarted.
    Posted,
    Nothing,
}

impl Told {
    /// Forgets an object, by its UID.
    pub(crate) fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }

    /// Records that the API server has an event.
    fn posted(&self, uid: &str, like: &Fingerprint, name: &str) {
        let mut told = self.0.lock();
        let events = told.get_mut(uid).and_then(|lately| lately.get_mut(like));
        let event = events.and_then(|events| events.iter_mut().find(|event| event.name == name));
        if let Some(event) = event {
            event.posted = true;
        }
    }

    /// Whether to post one more event `like` others. An event that could not be posted is posted again, under the same name.
    fn worth(&self, uid: &str, like: Fingerprint, name: &str, now: Timestamp) -> Worth {
        let mut told = self.0.lock();
        let lately = told.entry(uid.to_owned()).or_default();
        lately.retain(|_, events| {
            events.retain(|event| now.duration_since(event.at) < A_WHILE);
            !events.is_empty()
        });
        let all: usize = lately.values().map(Vec::len).sum();
        let events = lately.entry(like).or_default();
        let place = match events.iter().position(|event| event.name == name) {
            Some(place) if events[place].posted => return Worth::Posted,
            Some(place) => place,
            None if events.len() == OFTEN || all >= MOST => return Worth::Nothing,
            None => {
                events.push(Recent {
                    name: name.to_owned(),
                    at: now,
                    posted: false,
                });
                events.len() - 1
            }
        };
        match place + 1 {
            OFTEN => Worth::TellingForNow,
            _ => Worth::Telling,
        }
    }
}

/// What similar events of one object have in common. When the rollout advances, every event is new.
fn likeness<K: Rollout>(object: &K, notice: &Notice) -> Fingerprint {
    let status = object.status();
    let record = K::record(&status);
    Fingerprint::of(&format!(
        "{} {:?} {:?}",
        notice.reason, record.current_step_index, record.updated_revision
    ))
}

/// Posts events for what is about to be written into `object`'s status. Their names are derived from the status that was decided
/// on, so posting them again changes nothing.
pub(crate) async fn notify(
    client: &Client,
    told: &Told,
    object: &impl Rollout,
    notices: &[Notice],
    now: Timestamp,
) {
    let Some(namespace) = object.namespace() else {
        return;
    };
    let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
    for notice in notices {
        // Text copied from a status is untrusted: it must not look like a log line of its own.
        let line = stateward_terminal::plain(&notice.message);
        let reason = notice.reason.as_str();
        match notice.reason.event_type() {
            EventType::Normal => tracing::info!(reason, "{line}"),
            EventType::Warning => tracing::warn!(reason, "{line}"),
        }
        let name = name(object, notice);
        let uid = object.uid().unwrap_or_default();
        let like = likeness(object, notice);
        let message = match told.worth(&uid, like.clone(), &name, now) {
            Worth::Telling => line.to_string(),
            Worth::TellingForNow => format!("{}{FOR_NOW}", cut(&line, LONGEST_MESSAGE - FOR_NOW.len())),
            Worth::Posted | Worth::Nothing => continue,
        };
        let Ok(event) = serde_json::from_value(event(object, notice, &name, &message, now)) else {
            continue;
        };
        // A rollout is worth more than an event: a failure to post is only logged.
        match events.create(&PostParams::default(), &event).await {
            Ok(_) => told.posted(&uid, &like, &name),
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                told.posted(&uid, &like, &name);
            }
            Err(error) => tracing::warn!(reason, %error, "cannot post an event"),
        }
    }
}

/// Cuts a message to `longest` bytes.
fn cut(message: &str, longest: usize) -> Cow<'_, str> {
    if message.len() <= longest {
        return message.into();
    }
    let end = (0..=longest - 3).rev().find(|end| message.is_char_boundary(*end));
    format!("{}...", &message[..end.unwrap_or(0)]).into()
}

fn event(
    object: &impl Rollout,
    notice: &Notice,
    name: &str,
    message: &str,
    now: Timestamp,
) -> serde_json::Value {
    // The client that gave a command finds the answer by this version.
    let mut about = object.object_ref(&());
    about.resource_version = object.resource_version();
    // Event timestamps have whole seconds.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    json!({
        "metadata": {"name": name, "namespace": object.namespace()},
        "involvedObject": about,
        "reason": notice.reason.as_str(),
        "message": cut(message, LONGEST_MESSAGE),
        "type": notice.reason.event_type().as_str(),
        "source": {"component": "stateward"},
        "reportingComponent": "stateward",
        "reportingInstance": "",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    })
}

fn name(object: &impl Rollout, notice: &Notice) -> String {
    let identity = Fingerprint::of(&identity(object, notice));
    format!("{}.{}", object.name_any(), identity.as_str())
}

/// What an event is about: the part of the status that it changes, whatever else was written to the object meanwhile. A rejected
/// command changes nothing, so each rejection is an event of its own.
fn identity<K: Rollout>(object: &K, notice: &Notice) -> String {
    let since = if notice.reason == EventReason::CommandRefused {
        object.resource_version().unwrap_or_default()
    } else {
        let mut status = object.status();
        let record = K::record_mut(&mut status);
        (record.abort, record.restart) = (false, false);
        (record.promote, record.promote_full) = (false, false);
        (record.skip_current_step, record.force) = (false, false);
        record.requested_by = None;
        record.pause_conditions.clear();
        json!(status).to_string()
    };
    format!("{:?} {since} {} {}", object.uid(), notice.reason, notice.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::Value;
    use stateward_api::rolloutplugin::RolloutPlugin;

    fn object(version: &str, status: Value) -> RolloutPlugin {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutPlugin",
            "metadata": {"name": "db", "namespace": "ns", "uid": "1", "resourceVersion": version},
            "spec": {
                "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
                "plugin": {"name": "statefulset"}, "strategy": {"canary": {}},
            },
            "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    fn notice(reason: EventReason) -> Notice {
        Notice {
            reason,
            message: "rolling out b".into(),
        }
    }

    fn name(object: &RolloutPlugin, reason: EventReason) -> String {
        super::name(object, &notice(reason))
    }

    #[rstest]
    #[case::the_same("1", json!({"phase": "Successful"}), true)]
    #[case::somebody_wrote_meanwhile("2", json!({"phase": "Successful"}), true)]
    #[case::a_command_came_meanwhile("2", json!({"phase": "Successful", "abort": true}), true)]
    #[case::we_wrote_meanwhile("2", json!({"phase": "Progressing"}), false)]
    fn an_event_is_told_once_until_the_status_is_another(
        #[case] version: &str,
        #[case] status: Value,
        #[case] same: bool,
    ) {
        let first = object("1", json!({"phase": "Successful"}));
        let again = object(version, status);
        assert_eq!(
            name(&first, EventReason::RolloutStarted) == name(&again, EventReason::RolloutStarted),
            same
        );
    }

    #[test]
    fn every_command_is_refused_anew() {
        let (first, second) = (object("1", json!({})), object("2", json!({})));
        assert_ne!(
            name(&first, EventReason::CommandRefused),
            name(&second, EventReason::CommandRefused)
        );
        assert_eq!(
            name(&first, EventReason::CommandRefused),
            name(&first, EventReason::CommandRefused)
        );
    }

    #[test]
    fn a_message_is_cut_to_what_an_event_may_hold() {
        let message = "ä".repeat(LONGEST_MESSAGE);
        let cut = cut(&message, LONGEST_MESSAGE);
        assert!(cut.len() <= LONGEST_MESSAGE && cut.ends_with("ä..."));
        assert_eq!(super::cut("short", LONGEST_MESSAGE), "short");
    }

    /// Offers the same event `times`, a second apart, for an object at this step.
    fn tell(told: &Told, step: i32, times: std::ops::Range<usize>) -> Vec<Worth> {
        let object = object("1", json!({"currentStepIndex": step}));
        let tell = |second: usize| {
            let like = likeness(&object, &notice(EventReason::ChecksRestarted));
            let now = Timestamp::from_second(second as i64).unwrap();
            told.worth("1", like, &format!("db.{step}.{second}"), now)
        };
        times.map(tell).collect()
    }

    #[test]
    fn what_comes_again_and_again_at_one_step_is_left_to_the_log() {
        let told = Told::default();
        let mut worth = tell(&told, 1, 0..OFTEN + 3);
        assert_eq!(
            worth.split_off(OFTEN),
            [Worth::Nothing, Worth::Nothing, Worth::Nothing]
        );
        assert_eq!(worth.pop(), Some(Worth::TellingForNow));
        assert!(worth.iter().all(|worth| *worth == Worth::Telling));
        // The next step is news, and so is the same event a while later.
        assert_eq!(tell(&told, 2, 0..1), [Worth::Telling]);
        let later = A_WHILE.as_secs() as usize + OFTEN;
        assert_eq!(tell(&told, 1, later..later + 1), [Worth::Telling]);
    }

    /// A user who may write a status may change its step and revision at will, and make them arbitrarily long.
    #[test]
    fn a_status_that_changes_all_the_time_is_told_of_so_often_and_no_more() {
        let told = Told::default();
        let steps = 0..i32::try_from(MOST).unwrap() + 50;
        let worth: Vec<_> = steps.flat_map(|step| tell(&told, step, 0..1)).collect();
        assert!(worth[..MOST].iter().all(|worth| *worth == Worth::Telling));
        assert!(worth[MOST..].iter().all(|worth| *worth == Worth::Nothing));
        let long = object("1", json!({"updatedRevision": "x".repeat(60_000)}));
        assert!(
            likeness(&long, &notice(EventReason::ChecksRestarted))
                .as_str()
                .len()
                < 100
        );
        let later = A_WHILE.as_secs() as usize;
        assert_eq!(tell(&told, 1, later..later + 1), [Worth::Telling]);
    }

    #[test]
    fn an_event_is_posted_once_and_again_only_while_the_server_does_not_have_it() {
        let told = Told::default();
        tell(&told, 1, 0..OFTEN);
        assert_eq!(tell(&told, 1, 3..4), [Worth::Telling], "it could not be posted");
        assert_eq!(tell(&told, 1, OFTEN..OFTEN + 1), [Worth::Nothing]);
        let like = likeness(
            &object("1", json!({"currentStepIndex": 1})),
            &notice(EventReason::ChecksRestarted),
        );
        told.posted("1", &like, "db.1.3");
        assert_eq!(tell(&told, 1, 3..5), [Worth::Posted, Worth::Telling]);
        told.forget("1");
        assert_eq!(tell(&told, 1, OFTEN..OFTEN + 1), [Worth::Telling]);
    }
}
