//! Events: what happened, told once.

use k8s_openapi::api::core::v1::Event;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use stateward_core::plan::Fingerprint;
use stateward_core::world::Notice;

use crate::kind::Rollout;

/// An event's message may not be longer.
const LONGEST_MESSAGE: usize = 1024;

/// How often to try. A rollout is worth more than an event: after that it is logged and left.
const TRIES: usize = 3;

/// Tells what is about to be written into `object`'s status. The names of the events follow from the status that was decided
/// on, so that telling them again changes nothing.
pub(crate) async fn notify(client: &Client, object: &impl Rollout, notices: &[Notice], now: jiff::Timestamp) {
    let Some(namespace) = object.namespace() else {
        return;
    };
    let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
    for notice in notices {
        if notice.warning {
            tracing::warn!(reason = notice.reason, "{}", notice.message);
        } else {
            tracing::info!(reason = notice.reason, "{}", notice.message);
        }
        let Ok(event) = serde_json::from_value(event(object, notice, now)) else {
            continue;
        };
        for _ in 0..TRIES {
            match events.create(&PostParams::default(), &event).await {
                Ok(_) => break,
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => break,
                Err(error) => tracing::warn!(reason = notice.reason, %error, "cannot write an event"),
            }
        }
    }
}

fn event(object: &impl Rollout, notice: &Notice, now: jiff::Timestamp) -> serde_json::Value {
    let identity = identity(object, notice);
    let mut message = notice.message.clone();
    if message.len() > LONGEST_MESSAGE {
        let end = (0..=LONGEST_MESSAGE - 3)
            .rev()
            .find(|end| message.is_char_boundary(*end));
        message.truncate(end.unwrap_or(0));
        message.push_str("...");
    }
    // Whoever gave a command finds the answer to it by this.
    let mut about = object.object_ref(&());
    about.resource_version = object.resource_version();
    // Events count in whole seconds.
    let now = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now);
    json!({
        "metadata": {
            "name": format!("{}.{}", object.name_any(), Fingerprint::of(&identity).as_str()),
            "namespace": object.namespace(),
        },
        "involvedObject": about,
        "reason": notice.reason,
        "message": message,
        "type": if notice.warning { "Warning" } else { "Normal" },
        "source": {"component": "stateward"},
        "reportingComponent": "stateward",
        "reportingInstance": "",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    })
}

/// What an event happened to: the status that it leads away from, whatever else was written to the object meanwhile. To say no to
/// a command leads nowhere, so each of those is an event of its own.
fn identity<K: Rollout>(object: &K, notice: &Notice) -> String {
    let since = if notice.reason == "CommandRefused" {
        object.resource_version().unwrap_or_default()
    } else {
        let mut status = object.status();
        let record = K::record_mut(&mut status);
        (record.abort, record.restart) = (false, false);
        (record.promote, record.promote_full) = (false, false);
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

    fn name(object: &RolloutPlugin, reason: &'static str) -> Value {
        let notice = Notice {
            warning: false,
            reason,
            message: "rolling out b".into(),
        };
        event(object, &notice, jiff::Timestamp::UNIX_EPOCH)["metadata"]["name"].clone()
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
            name(&first, "RolloutStarted") == name(&again, "RolloutStarted"),
            same
        );
    }

    #[test]
    fn every_command_is_refused_anew() {
        let (first, second) = (object("1", json!({})), object("2", json!({})));
        assert_ne!(name(&first, "CommandRefused"), name(&second, "CommandRefused"));
        assert_eq!(name(&first, "CommandRefused"), name(&first, "CommandRefused"));
    }

    #[test]
    fn a_message_is_cut_to_what_an_event_may_hold() {
        let notice = Notice {
            warning: true,
            reason: "PodBroken",
            message: "ä".repeat(LONGEST_MESSAGE),
        };
        let event = event(&object("1", json!({})), &notice, jiff::Timestamp::UNIX_EPOCH);
        let message = event["message"].as_str().unwrap();
        assert!(message.len() <= LONGEST_MESSAGE && message.ends_with("ä..."));
    }
}
