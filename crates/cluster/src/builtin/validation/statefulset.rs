//! StatefulSets.

use std::collections::BTreeSet;

use crate::json::{Value, json};

use super::{claim, metadata, pod, selector, workload};
use crate::builtin::fields::{copy, has, int, items, part, same, set, text, unset};
use crate::builtin::problems::{At, Problems, in_order};
use crate::names;

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

/// Rules that an update skips, because it cannot change those fields.
#[derive(Clone, Copy, Default)]
struct Lenient {
    immutable_fields: bool,
    template: bool,
}

pub(crate) fn create(object: &Value, problems: &mut Problems) {
    metadata::of_kind("statefulsets.apps", object, problems);
    spec(&object["spec"], Lenient::default(), problems);
}

pub(crate) fn update(old: &Value, new: &Value, problems: &mut Problems) {
    metadata::update_of_kind("statefulsets.apps", old, new, problems);
    let mut lenient = Lenient {
        immutable_fields: true,
        template: false,
    };
    // A set that was stored with an invalid template can still be changed in other ways.
    let mut before = Problems::default();
    spec(&old["spec"], lenient, &mut before);
    lenient.template = !before.is_empty();
    spec(&new["spec"], lenient, problems);
    let mut undone = new["spec"].clone();
    for name in MUTABLE {
        copy(&old["spec"], &mut undone, name);
    }
    if !same(&old["spec"], &undone) {
        problems.forbidden(&At::new("spec"), OTHER_FIELDS);
    }
}

pub(crate) fn update_status(old: &Value, new: &Value, problems: &mut Problems) {
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
    metadata::update_of_kind("statefulsets.apps", old, new, problems);
    let is_lower = |before: i64| int(status, "collisionCount").is_none_or(|now| now < before);
    if int(&old["status"], "collisionCount").is_some_and(is_lower) {
        problems.invalid(
            &at.field("collisionCount"),
            count("collisionCount"),
            "cannot be decremented",
        );
    }
}

fn spec(spec: &Value, lenient: Lenient, problems: &mut Problems) {
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
    strategy(&at.field("updateStrategy"), &spec["updateStrategy"], problems);
    let retention = at.field("persistentVolumeClaimRetentionPolicy");
    for name in ["whenDeleted", "whenScaled"] {
        let policy = text(&spec["persistentVolumeClaimRetentionPolicy"], name);
        if !["Retain", "Delete"].contains(&policy) {
            problems.not_supported(&retention.field(name), policy, &["Retain", "Delete"]);
        }
    }
    if !lenient.immutable_fields {
        for (index, claim) in items(spec, "volumeClaimTemplates").iter().enumerate() {
            let at = at.field("volumeClaimTemplates");
            let at = at.index(index);
            let at = at.field("spec");
            claim::spec(&at, &claim["spec"], problems);
        }
    }
    problems.non_negative(&at, spec, "replicas");
    problems.non_negative(&at, spec, "minReadySeconds");
    problems.non_negative(&at.field("ordinals"), &spec["ordinals"], "start");
    let service = text(spec, "serviceName");
    if !lenient.immutable_fields && !service.is_empty() {
        problems.invalid_for(&at.field("serviceName"), service, names::dns_label(service));
    }
    selector(&at, spec, lenient, problems);
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

fn strategy(at: &At, strategy: &Value, problems: &mut Problems) {
    let rolling = &strategy["rollingUpdate"];
    // The server prints its internal type, whose fields are upper case and never omitted.
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
                max_unavailable(&at.field("maxUnavailable"), &rolling["maxUnavailable"], problems);
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

fn max_unavailable(at: &At, value: &Value, problems: &mut Problems) {
    workload::count_or_percent(at, value, problems);
    if workload::is_nothing(value) {
        problems.invalid(at, value.clone(), "cannot be 0");
    }
    workload::at_most_all(at, value, problems);
}

fn selector(at: &At, spec: &Value, lenient: Lenient, problems: &mut Problems) {
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
        pod::template(&at, &template, problems);
    }
    pod::template_metadata(&at, &template, problems);
}

/// The controller sets hostname, subdomain and the claims' volumes itself, so the template's values are not checked.
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

    #[rstest]
    #[case(json!(0), &["Invalid value: 0: cannot be 0"])]
    #[case(json!(-1), &["Invalid value: -1: must be greater than or equal to 0"])]
    #[case(json!("101%"), &["Invalid value: \"101%\": must not be greater than 100%"])]
    #[case(json!("0%"), &["Invalid value: \"0%\": cannot be 0"])]
    #[case(json!("50%"), &[])]
    fn max_unavailable_is_some_but_not_more_than_all(#[case] value: Value, #[case] messages: &[&str]) {
        let mut problems = Problems::default();
        max_unavailable(&At::new("maxUnavailable"), &value, &mut problems);
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
