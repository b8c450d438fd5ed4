//! Compares with recorded answers of a real server.

use std::sync::LazyLock;

use crate::json::{Map, Value, json};
use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::status::FieldError;

fn golden(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Sorts causes: the real server reports the fields of an object in random order.
fn sorted(causes: Vec<Value>) -> Vec<Value> {
    let mut causes = causes;
    causes.sort_by_key(Value::to_string);
    causes
}

fn causes(errors: &[FieldError]) -> Vec<Value> {
    let cause =
        |error: &FieldError| json!({"reason": error.reason, "message": error.message, "field": error.field});
    sorted(errors.iter().map(cause).collect())
}

#[rstest]
#[case(include_str!("testdata/objects.json"))]
#[case(include_str!("testdata/pruning.json"))]
fn objects_are_read_defaulted_and_judged_as_the_real_server_does(#[case] recorded: &str) {
    let golden = golden(recorded);
    let custom = CustomType::from_crd(&golden["crd"]).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let decoded = match decode(&custom, &case["object"]) {
            Ok(decoded) => decoded,
            Err(unreadable) => {
                assert_eq!(case["unreadable"], unreadable.to_string(), "{name}");
                continue;
            }
        };
        let mut object = decoded.value;
        object.as_object_mut().unwrap().remove("status");
        default(&custom, &mut object);
        let errors = validate(&custom, &object, None);
        let expected = case["causes"].as_array().cloned().unwrap_or_default();
        assert_eq!(causes(&errors), sorted(expected), "{name}");
        if errors.is_empty() {
            assert_eq!(object, case["result"], "{name}");
            assert_eq!(
                json!(decoded.unknown),
                case.get("unknown").cloned().unwrap_or(json!([])),
                "{name}"
            );
        }
    }
}

/// Differences of the `cel` crate: a set is not equal to the same set in another order, and of two errors in an `||` the second is
/// reported.
const RUN_OTHERWISE: [&str; 2] = ["self == ['a', 'b']", "self.a > 1 || self.b > 1"];

#[test]
fn rules_are_run_as_the_real_server_runs_them() {
    let golden = golden(include_str!("testdata/rules.json"));
    let custom = CustomType::from_crd(&golden["crd"]).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let name = format!("{} on {}", case["name"], case["object"]["spec"]);
        let errors = validate(&custom, &case["object"], None);
        let expected = sorted(case["causes"].as_array().cloned().unwrap_or_default());
        let differs = RUN_OTHERWISE.contains(&case["name"].as_str().unwrap()) && causes(&errors) != expected;
        assert!(
            differs || causes(&errors) == expected,
            "{name}: {:?} instead of {expected:?}",
            causes(&errors)
        );
    }
}

#[test]
fn changes_are_judged_as_the_real_server_does() {
    let golden = golden(include_str!("testdata/changes.json"));
    let custom = CustomType::from_crd(&golden["crd"]).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let mut object = decode(&custom, &case["object"]).unwrap().value;
        default(&custom, &mut object);
        let errors = match case["status"].as_bool() {
            Some(true) => validate_status(&custom, &object, &golden["old"]),
            _ => validate(&custom, &object, Some(&golden["old"])),
        };
        let expected = case["causes"].as_array().cloned().unwrap_or_default();
        assert_eq!(causes(&errors), sorted(expected), "{name}");
    }
}

/// Errors that print a Go struct that we do not reproduce: only their reason and field must match.
const SHOWN_OTHERWISE: [&str; 3] = ["no_storage", "status_root_enum", "two_versions"];

#[test]
fn crds_are_judged_as_the_real_server_does() {
    let golden = golden(include_str!("testdata/crds.json"));
    for case in golden["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let mut found = match CustomType::from_crd(&case["crd"]) {
            Ok(_) => Vec::new(),
            Err(errors) => causes(&errors),
        };
        let mut expected = case["causes"].as_array().cloned().unwrap_or_default();
        if SHOWN_OTHERWISE.contains(&name) {
            for cause in found.iter_mut().chain(&mut expected) {
                cause.as_object_mut().unwrap().remove("message");
            }
        }
        assert_eq!(sorted(found), sorted(expected), "{name}");
    }
}

static GEAR: LazyLock<Value> = LazyLock::new(|| golden(include_str!("testdata/changes.json"))["crd"].clone());
static TYPES: LazyLock<[CustomType; 2]> = LazyLock::new(|| {
    let widget = golden(include_str!("testdata/objects.json"))["crd"].clone();
    [
        CustomType::from_crd(&widget).unwrap(),
        CustomType::from_crd(&GEAR).unwrap(),
    ]
});

fn gear() -> Value {
    GEAR.clone()
}

/// As Kubernetes v1.36.3 answered.
#[rstest]
#[case("/spec/scope", json!("Cluster"), "spec.scope")]
#[case("/spec/group", json!("x.dev"), "spec.group")]
#[case("/spec/names/kind", json!("Gearz"), "spec.names.kind")]
#[case("/spec/names/plural", json!("gearz"), "spec.names.plural")]
fn an_established_crd_keeps_what_its_objects_depend_on(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] field: &str,
) {
    let mut old = gear();
    old["status"] = crd_status(&old, &[], jiff::Timestamp::UNIX_EPOCH);
    let mut new = old.clone();
    *new.pointer_mut(pointer).unwrap() = value.clone();
    let errors = CustomType::errors(&new, Some(&old));
    let message = format!("Invalid value: {value}: field is immutable");
    assert_eq!(
        causes(&errors),
        [json!({"reason": "FieldValueInvalid", "message": message, "field": field})]
    );
}

#[test]
fn a_stored_version_cannot_go() {
    let mut old = gear();
    old["status"] = crd_status(&old, &[], jiff::Timestamp::UNIX_EPOCH);
    let mut new = old.clone();
    new["spec"]["versions"][0]["name"] = "v2".into();
    let errors = CustomType::errors(&new, Some(&old));
    assert_eq!(errors[0].field, "status.storedVersions[0]");
    new["spec"]["versions"][0]["name"] = "v1".into();
    assert_eq!(CustomType::errors(&new, Some(&old)), []);
}

#[test]
fn a_custom_type_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<CustomType>();
}

/// Any JSON, with names and strings that schemas and rules use.
fn anything() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "type",
        "object",
        "array",
        "string",
        "integer",
        "number",
        "properties",
        "items",
        "additionalProperties",
        "required",
        "enum",
        "default",
        "nullable",
        "minimum",
        "maximum",
        "multipleOf",
        "pattern",
        "format",
        "date-time",
        "duration",
        "int32",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "metadata",
        "spec",
        "status",
        "a",
        "b",
        "[",
        "self",
        "self.a > 1",
        "x-kubernetes-validations",
        "rule",
        "message",
        "messageExpression",
        "fieldPath",
        ".a",
        "x-kubernetes-list-type",
        "map",
        "set",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-int-or-string",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-preserve-unknown-fields",
        "apiVersion",
        "kind",
        "ü\u{0}<",
        "",
    ]);
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words.clone().prop_map(Value::from),
    ];
    scalar.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((words.clone().prop_map(str::to_owned), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map>())),
        ]
    })
}

/// A valid CRD with any properties.
fn crd_with(spec: Value, status: Value) -> Value {
    let mut crd = gear();
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    *schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    crd
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_crd_breaks_the_judge(crd in anything(), schema in anything(), spec in anything()) {
        let _ = CustomType::from_crd(&crd);
        let _ = CustomType::from_crd(&crd_with(spec, schema.clone()));
        let mut whole = gear();
        whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
        let _ = CustomType::from_crd(&whole);
        let _ = CustomType::errors(&whole, Some(&crd));
        let _ = decode_schemas(&whole);
        let _ = crd_status(&crd, &[&whole, &crd], jiff::Timestamp::UNIX_EPOCH);
    }

    #[test]
    fn no_object_breaks_its_type(object in anything(), spec in anything(), old in anything()) {
        for custom in TYPES.iter() {
            for value in [&object, &json!({"apiVersion": 1, "metadata": {"name": "x"}, "spec": spec, "status": object})] {
                let Ok(decoded) = decode(custom, value) else { continue };
                let mut value = decoded.value;
                default(custom, &mut value);
                let _ = validate(custom, &value, None);
                let _ = validate(custom, &value, Some(&old));
                let _ = validate_status(custom, &value, &old);
                if let Some(scale) = &custom.version.scale {
                    let _ = scale.to_scale(&value);
                    let _ = scale.set_replicas(&mut value, 3);
                }
            }
        }
    }

    #[test]
    fn what_was_read_and_defaulted_stays_as_it_is(spec in anything()) {
        let custom = &TYPES[0];
        let object = json!({"metadata": {"name": "x"}, "spec": spec});
        if let Ok(decoded) = decode(custom, &object) {
            let mut once = decoded.value;
            default(custom, &mut once);
            let again = decode(custom, &once).unwrap();
            prop_assert_eq!(&again.unknown, &Vec::<String>::new());
            let mut twice = again.value;
            default(custom, &mut twice);
            prop_assert_eq!(twice, once);
        }
    }

    #[test]
    fn no_rule_breaks_the_compiler(rule in r#"[-a-c0-2 .?()\[\]{}'"<>=!&|+*/%,:_\n]{0,24}|(self|oldSelf|[.]?a|[?]|==|\(|\)|&&|\[|\]|\.all\(x, x| ){0,12}"#) {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": rule, "message": "m", "messageExpression": rule}]});
        if let Ok(custom) = CustomType::from_crd(&crd_with(schema, json!({"type": "object"}))) {
            for spec in [json!({}), json!({"a": 1})] {
                let _ = validate(&custom, &json!({"spec": spec}), Some(&json!({"spec": {"a": 2}})));
            }
        }
    }
}
