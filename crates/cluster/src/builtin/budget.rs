//! PodDisruptionBudgets.

use crate::json::{Map, Value};

use super::fields::{has, set};
use super::problems::{At, Problems, in_order};
use super::validation;
use super::validation::workload::{at_most_all, count_or_percent};

pub(super) fn prepare_create(object: &mut Value) {
    let counts = [
        "disruptionsAllowed",
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
    ];
    set(
        object,
        "status",
        Map::from_iter(counts.map(|name| (name.to_owned(), 0.into()))),
    );
}

pub(super) fn validate(object: &Value, problems: &mut Problems) {
    let (at, spec) = (At::new("spec"), &object["spec"]);
    let counts = ["minAvailable", "maxUnavailable"];
    if counts.iter().all(|name| has(spec, name)) {
        let policy = &spec["unhealthyPodEvictionPolicy"];
        // The server prints its internal type, whose fields are upper case.
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{policy}}}",
            spec["minAvailable"],
            in_order(&spec["selector"]),
            spec["maxUnavailable"],
        );
        problems.invalid_as(&at, &shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for name in counts.into_iter().filter(|name| has(spec, name)) {
        count_or_percent(&at.field(name), &spec[name], problems);
        at_most_all(&at.field(name), &spec[name], problems);
    }
    validation::selector::validate(&at.field("selector"), &spec["selector"], problems);
    let allowed = ["AlwaysAllow", "IfHealthyBudget"];
    if let Some(policy) = spec["unhealthyPodEvictionPolicy"]
        .as_str()
        .filter(|policy| !allowed.contains(policy))
    {
        problems.not_supported(&at.field("unhealthyPodEvictionPolicy"), policy, &allowed);
    }
}
