//! The copy of a stable template: a ControllerRevision that the rollout object owns (rule 4).
//!
//! It is not in the status, because users who may only patch the status, to promote or to abort, could then replace the pod spec
//! that a rollback restores. They cannot change a ControllerRevision: its data is immutable, and its name is derived from the data
//! by SHA-256, so a copy that does not match its own name is never restored. It has none of the StatefulSet's labels and is
//! controlled by the rollout object, so the StatefulSet controller ignores it, and it is garbage collected with the object.

use std::fmt::Write;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::revision;

/// The label of every copy. Its value is the UID of the rollout object.
pub const COPY_OF: &str = "stateward.dev/stable-template-of";

/// How many characters of the object's name are part of the copy's: the rest of the 253 is for the digest.
const LONGEST_PREFIX: usize = 180;

/// The rollout object that owns a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// `argoproj.io/v1alpha1`
    pub api_version: String,
    /// `RolloutPlugin`
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// The name of the copy of `template`: the object's name, and the SHA-256 of its UID and the template.
pub fn name(owner: &Owner, template: &Value) -> String {
    let mut end = owner.name.len().min(LONGEST_PREFIX);
    while !owner.name.is_char_boundary(end) {
        end -= 1;
    }
    let prefix = owner.name[..end].trim_end_matches(['-', '.']);
    let digest = Sha256::new()
        .chain_update(&owner.uid)
        .chain_update("/")
        .chain_update(revision::data(template))
        .finalize();
    let mut name = format!("{prefix}-stable-");
    for byte in digest {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

/// The ControllerRevision with the copy of `template`.
pub fn manifest(owner: &Owner, namespace: &str, template: &Value) -> Value {
    let mut patch = template.clone();
    if let Value::Object(fields) = &mut patch {
        fields.insert("$patch".into(), "replace".into());
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name(owner, template),
            "namespace": namespace,
            "labels": {COPY_OF: owner.uid},
            "ownerReferences": [{
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "name": owner.name,
                "uid": owner.uid,
                "controller": true,
            }],
        },
        "revision": 1,
        "data": {"spec": {"template": patch}},
    })
}

/// Whether this object controls a ControllerRevision.
pub fn is_of(copy: &Value, owner: &Owner) -> bool {
    let owners = copy["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|reference| {
        reference["controller"] == true
            && reference["apiVersion"] == *owner.api_version
            && reference["kind"] == *owner.kind
            && reference["name"] == *owner.name
            && reference["uid"] == *owner.uid
    })
}

/// The template in a copy. `None` if the copy is not this object's, or its data does not match its name.
pub fn template(copy: &Value, owner: &Owner) -> Option<Value> {
    let mut template = copy["data"]["spec"].get("template")?.clone();
    template.as_object_mut()?.remove("$patch");
    let whole = is_of(copy, owner) && copy["metadata"]["name"] == *name(owner, &template);
    whole.then_some(template)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn owner() -> Owner {
        Owner {
            api_version: "argoproj.io/v1alpha1".into(),
            kind: "RolloutPlugin".into(),
            name: "db".into(),
            uid: "6a6b".into(),
        }
    }

    fn template_of(image: &str) -> Value {
        json!({"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "db", "image": image}]}})
    }

    #[test]
    fn a_copy_keeps_the_template_and_is_named_after_it() {
        let copy = manifest(&owner(), "ns", &template_of("db:1"));
        assert_eq!(template(&copy, &owner()), Some(template_of("db:1")));
        let other = manifest(&owner(), "ns", &template_of("db:2"));
        assert_ne!(copy["metadata"]["name"], other["metadata"]["name"]);
        let name = copy["metadata"]["name"].as_str().unwrap();
        assert_eq!((&name[..10], name.len()), ("db-stable-", 74));
    }

    /// What a user who can create or change a ControllerRevision could try.
    #[rstest]
    #[case::other_data("/data/spec/template", template_of("evil:1"))]
    #[case::no_data("/data", Value::Null)]
    #[case::no_template("/data/spec/template", json!("x"))]
    #[case::renamed("/metadata/name", json!("db-stable-0"))]
    #[case::another_object("/metadata/ownerReferences/0/uid", json!("other"))]
    #[case::another_name("/metadata/ownerReferences/0/name", json!("web"))]
    #[case::another_kind("/metadata/ownerReferences/0/kind", json!("PhasedRollout"))]
    #[case::another_group("/metadata/ownerReferences/0/apiVersion", json!("sts.plus/v1alpha1"))]
    #[case::not_controlled("/metadata/ownerReferences/0/controller", json!(false))]
    #[case::no_owner("/metadata/ownerReferences", json!([]))]
    fn a_copy_that_is_not_whole_is_never_restored(#[case] place: &str, #[case] change: Value) {
        let mut copy = manifest(&owner(), "ns", &template_of("db:1"));
        *copy.pointer_mut(place).unwrap() = change;
        assert_eq!(template(&copy, &owner()), None);
    }

    #[test]
    fn a_long_name_leaves_room_for_the_digest() {
        let owner = Owner {
            name: format!("{}.{}", "a".repeat(179), "b".repeat(73)),
            ..owner()
        };
        let name = name(&owner, &template_of("db:1"));
        assert!(name.len() <= 253, "{}", name.len());
        assert!(
            name.starts_with(&format!("{}-stable-", "a".repeat(179))),
            "{name}"
        );
    }
}
