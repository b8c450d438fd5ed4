//! StatefulSets.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Gates;
use super::fields::{copy, each, fill, fill_text, has, int, items, made, part, same, set, text, unset};
use super::pod_defaults::template;
use super::problems::{At, Problems, in_order};
use super::{claim, claim_validation, metadata_validation, pod_validation, selector, workload_validation};
use crate::names;

pub(super) fn default(object: &mut Value) {
    let Some(spec) = made(object, "spec") else { return };
    fill_text(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = made(spec, "updateStrategy") {
        if text(strategy, "type").is_empty() {
            set(strategy, "type", "RollingUpdate");
            fill(strategy, "rollingUpdate", Map::new());
        }
        // A strategy that was named without a block keeps none.
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = part(strategy, "rollingUpdate")
        {
            fill(rolling, "partition", 0);
        }
    }
    if let Some(policy) = made(spec, "persistentVolumeClaimRetentionPolicy") {
        fill_text(policy, "whenDeleted", "Retain");
        fill_text(policy, "whenScaled", "Retain");
    }
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    template(spec);
    for one in each(spec, "volumeClaimTemplates") {
        // The kind is written into every claim template, whatever was sent (k/k#87583).
        set(one, "apiVersion", "v1");
        set(one, "kind", "PersistentVolumeClaim");
        claim::default(one);
    }
}

pub(super) fn prepare_create(object: &mut Value, gates: Gates) {
    set(object, "status", json!({"replicas": 0, "availableReplicas": 0}));
    max_unavailable(&Value::Null, object, gates);
}

pub(super) fn prepare_update(old: &Value, new: &mut Value, gates: Gates) {
    max_unavailable(old, new, gates);
}

/// `maxUnavailable` is dropped while its gate is off, unless it was stored while it was on.
fn max_unavailable(old: &Value, new: &mut Value, gates: Gates) {
    let in_use = has(&old["spec"]["updateStrategy"]["rollingUpdate"], "maxUnavailable");
    let Some(strategy) = part(new, "spec").and_then(|spec| part(spec, "updateStrategy")) else {
        return;
    };
    let is_rolling = text(strategy, "type") == "RollingUpdate";
    let Some(rolling) = part(strategy, "rollingUpdate") else {
        return;
    };
    if gates.max_unavailable_statefulset {
        if is_rolling {
            fill(rolling, "maxUnavailable", 1);
        }
    } else if !in_use {
        unset(rolling, "maxUnavailable");
    }
}

const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];
const OTHER_FIELDS: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

/// What an update is not asked about, because it cannot change it.
#[derive(Clone, Copy, Default)]
struct Lenient {
    immutable_fields: bool,
    template: bool,
}

pub(super) fn validate_create(object: &Value, problems: &mut Problems) {
    metadata_validation::of_kind("statefulsets.apps", object, problems);
    validate_spec(&object["spec"], Lenient::default(), problems);
}

pub(super) fn validate_update(old: &Value, new: &Value, problems: &mut Problems) {
    metadata_validation::update_of_kind("statefulsets.apps", old, new, problems);
    let mut lenient = Lenient {
        immutable_fields: true,
        template: false,
    };
    // A set that was stored with a bad template can still be changed in other ways.
    let mut before = Problems::default();
    validate_spec(&old["spec"], lenient, &mut before);
    lenient.template = !before.is_empty();
    validate_spec(&new["spec"], lenient, problems);
    let mut undone = new["spec"].clone();
    for name in MUTABLE {
        copy(&old["spec"], &mut undone, name);
    }
    if !same(&old["spec"], &undone) {
        problems.forbidden(&At::new("spec"), OTHER_FIELDS);
    }
}

pub(super) fn validate_status(old: &Value, new: &Value, problems: &mut Problems) {
    let (at, status) = (At::new("status"), &new["status"]);
    let counts = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ];
    for name in counts.into_iter().chain(["observedGeneration", "collisionCount"]) {
        problems.non_negative(&at, status, name);
    }
    let count = |name: &str| int(status, name).unwrap_or_default();
    for name in &counts[1..] {
        if count(name) > count("replicas") {
            problems.invalid(
                &at.field(name),
                count(name),
                "cannot be greater than status.replicas",
            );
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        let detail = "cannot be greater than status.readyReplicas";
        problems.invalid(&at.field("availableReplicas"), count("availableReplicas"), detail);
    }
    metadata_validation::update_of_kind("statefulsets.apps", old, new, problems);
    let is_lower = |before: i64| int(status, "collisionCount").is_none_or(|now| now < before);
    if int(&old["status"], "collisionCount").is_some_and(is_lower) {
        problems.invalid(
            &at.field("collisionCount"),
            count("collisionCount"),
            "cannot be decremented",
        );
    }
}

fn validate_spec(spec: &Value, lenient: Lenient, problems: &mut Problems) {
    let at = At::new("spec");
    let policy = text(spec, "podManagementPolicy");
    match policy {
        "" => problems.required(&at.field("podManagementPolicy"), ""),
        "OrderedReady" | "Parallel" => {}
        other => problems.invalid(
            &at.field("podManagementPolicy"),
            other,
            "must be 'OrderedReady' or 'Parallel'",
        ),
    }
    validate_strategy(&at.field("updateStrategy"), &spec["updateStrategy"], problems);
    let retention = at.field("persistentVolumeClaimRetentionPolicy");
    for name in ["whenDeleted", "whenScaled"] {
        let policy = text(&spec["persistentVolumeClaimRetentionPolicy"], name);
        if !["Retain", "Delete"].contains(&policy) {
            problems.not_supported(&retention.field(name), policy, &["Retain", "Delete"]);
        }
    }
    if !lenient.immutable_fields {
        for (index, claim) in items(spec, "volumeClaimTemplates").iter().enumerate() {
            let at = at.field("volumeClaimTemplates").index(index).field("spec");
            claim_validation::spec(&at, &claim["spec"], problems);
        }
    }
    problems.non_negative(&at, spec, "replicas");
    problems.non_negative(&at, spec, "minReadySeconds");
    problems.non_negative(&at.field("ordinals"), &spec["ordinals"], "start");
    let service = text(spec, "serviceName");
    if !lenient.immutable_fields && !service.is_empty() {
        problems.invalid_for(&at.field("serviceName"), service, names::dns_label(service));
    }
    validate_selector(&at, spec, lenient, problems);
    let template = at.field("template.spec");
    if text(&spec["template"]["spec"], "restartPolicy") != "Always" {
        let policy = text(&spec["template"]["spec"], "restartPolicy");
        problems.not_supported(&template.field("restartPolicy"), policy, &["Always"]);
    }
    if has(&spec["template"]["spec"], "activeDeadlineSeconds") {
        let detail = "activeDeadlineSeconds in StatefulSet is not Supported";
        problems.forbidden(&template.field("activeDeadlineSeconds"), detail);
    }
}

fn validate_strategy(at: &At, strategy: &Value, problems: &mut Problems) {
    let rolling = &strategy["rollingUpdate"];
    // The server prints its internal type, whose fields are upper case and never left out.
    let shown = |rolling: &Value| match rolling {
        Value::Null => "null".to_owned(),
        rolling => {
            let partition = int(rolling, "partition").unwrap_or_default();
            format!(
                "{{\"Partition\":{partition},\"MaxUnavailable\":{}}}",
                rolling["maxUnavailable"]
            )
        }
    };
    match text(strategy, "type") {
        "" => problems.required(at, ""),
        "OnDelete" if rolling.is_object() => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            problems.invalid_as(&at.field("rollingUpdate"), &shown(rolling), detail);
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            let at = at.field("rollingUpdate");
            problems.non_negative(&at, rolling, "partition");
            if has(rolling, "maxUnavailable") {
                validate_max_unavailable(&at.field("maxUnavailable"), &rolling["maxUnavailable"], problems);
            }
        }
        other => {
            let shown = format!(
                "{{\"Type\":{},\"RollingUpdate\":{}}}",
                Value::from(other),
                shown(rolling)
            );
            problems.invalid_as(at, &shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

fn validate_max_unavailable(at: &At, value: &Value, problems: &mut Problems) {
    workload_validation::count_or_percent(at, value, problems);
    if workload_validation::is_nothing(value) {
        problems.invalid(at, value.clone(), "cannot be 0");
    }
    workload_validation::at_most_all(at, value, problems);
}

fn validate_selector(at: &At, spec: &Value, lenient: Lenient, problems: &mut Problems) {
    let (at_selector, selector) = (at.field("selector"), &spec["selector"]);
    if selector.is_object() {
        selector::validate(&at_selector, selector, problems);
        if selector::is_empty(selector) {
            problems.invalid_as(&at_selector, "{}", "empty selector is invalid for statefulset");
        }
        if !selector::is_usable(selector) {
            return problems.invalid_as(&at_selector, &in_order(selector), "");
        }
    } else {
        problems.required(&at_selector, "");
    }
    selector::of_template(at, spec, problems);
    let at = at.field("template");
    let template = as_pods_will_have_it(spec);
    if !lenient.template {
        pod_validation::template(&at, &template, problems);
    }
    pod_validation::template_metadata(&at, &template, problems);
}

/// The controller sets hostname, subdomain and the volumes of claims itself, so what a template says there is not checked.
fn as_pods_will_have_it(spec: &Value) -> Value {
    let mut template = spec["template"].clone();
    let claims = items(spec, "volumeClaimTemplates");
    let names: BTreeSet<_> = claims
        .iter()
        .map(|claim| text(&claim["metadata"], "name"))
        .collect();
    let Some(pod) = part(&mut template, "spec") else {
        return template;
    };
    unset(pod, "hostname");
    unset(pod, "subdomain");
    if !names.is_empty() {
        let from_claims = names
            .iter()
            .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
        let own = items(pod, "volumes")
            .iter()
            .filter(|volume| !names.contains(&text(volume, "name")))
            .cloned();
        let volumes: Vec<_> = from_claims.chain(own).collect();
        set(pod, "volumes", volumes);
    }
    template
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn set_with(rolling: Value) -> Value {
        json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}})
    }

    #[rstest]
    #[case(true, json!({}), json!({}), json!({"maxUnavailable": 1}))]
    #[case(true, json!({}), json!({"maxUnavailable": "10%"}), json!({"maxUnavailable": "10%"}))]
    #[case(false, json!({}), json!({"maxUnavailable": 2}), json!({}))]
    #[case(false, json!({"maxUnavailable": 3}), json!({"maxUnavailable": 2}), json!({"maxUnavailable": 2}))]
    fn the_gate_decides_about_max_unavailable(
        #[case] gate: bool,
        #[case] old: Value,
        #[case] new: Value,
        #[case] expected: Value,
    ) {
        let mut new = set_with(new);
        prepare_update(
            &set_with(old),
            &mut new,
            Gates {
                max_unavailable_statefulset: gate,
            },
        );
        assert_eq!(new, set_with(expected));
    }

    #[rstest]
    #[case(json!(0), &["Invalid value: 0: cannot be 0"])]
    #[case(json!(-1), &["Invalid value: -1: must be greater than or equal to 0"])]
    #[case(json!("101%"), &["Invalid value: \"101%\": must not be greater than 100%"])]
    #[case(json!("0%"), &["Invalid value: \"0%\": cannot be 0"])]
    #[case(json!("50%"), &[])]
    fn max_unavailable_is_some_but_not_more_than_all(#[case] value: Value, #[case] messages: &[&str]) {
        let mut problems = Problems::default();
        validate_max_unavailable(&At::new("maxUnavailable"), &value, &mut problems);
        let errors = problems.into_errors();
        assert_eq!(
            errors
                .iter()
                .map(|error| error.message.as_str())
                .collect::<Vec<_>>(),
            messages
        );
    }
}
