//! Named sequences about an object's identity: kind, name, namespace, UID and the path of the request.

use serde_json::{Value, json};

use super::cases::{get, make, post};
use super::kinds::{CLAIM, CONFIG_MAP, Kind, POD_TEMPLATE, RACK, SERVICE, WIDGET};
use super::memory::merge;
use super::request::{Body, Request};

const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const OTHER: &str = "7d3e1f1e-0000-4000-8000-000000000000";

fn sample(kind: Kind, change: Value) -> Value {
    let mut object = kind.sample("a");
    merge(&mut object, &change);
    object
}

fn patch(kind: Kind, change: Value) -> Request {
    Request::new("PATCH", kind.item("a"))
        .about(kind.key("a"))
        .content_type(MERGE)
        .json(change)
}

fn apply(kind: Kind, path: String, object: Value) -> Request {
    Request::new("PATCH", path)
        .about(kind.key("a"))
        .content_type(APPLY)
        .query("fieldManager", "anna")
        .json(object)
}

pub(super) fn a_custom_object_is_of_its_kind() -> Vec<Request> {
    let edited = |change: Value| {
        Request::new("PUT", WIDGET.item("a"))
            .about(WIDGET.key("a"))
            .body(Body::Edited(change))
    };
    let mut requests = vec![
        post(WIDGET, sample(WIDGET, json!({"kind": "Nonsense"}))),
        make(WIDGET, "a"),
        post(
            WIDGET,
            sample(WIDGET, json!({"kind": "Nonsense", "spec": {"size": 99}})),
        ),
        post(
            WIDGET,
            sample(
                WIDGET,
                json!({"kind": "Nonsense", "apiVersion": "requests.stateward.dev/v2"}),
            ),
        ),
        edited(json!({"kind": "Nonsense"})),
        Request::new("PUT", format!("{}/status", WIDGET.item("a")))
            .body(Body::Edited(json!({"kind": "Nonsense"})))
            .about(WIDGET.key("a")),
        patch(WIDGET, json!({"kind": "Nonsense"})),
    ];
    for validation in ["Strict", "Warn", "Ignore"] {
        for change in [
            json!({"kind": null}),
            json!({"apiVersion": null}),
            json!({"kind": null, "apiVersion": null}),
        ] {
            let object = sample(WIDGET, change);
            requests.push(post(WIDGET, object.clone()).query("fieldValidation", validation));
            requests.push(
                Request::new("PUT", WIDGET.item("a"))
                    .query("fieldValidation", validation)
                    .json(object),
            );
        }
    }
    requests
}

pub(super) fn what_is_applied_is_of_its_kind_before_its_name_matters() -> Vec<Request> {
    let mut requests = vec![make(CONFIG_MAP, "a"), make(WIDGET, "a")];
    for kind in [CONFIG_MAP, WIDGET] {
        for name in ["a", "new"] {
            for change in [
                json!({"kind": "Secret"}),
                json!({"apiVersion": "apps/v1"}),
                json!({"kind": null}),
                json!({"metadata": {"name": "other"}}),
                json!({"metadata": {"name": "other"}, "kind": "Secret"}),
                json!({"metadata": {"name": null}}),
                json!({"data": {"a": "2"}, "spec": null, "metadata": {"name": "other", "labels": {"app": "db"}}}),
            ] {
                let mut object = sample(kind, change);
                if !kind.is_custom
                    && let Value::Object(fields) = &mut object
                {
                    fields.remove("spec");
                } else if let Value::Object(fields) = &mut object {
                    fields.remove("data");
                }
                requests.push(apply(kind, kind.item(name), object));
            }
        }
    }
    requests
}

pub(super) fn a_namespace_is_forgotten_where_there_are_none() -> Vec<Request> {
    vec![
        post(
            RACK,
            sample(RACK, json!({"metadata": {"namespace": "elsewhere"}})),
        ),
        Request::new("PUT", RACK.item("a"))
            .about("racks/«ns».a")
            .body(Body::Edited(
                json!({"metadata": {"namespace": "elsewhere"}, "spec": {"size": 4}}),
            )),
        apply(
            RACK,
            RACK.item("b"),
            json!({"apiVersion": RACK.api_version, "kind": "Rack",
            "metadata": {"name": "«ns».b", "namespace": "elsewhere", "labels": {"sequence": "«ns»"}}}),
        ),
        patch(RACK, json!({"metadata": {"namespace": "elsewhere"}})),
        get(RACK, "a"),
    ]
}

pub(super) fn a_path_goes_on_below_a_custom_object() -> Vec<Request> {
    let below = |kind: Kind, rest: &str| Request::new("GET", format!("{}/{rest}", kind.item("a")));
    vec![
        make(WIDGET, "a"),
        make(CONFIG_MAP, "a"),
        below(WIDGET, "nonsense"),
        below(WIDGET, "nonsense/b/c"),
        below(WIDGET, "status/b"),
        below(WIDGET, "scale/b/c"),
        below(RACK, "a/b/c"),
        below(CONFIG_MAP, "nonsense"),
        below(CONFIG_MAP, "a/b/c"),
        Request::new("DELETE", format!("{}/a/b/c", WIDGET.item("a"))),
        Request::new("GET", "/apis/requests.stateward.dev/v1/widgets/a"),
        Request::new("GET", "/apis/requests.stateward.dev/v1/widgets/a/b/c"),
        Request::new("GET", "/apis/requests.stateward.dev/v1/namespaces/«ns»/racks"),
        Request::new("GET", "/api/v1/configmaps/a"),
        Request::new("GET", "/api/v1/namespaces/«ns»/nodes"),
    ]
}

/// A write to a Service that does not exist creates it, even a write to its status.
pub(super) fn a_service_is_made_through_its_status() -> Vec<Request> {
    let status = |name: &str| format!("{}/status", SERVICE.item(name));
    let put = |name: &str, metadata: Value| {
        let mut object = sample(
            SERVICE,
            json!({"spec": {"clusterIP": null}, "metadata": {"name": name}}),
        );
        object["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
        merge(&mut object["metadata"], &metadata);
        Request::new("PUT", status(name))
            .about(SERVICE.key(name))
            .json(object)
    };
    let applied = |spec: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b"}, "spec": spec,
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}})
    };
    vec![
        put("a", json!({"uid": OTHER})),
        put("a", json!({"resourceVersion": "1"})),
        put("a", json!({})).query("dryRun", "All"),
        put("a", json!({})),
        put("a", json!({})),
        apply(SERVICE, status("b"), applied(json!({}))),
        apply(SERVICE, status("b"), applied(json!({"ports": [{"port": 80}]}))),
        Request::new("PATCH", status("c"))
            .content_type(MERGE)
            .json(json!({"status": {}})),
        get(SERVICE, "b"),
    ]
}

pub(super) fn another_uid_is_told_before_an_old_version() -> Vec<Request> {
    let put = |kind: Kind| {
        Request::new("PUT", kind.item("a"))
            .about(kind.key("a"))
            .body(Body::Edited(
                json!({"metadata": {"uid": OTHER, "resourceVersion": "1"}}),
            ))
    };
    vec![
        make(WIDGET, "a"),
        put(WIDGET),
        make(CONFIG_MAP, "a"),
        put(CONFIG_MAP),
    ]
}

pub(super) fn a_claim_that_may_not_change_is_shown_line_by_line() -> Vec<Request> {
    vec![
        make(CLAIM, "a"),
        patch(
            CLAIM,
            json!({"spec": {"resources": {"requests": {"storage": "-1"}}}}),
        ),
        patch(CLAIM, json!({"spec": {"accessModes": ["ReadWriteMany"]}})),
        patch(
            CLAIM,
            json!({"spec": {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "volumeMode": "Block"}}),
        ),
        patch(
            CLAIM,
            json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "volumeAttributesClassName": "fast"}}),
        ),
        patch(
            CLAIM,
            json!({"spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "b"}}}),
        ),
        patch(
            CLAIM,
            json!({"spec": {"resources": {"limits": {"storage": "2Gi"}}, "storageClassName": "other"}}),
        ),
    ]
}

pub(super) fn a_pod_template_is_shown_as_a_table() -> Vec<Request> {
    let table = |request: Request| request.accept("application/json;as=Table;g=meta.k8s.io;v=v1");
    let two = json!([{"name": "main", "image": "example.com/web:1"}, {"name": "side", "image": "example.com/side:1"}]);
    vec![
        make(POD_TEMPLATE, "a"),
        post(
            POD_TEMPLATE,
            json!({"metadata": {"name": "b"}, "template": {"spec": {"containers": two}}}),
        ),
        table(get(POD_TEMPLATE, "a")),
        table(Request::new("GET", POD_TEMPLATE.collection())),
    ]
}
