//! Compares the built-in kinds with answers of a real server.
//!
//! `testdata/*.json` are cases with the answers of Kubernetes v1.36.3 to them as server-side dry runs. To record them again, for another
//! version or after adding a case without an answer: run `kubectl proxy` against a control plane that has the ServiceAccount admission
//! plugin off, POST each `given` to its resource with `?dryRun=All` (for a case with `old`: POST that for real, PUT `before` to its status
//! if there is one, PUT `given` with `?dryRun=All` to the case's endpoint, and keep what was stored before as `stored`), and write back the
//! object as `answer` or the Status' `causes`.

use crate::json::{Value, json};

use super::fields::{each, has, items, part, set, text};
use super::{Context, Endpoint, Gates, default, give_address, give_node_ports, wants_address};
use super::{prepare_create, prepare_update, validate_create, validate_update};
use crate::status::FieldError;
use crate::types::decode;

const FILES: [(&str, &str); 5] = [
    ("workloads", include_str!("testdata/workloads.json")),
    ("objects", include_str!("testdata/objects.json")),
    ("refused", include_str!("testdata/refused.json")),
    ("updates", include_str!("testdata/updates.json")),
    ("refused_objects", include_str!("testdata/refused_objects.json")),
];

/// The namespace that the answers were recorded in.
const NAMESPACE: &str = "builtin-lab";

fn cases() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (file, recorded) in FILES {
        let recorded: Value = serde_json::from_str(recorded).unwrap();
        assert!(
            text(&recorded, "recorded").contains("v1.36.3"),
            "{file} says where it is from"
        );
        let cases = items(&recorded, "cases").iter();
        all.extend(cases.map(|case| {
            (
                format!("{file}: {}: {}", text(case, "resource"), text(case, "name")),
                case.clone(),
            )
        }));
    }
    all
}

/// Decodes an object like the server: with the type that its apiVersion and kind name.
fn read(object: &Value) -> Value {
    let (group, version) = text(object, "apiVersion")
        .rsplit_once('/')
        .unwrap_or(("core", text(object, "apiVersion")));
    let package = match group {
        "apiextensions.k8s.io" => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions".to_owned(),
        group => format!("io.k8s.api.{}", group.split('.').next().unwrap_or_default()),
    };
    let name = format!("{package}.{version}.{}", text(object, "kind"));
    decode(&name, object).expect(&name).expect(&name).value
}

fn is_namespaced(resource: &str) -> bool {
    !super::metadata::is_cluster_scoped(resource)
}

/// Our result for a case: the object as it would be stored, and its errors.
fn ours(case: &Value) -> (Value, Vec<FieldError>) {
    let resource = text(case, "resource");
    let answered = &case["answer"]["metadata"];
    let now = match text(answered, "creationTimestamp") {
        "" => "2026-01-01T00:00:00Z",
        created => created,
    };
    let uid = match text(answered, "uid") {
        // A rejected Job shows the UID that it would have had.
        "" if has(case, "uid") => text(case, "uid"),
        "" => "00000000-0000-4000-8000-000000000000",
        uid => uid,
    };
    let context = Context {
        uid,
        now: now.parse().unwrap(),
        gates: Gates::default(),
    };
    let mut object = read(&case["given"]);
    if is_namespaced(resource)
        && let Some(metadata) = part(&mut object, "metadata")
    {
        set(metadata, "namespace", NAMESPACE);
    }
    default(resource, &mut object);
    if case["stored"].is_object() {
        let endpoint = if text(case, "endpoint") == "Status" {
            Endpoint::Status
        } else {
            Endpoint::Main
        };
        let mut old = case["stored"].clone();
        // Recorded objects carry no resourceVersion; the server fills it in before it validates.
        for object in [&mut old, &mut object] {
            set(part(object, "metadata").unwrap(), "resourceVersion", "1");
        }
        prepare_update(resource, &old, &mut object, endpoint, &context);
        if resource == "services" {
            allocate(&mut object, &case["answer"]["spec"]);
        }
        let errors = validate_update(resource, &old, &object, endpoint);
        super::fields::unset(part(&mut object, "metadata").unwrap(), "resourceVersion");
        return (object, errors);
    }
    prepare_create(resource, &mut object, &context);
    if resource == "services" {
        allocate(&mut object, &case["answer"]["spec"]);
    }
    let errors = validate_create(resource, &object);
    (object, errors)
}

/// Allocates the values that the real server allocated.
fn allocate(service: &mut Value, spec: &Value) {
    if wants_address(service) {
        give_address(service, spec["clusterIP"].as_str().unwrap_or("10.0.0.9"));
    }
    let health = spec["healthCheckNodePort"].as_u64().into_iter();
    let ports = items(spec, "ports")
        .iter()
        .filter_map(|port| port["nodePort"].as_u64());
    let mut numbers = health
        .chain(ports)
        .map(|port| port as u16)
        .collect::<Vec<_>>()
        .into_iter();
    let mut spare = 30_000..;
    give_node_ports(service, || {
        numbers.next().or_else(|| spare.next()).unwrap_or_default()
    });
}

/// The paths at which two values differ, with both sides.
fn differences(at: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(left), Value::Object(right)) => {
            for name in left
                .keys()
                .chain(right.keys().filter(|name| !left.contains_key(name)))
            {
                differences(&format!("{at}.{name}"), &ours[name], &theirs[name], found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                differences(&format!("{at}[{index}]"), left, right, found);
            }
        }
        _ if ours != theirs => found.push(format!("{at}: ours {ours}, theirs {theirs}")),
        _ => {}
    }
}

#[test]
fn accepted_objects_are_stored_as_the_real_server_stores_them() {
    let mut wrong = Vec::new();
    for (name, case) in cases().iter().filter(|(_, case)| case["answer"].is_object()) {
        let (object, errors) = ours(case);
        let mut found = Vec::new();
        differences("", &object, &case["answer"], &mut found);
        found.extend(errors.iter().map(|error| format!("we refuse it: {error:?}")));
        wrong.extend(found.iter().map(|difference| format!("{name}: {difference}")));
    }
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The server appends a diff of its internal types to some messages and prints whole templates in others; ours does not.
fn cut_internals(case: &mut Value) {
    // Except for claims, whose specs are small.
    if text(case, "resource") == "persistentvolumeclaims" {
        return;
    }
    for cause in each(case, "causes") {
        let mut message = text(cause, "message")
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        let is_internal = |field: &str| field.starts_with("spec.template") || field.ends_with("Policy");
        if is_internal(text(cause, "field")) && message.ends_with(": field is immutable") {
            message = "Invalid value: field is immutable".to_owned();
        }
        set(cause, "message", message);
    }
}

#[test]
fn refused_objects_are_refused_for_the_same_causes_in_the_same_order() {
    let mut wrong = Vec::new();
    for (name, case) in cases().iter().filter(|(_, case)| case["causes"].is_array()) {
        let mut case = case.clone();
        cut_internals(&mut case);
        let errors = ours(&case).1;
        let ours: Vec<_> = errors
            .iter()
            .map(|error| json!({"field": error.field, "message": error.message, "reason": error.reason}))
            .collect();
        if Value::from(ours.clone()) != case["causes"] {
            let lines = |causes: &[Value]| -> String {
                causes
                    .iter()
                    .map(|cause| {
                        format!(
                            "    {}: {} [{}]\n",
                            text(cause, "field"),
                            text(cause, "message"),
                            text(cause, "reason")
                        )
                    })
                    .collect()
            };
            wrong.push(format!(
                "{name}\n  ours\n{}  theirs\n{}",
                lines(&ours),
                lines(items(&case, "causes"))
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} cases differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn defaulting_twice_changes_nothing() {
    for (name, case) in cases() {
        let mut once = read(&case["given"]);
        default(text(&case, "resource"), &mut once);
        let mut twice = once.clone();
        default(text(&case, "resource"), &mut twice);
        assert_eq!(once, twice, "{name}");
    }
}
