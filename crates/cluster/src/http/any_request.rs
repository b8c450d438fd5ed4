//! Whatever is sent, the server gives a well-formed answer, and a rejected write leaves no trace.

use std::sync::Arc;

use crate::json::{Name, Value, json};
use axum::body::{Body, to_bytes};
use axum::http::Request;
use jiff::Timestamp;
use proptest::prelude::*;
use stateward_clock::Clock;
use tower::ServiceExt;

use super::router;
use crate::cluster::Options;
use crate::custom::CustomType;
use crate::server::{Caller, Server, Target, WriteOptions};

const EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// A server with some objects.
fn server() -> Arc<Server> {
    let server = Server::new(Options::at(Clock::starting_at(EPOCH, 1.0)));
    let crd = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    server.registry.add(CustomType::from_crd(&crd).unwrap());
    let caller = Caller {
        user: "test".to_owned(),
        agent: "test".to_owned(),
    };
    let samples = [
        ("namespaces", "", json!({"metadata": {"name": "a"}})),
        (
            "configmaps",
            "a",
            json!({"metadata": {"name": "a"}, "data": {"x": "1"}}),
        ),
        (
            "widgets.example.com",
            "a",
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}),
        ),
        (
            "pods",
            "a",
            json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
        ),
        (
            "statefulsets.apps",
            "a",
            json!({"metadata": {"name": "a"}, "spec": {
            "serviceName": "a", "selector": {"matchLabels": {"x": "y"}},
            "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
        ),
    ];
    for (id, namespace, object) in samples {
        let resource = server.registry.by_id(id).unwrap();
        let target = Target {
            resource,
            namespace: namespace.to_owned(),
            name: String::new(),
            subresource: String::new(),
        };
        server
            .create(&target, &object, &WriteOptions::default(), &caller)
            .unwrap();
    }
    Arc::new(server)
}

fn path() -> impl Strategy<Value = String> {
    let root = prop::sample::select(vec![
        "/api/v1",
        "/apis/apps/v1",
        "/apis/example.com/v1",
        "/apis/events.k8s.io/v1",
        "",
    ]);
    let plural = prop::sample::select(vec![
        "configmaps",
        "pods",
        "widgets",
        "statefulsets",
        "events",
        "secrets",
        "nonsense",
    ]);
    let tail = prop::sample::select(vec![
        "",
        "/a",
        "/b",
        "/a/status",
        "/a/scale",
        "/a/binding",
        "/a/eviction",
        "/a/log",
    ]);
    prop_oneof![
        8 => (root, plural, tail).prop_map(|(root, plural, tail)| format!("{root}/namespaces/a/{plural}{tail}")),
        1 => "(/[a-z0-9%._~-]{0,8}){0,6}".prop_map(|path| format!("/{}", path.trim_start_matches('/').replace('%', "%25"))),
    ]
}

fn query() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "dryRun",
        "fieldValidation",
        "fieldManager",
        "force",
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "gracePeriodSeconds",
        "propagationPolicy",
        "sendInitialEvents",
        "watch",
    ]);
    let value = prop_oneof![
        prop::sample::select(vec![
            "All",
            "Strict",
            "anna",
            "true",
            "a=b",
            "metadata.name=a",
            "1",
            "0",
            "x",
            "Exact",
            "Orphan"
        ])
        .prop_map(str::to_owned),
        "[a-zA-Z0-9!=,()._ -]{0,12}",
    ];
    prop::collection::vec((name, value), 0..4).prop_map(|pairs| {
        form_urlencoded::Serializer::new(String::new())
            .extend_pairs(pairs)
            .finish()
    })
}

fn json_value() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "metadata",
        "spec",
        "status",
        "name",
        "labels",
        "finalizers",
        "data",
        "kind",
        "apiVersion",
        "op",
        "path",
        "value",
        "$patch",
        "replicas",
        "template",
        "containers",
        "managedFields",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "a",
            "v1",
            "ConfigMap",
            "Widget",
            "example.com/v1",
            "/metadata/labels/x",
            "replace",
            "add"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4).prop_map(|fields| {
                let fields = fields.into_iter().map(|(key, value)| (Name::from(key), value));
                Value::Object(fields.collect())
            }),
        ]
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => json_value().prop_map(|value| value.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => Just(Vec::new()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_request_is_answered_and_a_refusal_changes_nothing(
        method in prop::sample::select(vec!["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]),
        path in path(),
        query in query(),
        media in prop::sample::select(vec![
            "application/json", "application/yaml", "application/merge-patch+json", "application/json-patch+json",
            "application/strategic-merge-patch+json", "application/apply-patch+yaml",
            "application/vnd.kubernetes.protobuf", "text/plain", "",
        ]),
        body in body(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let server = server();
            let before = server.store.revision();
            let request = Request::builder()
                .method(method)
                .uri(format!("{path}?{query}"))
                .header("content-type", media)
                .body(Body::from(body))
                .unwrap();
            let response = router(server.clone()).oneshot(request).await.unwrap();
            let code = response.status().as_u16();
            let is_json = response.headers().get("content-type").is_some_and(|media| media == "application/json");
            let is_watch = query.contains("watch=") && code == 200;
            // A response to HEAD has no body.
            if is_json && !is_watch && method != "HEAD" {
                let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
                let answer: Value = serde_json::from_slice(&bytes).unwrap();
                prop_assert!(answer["kind"].is_string() || path.contains("openapi") || path.contains("version"), "{answer}");
                if code >= 400 {
                    prop_assert_eq!(&answer["code"], &Value::from(code));
                }
            }
            prop_assert!(code != 500 || server.store.revision() == before);
            if (400..500).contains(&code) {
                prop_assert_eq!(server.store.revision(), before);
            }
            Ok(())
        })?;
    }
}
