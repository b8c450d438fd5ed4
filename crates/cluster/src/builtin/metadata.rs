//! Metadata: the fields that the server owns, and the rules for names, labels and references.

use crate::json::Value;
use jiff::Timestamp;

use super::Context;
use super::fields::{copy, has, made, part, set, text, unset};
use crate::resource;

/// Metadata stores times in whole seconds.
pub(super) fn timestamp(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// Sets the system metadata of a new object and removes what only the server may set.
pub(super) fn prepare_create(object: &mut Value, context: &Context<'_>) {
    let Some(metadata) = made(object, "metadata") else {
        return;
    };
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        unset(metadata, name);
    }
    set(metadata, "uid", context.uid);
    set(metadata, "creationTimestamp", timestamp(context.now));
}

pub(super) fn set_generation(object: &mut Value, generation: i64) {
    if let Some(metadata) = made(object, "metadata") {
        set(metadata, "generation", generation);
    }
}

/// A client cannot set the generation.
pub(super) fn prepare_update(old: &Value, new: &mut Value) {
    keep(old, new, "generation");
}

/// Keeps what no update can change or remove: identity, creation and deletion.
pub(super) fn keep_system_fields(old: &Value, new: &mut Value) {
    let before = &old["metadata"];
    let Some(metadata) = part(new, "metadata") else {
        return;
    };
    if text(metadata, "uid").is_empty() {
        copy(before, metadata, "uid");
    }
    for name in ["creationTimestamp", "deletionTimestamp"] {
        if has(before, name) {
            copy(before, metadata, name);
        }
    }
    if has(before, "deletionGracePeriodSeconds") && !has(metadata, "deletionGracePeriodSeconds") {
        copy(before, metadata, "deletionGracePeriodSeconds");
    }
}

/// Copies one metadata field from the stored object.
pub(super) fn keep(old: &Value, new: &mut Value, name: &str) {
    if let Some(metadata) = part(new, "metadata") {
        copy(&old["metadata"], metadata, name);
    }
}

/// Whether objects of this kind are cluster-scoped.
pub(super) fn is_cluster_scoped(resource: &str) -> bool {
    resource::builtin(resource).is_some_and(|resource| !resource.namespaced)
}

#[cfg(test)]
mod tests {
    use super::super::{Endpoint, Gates, prepare_create, prepare_update, validate_update};
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    fn context() -> Context<'static> {
        Context {
            uid: "new",
            now: "2026-01-01T00:00:00.5Z".parse().unwrap(),
            gates: Gates::default(),
        }
    }

    fn config(metadata: Value) -> Value {
        let mut object =
            json!({"metadata": {"name": "c", "namespace": "n", "uid": "old", "resourceVersion": "1"}});
        for (name, value) in metadata.as_object().unwrap() {
            set(&mut object["metadata"], name, value.clone());
        }
        object
    }

    #[test]
    fn a_new_object_gets_its_identity_from_the_server() {
        let mut object = config(json!({"deletionTimestamp": "2020-01-01T00:00:00Z", "generation": 7}));
        prepare_create("configmaps", &mut object, &context());
        let expected = json!({
            "name": "c", "namespace": "n", "uid": "new", "resourceVersion": "1", "generation": 7,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        });
        assert_eq!(object["metadata"], expected);
    }

    #[test]
    fn an_update_cannot_undo_a_deletion_or_change_a_birthday() {
        let stored = json!({
            "creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": "2020-01-02T00:00:00Z",
            "deletionGracePeriodSeconds": 30,
        });
        let old = config(stored);
        let mut new = config(json!({"uid": "", "creationTimestamp": "2021-01-01T00:00:00Z"}));
        prepare_update("configmaps", &old, &mut new, Endpoint::Main, &context());
        assert_eq!(new["metadata"], old["metadata"]);
    }

    #[rstest]
    #[case(json!({"uid": "other"}), &["metadata.uid", "metadata.uid"])]
    #[case(json!({"name": "d"}), &["metadata.name", "metadata.name"])]
    #[case(json!({"resourceVersion": ""}), &["metadata.resourceVersion", "metadata.resourceVersion"])]
    #[case(json!({"finalizers": ["example.com/f"]}), &["metadata.finalizers", "metadata.finalizers"])]
    fn what_is_fixed_is_named_once_by_the_server_and_once_by_the_kind(
        #[case] change: Value,
        #[case] fields: &[&str],
    ) {
        let old = config(json!({"deletionTimestamp": "2020-01-02T00:00:00Z"}));
        let mut new = config(change);
        copy(
            &old["metadata"].clone(),
            &mut new["metadata"],
            "deletionTimestamp",
        );
        let errors = validate_update("configmaps", &old, &new, Endpoint::Main);
        assert_eq!(
            errors
                .iter()
                .map(|error| error.field.as_str())
                .collect::<Vec<_>>(),
            fields
        );
    }
}
