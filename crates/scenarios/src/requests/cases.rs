//! Sequences with a name: what once differed from the real server, and rules that chance finds too rarely.

use serde_json::{Value, json};

use super::kinds::{self, CONFIG_MAP, EVENT, Kind, NEW_EVENT, POD, STATEFUL_SET, WIDGET};
use super::request::{Body, Request, Step};

const MERGE: &str = "application/merge-patch+json";

/// A named sequence.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) steps: fn() -> Vec<Request>,
}

/// All of them.
pub(super) const CASES: &[Case] = &[
    Case {
        name: "an_oversized_body_is_refused",
        steps: an_oversized_body_is_refused,
    },
    Case {
        name: "a_missing_namespace_is_named",
        steps: a_missing_namespace_is_named,
    },
    Case {
        name: "a_terminating_namespace_takes_nothing_new",
        steps: a_terminating_namespace_takes_nothing_new,
    },
    Case {
        name: "a_pod_is_bound_once",
        steps: a_pod_is_bound_once,
    },
    Case {
        name: "an_eviction_asks_the_budget",
        steps: an_eviction_asks_the_budget,
    },
    Case {
        name: "three_managers_share_a_widget",
        steps: three_managers_share_a_widget,
    },
    Case {
        name: "pages_stay_at_their_version",
        steps: pages_stay_at_their_version,
    },
    Case {
        name: "a_version_from_the_future_times_out",
        steps: a_version_from_the_future_times_out,
    },
    Case {
        name: "an_event_has_two_dresses",
        steps: an_event_has_two_dresses,
    },
    Case {
        name: "malformed_bodies_are_named",
        steps: malformed_bodies_are_named,
    },
];

pub(super) fn steps(case: &Case) -> Vec<Step> {
    (case.steps)().into_iter().map(Step::Send).collect()
}

fn post(kind: Kind, object: Value) -> Request {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let request = Request::new("POST", kind.collection())
        .about(kind.key(&name))
        .json(object);
    if kind.settles { request.settles() } else { request }
}

fn make(kind: Kind, name: &str) -> Request {
    post(kind, kind.sample(name))
}

fn get(kind: Kind, name: &str) -> Request {
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
                // How YAML is misread, and how a strategic patch does not fit, is said in words of its own.
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
