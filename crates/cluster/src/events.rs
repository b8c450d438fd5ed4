//! The two forms of an Event. It is stored once, in the core group's form; `events.k8s.io` has the same object with other field names.

use crate::json::{Map, Value};

/// `(core, events.k8s.io)`; names that are the same in both are not listed.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Whether a resource shows Events in another form than the stored one.
pub(crate) fn is_redressed(resource: &str) -> bool {
    resource == "events.events.k8s.io"
}

/// An Event of the core group in the form of `events.k8s.io/v1`.
pub(crate) fn as_events_group(event: &Value) -> Value {
    let renamed = rename(event, |(core, other)| (core, other));
    redressed(renamed, "events.k8s.io/v1", "io.k8s.api.events.v1.Event")
}

/// An Event of `events.k8s.io/v1` in the form of the core group.
pub(crate) fn as_core(event: &Value) -> Value {
    let renamed = rename(event, |(core, other)| (other, core));
    redressed(renamed, "v1", "io.k8s.api.core.v1.Event")
}

fn rename(
    event: &Value,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Value {
    let Value::Object(fields) = event else {
        return event.clone();
    };
    let renamed: Map = fields
        .iter()
        .map(|(name, value)| {
            let name = RENAMED
                .iter()
                .map(|pair| direction(*pair))
                .find(|(from, _)| from == name)
                .map_or(name.as_str(), |(_, to)| to);
            (name.to_owned(), value.clone())
        })
        .collect();
    Value::Object(renamed)
}

/// Which empty fields are written differs between the two types.
fn redressed(event: Value, api_version: &str, name: &str) -> Value {
    let mut event = match crate::types::decode(name, &event) {
        Some(Ok(decoded)) => decoded.value,
        _ => event,
    };
    event["apiVersion"] = api_version.into();
    event["kind"] = "Event".into();
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn an_event_is_the_same_after_two_changes_of_dress() {
        let core = as_core(&json!({
            "metadata": {"name": "e"}, "regarding": {"kind": "Pod", "name": "db-0"}, "note": "hello", "reason": "Because",
            "type": "Normal", "reportingController": "c", "action": "a", "deprecatedCount": 2,
        }));
        assert_eq!(core["involvedObject"]["name"], "db-0");
        assert_eq!(core["count"], 2);
        let shown = as_events_group(&core);
        assert_eq!(
            (&shown["note"], &shown["apiVersion"]),
            (&json!("hello"), &json!("events.k8s.io/v1"))
        );
        assert_eq!(as_core(&shown), core);
    }
}
