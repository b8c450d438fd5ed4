//! Validates tolerations, affinity and topology spread.

use crate::json::Value;

use super::selector;
use crate::builtin::fields::{entries, has, int, items, text};
use crate::builtin::problems::{At, Problems};
use crate::names;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const UNSATISFIABLE: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];

pub(crate) fn tolerations(at: &At, spec: &Value, problems: &mut Problems) {
    for (index, toleration) in items(spec, "tolerations").iter().enumerate() {
        let at = at.index(index);
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        if !key.is_empty() {
            problems.invalid_for(&at.field("key"), key, names::qualified_name(key));
        } else if operator != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            problems.invalid(&at.field("operator"), operator, detail);
        }
        if has(toleration, "tolerationSeconds") && effect != "NoExecute" {
            problems.invalid(
                &at.field("effect"),
                effect,
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            );
        }
        match operator {
            "Equal" | "" => {
                let complaints = names::label_value(value);
                if !complaints.is_empty() {
                    problems.invalid(&at.field("operator"), value, &complaints.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                problems.invalid(
                    &at.field("operator"),
                    value,
                    "value must be empty when `operator` is 'Exists'",
                );
            }
            "Exists" => {}
            // Known to the server, but behind a disabled gate.
            "Lt" | "Gt" => {
                problems.not_supported(&at.field("operator"), operator, &["Equal", "Exists", "Lt", "Gt"]);
            }
            _ => problems.not_supported(&at.field("operator"), operator, &["Equal", "Exists"]),
        }
        if !effect.is_empty() && !EFFECTS.contains(&effect) {
            problems.not_supported(&at.field("effect"), effect, &EFFECTS);
        }
    }
}

/// Checks the taints of a node.
pub(crate) fn taints(at: &At, spec: &Value, problems: &mut Problems) {
    let mut known = Vec::new();
    for (index, taint) in items(spec, "taints").iter().enumerate() {
        let at = at.index(index);
        let (key, effect) = (text(taint, "key"), text(taint, "effect"));
        problems.invalid_for(&at.field("key"), key, names::qualified_name(key));
        let value = text(taint, "value");
        let complaints = names::label_value(value);
        if !complaints.is_empty() {
            problems.invalid(&at.field("value"), value, &complaints.join(";"));
        }
        problems.choice(&at.field("effect"), effect, &EFFECTS);
        if known.contains(&(key, effect)) {
            problems.duplicate(&at, taint.clone());
        }
        known.push((key, effect));
    }
}

pub(crate) fn affinity(at: &At, affinity: &Value, problems: &mut Problems) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let node = &affinity["nodeAffinity"];
    let at_node = at.field("nodeAffinity");
    if has(node, REQUIRED) {
        let terms = items(&node[REQUIRED], "nodeSelectorTerms");
        let at = at_node.field(REQUIRED);
        let at = at.field("nodeSelectorTerms");
        if terms.is_empty() {
            problems.required(&at, "must have at least one node selector term");
        }
        for (index, term) in terms.iter().enumerate() {
            node_term(&at.index(index), term, true, problems);
        }
    }
    for (index, preferred) in items(node, PREFERRED).iter().enumerate() {
        let at = at_node.field(PREFERRED);
        let at = at.index(index);
        weight(&at, preferred, problems);
        node_term(&at.field("preference"), &preferred["preference"], false, problems);
    }
    for name in ["podAffinity", "podAntiAffinity"] {
        let (at, rules) = (at.field(name), &affinity[name]);
        for (index, term) in items(rules, REQUIRED).iter().enumerate() {
            pod_term(&at.field(REQUIRED).index(index), term, problems);
        }
        for (index, preferred) in items(rules, PREFERRED).iter().enumerate() {
            let at = at.field(PREFERRED);
            let at = at.index(index);
            weight(&at, preferred, problems);
            pod_term(
                &at.field("podAffinityTerm"),
                &preferred["podAffinityTerm"],
                problems,
            );
        }
    }
}

fn weight(at: &At, preferred: &Value, problems: &mut Problems) {
    let weight = int(preferred, "weight").unwrap_or_default();
    if !(1..=100).contains(&weight) {
        problems.invalid(&at.field("weight"), weight, "must be in the range 1-100");
    }
}

/// Values of a preferred term are not checked: such pods exist in storage.
fn node_term(at: &At, term: &Value, check_values: bool, problems: &mut Problems) {
    for (index, requirement) in items(term, "matchExpressions").iter().enumerate() {
        let at = at.field("matchExpressions");
        let at = at.index(index);
        let values = items(requirement, "values");
        match text(requirement, "operator") {
            "Gt" | "Lt" if values.len() != 1 => problems.required(
                &at.field("values"),
                "must be specified single value when `operator` is 'Lt' or 'Gt'",
            ),
            "Gt" | "Lt" => {}
            _ => selector::operator(&at, requirement, problems),
        }
        selector::key_and_values(&at, requirement, check_values, problems);
    }
}

fn pod_term(at: &At, term: &Value, problems: &mut Problems) {
    selector::validate(&at.field("labelSelector"), &term["labelSelector"], problems);
    selector::validate(
        &at.field("namespaceSelector"),
        &term["namespaceSelector"],
        problems,
    );
    for namespace in items(term, "namespaces").iter().filter_map(Value::as_str) {
        problems.invalid_for(&at.field("namespace"), namespace, names::dns_label(namespace));
    }
    for name in ["matchLabelKeys", "mismatchLabelKeys"] {
        label_keys(at, term, name, problems);
    }
    repeated_keys(at, term, problems);
    let key = text(term, "topologyKey");
    if key.is_empty() {
        problems.required(&at.field("topologyKey"), "can not be empty");
    }
    problems.invalid_for(&at.field("topologyKey"), key, names::qualified_name(key));
}

fn label_keys(at: &At, term: &Value, name: &str, problems: &mut Problems) {
    let (at, keys) = (at.field(name), items(term, name));
    if !keys.is_empty() && !has(term, "labelSelector") {
        return problems.forbidden(&at, "must not be specified when labelSelector is not set");
    }
    for (index, key) in keys.iter().filter_map(Value::as_str).enumerate() {
        problems.invalid_for(&at.index(index), key, names::qualified_name(key));
    }
}

/// A key must not be in both the selector and the label keys. The server has merged the keys into the selector by now, so such a key
/// appears twice.
fn repeated_keys(at: &At, term: &Value, problems: &mut Problems) {
    let (selector, keys) = (&term["labelSelector"], items(term, "matchLabelKeys"));
    let mut known: Vec<_> = entries(selector, "matchLabels").map(|(key, _)| key).collect();
    for key in items(selector, "matchExpressions")
        .iter()
        .map(|expression| text(expression, "key"))
    {
        // Upstream names the last of equal keys, and by the term, not by its list.
        let place = keys.iter().rposition(|listed| listed == key);
        if let Some(place) = place.filter(|_| known.contains(&key)) {
            problems.invalid(
                &at.index(place),
                key,
                "exists in both matchLabelKeys and labelSelector",
            );
        }
        known.push(key);
    }
    let others = items(term, "mismatchLabelKeys");
    for (index, key) in keys.iter().enumerate().filter(|(_, key)| others.contains(key)) {
        let at = at.field("matchLabelKeys");
        let at = at.index(index);
        problems.invalid(
            &at,
            key.clone(),
            "exists in both matchLabelKeys and mismatchLabelKeys",
        );
    }
}

pub(crate) fn topology_spread(at: &At, spec: &Value, problems: &mut Problems) {
    let constraints = items(spec, "topologySpreadConstraints");
    for (index, constraint) in constraints.iter().enumerate() {
        let at = at.index(index);
        let (key, action) = (
            text(constraint, "topologyKey"),
            text(constraint, "whenUnsatisfiable"),
        );
        let skew = int(constraint, "maxSkew").unwrap_or_default();
        if skew <= 0 {
            problems.invalid(&at.field("maxSkew"), skew, "must be greater than zero");
        }
        if key.is_empty() {
            problems.required(&at.field("topologyKey"), "can not be empty");
        }
        if !UNSATISFIABLE.contains(&action) {
            problems.not_supported(&at.field("whenUnsatisfiable"), action, &UNSATISFIABLE);
        }
        let is_same =
            |other: &Value| text(other, "topologyKey") == key && text(other, "whenUnsatisfiable") == action;
        if constraints[index + 1..].iter().any(is_same) {
            problems.duplicate(
                &at.field("{topologyKey, whenUnsatisfiable}"),
                format!("{{{key}, {action}}}"),
            );
        }
        if let Some(domains) = int(constraint, "minDomains") {
            let at = at.field("minDomains");
            if domains <= 0 {
                problems.invalid(&at, domains, "must be greater than zero");
            }
            if action != "DoNotSchedule" {
                let detail =
                    format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                problems.invalid(&at, domains, &detail);
            }
        }
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if let Some(policy) = constraint[name]
                .as_str()
                .filter(|policy| !["Honor", "Ignore"].contains(policy))
            {
                problems.not_supported(&at.field(name), policy, &["Honor", "Ignore"]);
            }
        }
        label_keys(&at, constraint, "matchLabelKeys", problems);
        repeated_keys(&at, constraint, problems);
        selector::validate(&at.field("labelSelector"), &constraint["labelSelector"], problems);
    }
}
