//! Named sequences about `/scale`: who owns the replicas afterwards, and what the server rejects.

use serde_json::{Value, json};

use super::cases::{get, make};
use super::kinds::{Kind, STATEFUL_SET, WIDGET};
use super::request::Request;

const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn scale(kind: Kind, replicas: i32) -> Request {
    on_scale(kind, "PATCH")
        .content_type(MERGE)
        .json(json!({"spec": {"replicas": replicas}}))
}

fn on_scale(kind: Kind, method: &'static str) -> Request {
    let request = Request::new(method, format!("{}/scale", kind.item("a"))).about(kind.key("a"));
    if kind.settles { request.settles() } else { request }
}

fn put(kind: Kind, metadata: Value, replicas: i32) -> Request {
    on_scale(kind, "PUT").json(json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}}))
}

fn label(kind: Kind, tier: &str) -> Request {
    let request = Request::new("PATCH", kind.item("a"))
        .about(kind.key("a"))
        .content_type(MERGE)
        .json(json!({"metadata": {"labels": {"tier": tier}}}));
    if kind.settles { request.settles() } else { request }
}

fn apply(kind: Kind, manager: &str, spec: Value) -> Request {
    Request::new("PATCH", kind.item("a"))
        .about(kind.key("a"))
        .content_type(APPLY)
        .query("fieldManager", manager)
        .query("force", "true")
        .json(json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}, "spec": spec}))
}

/// Scaling to the current count splits the owner's entry in two, and the next write loses one of them.
pub(super) fn a_scale_to_what_is_there_loses_the_owner() -> Vec<Request> {
    let mut requests = Vec::new();
    for kind in [STATEFUL_SET, WIDGET] {
        let there = if kind.is_custom { 3 } else { 0 };
        requests.extend([
            make(kind, "a"),
            scale(kind, there),
            get(kind, "a"),
            scale(kind, there),
            get(kind, "a"),
            label(kind, "1"),
            scale(kind, there),
            get(kind, "a"),
        ]);
    }
    requests
}

/// A Scale omits a zero, which therefore has no owner.
pub(super) fn a_scale_to_zero_leaves_the_replicas_to_nobody() -> Vec<Request> {
    vec![
        make(WIDGET, "a"),
        scale(WIDGET, 5),
        get(WIDGET, "a"),
        scale(WIDGET, 5),
        get(WIDGET, "a"),
        scale(WIDGET, 0),
        get(WIDGET, "a"),
        scale(WIDGET, 4),
        get(WIDGET, "a"),
        label(WIDGET, "1"),
    ]
}

pub(super) fn a_scale_takes_the_replicas_of_an_applier_only_when_they_change() -> Vec<Request> {
    vec![
        apply(WIDGET, "anna", json!({"size": 2, "note": "x"})),
        apply(WIDGET, "bert", json!({"size": 2})),
        scale(WIDGET, 2),
        get(WIDGET, "a"),
        scale(WIDGET, 3),
        get(WIDGET, "a"),
        apply(WIDGET, "anna", json!({"size": 3, "note": "x"})),
        scale(WIDGET, 3),
        get(WIDGET, "a"),
    ]
}

pub(super) fn a_scale_of_replicas_that_nobody_set() -> Vec<Request> {
    let nothing = |body: Value| on_scale(WIDGET, "PATCH").content_type(MERGE).json(body);
    vec![
        apply(WIDGET, "anna", json!({"size": 2})),
        Request::new("PATCH", WIDGET.item("a"))
            .about(WIDGET.key("a"))
            .content_type(MERGE)
            .json(json!({"spec": null})),
        on_scale(WIDGET, "GET"),
        nothing(json!({})),
        nothing(json!({"metadata": {"labels": {"a": "b"}}})),
        scale(WIDGET, 2),
        on_scale(WIDGET, "GET"),
        get(WIDGET, "a"),
    ]
}

pub(super) fn a_bad_scale_is_refused() -> Vec<Request> {
    let other = "7d3e1f1e-0000-4000-8000-000000000000";
    let mut requests = vec![make(WIDGET, "a"), make(STATEFUL_SET, "a")];
    for kind in [WIDGET, STATEFUL_SET] {
        requests.extend([
            scale(kind, -1),
            put(kind, json!({"name": "a"}), -1),
            put(kind, json!({"name": "b"}), 1),
            put(kind, json!({}), 1),
            put(kind, json!({"name": "a", "uid": other}), 1),
            put(kind, json!({"name": "a", "resourceVersion": "1"}), 1),
            on_scale(kind, "PATCH")
                .content_type(MERGE)
                .json(json!({"spec": {"replicas": "many"}})),
            get(kind, "a"),
        ]);
    }
    requests.push(scale(WIDGET, 11));
    requests
}
