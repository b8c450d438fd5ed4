//! The kinds that requests are about, with a valid object of each.

use serde_json::{Value, json};

/// The group of our custom types, which no other controller watches.
const GROUP: &str = "requests.stateward.dev";

/// The cluster-scoped custom type's collection.
pub(super) const CLUSTER_SCOPED: &str = "/apis/requests.stateward.dev/v1/racks";

/// A kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) plural: &'static str,
    pub(super) kind: &'static str,
    pub(super) api_version: &'static str,
    /// Whether it has a status subresource.
    pub(super) has_status: bool,
    pub(super) has_scale: bool,
    pub(super) is_custom: bool,
    pub(super) namespaced: bool,
    /// Whether controllers react to writes.
    pub(super) settles: bool,
}

const PLAIN: Kind = Kind {
    plural: "configmaps",
    kind: "ConfigMap",
    api_version: "v1",
    has_status: false,
    has_scale: false,
    is_custom: false,
    namespaced: true,
    settles: false,
};

pub(super) const CONFIG_MAP: Kind = PLAIN;
pub(super) const SECRET: Kind = Kind {
    plural: "secrets",
    kind: "Secret",
    ..PLAIN
};
pub(super) const SERVICE: Kind = Kind {
    plural: "services",
    kind: "Service",
    has_status: true,
    ..PLAIN
};
pub(super) const POD: Kind = Kind {
    plural: "pods",
    kind: "Pod",
    has_status: true,
    ..PLAIN
};
pub(super) const POD_TEMPLATE: Kind = Kind {
    plural: "podtemplates",
    kind: "PodTemplate",
    ..PLAIN
};
pub(super) const CLAIM: Kind = Kind {
    plural: "persistentvolumeclaims",
    kind: "PersistentVolumeClaim",
    settles: true,
    ..PLAIN
};
pub(super) const EVENT: Kind = Kind {
    plural: "events",
    kind: "Event",
    ..PLAIN
};
pub(super) const NEW_EVENT: Kind = Kind {
    api_version: "events.k8s.io/v1",
    ..EVENT
};
pub(super) const STATEFUL_SET: Kind = Kind {
    plural: "statefulsets",
    kind: "StatefulSet",
    api_version: "apps/v1",
    has_status: true,
    has_scale: true,
    settles: true,
    ..PLAIN
};
pub(super) const REVISION: Kind = Kind {
    plural: "controllerrevisions",
    kind: "ControllerRevision",
    api_version: "apps/v1",
    ..PLAIN
};
pub(super) const LEASE: Kind = Kind {
    plural: "leases",
    kind: "Lease",
    api_version: "coordination.k8s.io/v1",
    ..PLAIN
};
pub(super) const BUDGET: Kind = Kind {
    plural: "poddisruptionbudgets",
    kind: "PodDisruptionBudget",
    api_version: "policy/v1",
    settles: true,
    ..PLAIN
};
pub(super) const WIDGET: Kind = Kind {
    plural: "widgets",
    kind: "Widget",
    api_version: "requests.stateward.dev/v1",
    has_status: true,
    has_scale: true,
    is_custom: true,
    ..PLAIN
};
pub(super) const RACK: Kind = Kind {
    plural: "racks",
    kind: "Rack",
    has_status: false,
    has_scale: false,
    namespaced: false,
    ..WIDGET
};

/// Every kind; the most important ones come up more often.
pub(super) const ALL: &[Kind] = &[
    CONFIG_MAP,
    CONFIG_MAP,
    CONFIG_MAP,
    WIDGET,
    WIDGET,
    WIDGET,
    STATEFUL_SET,
    STATEFUL_SET,
    SECRET,
    SERVICE,
    POD,
    POD,
    POD_TEMPLATE,
    CLAIM,
    EVENT,
    REVISION,
    LEASE,
    BUDGET,
    RACK,
];

impl Kind {
    /// `/api/v1`, `/apis/apps/v1`
    pub(super) fn root(&self) -> String {
        let Self { api_version, .. } = self;
        if api_version.contains('/') {
            format!("/apis/{api_version}")
        } else {
            format!("/api/{api_version}")
        }
    }

    pub(super) fn collection(&self) -> String {
        let (root, plural) = (self.root(), self.plural);
        if self.namespaced {
            format!("{root}/namespaces/«ns»/{plural}")
        } else {
            format!("{root}/{plural}")
        }
    }

    pub(super) fn item(&self, name: &str) -> String {
        format!("{}/{}", self.collection(), self.name(name))
    }

    /// Cluster-scoped objects carry the namespace of their sequence in their name.
    pub(super) fn name(&self, name: &str) -> String {
        if self.namespaced {
            name.to_owned()
        } else {
            format!("«ns».{name}")
        }
    }

    pub(super) fn key(&self, name: &str) -> String {
        format!("{}/{}", self.plural, self.name(name))
    }

    /// A valid object.
    pub(super) fn sample(&self, name: &str) -> Value {
        let mut object = self.content();
        object["apiVersion"] = self.api_version.into();
        object["kind"] = self.kind.into();
        object["metadata"] = json!({"name": self.name(name), "labels": {"app": "web", "sequence": "«ns»"}});
        object
    }

    fn content(&self) -> Value {
        let template = json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "example.com/web:1"}]},
        });
        // Other labels than the plain objects', or the set would adopt their pods.
        let of_set = json!({"metadata": {"labels": {"app": "set"}}, "spec": template["spec"]});
        match (self.kind, self.api_version) {
            ("ConfigMap", _) => json!({"data": {"a": "1"}}),
            ("Secret", _) => json!({"data": {"a": "MQ=="}, "stringData": {"b": "2"}}),
            ("Service", _) => {
                json!({"spec": {"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"name": "db", "port": 5432}]}})
            }
            ("Pod", _) => json!({"spec": template["spec"]}),
            ("PodTemplate", _) => json!({"template": template}),
            ("PersistentVolumeClaim", _) => json!({"spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "nobody", "resources": {"requests": {"storage": "1Gi"}}}}),
            ("Event", "v1") => json!({
                "involvedObject": {"kind": "Pod", "namespace": "«ns»", "name": "x"}, "reason": "Tested", "message": "one",
                "type": "Normal", "source": {"component": "tests"}}),
            ("Event", _) => json!({
                "regarding": {"kind": "Pod", "namespace": "«ns»", "name": "x"}, "reason": "Tested", "note": "one",
                "type": "Normal", "action": "Testing", "reportingController": "example.com/tests",
                "reportingInstance": "tests-0", "eventTime": "2026-01-01T00:00:00.000001Z"}),
            ("StatefulSet", _) => json!({"spec": {
                "replicas": 0, "serviceName": "web", "selector": {"matchLabels": {"app": "set"}}, "template": of_set,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1000}}}}),
            ("ControllerRevision", _) => json!({"revision": 1, "data": {"spec": {"a": 1}}}),
            ("Lease", _) => json!({"spec": {
                "holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}}),
            ("PodDisruptionBudget", _) => json!({"spec": {
                "minAvailable": 1, "selector": {"matchLabels": {"app": "budgeted"}}}}),
            _ => json!({"spec": {
                "size": 3, "tags": ["a", "b"], "steps": [1, 2],
                "ports": [{"name": "db", "port": 5432}], "open": {"anything": {"goes": true}}}}),
        }
    }

    /// A valid change to a valid object, as a merge patch.
    pub(super) fn change(&self, rng: &mut fastrand::Rng) -> Value {
        let number = rng.u32(1..4);
        let text = format!("{number}");
        if rng.u8(0..4) == 0 {
            return json!({"metadata": {"labels": {"tier": text}}});
        }
        match (self.kind, self.api_version) {
            ("ConfigMap", _) => json!({"data": {"a": text, "c": text}}),
            ("Secret", _) => json!({"stringData": {"a": text}}),
            ("Service", _) => json!({"spec": {"selector": {"app": "web", "tier": text}}}),
            ("Pod", _) => {
                json!({"metadata": {"annotations": {"a": text}}, "spec": {"activeDeadlineSeconds": 100 - number}})
            }
            ("PodTemplate", _) => json!({"template": {"metadata": {"labels": {"tier": text}}}}),
            ("PersistentVolumeClaim", _) => json!({"metadata": {"annotations": {"a": text}}}),
            ("Event", "v1") => json!({"count": number, "message": text}),
            ("Event", _) => json!({"metadata": {"annotations": {"a": text}}}),
            ("StatefulSet", _) => match number {
                1 => json!({"spec": {"minReadySeconds": rng.u32(0..3)}}),
                2 => {
                    json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": rng.u32(1..5)}}}})
                }
                _ => json!({"spec": {"template": {"metadata": {"annotations": {"a": text}}}}}),
            },
            ("ControllerRevision", _) => json!({"revision": number}),
            ("Lease", _) => json!({"spec": {"holderIdentity": text, "leaseTransitions": number}}),
            ("PodDisruptionBudget", _) => json!({"spec": {"minAvailable": format!("{number}%")}}),
            _ => match number {
                1 => json!({"spec": {"size": rng.u32(0..6), "open": {"more": text}}}),
                2 => json!({"spec": {"tags": ["a", text], "note": text}}),
                _ => {
                    json!({"spec": {"ports": [{"name": "db", "port": 5432, "weight": rng.u32(0..3)}, {"name": text, "port": 80}]}})
                }
            },
        }
    }

    /// A change that the server should reject, or ignore.
    pub(super) fn bad_change(&self, rng: &mut fastrand::Rng) -> Value {
        let bad = rng.u8(0..4);
        match bad {
            0 => return json!({"metadata": {"labels": {"tier": "not a label"}}}),
            1 => return json!({"unheard": {"of": 1}, "metadata": {"unheard": "of"}}),
            _ => {}
        }
        let first = bad == 2;
        match (self.kind, self.api_version) {
            ("ConfigMap", _) if first => json!({"data": {"not a key": "x"}}),
            ("ConfigMap", _) => json!({"data": {"a": 1}}),
            ("Secret", _) if first => json!({"type": "other"}),
            ("Secret", _) => json!({"data": {"a": "not base64!"}}),
            ("Service", _) if first => json!({"spec": {"ports": [{"port": 0}]}}),
            ("Service", _) => json!({"spec": {"type": "Nobody"}}),
            ("Pod", _) if first => json!({"spec": {"containers": [{"name": "main", "image": ""}]}}),
            ("Pod", _) => json!({"spec": {"restartPolicy": "Never"}}),
            ("PodTemplate", _) => json!({"template": {"spec": {"restartPolicy": "Sometimes"}}}),
            ("PersistentVolumeClaim", _) if first => {
                json!({"spec": {"resources": {"requests": {"storage": "-1"}}}})
            }
            ("PersistentVolumeClaim", _) => json!({"spec": {"accessModes": ["ReadWriteMany"]}}),
            ("Event", "v1") => json!({"count": "many"}),
            ("Event", _) => json!({"reason": "Changed"}),
            ("StatefulSet", _) if first => json!({"spec": {"serviceName": "other"}}),
            ("StatefulSet", _) => json!({"spec": {"selector": {"matchLabels": {"app": "other"}}}}),
            ("ControllerRevision", _) if first => json!({"data": {"spec": {"a": 2}}}),
            ("ControllerRevision", _) => json!({"revision": -1}),
            ("Lease", _) => json!({"spec": {"leaseDurationSeconds": -1}}),
            ("PodDisruptionBudget", _) if first => json!({"spec": {"minAvailable": -1}}),
            ("PodDisruptionBudget", _) => json!({"spec": {"minAvailable": 1, "maxUnavailable": 1}}),
            _ if first => json!({"spec": {"size": 99, "tags": ["a", "a"]}}),
            _ => json!({"spec": {"size": "three", "limit": 1}}),
        }
    }
}

/// The path of an object by its key in the memory.
pub(super) fn path(plural: &str, name: &str) -> String {
    let kind = ALL
        .iter()
        .find(|kind| kind.plural == plural)
        .copied()
        .unwrap_or(PLAIN);
    format!("{}/{name}", kind.collection())
}

/// The custom collections, to check whether they are served.
pub(super) fn custom_collections() -> [String; 2] {
    [
        format!("{}?limit=1", CLUSTER_SCOPED),
        format!("/apis/{GROUP}/v1/widgets?limit=1"),
    ]
}

/// Our custom types: a namespaced one with every subresource, and a cluster-scoped one with none.
pub(super) fn definitions() -> [Value; 2] {
    let schema = json!({"type": "object", "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-validations": [
                {"rule": "!has(self.limit) || self.size <= self.limit", "message": "size is over the limit"},
                {"rule": "!has(oldSelf.note) || has(self.note)", "message": "a note stays"}],
            "properties": {
                "size": {"type": "integer", "minimum": 0, "maximum": 10, "default": 1},
                "limit": {"type": "integer"},
                "note": {"type": "string", "maxLength": 5},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "steps": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "integer"}},
                "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "required": ["name", "port"], "properties": {
                        "name": {"type": "string"}, "port": {"type": "integer"},
                        "weight": {"type": "integer", "default": 1}}}},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
        "status": {"type": "object", "properties": {
            "ready": {"type": "integer"}, "selector": {"type": "string"},
            "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                "items": {"type": "object", "required": ["type"], "properties": {
                    "type": {"type": "string"}, "status": {"type": "string"}}}}}},
    }});
    let definition = |plural: &str, singular: &str, kind: &str, scope: &str, subresources: Value| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{GROUP}")},
            "spec": {"group": GROUP, "scope": scope, "names": {"plural": plural, "singular": singular, "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": subresources,
                    "schema": {"openAPIV3Schema": schema},
                    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]}]},
        })
    };
    let parts = json!({"status": {}, "scale": {
        "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready", "labelSelectorPath": ".status.selector"}});
    [
        definition("widgets", "widget", "Widget", "Namespaced", parts),
        definition("racks", "rack", "Rack", "Cluster", json!({})),
    ]
}
