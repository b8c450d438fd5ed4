//! Random sequences.

use serde_json::{Value, json};

use super::kinds::{self, Kind};
use super::memory::merge;
use super::request::{Body, Request, Step};

/// How many requests a sequence sends between the beginning and the end of its watch.
const LENGTH: usize = 32;

const MANAGERS: [&str; 3] = ["anna", "bert", "carl"];
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// The sequence of a seed.
pub(super) fn sequence(seed: u64) -> Vec<Step> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let kinds = [*pick(&mut rng, kinds::ALL), *pick(&mut rng, kinds::ALL)];
    let watched = kinds[0];
    let mut steps = Vec::new();
    for kind in kinds {
        steps.push(Step::Send(create(kind, "a")));
    }
    steps.insert(1, Step::Watch(watch(&mut rng, watched)));
    for _ in 0..LENGTH {
        let kind = *pick(&mut rng, &kinds);
        let name = *pick(&mut rng, &["a", "a", "a", "b"]);
        steps.push(Step::Send(request(&mut rng, kind, name)));
    }
    steps.push(Step::Events(create(watched, "marker")));
    steps
}

fn pick<'a, T>(rng: &mut fastrand::Rng, from: &'a [T]) -> &'a T {
    &from[rng.usize(..from.len())]
}

fn to(kind: Kind, method: &'static str, path: String, name: &str) -> Request {
    let request = Request::new(method, path).about(kind.key(name));
    if kind.settles && method != "GET" {
        request.settles()
    } else {
        request
    }
}

fn on(kind: Kind, method: &'static str, name: &str) -> Request {
    to(kind, method, kind.item(name), name)
}

fn create(kind: Kind, name: &str) -> Request {
    to(kind, "POST", kind.collection(), name).json(kind.sample(name))
}

fn watch(rng: &mut fastrand::Rng, kind: Kind) -> Request {
    let request = Request::new("GET", kind.collection())
        .query("watch", "1")
        .query("labelSelector", "app=web,sequence=«ns»");
    match rng.u8(0..5) {
        3 => request.query("resourceVersion", "0"),
        4 => request.query("resourceVersion", format!("«rv {}»", kind.key("a"))),
        0 => request
            .query("sendInitialEvents", "true")
            .query("resourceVersionMatch", "NotOlderThan")
            .query("allowWatchBookmarks", "true"),
        1 => request.accept("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
        _ => request,
    }
}

/// A random request about the object.
fn request(rng: &mut fastrand::Rng, kind: Kind, name: &str) -> Request {
    match rng.u8(0..100) {
        0..8 => create(kind, name),
        8..14 => odd_create(rng, kind, name),
        14..18 => get(rng, kind, name),
        18..26 => list(rng, kind),
        26..38 => replace(rng, kind, name),
        38..46 => merge_patch(rng, kind, name),
        46..52 => json_patch(rng, kind, name),
        52..58 => strategic_patch(rng, kind, name),
        58..74 => apply(rng, kind, name),
        74..78 => malformed(rng, kind, name),
        78..86 => part(rng, kind, name),
        86..96 => delete(rng, kind, name),
        96..98 => delete_all(rng, kind),
        _ => nowhere(rng, kind, name),
    }
}

fn odd_create(rng: &mut fastrand::Rng, kind: Kind, name: &str) -> Request {
    let mut object = kind.sample(name);
    let mut request = create(kind, name);
    match rng.u8(0..13) {
        0 => object["kind"] = "Nonsense".into(),
        1 => object["apiVersion"] = "example.com/v1".into(),
        2 => object["metadata"]["namespace"] = "elsewhere".into(),
        3 => object["metadata"]["name"] = "Not_A_Name".into(),
        4 => object["metadata"] = json!({"labels": {"sequence": "«ns»"}}),
        5 => object["metadata"]["resourceVersion"] = "5".into(),
        6 | 7 => {
            object["unheard"] = "of".into();
            request = request.query(
                "fieldValidation",
                *pick(rng, &["Strict", "Warn", "Ignore", "Nonsense"]),
            );
        }
        8 => request = request.query("dryRun", *pick(rng, &["All", "Some"])),
        9 => {
            // The number sorts several of them the same way on both sides.
            let prefix = kind.name(&format!("made-{:04}-", rng.u16(..10_000)));
            object["metadata"] = json!({"generateName": prefix, "labels": {"sequence": "«ns»"}});
            request.about = None;
        }
        10 => {
            if let Value::Object(fields) = &mut object {
                fields.remove("kind");
                fields.remove("apiVersion");
            }
        }
        11 => object["metadata"]["finalizers"] = json!(["example.com/held"]),
        _ => merge(&mut object, &kind.bad_change(rng)),
    }
    request.json(object)
}

fn get(rng: &mut fastrand::Rng, kind: Kind, name: &str) -> Request {
    let request = on(kind, "GET", name);
    match rng.u8(0..6) {
        0 => request.query("resourceVersion", format!("«rv {}»", kind.key(name))),
        1 => request.query("resourceVersion", "x"),
        2 => request.accept("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
        3 => request.accept("application/json;as=Table;g=meta.k8s.io;v=v1"),
        _ => request,
    }
}

fn list(rng: &mut fastrand::Rng, kind: Kind) -> Request {
    let request = Request::new("GET", kind.collection());
    let ours = "sequence=«ns»";
    match rng.u8(0..16) {
        0 => request.query("labelSelector", format!("{ours},app in (web,db),!gone")),
        1 => request.query("labelSelector", format!("{ours},tier notin (1)")),
        2 => request.query(
            "labelSelector",
            *pick(rng, &["a=b=c", "in (", "a in (b", "!", "a/b/c", "-x=1"]),
        ),
        3 => request
            .query("labelSelector", ours)
            .query("fieldSelector", format!("metadata.name={}", kind.name("a"))),
        4 => request
            .query("labelSelector", ours)
            .query("fieldSelector", format!("metadata.name!={}", kind.name("a"))),
        5 => request.query(
            "fieldSelector",
            *pick(
                rng,
                &["spec.nonsense=1", "metadata.name", "status.phase=Running", "=x"],
            ),
        ),
        // Objects of other sequences appear in lists of cluster-scoped kinds, and events of controllers in lists of events.
        6..10 if !kind.namespaced || kind.kind == "Event" => request.query("labelSelector", ours),
        6 | 7 => request.query("labelSelector", ours).query("limit", "1"),
        8 | 9 => request
            .query("labelSelector", ours)
            .query("limit", "1")
            .query("continue", "«token»"),
        10 => request.query("labelSelector", ours).query("continue", "nonsense"),
        11 => request
            .query("labelSelector", ours)
            .query("resourceVersion", format!("«rv {}»", kind.key("a")))
            .query(
                "resourceVersionMatch",
                *pick(rng, &["NotOlderThan", "Exact", "Nonsense"]),
            ),
        12 => request
            .query("labelSelector", ours)
            .query("resourceVersionMatch", *pick(rng, &["Exact", "NotOlderThan"])),
        13 => request
            .query("resourceVersion", "0")
            .query("resourceVersionMatch", "Exact"),
        14 => request
            .query("labelSelector", ours)
            .query("resourceVersion", *pick(rng, &["x", "-1", ""])),
        _ => request
            .query("labelSelector", ours)
            .accept("application/json;as=Table;g=meta.k8s.io;v=v1"),
    }
}

fn replace(rng: &mut fastrand::Rng, kind: Kind, name: &str) -> Request {
    let request = on(kind, "PUT", name);
    let mut change = kind.change(rng);
    let mut edit = |patch: Value| merge_patches(&mut change, &patch);
    let request = match rng.u8(0..14) {
        0 => {
            edit(json!({"metadata": {"resourceVersion": format!("«old-rv {}»", kind.key(name))}}));
            request
        }
        1 => {
            edit(json!({"metadata": {"resourceVersion": null}}));
            request
        }
        2 => {
            edit(json!({"metadata": {"uid": "7d3e1f1e-0000-4000-8000-000000000000"}}));
            request
        }
        3 => {
            edit(json!({"metadata": {"name": "other"}}));
            request
        }
        4 => {
            edit(json!({"metadata": {"namespace": "elsewhere"}}));
            request
        }
        5 => request.query("dryRun", "All"),
        6 => {
            edit(json!({"metadata": {"finalizers": ["example.com/held"]}}));
            request
        }
        7 => {
            edit(json!({"metadata": {"finalizers": null}}));
            request
        }
        8 => {
            edit(json!({"metadata": {"managedFields": [{}]}}));
            request
        }
        9 | 10 => {
            change = kind.bad_change(rng);
            request.query("fieldValidation", *pick(rng, &["Strict", "Warn", "Ignore"]))
        }
        11 => request.query("fieldManager", *pick(rng, &MANAGERS)),
        _ => request,
    };
    request.body(Body::Edited(change))
}

/// Two merge patches as one; a null stays a removal.
fn merge_patches(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge_patches(into.entry(key.as_str()).or_insert_with(|| json!({})), value);
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

fn patch(kind: Kind, name: &str, media: &str) -> Request {
    on(kind, "PATCH", name).content_type(media)
}

fn merge_patch(rng: &mut fastrand::Rng, kind: Kind, name: &str) -> Request {
    let request = patch(kind, name, MERGE);
    match rng.u8(0..8) {
        0 => request.json(json!({"metadata": {"resourceVersion": format!("«old-rv {}»", kind.key(name))}})),
        1 => request.json(json!({"metadata": {"finalizers": ["example.com/held", "example.com/also"]}})),
        2 => request.json(json!({"metadata": {"finalizers": null}})),
        3 => request
            .json(kind.bad_change(rng))
            .query("fieldValidation", *pick(rng, &["Strict", "Warn", "Ignore"])),
        4 => request.json(kind.change(rng)).query("dryRun", "All"),
        5 => request.json(json!({"metadata": {"labels": {"app": *pick(rng, &["web", "gone"])}}})),
        _ => request.json(kind.change(rng)),
    }
}

fn json_patch(rng: &mut fastrand::Rng, kind: Kind, name: &str) -> Request {
    let operation = match rng.u8(0..10) {
        0 => json!([{"op": "test", "path": "/metadata/labels/app", "value": "nonsense"}]),
        1 => json!([{"op": "test", "path": "/metadata/labels/app", "value": "web"},
                    {"op": "add", "path": "/metadata/labels/tier", "value": "9"}]),
        2 => json!([{"op": "remove", "path": "/metadata/labels/nonsense"}]),
        3 => json!([{"op": "replace", "path": "/nonsense/a", "value": 1}]),
        4 => json!([{"op": "add", "path": "/metadata/annotations", "value": {"x/y": "1"}},
                    {"op": "replace", "path": "/metadata/annotations/x~1y", "value": "2"}]),
        5 => json!([{"op": "copy", "from": "/metadata/labels/app", "path": "/metadata/labels/copied"}]),
        6 => json!([{"op": "move", "from": "/metadata/labels/tier", "path": "/metadata/labels/moved"}]),
        7 => json!([{"op": "nonsense", "path": "/metadata"}]),
        8 => json!({"op": "add", "path": "/metadata/labels/x", "value": "1"}),
        _ => json!([{"op": "replace", "path": "/metadata/name", "value": "other"}]),
    };
    patch(kind, name, JSON).json(operation)
}

fn strategic_patch(rng: &mut fastrand::Rng, kind: Kind, name: &str) -> Request {
    let containers = |value: Value| match kind.kind {
        "StatefulSet" => json!({"spec": {"template": {"spec": value}}}),
        "PodTemplate" => json!({"template": {"spec": value}}),
        _ => json!({"spec": value}),
    };
    let body = match rng.u8(0..9) {
        0 => containers(json!({"containers": [{"name": "main", "image": "example.com/web:2"}]})),
        1 => containers(
            json!({"$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
                               "containers": [{"name": "side", "image": "example.com/side:1"}]}),
        ),
        2 => containers(json!({"containers": [{"name": "side", "$patch": "delete"}]})),
        3 => json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/held"]}}),
        4 => json!({"metadata": {"finalizers": ["example.com/more"]}}),
        5 => json!({"metadata": {"labels": {"$patch": "replace", "app": "web", "sequence": "«ns»"}}}),
        6 => json!({"spec": {"updateStrategy": {"$retainKeys": ["type"], "type": "OnDelete"}}}),
        7 => containers(json!({"containers": [{"image": "nameless"}]})),
        _ => kind.change(rng),
    };
    patch(kind, name, STRATEGIC).json(body)
}

fn apply(rng: &mut fastrand::Rng, kind: Kind, name: &str) -> Request {
    let mut object =
        json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": kind.name(name)}});
    let mut request = patch(kind, name, APPLY);
    match rng.u8(0..12) {
        0..4 => object = kind.sample(name),
        4..7 => merge(&mut object, &kind.change(rng)),
        7 => object["metadata"]["labels"] = json!({"tier": "applied"}),
        8 => object["metadata"]["name"] = "other".into(),
        9 => object["metadata"]["managedFields"] = json!([]),
        10 => {
            merge(&mut object, &kind.bad_change(rng));
            // If several fields are undeclared, the real server names a random one.
            if object["unheard"].is_object()
                && let Value::Object(metadata) = &mut object["metadata"]
            {
                metadata.remove("unheard");
            }
        }
        _ => {
            object = kind.sample(name);
            merge(&mut object, &kind.change(rng));
        }
    }
    if rng.u8(0..12) > 0 {
        request = request.query("fieldManager", *pick(rng, &MANAGERS));
    }
    if rng.u8(0..3) == 0 {
        request = request.query("force", "true");
    }
    if rng.u8(0..10) == 0 {
        request = request.query("dryRun", "All");
    }
    request.json(object)
}

fn malformed(rng: &mut fastrand::Rng, kind: Kind, name: &str) -> Request {
    let text = *pick(rng, &["", "[]", "{", "null", "\"x\"", "{\"kind\":", "[1]", "{}"]);
    match rng.u8(0..5) {
        0 => to(kind, "POST", kind.collection(), name).text(text),
        1 => on(kind, "PUT", name).text(text),
        2 => {
            let media = *pick(rng, &[MERGE, JSON, STRATEGIC]);
            patch(kind, name, media).text(text)
        }
        3 => patch(kind, name, "application/json").json(kind.change(rng)),
        _ => to(kind, "POST", kind.collection(), name)
            .content_type("text/plain")
            .json(kind.sample(name)),
    }
}

/// Status and scale.
fn part(rng: &mut fastrand::Rng, kind: Kind, name: &str) -> Request {
    let at = |method: &'static str, part: &str| to(kind, method, format!("{}/{part}", kind.item(name)), name);
    if kind.has_scale && rng.bool() {
        let replicas = if kind.is_custom {
            rng.i32(-1..12)
        } else {
            rng.i32(-1..1)
        };
        let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": kind.name(name), "namespace": "«ns»"}, "spec": {"replicas": replicas}});
        return match rng.u8(0..4) {
            0 => at("GET", "scale"),
            1 => at("PUT", "scale").json(scale),
            2 => at("PATCH", "scale")
                .content_type(MERGE)
                .json(json!({"spec": {"replicas": replicas}})),
            _ => at("PATCH", "scale")
                .content_type(JSON)
                .json(json!([{"op": "replace", "path": "/spec/replicas", "value": replicas}])),
        };
    }
    if !kind.has_status {
        return at("GET", "status");
    }
    let status = match kind.kind {
        "Pod" => json!({"conditions": [{"type": "example.com/Gate", "status": "True"}], "message": "hello"}),
        "StatefulSet" => json!({
            "observedGeneration": 1, "replicas": rng.u32(0..3), "readyReplicas": rng.u32(0..2),
            "conditions": [{"type": "Fine", "status": "True"}],
        }),
        "Service" => {
            json!({"conditions": [{"type": "Fine", "status": "True", "reason": "Tested", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
        }
        _ => {
            json!({"ready": rng.u32(0..4), "selector": "app=web", "conditions": [{"type": "Fine", "status": "True"}]})
        }
    };
    match rng.u8(0..6) {
        0 => at("GET", "status"),
        1 => at("PUT", "status").body(Body::Edited(json!({"status": status, "metadata": {"labels": {"tier": "status"}}}))),
        2 => at("PATCH", "status").content_type(MERGE).json(json!({"status": status, "spec": {"size": 7}})),
        3 => at("PATCH", "status").content_type(MERGE).json(json!({"status": {"conditions": "none"}})),
        4 => at("PATCH", "status").content_type(JSON).json(json!([{"op": "add", "path": "/status", "value": status}])),
        _ => at("PATCH", "status").content_type(APPLY).query("fieldManager", *pick(rng, &MANAGERS)).query("force", "true").json(
            json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": kind.name(name)}, "status": status}),
        ),
    }
}

fn delete(rng: &mut fastrand::Rng, kind: Kind, name: &str) -> Request {
    let request = on(kind, "DELETE", name).settles();
    match rng.u8(0..12) {
        0 => request.json(json!({"preconditions": {"uid": "7d3e1f1e-0000-4000-8000-000000000000"}})),
        1 => request
            .json(json!({"preconditions": {"resourceVersion": format!("«old-rv {}»", kind.key(name))}})),
        2 => request.json(json!({"preconditions": {"uid": format!("«uid {}»", kind.key(name))}})),
        // Whether its own controller or the garbage collector is faster is random.
        3 if kind.settles => request.query("propagationPolicy", "Background"),
        3 => request.query(
            "propagationPolicy",
            *pick(rng, &["Foreground", "Background", "Orphan", "Nonsense"]),
        ),
        4 => request.query("dryRun", "All"),
        5 => request.query("gracePeriodSeconds", *pick(rng, &["0", "5", "-1", "x"])),
        6 => request
            .json(json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"})),
        7 => request.json(json!({"propagationPolicy": "Orphan", "orphanDependents": true})),
        8 => request.json(json!({"dryRun": ["Some"]})),
        _ => request,
    }
}

fn delete_all(rng: &mut fastrand::Rng, kind: Kind) -> Request {
    let request = Request::new("DELETE", kind.collection())
        .about(kind.key("a"))
        .settles();
    match rng.u8(0..3) {
        0 => request.query("labelSelector", "sequence=«ns»,tier"),
        1 => request
            .query("labelSelector", "sequence=«ns»")
            .query("dryRun", "All"),
        _ => request.query("labelSelector", "sequence=«ns»,app!=web"),
    }
}

fn nowhere(rng: &mut fastrand::Rng, kind: Kind, name: &str) -> Request {
    match rng.u8(0..7) {
        0 => Request::new("GET", format!("{}/namespaces/«ns»/nonsense", kind.root())),
        1 => Request::new("GET", format!("{}/nonsense", kind.item(name))),
        2 => Request::new("POST", kind.item(name)).json(kind.sample(name)),
        3 => Request::new("PUT", kind.collection()).json(kind.sample(name)),
        4 => Request::new("PATCH", kind.collection())
            .content_type(MERGE)
            .json(json!({})),
        5 => Request::new("GET", "/apis/nonsense.example.com/v1/things"),
        _ => Request::new("GET", format!("{}/a/b/c", kind.item(name))),
    }
}
