//! Replays writes recorded on a real v1.36.3 server, with the result of each. Recorded with random bodies on a control plane without
//! controllers for these kinds; ours must give the same results.

use crate::json::{Value, json};
use rstest::rstest;
use serde::Deserialize;

use super::managed::Write;
use super::managed::whole::{apply, keep_times, update};
use super::{json as json_patch, merge, strategic};
use crate::status::Status;
use crate::types::{Kind, Shape, decode};

/// Fields that the server sets after the patch, which are not tested here.
const FILLED_IN: [&str; 24] = [
    "creationTimestamp",
    "defaultMode",
    "dnsPolicy",
    "emptyDir",
    "failureThreshold",
    "generation",
    "imagePullPolicy",
    "managedFields",
    "namespace",
    "periodSeconds",
    "protocol",
    "requests",
    "resources",
    "resourceVersion",
    "restartPolicy",
    "schedulerName",
    "securityContext",
    "successThreshold",
    "terminationGracePeriodSeconds",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "timeoutSeconds",
    "uid",
    "zone",
];

#[derive(Deserialize)]
struct Step {
    kind: String,
    manager: String,
    body: Value,
    code: u16,
    after: Value,
    /// The first write to its object.
    #[serde(default)]
    first: bool,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    subresource: String,
}

impl Step {
    fn write<'a>(&'a self, known: &'a Value, now: &'a str) -> Write<'a> {
        let (api_version, kind) = (
            known["apiVersion"].as_str().unwrap(),
            known["kind"].as_str().unwrap(),
        );
        let reset: &[&str] = match (kind, self.subresource.as_str()) {
            ("Thing", "status") => &["metadata", "spec"],
            ("Thing", _) => &["status"],
            _ => &[],
        };
        Write {
            manager: &self.manager,
            subresource: &self.subresource,
            api_version,
            kind,
            reset,
            now,
        }
    }

    /// The object that the write produces, or its error.
    fn wish(&self, before: Option<&Value>, write: &Write<'_>, shape: Shape<'_>) -> Result<Value, Status> {
        let live = before.unwrap_or(&Value::Null);
        match self.kind.as_str() {
            "smp" => Ok(strategic(live, &self.body, shape)?),
            "merge" => Ok(merge(live, &self.body)?),
            "json" => Ok(json_patch(live, &self.body)?),
            "apply" => Ok(apply(before, &self.body, self.force, write, shape)?),
            _ => Ok(self.body.clone()),
        }
    }
}

#[rstest]
#[case::built_in(include_str!("testdata/podtemplate.jsonl"), Some("io.k8s.api.core.v1.PodTemplate"))]
#[case::custom(include_str!("testdata/thing.jsonl"), None)]
fn the_real_server_made_the_same_of_every_write(#[case] steps: &str, #[case] built_in: Option<&str>) {
    let schema: Value = serde_json::from_str(include_str!("testdata/thing.schema.json")).unwrap();
    let kind = Kind::Struct(built_in.unwrap_or_default().into());
    let shape = if built_in.is_some() {
        Shape::Builtin {
            kind: &kind,
            field: None,
        }
    } else {
        Shape::Custom(&schema)
    };
    let mut before: Option<Value> = None;
    for (number, line) in steps.lines().enumerate() {
        let step: Step = serde_json::from_str(line).unwrap();
        before = before.filter(|_| !step.first);
        let times = step.after["metadata"]["managedFields"]
            .as_array()
            .into_iter()
            .flatten();
        let now = times
            .filter_map(|entry| entry["time"].as_str())
            .max()
            .unwrap_or_default()
            .to_owned();
        let write = step.write(before.as_ref().unwrap_or(&step.body), &now);
        let wish = step.wish(before.as_ref(), &write, shape);
        let at = format!(
            "line {}: {} by {}: {}",
            number + 1,
            step.kind,
            step.manager,
            step.body
        );
        if step.code >= 400 {
            let ours = wish.expect_err(&at);
            assert_eq!(
                (ours.code, ours.message.as_str()),
                (step.code, step.after["message"].as_str().unwrap()),
                "{at}"
            );
            assert_eq!(
                sorted_causes(&ours.details.unwrap_or_default()),
                sorted_causes(&step.after["details"]),
                "{at}"
            );
            continue;
        }
        let wish = wish.expect(&at);
        let decoded = match built_in {
            Some(name) => decode(name, &wish).unwrap().expect(&at).value,
            None => wish.clone(),
        };
        compare(&decoded, &step.after, &step.subresource, "", &at);

        let mut new = step.after.clone();
        new["metadata"]["managedFields"] = wish["metadata"]["managedFields"].clone();
        if step.kind != "apply" {
            update(before.as_ref(), &mut new, &write, shape);
        }
        if let Some(before) = &before {
            keep_times(before, &mut new);
        }
        assert_eq!(
            new["metadata"]["managedFields"], step.after["metadata"]["managedFields"],
            "{at}"
        );
        before = Some(step.after);
    }
}

/// Upstream lists conflicts by manager, but the managers in the random order of a Go map.
fn sorted_causes(details: &Value) -> Vec<String> {
    let mut causes: Vec<_> = details["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(Value::to_string)
        .collect();
    causes.sort();
    causes
}

/// `ours` must be `real` before defaults.
fn compare(ours: &Value, real: &Value, subresource: &str, place: &str, at: &str) {
    match (ours, real) {
        (Value::Object(ours), Value::Object(real)) => {
            for (name, value) in ours {
                let place = format!("{place}.{name}");
                let is_ignored = match subresource {
                    "status" => matches!(place.as_str(), ".metadata" | ".spec"),
                    _ => place == ".status",
                } || matches!(
                    place.as_str(),
                    ".metadata.managedFields" | ".metadata.resourceVersion" | ".metadata.generation"
                );
                // Decoding drops empty metadata.
                let is_dropped =
                    place.contains(".metadata.") && [json!(null), json!({}), json!([])].contains(value);
                if !is_ignored && (!is_dropped || real.contains_key(name)) {
                    let real = real
                        .get(name)
                        .unwrap_or_else(|| panic!("{place} should not be there: {at}"));
                    compare(value, real, subresource, &place, at);
                }
            }
            for name in real.keys().filter(|name| !ours.contains_key(name)) {
                let is_ignored = FILLED_IN.contains(&name.as_str())
                    || place.ends_with(".requests")
                    || (place.is_empty() && name == "status");
                assert!(is_ignored, "{place}.{name} is missing: {at}");
            }
        }
        (Value::Array(ours), Value::Array(real)) => {
            assert_eq!(ours.len(), real.len(), "{place}: {at}");
            for (ours, real) in ours.iter().zip(real) {
                compare(ours, real, subresource, &format!("{place}[]"), at);
            }
        }
        (ours, real) => assert_eq!(ours, real, "{place}: {at}"),
    }
}
