//! Named sequences of malformed requests: bodies that do not parse, and invalid options.

use serde_json::json;

use super::kinds::{CONFIG_MAP, POD, SECRET, SERVICE};
use super::request::Request;

pub(super) fn json_is_refused_in_gos_words() -> Vec<Request> {
    let bodies = [
        "{\"a\":1,\u{1}}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":[1,]}",
        "{\"a\":[1 2]}",
        "{\"a\":}",
        "{\"a\":1}x",
        "{\"a\":\"x\ny\"}",
        "{\"a\":\"\\q\"}",
        "{a:1}",
    ];
    bodies
        .map(|body| Request::new("POST", CONFIG_MAP.collection()).text(body))
        .into()
}

pub(super) fn yaml_is_refused_like_json() -> Vec<Request> {
    let bodies = [
        "- 1\n- 2\n",
        "x",
        "metadata: {name: a}\nkind: 1\n",
        "metadata:\n  name: y\n data:\n",
    ];
    bodies
        .map(|body| {
            Request::new("POST", CONFIG_MAP.collection())
                .content_type("application/yaml")
                .text(body)
        })
        .into()
}

pub(super) fn odd_options_of_lists_and_watches_are_refused() -> Vec<Request> {
    let pods = || Request::new("GET", POD.collection());
    let watch = || pods().query("watch", "yes").query("timeoutSeconds", "1");
    vec![
        pods().query("timeoutSeconds", "x"),
        pods().query("sendInitialEvents", "true"),
        watch().query("resourceVersion", "x"),
        watch()
            .query("resourceVersionMatch", "Exact")
            .query("resourceVersion", "1"),
        watch()
            .query("sendInitialEvents", "true")
            .query("resourceVersionMatch", "Exact"),
        watch().query("resourceVersionMatch", "NotOlderThan"),
        Request::new("POST", CONFIG_MAP.collection())
            .query("dryRun", "All")
            .query("dryRun", "Some")
            .json(CONFIG_MAP.sample("a")),
    ]
}

pub(super) fn what_is_applied_is_converted_and_not_read() -> Vec<Request> {
    let apply = |name: &str| {
        Request::new("PATCH", SECRET.item(name))
            .content_type("application/apply-patch+yaml")
            .query("fieldManager", "anna")
            .query("force", "true")
            .json(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"a": "not base64!"}}))
    };
    vec![
        apply("a"),
        Request::new("POST", SECRET.collection()).json(SECRET.sample("b")),
        apply("b"),
    ]
}

pub(super) fn a_service_without_a_name_finds_no_address() -> Vec<Request> {
    vec![
        Request::new("POST", SERVICE.collection()).json(json!({})),
        Request::new("POST", SERVICE.collection()).json(json!({"spec": {"clusterIP": "None"}})),
        Request::new("POST", SERVICE.collection())
            .json(json!({"spec": {"type": "ExternalName", "externalName": "example.com"}})),
    ]
}
