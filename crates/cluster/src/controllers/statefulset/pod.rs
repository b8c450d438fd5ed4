//! A pod of a set: its construction, and whether an existing one still matches.

use crate::json::{Value, json};

use super::claims;
use super::object::{Metadata, Pod, Set, items};
use super::ordinal::Ordinal;
use crate::controllers::owner::controller_reference;
use crate::object::{map, map_at, map_in};

const NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";
const REVISION_LABEL: &str = "controller-revision-hash";

/// Builds the pod of a template at an ordinal. The template is a revision's; everything else comes from the current set.
pub(super) fn build(set: &Set, template: &Value, revision: &str, ordinal: Ordinal) -> Pod {
    let mut metadata = json!({
        "generateName": format!("{}-", set.name()),
        "labels": {},
        "ownerReferences": [controller_reference(set, "apps/v1", "StatefulSet")],
    });
    for field in ["labels", "annotations", "finalizers"] {
        let value = &template["metadata"][field];
        if !value.is_null() {
            map(&mut metadata).insert(field.into(), value.clone());
        }
    }
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod"});
    map(&mut pod).insert("metadata".into(), metadata);
    map(&mut pod).insert("spec".into(), template["spec"].clone());
    put_identity(set, ordinal, &mut pod);
    let spec = map_at(&mut pod, "spec");
    spec.insert("hostname".into(), ordinal.of(set.name()).into());
    // Overrides the template: a set without a service removes the subdomain.
    match set.service_name() {
        "" => spec.remove("subdomain"),
        service => spec.insert("subdomain".into(), service.into()),
    };
    put_storage(set, ordinal, &mut pod);
    let labels = map_in(map_at(&mut pod, "metadata"), "labels");
    labels.insert(REVISION_LABEL.into(), revision.into());
    Pod::new(pod)
}

/// Whether name and labels identify the pod of the set. The index label is written, but not checked.
pub(super) fn has_identity(set: &Set, ordinal: Ordinal, pod: &impl Metadata) -> bool {
    ordinal.is_of(set.name(), pod.name())
        && pod.namespace() == set.namespace()
        && pod.labels()[NAME_LABEL] == pod.name()
}

pub(super) fn put_identity(set: &Set, ordinal: Ordinal, pod: &mut Value) {
    let name = ordinal.of(set.name());
    let metadata = map_at(pod, "metadata");
    metadata.insert("name".into(), name.as_str().into());
    metadata.insert("namespace".into(), set.namespace().into());
    let labels = map_in(metadata, "labels");
    labels.insert(NAME_LABEL.into(), name.into());
    labels.insert(INDEX_LABEL.into(), ordinal.to_string().into());
}

/// Whether the pod mounts its claims. Of two volumes with the same name the last counts.
pub(super) fn has_storage(set: &Set, ordinal: Ordinal, pod: &Value) -> bool {
    let templates = set.claim_templates();
    if templates.is_empty() {
        return true;
    }
    let volumes = items(&pod["spec"]["volumes"]);
    templates.iter().all(|template| {
        let volume = volumes
            .iter()
            .rev()
            .find(|volume| volume["name"] == template.name());
        volume.is_some_and(|volume| {
            volume["persistentVolumeClaim"]["claimName"] == claims::name(set, template, ordinal)
        })
    })
}

/// Adds the claims before the pod's own volumes, replacing those with the same name. Upstream adds the claims in random order; here they
/// keep the set's.
pub(super) fn put_storage(set: &Set, ordinal: Ordinal, pod: &mut Value) {
    let mut volumes: Vec<Value> = Vec::new();
    for template in claims::templates(set) {
        let claim = claims::name(set, template, ordinal);
        volumes.push(json!({"name": template.name(), "persistentVolumeClaim": {"claimName": claim}}));
    }
    let own = items(&pod["spec"]["volumes"]).iter();
    let kept: Vec<_> = own
        .filter(|own| volumes.iter().all(|claim| claim["name"] != own["name"]))
        .cloned()
        .collect();
    volumes.extend(kept);
    let spec = map_at(pod, "spec");
    if volumes.is_empty() {
        spec.remove("volumes");
    } else {
        spec.insert("volumes".into(), volumes.into());
    }
}
