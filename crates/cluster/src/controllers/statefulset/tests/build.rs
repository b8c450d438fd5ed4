//! Objects for tests, as chains: `set("db").replicas(3).partition(1)`, `pod("db", 2).on("v1").ready()`.

use crate::json::{Value, json};
use stateward_core::revision::{self, RevisionName};

use super::NOW;

pub(super) fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "main", "image": image}]}})
}

/// The name of the revision for `image` in the set `db`.
pub(super) fn revision_of(image: &str) -> String {
    RevisionName::of("db", &(&template(image)).into(), 0)
        .as_str()
        .to_owned()
}

/// A StatefulSet on image `v1`, with defaults.
pub(super) struct SetBuilder(Value);

pub(super) fn set(name: &str) -> SetBuilder {
    SetBuilder(json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": "lab", "uid": format!("uid-of-{name}"), "generation": 1},
        "spec": {
            "replicas": 1,
            "serviceName": "svc",
            "selector": {"matchLabels": {"app": "db"}},
            "template": template("v1"),
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "revisionHistoryLimit": 10,
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        },
        "status": {"replicas": 0, "availableReplicas": 0},
    }))
}

impl SetBuilder {
    pub(super) fn spec(mut self, field: &str, value: Value) -> Self {
        self.0["spec"][field] = value;
        self
    }

    pub(super) fn replicas(self, count: i64) -> Self {
        self.spec("replicas", count.into())
    }

    pub(super) fn image(self, image: &str) -> Self {
        self.spec("template", template(image))
    }

    pub(super) fn parallel(self) -> Self {
        self.spec("podManagementPolicy", "Parallel".into())
    }

    pub(super) fn partition(self, partition: i64) -> Self {
        self.spec(
            "updateStrategy",
            json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}),
        )
    }

    pub(super) fn max_unavailable(mut self, value: Value) -> Self {
        self.0["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = value;
        self
    }

    pub(super) fn without_rolling_block(self) -> Self {
        self.spec("updateStrategy", json!({"type": "RollingUpdate"}))
    }

    pub(super) fn on_delete(self) -> Self {
        self.spec("updateStrategy", json!({"type": "OnDelete"}))
    }

    pub(super) fn start(self, ordinal: i64) -> Self {
        self.spec("ordinals", json!({"start": ordinal}))
    }

    pub(super) fn min_ready(self, seconds: i64) -> Self {
        self.spec("minReadySeconds", seconds.into())
    }

    pub(super) fn history_limit(self, limit: i64) -> Self {
        self.spec("revisionHistoryLimit", limit.into())
    }

    pub(super) fn claim(mut self, name: &str) -> Self {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"]}, "status": {"phase": "Pending"},
        });
        match &mut self.0["spec"]["volumeClaimTemplates"] {
            Value::Array(claims) => claims.push(claim),
            none => *none = json!([claim]),
        }
        self
    }

    pub(super) fn retention(self, when_deleted: &str, when_scaled: &str) -> Self {
        let policy = json!({"whenDeleted": when_deleted, "whenScaled": when_scaled});
        self.spec("persistentVolumeClaimRetentionPolicy", policy)
    }

    /// Sets its current revision to that of this image.
    pub(super) fn current(mut self, image: &str) -> Self {
        self.0["status"]["currentRevision"] = revision_of(image).into();
        self
    }

    pub(super) fn status(mut self, field: &str, value: Value) -> Self {
        self.0["status"][field] = value;
        self
    }

    pub(super) fn annotation(mut self, key: &str, value: &str) -> Self {
        self.0["metadata"]["annotations"][key] = value.into();
        self
    }

    pub(super) fn deleted(mut self) -> Self {
        self.0["metadata"]["deletionTimestamp"] = NOW.into();
        self
    }
}

/// A pod of a set: Pending, on image `v1`, owned by the set.
pub(super) struct PodBuilder(Value);

pub(super) fn pod(set: &str, ordinal: u32) -> PodBuilder {
    named_pod(set, &format!("{set}-{ordinal}")).on("v1")
}

pub(super) fn named_pod(set: &str, name: &str) -> PodBuilder {
    PodBuilder(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "lab", "uid": format!("uid-of-{name}"),
            "labels": {"app": "db", "statefulset.kubernetes.io/pod-name": name},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": set, "uid": format!("uid-of-{set}"),
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {"containers": [{"name": "main", "image": "v1"}]},
        "status": {"phase": "Pending"},
    }))
}

impl PodBuilder {
    pub(super) fn on(mut self, image: &str) -> Self {
        self.0["spec"]["containers"][0]["image"] = image.into();
        self.revision(&revision_of(image))
    }

    pub(super) fn revision(self, name: &str) -> Self {
        self.label("controller-revision-hash", name)
    }

    pub(super) fn label(mut self, key: &str, value: &str) -> Self {
        self.0["metadata"]["labels"][key] = value.into();
        self
    }

    pub(super) fn phase(mut self, phase: &str) -> Self {
        self.0["status"]["phase"] = phase.into();
        self
    }

    pub(super) fn running(self) -> Self {
        self.phase("Running")
    }

    pub(super) fn ready(self) -> Self {
        self.ready_since(NOW)
    }

    pub(super) fn ready_since(mut self, time: &str) -> Self {
        self.0["status"]["conditions"] =
            json!([{"type": "Ready", "status": "True", "lastTransitionTime": time}]);
        self.running()
    }

    pub(super) fn terminating(mut self) -> Self {
        self.0["metadata"]["deletionTimestamp"] = NOW.into();
        self
    }

    pub(super) fn orphan(mut self) -> Self {
        self.0["metadata"]["ownerReferences"] = Value::Null;
        self
    }

    pub(super) fn owner_uid(mut self, uid: &str) -> Self {
        self.0["metadata"]["ownerReferences"][0]["uid"] = uid.into();
        self
    }

    pub(super) fn volume(mut self, name: &str, claim: &str) -> Self {
        self.0["spec"]["volumes"] = json!([{"name": name, "persistentVolumeClaim": {"claimName": claim}}]);
        self
    }
}

/// The revision of an image, owned by `db`.
pub(super) struct RevisionBuilder(Value);

pub(super) fn revision(image: &str, number: i64) -> RevisionBuilder {
    let data: Value = serde_json::from_str(&revision::data(&(&template(image)).into())).unwrap();
    RevisionBuilder(json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": revision_of(image), "namespace": "lab", "uid": format!("uid-of-{}", revision_of(image)),
            "labels": {"app": "db"}, "creationTimestamp": NOW,
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "uid-of-db",
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "data": data,
        "revision": number,
    }))
}

impl RevisionBuilder {
    pub(super) fn named(mut self, name: &str) -> Self {
        self.0["metadata"]["name"] = name.into();
        self
    }

    pub(super) fn data(mut self, data: Value) -> Self {
        self.0["data"] = data;
        self
    }

    pub(super) fn orphan(mut self) -> Self {
        self.0["metadata"]["ownerReferences"] = Value::Null;
        self
    }
}

/// A claim of the set `db`.
pub(super) struct ClaimBuilder(Value);

pub(super) fn claim(name: &str) -> ClaimBuilder {
    ClaimBuilder(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "lab", "uid": format!("uid-of-{name}")},
    }))
}

impl ClaimBuilder {
    pub(super) fn owned_by(mut self, kind: &str, name: &str, uid: &str) -> Self {
        let api_version = if kind == "StatefulSet" { "apps/v1" } else { "v1" };
        let owner =
            json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true});
        match &mut self.0["metadata"]["ownerReferences"] {
            Value::Array(owners) => owners.push(owner),
            none => *none = json!([owner]),
        }
        self
    }

    pub(super) fn not_as_controller(mut self) -> Self {
        self.0["metadata"]["ownerReferences"][0]["controller"] = false.into();
        self
    }

    pub(super) fn terminating(mut self) -> Self {
        self.0["metadata"]["deletionTimestamp"] = NOW.into();
        self
    }
}

macro_rules! builds {
    ($($name:ident => $resource:literal),*) => {$(
        impl From<$name> for (&'static str, Value) {
            fn from(builder: $name) -> Self {
                ($resource, builder.0)
            }
        }
    )*};
}

builds!(
    SetBuilder => "statefulsets.apps",
    PodBuilder => "pods",
    RevisionBuilder => "controllerrevisions.apps",
    ClaimBuilder => "persistentvolumeclaims"
);
