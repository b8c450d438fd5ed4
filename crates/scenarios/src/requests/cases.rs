//! Named sequences: those that once differed from the real server, and rules that random seeds rarely reach.

use serde_json::{Value, json};

use super::kinds::{self, CONFIG_MAP, EVENT, Kind, NEW_EVENT, POD, STATEFUL_SET, WIDGET};
use super::request::{Body, Request, Step};
use super::{identity, refused, scales, watches};

const MERGE: &str = "application/merge-patch+json";

/// A named sequence.
pub(super) struct Case {
    pub(super) name: &'static str,
    steps: Steps,
}

/// The form of a sequence.
enum Steps {
    /// Requests only.
    Sent(fn() -> Vec<Request>),
    /// Requests and watches.
    Played(fn() -> Vec<Step>),
}

/// All named sequences.
pub(super) const CASES: &[Case] = &[
    Case {
        name: "an_oversized_body_is_refused",
        steps: Steps::Sent(an_oversized_body_is_refused),
    },
    Case {
        name: "a_missing_namespace_is_named",
        steps: Steps::Sent(a_missing_namespace_is_named),
    },
    Case {
        name: "a_terminating_namespace_takes_nothing_new",
        steps: Steps::Sent(a_terminating_namespace_takes_nothing_new),
    },
    Case {
        name: "a_pod_is_bound_once",
        steps: Steps::Sent(a_pod_is_bound_once),
    },
    Case {
        name: "a_dry_deletion_shows_what_would_be_left",
        steps: Steps::Sent(a_dry_deletion_shows_what_would_be_left),
    },
    Case {
        name: "an_event_has_no_dependents",
        steps: Steps::Sent(an_event_has_no_dependents),
    },
    Case {
        name: "the_first_update_of_a_claim_is_always_a_write",
        steps: Steps::Sent(the_first_update_of_a_claim_is_always_a_write),
    },
    Case {
        name: "an_eviction_asks_the_budget",
        steps: Steps::Sent(an_eviction_asks_the_budget),
    },
    Case {
        name: "three_managers_share_a_widget",
        steps: Steps::Sent(three_managers_share_a_widget),
    },
    Case {
        name: "pages_stay_at_their_version",
        steps: Steps::Sent(pages_stay_at_their_version),
    },
    Case {
        name: "a_version_from_the_future_times_out",
        steps: Steps::Sent(a_version_from_the_future_times_out),
    },
    Case {
        name: "an_event_has_two_dresses",
        steps: Steps::Sent(an_event_has_two_dresses),
    },
    Case {
        name: "malformed_bodies_are_named",
        steps: Steps::Sent(malformed_bodies_are_named),
    },
    Case {
        name: "an_apply_may_leave_nothing_of_an_object",
        steps: Steps::Sent(an_apply_may_leave_nothing_of_an_object),
    },
    Case {
        name: "the_other_dress_of_an_event_forgets_the_managers_of_the_first",
        steps: Steps::Sent(the_other_dress_of_an_event_forgets_the_managers_of_the_first),
    },
    Case {
        name: "an_event_of_the_new_group_holds_still",
        steps: Steps::Sent(an_event_of_the_new_group_holds_still),
    },
    Case {
        name: "what_a_body_says_twice_is_told",
        steps: Steps::Sent(what_a_body_says_twice_is_told),
    },
    Case {
        name: "an_administrator_may_do_everything",
        steps: Steps::Sent(an_administrator_may_do_everything),
    },
    Case {
        name: "an_eviction_that_is_allowed_is_paid",
        steps: Steps::Sent(an_eviction_that_is_allowed_is_paid),
    },
    Case {
        name: "a_status_of_a_set_is_its_controllers",
        steps: Steps::Sent(a_status_of_a_set_is_its_controllers),
    },
    Case {
        name: "a_watch_from_zero_begins_with_what_is_there",
        steps: Steps::Played(watches::a_watch_from_zero_begins_with_what_is_there),
    },
    Case {
        name: "a_watch_goes_on_from_its_version",
        steps: Steps::Played(watches::a_watch_goes_on_from_its_version),
    },
    Case {
        name: "a_budget_is_written_when_it_changes",
        steps: Steps::Played(watches::a_budget_is_written_when_it_changes),
    },
    Case {
        name: "a_scale_to_what_is_there_loses_the_owner",
        steps: Steps::Sent(scales::a_scale_to_what_is_there_loses_the_owner),
    },
    Case {
        name: "a_scale_to_zero_leaves_the_replicas_to_nobody",
        steps: Steps::Sent(scales::a_scale_to_zero_leaves_the_replicas_to_nobody),
    },
    Case {
        name: "a_scale_takes_the_replicas_of_an_applier_only_when_they_change",
        steps: Steps::Sent(scales::a_scale_takes_the_replicas_of_an_applier_only_when_they_change),
    },
    Case {
        name: "a_scale_of_replicas_that_nobody_set",
        steps: Steps::Sent(scales::a_scale_of_replicas_that_nobody_set),
    },
    Case {
        name: "a_bad_scale_is_refused",
        steps: Steps::Sent(scales::a_bad_scale_is_refused),
    },
    Case {
        name: "a_custom_object_is_of_its_kind",
        steps: Steps::Sent(identity::a_custom_object_is_of_its_kind),
    },
    Case {
        name: "what_is_applied_is_of_its_kind_before_its_name_matters",
        steps: Steps::Sent(identity::what_is_applied_is_of_its_kind_before_its_name_matters),
    },
    Case {
        name: "a_namespace_is_forgotten_where_there_are_none",
        steps: Steps::Sent(identity::a_namespace_is_forgotten_where_there_are_none),
    },
    Case {
        name: "a_path_goes_on_below_a_custom_object",
        steps: Steps::Sent(identity::a_path_goes_on_below_a_custom_object),
    },
    Case {
        name: "a_service_is_made_through_its_status",
        steps: Steps::Sent(identity::a_service_is_made_through_its_status),
    },
    Case {
        name: "another_uid_is_told_before_an_old_version",
        steps: Steps::Sent(identity::another_uid_is_told_before_an_old_version),
    },
    Case {
        name: "a_claim_that_may_not_change_is_shown_line_by_line",
        steps: Steps::Sent(identity::a_claim_that_may_not_change_is_shown_line_by_line),
    },
    Case {
        name: "a_pod_template_is_shown_as_a_table",
        steps: Steps::Sent(identity::a_pod_template_is_shown_as_a_table),
    },
    Case {
        name: "json_is_refused_in_gos_words",
        steps: Steps::Sent(refused::json_is_refused_in_gos_words),
    },
    Case {
        name: "yaml_is_refused_like_json",
        steps: Steps::Sent(refused::yaml_is_refused_like_json),
    },
    Case {
        name: "odd_options_of_lists_and_watches_are_refused",
        steps: Steps::Sent(refused::odd_options_of_lists_and_watches_are_refused),
    },
    Case {
        name: "what_is_applied_is_converted_and_not_read",
        steps: Steps::Sent(refused::what_is_applied_is_converted_and_not_read),
    },
    Case {
        name: "a_service_without_a_name_finds_no_address",
        steps: Steps::Sent(refused::a_service_without_a_name_finds_no_address),
    },
];

pub(super) fn steps(case: &Case) -> Vec<Step> {
    match case.steps {
        Steps::Sent(requests) => requests().into_iter().map(Step::Send).collect(),
        Steps::Played(steps) => steps(),
    }
}

pub(super) fn post(kind: Kind, object: Value) -> Request {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let request = Request::new("POST", kind.collection())
        .about(kind.key(&name))
        .json(object);
    if kind.settles { request.settles() } else { request }
}

pub(super) fn make(kind: Kind, name: &str) -> Request {
    post(kind, kind.sample(name))
}

pub(super) fn get(kind: Kind, name: &str) -> Request {
    Request::new("GET", kind.item(name)).about(kind.key(name))
}

fn an_oversized_body_is_refused() -> Vec<Request> {
    let limit = 3 * 1024 * 1024;
    vec![
        Request::new("POST", CONFIG_MAP.collection()).body(Body::Heavy(limit + 1)),
        Request::new("POST", CONFIG_MAP.collection()).body(Body::Heavy(limit / 2)),
        Request::new("PATCH", CONFIG_MAP.item("heavy"))
            .content_type(MERGE)
            .body(Body::Heavy(limit + 1)),
        Request::new("PUT", CONFIG_MAP.item("heavy")).body(Body::Heavy(limit + 1)),
        Request::new("DELETE", CONFIG_MAP.item("heavy")).body(Body::Heavy(limit + 1)),
    ]
}

fn a_missing_namespace_is_named() -> Vec<Request> {
    let collection = "/api/v1/namespaces/«ns»-missing/configmaps";
    let sample = |namespace: Option<&str>| {
        let mut object = CONFIG_MAP.sample("a");
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    };
    vec![
        Request::new("POST", collection).json(sample(None)),
        Request::new("POST", collection).json(sample(Some("«ns»"))),
        Request::new("POST", collection)
            .query("dryRun", "All")
            .json(sample(None)),
        Request::new("GET", format!("{collection}/a")),
        Request::new("GET", collection),
        Request::new("DELETE", format!("{collection}/a")),
        Request::new("PATCH", format!("{collection}/a"))
            .content_type(MERGE)
            .json(json!({})),
        Request::new("PATCH", format!("{collection}/a"))
            .content_type("application/apply-patch+yaml")
            .query("fieldManager", "anna")
            .json(sample(None)),
        Request::new(
            "POST",
            "/apis/requests.stateward.dev/v1/namespaces/«ns»-missing/widgets",
        )
        .json(WIDGET.sample("a")),
    ]
}

fn a_terminating_namespace_takes_nothing_new() -> Vec<Request> {
    let mut held = CONFIG_MAP.sample("held");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    vec![
        post(CONFIG_MAP, held),
        Request::new("DELETE", "/api/v1/namespaces/«ns»"),
        make(CONFIG_MAP, "late"),
        make(WIDGET, "late"),
        Request::new("PATCH", CONFIG_MAP.item("late"))
            .content_type("application/apply-patch+yaml")
            .query("fieldManager", "anna")
            .json(CONFIG_MAP.sample("late")),
        Request::new("POST", CONFIG_MAP.collection()).json(json!({"metadata": {"generateName": "late-"}})),
        Request::new("PATCH", CONFIG_MAP.item("held"))
            .content_type(MERGE)
            .json(json!({"metadata": {"finalizers": null}})),
    ]
}

fn binding(target: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": target})
}

fn a_pod_is_bound_once() -> Vec<Request> {
    let bind =
        |name: &str, body: Value| Request::new("POST", format!("{}/binding", POD.item(name))).json(body);
    let node = |name: &str| json!({"apiVersion": "v1", "kind": "Node", "name": name});
    vec![
        make(POD, "a"),
        bind("missing", binding(node("n"))),
        bind("a", binding(json!({"kind": "Node"}))),
        bind("a", binding(json!({"kind": "Pod", "name": "n"}))),
        bind(
            "a",
            json!({"apiVersion": "v1", "kind": "Pod", "target": {"name": "n"}}),
        ),
        bind("a", binding(node("n"))).query("dryRun", "All"),
        bind("a", binding(node("«ns»"))),
        bind("a", binding(node("«ns»"))),
        get(POD, "a"),
        Request::new("DELETE", POD.item("a"))
            .query("gracePeriodSeconds", "7")
            .about(POD.key("a")),
        Request::new("DELETE", POD.item("a"))
            .query("gracePeriodSeconds", "9")
            .about(POD.key("a")),
        bind("a", binding(node("«ns»"))),
        Request::new("DELETE", POD.item("a"))
            .query("gracePeriodSeconds", "0")
            .about(POD.key("a")),
        get(POD, "a"),
    ]
}

fn a_dry_deletion_shows_what_would_be_left() -> Vec<Request> {
    let mut held = POD.sample("held");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    let mut requests = vec![make(POD, "a"), post(POD, held), make(CONFIG_MAP, "a")];
    for (kind, name) in [(POD, "a"), (POD, "held"), (CONFIG_MAP, "a")] {
        for dry_run in [true, true, false, true] {
            let delete = Request::new("DELETE", kind.item(name)).about(kind.key(name));
            requests.push(if dry_run {
                delete.query("dryRun", "All")
            } else {
                delete
            });
        }
    }
    requests
}

fn an_event_has_no_dependents() -> Vec<Request> {
    let mut requests = Vec::new();
    for policy in ["Foreground", "Orphan"] {
        requests.extend([
            make(EVENT, "a"),
            Request::new("DELETE", EVENT.item("a")).query("propagationPolicy", policy),
            get(EVENT, "a"),
        ]);
    }
    requests
}

fn the_first_update_of_a_claim_is_always_a_write() -> Vec<Request> {
    let mut requests = Vec::new();
    for (name, part) in [("a", ""), ("b", "/status")] {
        let nothing = Request::new("PATCH", format!("{}{part}", kinds::CLAIM.item(name)))
            .about(kinds::CLAIM.key(name))
            .content_type(MERGE)
            .json(json!({}));
        requests.extend([
            make(kinds::CLAIM, name),
            get(kinds::CLAIM, name),
            nothing.clone(),
            nothing.clone(),
            get(kinds::CLAIM, name),
        ]);
    }
    requests
}

fn an_eviction_asks_the_budget() -> Vec<Request> {
    let evict = |name: &str, more: Value| {
        let mut body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "«ns»"}});
        super::memory::merge(&mut body, &more);
        Request::new("POST", format!("{}/eviction", POD.item(name))).json(body)
    };
    let mut pod = POD.sample("covered");
    pod["metadata"]["labels"]["app"] = "budgeted".into();
    vec![
        evict("missing", json!({})),
        make(POD, "a"),
        evict("a", json!({"deleteOptions": {"dryRun": ["All"]}})),
        evict(
            "a",
            json!({"deleteOptions": {"preconditions": {"uid": "7d3e1f1e-0000-4000-8000-000000000000"}}}),
        ),
        evict("a", json!({"metadata": {"name": "other"}})),
        evict("a", json!({})),
        get(POD, "a"),
        make(kinds::BUDGET, "one"),
        post(POD, pod),
        evict("covered", json!({})),
    ]
}

fn three_managers_share_a_widget() -> Vec<Request> {
    let apply = |manager: &str, spec: Value| {
        Request::new("PATCH", WIDGET.item("a"))
            .about(WIDGET.key("a"))
            .content_type("application/apply-patch+yaml")
            .query("fieldManager", manager)
            .json(json!({"apiVersion": WIDGET.api_version, "kind": "Widget", "metadata": {"name": "a"}, "spec": spec}))
    };
    let port = |name: &str, port: u16| json!({"name": name, "port": port});
    vec![
        apply(
            "anna",
            json!({"size": 2, "ports": [port("a", 1)], "tags": ["a"], "steps": [1]}),
        ),
        apply("bert", json!({"ports": [port("b", 2)], "tags": ["b"]})),
        apply(
            "carl",
            json!({"size": 3, "ports": [port("a", 9)], "steps": [1, 2]}),
        ),
        apply(
            "carl",
            json!({"size": 3, "ports": [port("a", 9)], "steps": [1, 2]}),
        )
        .query("force", "true"),
        apply("anna", json!({"ports": [port("a", 1)]})),
        apply("bert", json!({})),
        apply("carl", json!({"size": 3})),
        apply("anna", json!({"size": 3})),
        apply("carl", json!({})),
        get(WIDGET, "a"),
    ]
}

fn pages_stay_at_their_version() -> Vec<Request> {
    let page = |token: &str| {
        let list = Request::new("GET", CONFIG_MAP.collection()).query("limit", "2");
        if token.is_empty() {
            list
        } else {
            list.query("continue", token)
        }
    };
    vec![
        make(CONFIG_MAP, "a"),
        make(CONFIG_MAP, "b"),
        make(CONFIG_MAP, "c"),
        make(CONFIG_MAP, "d"),
        page(""),
        Request::new("DELETE", CONFIG_MAP.item("d")),
        make(CONFIG_MAP, "e"),
        page("«token»"),
        page("«token»"),
        page("nonsense"),
        Request::new("GET", CONFIG_MAP.collection()).query("limit", "-1"),
        Request::new("GET", CONFIG_MAP.collection()).query("limit", "x"),
        Request::new("GET", CONFIG_MAP.collection())
            .query("limit", "1")
            .query("resourceVersion", "«rv configmaps/b»"),
        Request::new("GET", "/api/v1/configmaps")
            .query("labelSelector", "sequence=«ns»")
            .query("limit", "2"),
    ]
}

fn a_version_from_the_future_times_out() -> Vec<Request> {
    vec![
        Request::new("GET", CONFIG_MAP.collection()).query("resourceVersion", "4000000000"),
        Request::new("GET", CONFIG_MAP.item("kube-root-ca.crt")).query("resourceVersion", "4000000000"),
    ]
}

fn an_event_has_two_dresses() -> Vec<Request> {
    let mut old = NEW_EVENT.sample("b");
    old["eventTime"] = Value::Null;
    old["type"] = "Nonsense".into();
    vec![
        make(NEW_EVENT, "a"),
        make(NEW_EVENT, "a"),
        post(NEW_EVENT, old),
        get(EVENT, "a"),
        get(NEW_EVENT, "a"),
        Request::new("PATCH", NEW_EVENT.item("a"))
            .content_type(MERGE)
            .json(json!({"metadata": {"annotations": {"a": "1"}}})),
        Request::new("GET", NEW_EVENT.collection()).query("fieldSelector", "regarding.name=x"),
        Request::new("GET", EVENT.collection()).query("fieldSelector", "involvedObject.name=x"),
        Request::new("DELETE", NEW_EVENT.item("a"))
            .json(json!({"preconditions": {"uid": "7d3e1f1e-0000-4000-8000-000000000000"}})),
        Request::new("DELETE", NEW_EVENT.item("a")),
        make(EVENT, "c"),
        get(NEW_EVENT, "c"),
    ]
}

fn malformed_bodies_are_named() -> Vec<Request> {
    let texts = [
        "",
        "{",
        "[]",
        "null",
        "1",
        "\"x\"",
        "{}",
        "{\"kind\":1}",
        "{\"metadata\":{\"labels\":{\"a\":1}}}",
        "nonsense",
    ];
    let mut requests = vec![make(CONFIG_MAP, "a"), make(WIDGET, "a"), make(STATEFUL_SET, "a")];
    for kind in [CONFIG_MAP, WIDGET] {
        for text in texts {
            requests.push(Request::new("POST", kind.collection()).text(text));
            requests.push(Request::new("PUT", kind.item("a")).text(text));
            for media in [
                MERGE,
                "application/json-patch+json",
                "application/strategic-merge-patch+json",
                "application/apply-patch+yaml",
            ] {
                // Parse errors of YAML, and a strategic patch that does not fit, have a different text.
                let own_words = (media.ends_with("yaml") && text == "{")
                    || (media.contains("strategic") && text.len() > 9 && text.starts_with('{'));
                if own_words {
                    continue;
                }
                let request = Request::new("PATCH", kind.item("a"))
                    .content_type(media)
                    .text(text);
                let apply = media.ends_with("yaml");
                requests.push(if apply {
                    request.query("fieldManager", "anna")
                } else {
                    request
                });
            }
            requests.push(Request::new("DELETE", kind.item("missing")).text(text));
        }
    }
    requests
}

fn applied(kind: Kind, manager: &str, more: Value) -> Request {
    let mut object =
        json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": kind.name("a")}});
    super::memory::merge(&mut object, &more);
    Request::new("PATCH", kind.item("a"))
        .about(kind.key("a"))
        .content_type("application/apply-patch+yaml")
        .query("fieldManager", manager)
        .json(object)
}

fn an_apply_may_leave_nothing_of_an_object() -> Vec<Request> {
    let mut requests = Vec::new();
    for kind in [WIDGET, kinds::RACK] {
        let apply = |manager: &str, more: Value| applied(kind, manager, more);
        requests.extend([
            apply("anna", json!({"spec": {"note": "x", "open": {"a": {"b": 1}}}})),
            apply("bert", json!({"spec": {"open": {"a": {"b": 1}}}})),
            apply("anna", json!({"spec": {"note": "x", "open": {"a": {}}}})),
            apply("bert", json!({})),
            apply("anna", json!({"spec": {"note": "x", "open": {}}})),
            apply("anna", json!({"spec": {}})),
            apply("anna", json!({})),
            apply(
                "anna",
                json!({"spec": {"tags": ["a"], "ports": [{"name": "a", "port": 1}]}}),
            ),
            apply("bert", json!({"spec": {"tags": [], "ports": []}})),
            apply("anna", json!({"spec": {}})),
            apply("carl", json!({"spec": null})),
            Request::new("PATCH", kind.item("a"))
                .content_type(MERGE)
                .json(json!({"spec": null})),
            get(kind, "a"),
        ]);
    }
    requests
}

fn the_other_dress_of_an_event_forgets_the_managers_of_the_first() -> Vec<Request> {
    let annotate = |kind: Kind, key: &str| {
        Request::new("PATCH", kind.item("a"))
            .content_type(MERGE)
            .json(json!({"metadata": {"annotations": {key: "1"}}}))
    };
    vec![
        make(NEW_EVENT, "a"),
        annotate(EVENT, "a"),
        annotate(EVENT, "b").query("fieldManager", "anna"),
        annotate(NEW_EVENT, "c"),
        annotate(NEW_EVENT, "c"),
        applied(NEW_EVENT, "anna", json!({"metadata": {"labels": {"a": "1"}}})),
        applied(EVENT, "anna", json!({"metadata": {"labels": {"b": "1"}}})),
        annotate(EVENT, "d"),
        get(NEW_EVENT, "a"),
    ]
}

fn an_event_of_the_new_group_holds_still() -> Vec<Request> {
    let all = json!({
        "regarding": {"name": "y"}, "reason": "r", "note": "n", "type": "Warning", "action": "a",
        "reportingController": "a.b/c", "reportingInstance": "i", "eventTime": "2026-01-01T00:00:00.000002Z",
        "related": {"kind": "Pod", "fieldPath": "x"}, "series": {"count": 1}, "deprecatedCount": 3,
        "deprecatedSource": {"component": "z"}, "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
        "deprecatedLastTimestamp": "2026-01-01T00:00:00Z",
    });
    let long = "x".repeat(1025);
    let mut old = NEW_EVENT.sample("b");
    super::memory::merge(&mut old, &all);
    let mut wordy = NEW_EVENT.sample("b");
    for field in ["reason", "note", "action", "reportingInstance"] {
        wordy[field] = long.as_str().into();
    }
    let change = |name: &str, patch: Value| {
        Request::new("PATCH", NEW_EVENT.item(name))
            .content_type(MERGE)
            .json(patch)
    };
    vec![
        post(NEW_EVENT, old),
        post(NEW_EVENT, wordy),
        make(NEW_EVENT, "a"),
        make(EVENT, "c"),
        change("a", all.clone()),
        change(
            "a",
            json!({"note": null, "eventTime": null, "type": null, "regarding": null}),
        ),
        change(
            "a",
            json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000002Z"}}),
        ),
        change("a", json!({"series": {"count": 0}})),
        change("a", json!({"series": null})),
        change("c", json!({"metadata": {"annotations": {"a": "1"}}})),
        change("c", json!({"note": "x", "deprecatedCount": 4})),
        change("c", all),
        Request::new("PATCH", EVENT.item("a"))
            .content_type(MERGE)
            .json(json!({"type": "odd", "series": {"count": 1}})),
        Request::new("PATCH", EVENT.item("a"))
            .content_type(MERGE)
            .json(json!({"message": long})),
        Request::new("PATCH", EVENT.item("a"))
            .content_type(MERGE)
            .json(json!({"reportingComponent": ""})),
    ]
}

fn what_a_body_says_twice_is_told() -> Vec<Request> {
    let mut requests = vec![make(CONFIG_MAP, "a"), make(WIDGET, "a")];
    for validation in ["Strict", "Warn", "Ignore"] {
        for (kind, field, more) in [(CONFIG_MAP, "data", "b"), (WIDGET, "spec", "note")] {
            let (version, name) = (kind.api_version, kind.kind);
            let head =
                format!(r#""apiVersion":"{version}","kind":"{name}","metadata":{{"name":"b","name":"a"}}"#);
            let twice = format!(r#""{field}":{{"{more}":"1","{more}":"2"}}"#);
            let send = |method: &'static str, path: String, media: &str, body: String| {
                Request::new(method, path)
                    .content_type(media)
                    .query("fieldValidation", validation)
                    .query("dryRun", "All")
                    .text(&body)
            };
            let patch = |media: &str, body: String| send("PATCH", kind.item("a"), media, body);
            requests.extend([
                send("POST", kind.collection(), "application/json", format!("{{{head},{twice},\"{field}\":{{}},\"unheard\":1}}")),
                send("PUT", kind.item("a"), "application/json", format!("{{{head},{twice},\"metadata\":{{\"resourceVersion\":\"«rv {}»\",\"name\":\"a\"}}}}", kind.key("a"))),
                patch(MERGE, format!("{{{twice},\"{field}\":{{\"{more}\":\"3\"}}}}")),
                patch("application/json-patch+json", format!(r#"[{{"op":"add","op":"add","path":"/{field}","value":{{"{more}":"1","{more}":"2"}}}}]"#)),
                patch("application/apply-patch+yaml", format!("{{{head},{twice}}}")).query("fieldManager", "anna"),
            ]);
            if kind.kind == "ConfigMap" {
                requests.push(patch(
                    "application/strategic-merge-patch+json",
                    format!("{{{twice}}}"),
                ));
            }
        }
    }
    requests
}

fn an_administrator_may_do_everything() -> Vec<Request> {
    let ask = |plural: &str, body: Value| {
        Request::new("POST", format!("/apis/authorization.k8s.io/v1/{plural}")).json(body)
    };
    let pods = json!({"verb": "get", "resource": "pods", "namespace": "«ns»"});
    let path = json!({"path": "/healthz", "verb": "get"});
    vec![
        ask(
            "selfsubjectaccessreviews",
            json!({"spec": {"resourceAttributes": pods}}),
        ),
        ask(
            "selfsubjectaccessreviews",
            json!({"spec": {"nonResourceAttributes": path}}),
        ),
        ask(
            "selfsubjectaccessreviews",
            json!({"spec": {"nonResourceAttributes": path, "resourceAttributes": pods}}),
        ),
        ask("selfsubjectaccessreviews", json!({})),
        ask("selfsubjectaccessreviews", json!({"spec": {"unheard": 1}})),
        ask(
            "subjectaccessreviews",
            json!({"spec": {"user": "x", "groups": ["system:masters"], "resourceAttributes": pods}}),
        ),
        ask(
            "subjectaccessreviews",
            json!({"spec": {"resourceAttributes": pods}}),
        ),
        ask(
            "namespaces/«ns»/localsubjectaccessreviews",
            json!({"spec": {"groups": ["system:masters"], "resourceAttributes": pods}}),
        ),
        ask(
            "namespaces/«ns»/localsubjectaccessreviews",
            json!({"spec": {"user": "x", "resourceAttributes": {"verb": "get"}}}),
        ),
        ask("selfsubjectrulesreviews", json!({"spec": {"namespace": "«ns»"}})),
        ask("selfsubjectrulesreviews", json!({})),
        Request::new("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        Request::new("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/a"),
        Request::new(
            "DELETE",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/a",
        ),
        Request::new("GET", "/apis/authorization.k8s.io/v1"),
    ]
}

/// Marks a pod Ready, as its kubelet would.
pub(super) fn ready(name: &str) -> Request {
    Request::new("PATCH", format!("{}/status", POD.item(name)))
        .content_type(MERGE)
        .json(json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}))
}

/// A pod that the sample budget selects.
pub(super) fn covered(name: &str) -> Request {
    let mut pod = POD.sample(name);
    pod["metadata"]["labels"]["app"] = "budgeted".into();
    post(POD, pod)
}

fn an_eviction_that_is_allowed_is_paid() -> Vec<Request> {
    let evict = |name: &str| {
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "«ns»"}});
        Request::new("POST", format!("{}/eviction", POD.item(name))).json(body)
    };
    let allowed = |count: u32| get(kinds::BUDGET, "one").until("/status/disruptionsAllowed", count);
    let bind = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "n"}});
    vec![
        make(kinds::BUDGET, "one"),
        covered("a"),
        covered("bound"),
        Request::new("POST", format!("{}/binding", POD.item("bound"))).json(bind),
        ready("a"),
        ready("bound"),
        allowed(1),
        evict("bound"),
        get(POD, "bound"),
        // It is listed there from the eviction until its controller has seen the deletion; the count falls before that.
        get(kinds::BUDGET, "one").until("/status/disruptedPods", Value::Null),
        evict("a"),
        get(POD, "a"),
    ]
}

fn a_status_of_a_set_is_its_controllers() -> Vec<Request> {
    let write = |status: Value| {
        Request::new("PATCH", format!("{}/status", STATEFUL_SET.item("a")))
            .content_type(MERGE)
            .about(STATEFUL_SET.key("a"))
            .settles()
            .json(json!({"status": status}))
    };
    vec![
        make(STATEFUL_SET, "a"),
        write(json!({"replicas": 3, "readyReplicas": 2})),
        get(STATEFUL_SET, "a"),
        write(json!({"conditions": [{"type": "Fine", "status": "True"}]})),
        get(STATEFUL_SET, "a"),
        write(json!({"replicas": 1, "readyReplicas": 2, "currentReplicas": 2, "updatedReplicas": 2, "availableReplicas": 3})),
        write(json!({"replicas": -1, "readyReplicas": -1, "currentReplicas": -1, "updatedReplicas": -1, "availableReplicas": -1})),
        write(json!({"observedGeneration": -1, "collisionCount": -1})),
        write(json!({"collisionCount": 2, "replicas": 1})),
        get(STATEFUL_SET, "a"),
        write(json!({"currentRevision": "x", "updateRevision": "y", "replicas": 1})),
        get(STATEFUL_SET, "a"),
        Request::new("PUT", format!("{}/status", STATEFUL_SET.item("a")))
            .about(STATEFUL_SET.key("a"))
            .settles()
            .body(Body::Edited(json!({"status": {"replicas": 1}, "spec": {"replicas": 5}, "metadata": {"labels": {"x": "y"}}}))),
        get(STATEFUL_SET, "a"),
    ]
}
