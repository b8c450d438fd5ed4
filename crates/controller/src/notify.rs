//! Events: what happened, told once.

use k8s_openapi::api::core::v1::Event;
use kube::api::PostParams;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_core::plan::Fingerprint;
use stateward_core::world::Notice;

/// An event's message may not be longer.
const LONGEST_MESSAGE: usize = 1024;

/// How often to try. A rollout is worth more than an event: after that it is logged and left.
const TRIES: usize = 3;

/// Tells what is about to be written into `object`'s status. The names of the events follow from the version that was decided
/// on, so that telling them again changes nothing.
pub(crate) async fn notify(
    client: &Client,
    object: &RolloutPlugin,
    notices: &[Notice],
    now: jiff::Timestamp,
) {
    let Some(namespace) = object.namespace() else {
        return;
    };
    let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
    for notice in notices {
        tracing::info!(reason = notice.reason, "{}", notice.message);
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

fn event(object: &RolloutPlugin, notice: &Notice, now: jiff::Timestamp) -> serde_json::Value {
    let version = object.resource_version().unwrap_or_default();
    let identity = format!(
        "{:?} {version} {} {}",
        object.uid(),
        notice.reason,
        notice.message
    );
    let mut message = notice.message.clone();
    if message.len() > LONGEST_MESSAGE {
        let end = (0..=LONGEST_MESSAGE - 3)
            .rev()
            .find(|end| message.is_char_boundary(*end));
        message.truncate(end.unwrap_or(0));
        message.push_str("...");
    }
    // Events count in whole seconds.
    let now = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now);
    json!({
        "metadata": {
            "name": format!("{}.{}", object.name_any(), Fingerprint::of(&identity).as_str()),
            "namespace": object.namespace(),
        },
        "involvedObject": object.object_ref(&()),
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
