//! Status patches: as small as the change, and bound to the version they were decided on.

use kube::api::{Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Map, Value, json};
use stateward_client::{ObjectName, Objects};

use crate::error::Error;
use crate::kind::Rollout;

/// Replaces `object`'s status by `new`. Commands are not in it, and so are removed; a command that was given meanwhile causes a
/// conflict, so it is not lost.
pub(crate) async fn write<K: Rollout>(client: &Client, object: &K, new: &K::Status) -> Result<K, Error> {
    let old = object.status();
    let patch = json!({
        "metadata": {"resourceVersion": object.resource_version(), "uid": object.uid()},
        "status": difference(&json!(old), &json!(new)),
    });
    let params = PatchParams {
        field_manager: Some(stateward_plugin::statefulset::FIELD_MANAGER.into()),
        ..PatchParams::default()
    };
    Objects::<K>::in_namespace_of(client, object)?
        .patch_status(
            &ObjectName::new(object.name_any())?,
            &params,
            &Patch::Merge(patch),
        )
        .await
        .map_err(Error::api("cannot write the status"))
}

/// The merge patch from one object to another.
pub(crate) fn difference(old: &Value, new: &Value) -> Map<String, Value> {
    let none = Map::new();
    let (old, new) = (old.as_object().unwrap_or(&none), new.as_object().unwrap_or(&none));
    let removed = old.keys().filter(|key| !new.contains_key(*key));
    let removed = removed.map(|key| (key.clone(), Value::Null));
    let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(value));
    let changed = changed.map(|(key, value)| {
        let value = match (old.get(key), value) {
            // Lists and scalars are replaced as a whole; an object keeps the fields that the patch does not name.
            (Some(before @ Value::Object(_)), Value::Object(_)) => Value::Object(difference(before, value)),
            _ => value.clone(),
        };
        (key.clone(), value)
    });
    removed.chain(changed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_what_changed_and_what_went() {
        let old = json!({"phase": "Paused", "gone": 1, "same": [1], "deep": {"a": 1, "b": 2}});
        let new = json!({"phase": "Progressing", "same": [1], "deep": {"a": 1, "b": 3}, "list": [2]});
        assert_eq!(
            Value::Object(difference(&old, &new)),
            json!({"phase": "Progressing", "gone": null, "deep": {"b": 3}, "list": [2]})
        );
    }
}
