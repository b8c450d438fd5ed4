//! The simulated volume of a claim: its content, creation and deletion.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::api::{Key, MANAGER, PLAYED_BY, Refusal, Scope, version};

/// The fields of a claim that a provisioner needs.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) uid: String,
    pub(crate) version: u64,
    pub(crate) bound: bool,
    volume: Option<String>,
    storage: String,
    access_modes: Vec<String>,
    class: Option<String>,
    attributes_class: Option<String>,
    mode: Option<String>,
    deleting: bool,
}

impl Claim {
    pub(crate) fn of(object: &PersistentVolumeClaim) -> Self {
        let spec = object.spec.clone().unwrap_or_default();
        let requests = spec
            .resources
            .and_then(|resources| resources.requests)
            .unwrap_or_default();
        let phase = object.status.as_ref().and_then(|status| status.phase.as_deref());
        Self {
            uid: object.metadata.uid.clone().unwrap_or_default(),
            version: version(object),
            bound: phase == Some("Bound"),
            volume: spec.volume_name.filter(|name| !name.is_empty()),
            storage: requests
                .get("storage")
                .map_or_else(|| "1Gi".to_owned(), |storage| storage.0.clone()),
            access_modes: spec.access_modes.unwrap_or_default(),
            class: spec.storage_class_name,
            attributes_class: spec
                .volume_attributes_class_name
                .filter(|class| !class.is_empty()),
            mode: spec.volume_mode,
            deleting: object.metadata.deletion_timestamp.is_some(),
        }
    }

    pub(crate) fn volume_name(&self) -> String {
        volume_name(&self.uid)
    }

    /// Whether it waits for our volume. A claim that names a volume waits to be bound to that one.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.bound && !self.deleting && self.volume.is_none()
    }

    /// Whether it has another volume than ours.
    pub(crate) fn has_another(&self) -> bool {
        self.volume
            .as_ref()
            .is_some_and(|volume| *volume != self.volume_name())
    }
}

/// The name of the volume for the claim with this uid, in the format of provisioners.
pub(crate) fn volume_name(claim: &str) -> String {
    format!("pvc-{claim}")
}

/// Creates a volume for a claim. The cluster's volume controller binds the two.
pub(crate) async fn provision(client: Client, key: &Key, claim: &Claim) -> Result<(), Refusal> {
    let volumes: Api<PersistentVolume> = Api::all(client);
    let name = claim.volume_name();
    let of_volume = |error| Refusal::of(&format!("volume {name}"), error);
    let manager = PostParams {
        field_manager: Some(MANAGER.into()),
        ..PostParams::default()
    };
    let volume = serde_json::from_value(volume(key, claim))
        .map_err(kube::Error::SerdeError)
        .map_err(of_volume)?;
    match volumes.create(&manager, &volume).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        other => other.map(drop).map_err(of_volume),
    }
}

fn volume(key: &Key, claim: &Claim) -> Value {
    let name = claim.volume_name();
    let mut volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "labels": { PLAYED_BY: MANAGER },
            // A provisioner that no volume controller knows, so that the deletion is left to this kubelet.
            "annotations": { "pv.kubernetes.io/provisioned-by": PLAYED_BY },
        },
        "spec": {
            "capacity": { "storage": claim.storage },
            "accessModes": claim.access_modes,
            "storageClassName": claim.class.clone().unwrap_or_default(),
            "volumeMode": claim.mode,
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": key.namespace,
                "name": key.name,
                "uid": claim.uid,
            },
        },
    });
    // Only CSI volumes have attributes, but a cluster that attaches volumes would wait for the driver.
    match &claim.attributes_class {
        Some(class) => {
            volume["spec"]["volumeAttributesClassName"] = class.as_str().into();
            volume["spec"]["csi"] = json!({ "driver": MANAGER, "volumeHandle": name });
        }
        None => volume["spec"]["hostPath"] = json!({ "path": format!("/var/lib/stateward/{name}") }),
    }
    volume
}

pub(crate) async fn sweep(client: Client, scope: &Scope) -> Result<(), Refusal> {
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let ours = ListParams::default().labels(&format!("{PLAYED_BY}={MANAGER}"));
    for volume in volumes
        .list(&ours)
        .await
        .map_err(|error| Refusal::of("volumes", error))?
    {
        let Some(claim) = volume.spec.and_then(|spec| spec.claim_ref) else {
            continue;
        };
        let (namespace, name) = (
            claim.namespace.unwrap_or_default(),
            claim.name.unwrap_or_default(),
        );
        if !scope.holds(&namespace) {
            continue;
        }
        // Read again, because a claim may have been created since the list.
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), &namespace);
        let seen = claims.get_opt(&name).await;
        let seen = seen.map_err(|error| Refusal::of(&format!("claim {namespace}/{name}"), error))?;
        let is_used =
            seen.is_some_and(|seen| seen.metadata.uid == claim.uid && !Claim::of(&seen).has_another());
        if !is_used {
            delete_volume(&volumes, &volume.metadata.name.unwrap_or_default()).await?;
        }
    }
    Ok(())
}

/// Deletes a volume. A bound one is protected, so it is released first.
pub(crate) async fn delete_volume(volumes: &Api<PersistentVolume>, name: &str) -> Result<(), Refusal> {
    let params = PatchParams {
        field_manager: Some(MANAGER.into()),
        ..PatchParams::default()
    };
    let released = json!({ "status": { "phase": "Released" } });
    let outcome = match volumes.patch_status(name, &params, &Patch::Merge(released)).await {
        Ok(_) => volumes.delete(name, &DeleteParams::default()).await.map(drop),
        Err(error) => Err(error),
    };
    match outcome {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other.map_err(|error| Refusal::of(&format!("volume {name}"), error)),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn claim(spec: Value, phase: &str) -> Claim {
        let object = json!({
            "metadata": { "namespace": "ns", "name": "data-db-0", "uid": "u1", "resourceVersion": "3" },
            "spec": spec,
            "status": { "phase": phase },
        });
        Claim::of(&serde_json::from_value(object).unwrap())
    }

    #[rstest]
    #[case::pending(json!({}), "Pending", true)]
    #[case::being_bound(json!({ "volumeName": "pvc-u1" }), "Pending", false)]
    #[case::names_another_volume(json!({ "volumeName": "mine" }), "Pending", false)]
    #[case::bound(json!({ "volumeName": "pvc-u1" }), "Bound", false)]
    fn a_claim_waits_until_it_has_a_volume(#[case] spec: Value, #[case] phase: &str, #[case] waits: bool) {
        assert_eq!(claim(spec, phase).is_waiting(), waits);
    }

    #[rstest]
    #[case::none(json!({}), false)]
    #[case::ours(json!({ "volumeName": "pvc-u1" }), false)]
    #[case::somebody_elses(json!({ "volumeName": "mine" }), true)]
    fn a_volume_of_ours_is_taken_back_where_another_was_faster(
        #[case] spec: Value,
        #[case] has_another: bool,
    ) {
        assert_eq!(claim(spec, "Bound").has_another(), has_another);
    }

    #[test]
    fn a_volume_fits_its_claim() {
        let spec = json!({
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "volumeAttributesClassName": "gold",
            "resources": { "requests": { "storage": "5Gi" } },
        });
        let key = Key {
            namespace: "ns".into(),
            name: "data-db-0".into(),
        };
        let volume: PersistentVolume = serde_json::from_value(volume(&key, &claim(spec, "Pending"))).unwrap();

        let spec = volume.spec.unwrap();
        assert_eq!(spec.capacity.unwrap()["storage"].0, "5Gi");
        assert_eq!(spec.storage_class_name.as_deref(), Some("fast"));
        assert_eq!(spec.volume_attributes_class_name.as_deref(), Some("gold"));
        assert_eq!(spec.access_modes.unwrap(), ["ReadWriteOnce"]);
        assert_eq!(spec.claim_ref.unwrap().uid.as_deref(), Some("u1"));
    }
}
