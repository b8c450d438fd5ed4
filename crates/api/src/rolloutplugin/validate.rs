//! Validation of a RolloutPlugin's spec: the rules of its schema and those beyond it.

use std::fmt;

use super::{RolloutPlugin, RolloutPluginSpec, Step};
use crate::duration;
use crate::names::{OBJECT_NAME, is_object_name};
use crate::problem::{Problem, Problems};

impl RolloutPlugin {
    /// All problems of the spec; empty if it is valid.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        self.spec.check(self.metadata.namespace.as_deref(), &mut problems);
        problems.0
    }

    /// Problems of the workload reference and of the plugin name; empty if both identify a workload.
    pub fn reference_problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        self.spec
            .check_reference(self.metadata.namespace.as_deref(), &mut problems);
        problems.0
    }
}

/// The names of the built-in StatefulSet plugin.
const BUILT_IN: [&str; 3] = ["statefulset", "statefulset-plugin", "argoproj/statefulset"];

/// The supported keys of its configuration.
const CONFIG: [&str; 2] = ["timeoutSeconds", "timeoutAbort"];

/// The largest number of seconds that the spec's field can hold.
const LONGEST: i64 = i32::MAX as i64;

impl RolloutPluginSpec {
    fn check(&self, namespace: Option<&str>, problems: &mut Problems) {
        self.check_reference(namespace, problems);
        self.check_config(problems);
        self.check_deadline(problems);
        let Some(canary) = &self.strategy.canary else {
            problems.add(
                "spec.strategy.canary",
                "is missing; it is the one strategy there is",
            );
            return;
        };
        for (index, step) in canary.steps.iter().enumerate() {
            step.check(&format!("spec.strategy.canary.steps[{index}]"), problems);
        }
        let mut full = None;
        for (index, weight) in canary.steps.iter().map(|step| step.set_weight).enumerate() {
            match (weight, full) {
                (Some(100), _) => full = Some(index),
                (Some(weight), Some(before)) => problems.add(
                    format!("spec.strategy.canary.steps[{index}].setWeight"),
                    format!("{weight} follows the 100 of step {before}: when every pod is new there is no way to keep some old"),
                ),
                _ => {}
            }
        }
        let last = canary.steps.len();
        let from = canary
            .analysis
            .as_ref()
            .and_then(|analysis| analysis.starting_step);
        if let Some(from) =
            from.filter(|from| usize::try_from(*from).is_ok_and(|from| from > last) || *from < 0)
        {
            problems.add(
                "spec.strategy.canary.analysis.startingStep",
                format!("{from} is not between 0 and {last}, the number of steps"),
            );
        }
    }

    fn check_reference(&self, namespace: Option<&str>, problems: &mut Problems) {
        let target = &self.workload_ref;
        for (field, value, right) in [
            (
                "spec.workloadRef.apiVersion",
                &target.api_version,
                "an API version such as apps/v1",
            ),
            (
                "spec.workloadRef.kind",
                &target.kind,
                "a kind such as StatefulSet",
            ),
        ] {
            if value.is_empty() {
                problems.add(field, format!("{value:?} is not {right}"));
            }
        }
        // Not in the schema: if the schema were tightened, an existing invalid object could not even lose its finalizer.
        if !is_object_name(&target.name) {
            problems.add(
                "spec.workloadRef.name",
                format!("{:?} is not the name of an object: {OBJECT_NAME}", target.name),
            );
        }
        if let (Some(theirs), Some(ours)) = (target.namespace.as_deref(), namespace)
            && theirs != ours
        {
            problems.add(
                "spec.workloadRef.namespace",
                format!("{theirs:?} is not {ours:?}; a workload is rolled from its own namespace"),
            );
        }
        let plugin = self.plugin.name.as_str();
        if !BUILT_IN.contains(&plugin) {
            problems.add(
                "spec.plugin.name",
                format!("{plugin:?} is not known; there is {}", BUILT_IN.join(", ")),
            );
            return;
        }
        let (version, kind) = (target.api_version.as_str(), target.kind.as_str());
        if !version.is_empty() && !kind.is_empty() && (version, kind) != ("apps/v1", "StatefulSet") {
            problems.add(
                "spec.workloadRef",
                format!("{version} {kind} is not served by the plugin {plugin:?}, which serves apps/v1 StatefulSet"),
            );
        }
    }

    fn check_config(&self, problems: &mut Problems) {
        let plugin = self.plugin.name.as_str();
        if !BUILT_IN.contains(&plugin) {
            return;
        }
        for key in self.plugin.config.iter().flat_map(|config| config.keys()) {
            if !CONFIG.contains(&key.as_str()) {
                problems.add(
                    format!("spec.plugin.config.{key}"),
                    format!(
                        "is not known to the plugin {plugin:?}; there is {}",
                        CONFIG.join(", ")
                    ),
                );
            }
        }
    }

    fn check_deadline(&self, problems: &mut Problems) {
        if let Some(seconds) = self.progress_deadline_seconds.filter(|seconds| *seconds < 1) {
            problems.add(
                "spec.progressDeadlineSeconds",
                format!("{seconds} is not above 0"),
            );
        }
        let Some(config) = &self.plugin.config else {
            return;
        };
        if let Some(value) = config.get("timeoutSeconds") {
            match value.as_i64().filter(|seconds| (1..=LONGEST).contains(seconds)) {
                Some(seconds) => one_value(
                    (
                        "progressDeadlineSeconds",
                        self.progress_deadline_seconds.map(i64::from),
                    ),
                    ("timeoutSeconds", seconds),
                    problems,
                ),
                None => problems.add(
                    "spec.plugin.config.timeoutSeconds",
                    format!("{value} is not a whole number from 1 to {LONGEST}"),
                ),
            }
        }
        if let Some(value) = config.get("timeoutAbort") {
            match value.as_bool() {
                Some(aborts) => one_value(
                    ("progressDeadlineAbort", self.progress_deadline_abort),
                    ("timeoutAbort", aborts),
                    problems,
                ),
                None => problems.add(
                    "spec.plugin.config.timeoutAbort",
                    format!("{value} is not true or false"),
                ),
            }
        }
    }
}

/// A setting given under both of its names must have one value; the operator does not guess which one is meant.
fn one_value<T: PartialEq + fmt::Display>(
    (field, ours): (&str, Option<T>),
    (key, theirs): (&str, T),
    problems: &mut Problems,
) {
    if let Some(ours) = ours.filter(|ours| *ours != theirs) {
        problems.add(
            format!("spec.{field}"),
            format!(
                "{ours} is not the {theirs} of spec.plugin.config.{key}; both are names of one setting, give one or the same value"
            ),
        );
    }
}

impl Step {
    fn check(&self, path: &str, problems: &mut Problems) {
        let kinds = [
            (self.set_weight.is_some(), "setWeight"),
            (self.pause.is_some(), "pause"),
            (self.analysis.is_some(), "analysis"),
        ];
        let given: Vec<_> = kinds
            .into_iter()
            .filter(|(given, _)| *given)
            .map(|(_, name)| name)
            .collect();
        match given.as_slice() {
            [_] => {}
            [] => problems.add(
                path,
                "is empty; it must have one of setWeight, pause and analysis",
            ),
            several => problems.add(
                path,
                format!("has {}; a step does one thing", several.join(" and ")),
            ),
        }
        if let Some(weight) = self.set_weight.filter(|weight| !(0..=100).contains(weight)) {
            problems.add(
                format!("{path}.setWeight"),
                format!("{weight} is not between 0 and 100"),
            );
        }
        if let Some(given) = self.pause.as_ref().and_then(|pause| pause.duration.as_ref())
            && let Err(why) = duration::parse(given)
        {
            let value = serde_json::to_value(given).unwrap_or_default();
            problems.add(format!("{path}.pause.duration"), format!("{value} {why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn rollout(change: Value) -> RolloutPlugin {
        let mut object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutPlugin",
            "metadata": {"name": "db", "namespace": "prod"},
            "spec": {
                "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
                "plugin": {"name": "statefulset"},
                "strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {}}]}},
            },
        });
        merge(&mut object["spec"], change);
        serde_json::from_value(object).unwrap()
    }

    fn merge(into: &mut Value, change: Value) {
        match (into, change) {
            (Value::Object(into), Value::Object(change)) => {
                for (key, value) in change {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
            (into, change) => *into = change,
        }
    }

    fn steps(steps: Value) -> Value {
        json!({"strategy": {"canary": {"steps": steps}}})
    }

    #[rstest]
    #[case(json!({}))]
    #[case(json!({"plugin": {"name": "statefulset-plugin"}}))]
    #[case(json!({"plugin": {"name": "argoproj/statefulset", "config": {"timeoutSeconds": 5, "timeoutAbort": true}}}))]
    #[case(json!({"progressDeadlineSeconds": 5, "plugin": {"config": {"timeoutSeconds": 5, "timeoutAbort": true}}}))]
    #[case(json!({"progressDeadlineAbort": true, "plugin": {"config": {"timeoutAbort": true}}}))]
    #[case(json!({"workloadRef": {"namespace": "prod"}}))]
    #[case(json!({"workloadRef": {"name": "0.db-1.x"}}))]
    #[case(steps(json!([])))]
    #[case(steps(json!([{"setWeight": 60}, {"setWeight": 20}, {"pause": {"duration": "1h30m"}}, {"pause": {"duration": 5}}])))]
    fn what_can_be_carried_out_has_no_problem(#[case] change: Value) {
        assert_eq!(rollout(change).problems(), []);
    }

    #[rstest]
    #[case(json!({"strategy": null}), "spec.strategy.canary: is missing; it is the one strategy there is")]
    #[case(json!({"workloadRef": {"apiVersion": ""}}), "spec.workloadRef.apiVersion: \"\" is not an API version such as apps/v1")]
    #[case(json!({"workloadRef": {"kind": ""}}), "spec.workloadRef.kind: \"\" is not a kind such as StatefulSet")]
    #[case(json!({"workloadRef": {"name": ""}}), "spec.workloadRef.name: \"\" is not the name of an object: it must be lower case letters, digits, - and ., each part between dots beginning and ending with a letter or digit, 253 characters at most")]
    #[case(json!({"workloadRef": {"name": "Bad_Name"}}), "spec.workloadRef.name: \"Bad_Name\" is not the name of an object: it must be lower case letters, digits, - and ., each part between dots beginning and ending with a letter or digit, 253 characters at most")]
    #[case(json!({"plugin": {"name": ""}}), "spec.plugin.name: \"\" is not known; there is statefulset, statefulset-plugin, argoproj/statefulset")]
    #[case(json!({"plugin": {"config": {"timeoutSecond": 5}}}), "spec.plugin.config.timeoutSecond: is not known to the plugin \"statefulset\"; there is timeoutSeconds, timeoutAbort")]
    #[case(json!({"progressDeadlineSeconds": 600, "plugin": {"config": {"timeoutSeconds": 30}}}), "spec.progressDeadlineSeconds: 600 is not the 30 of spec.plugin.config.timeoutSeconds; both are names of one setting, give one or the same value")]
    #[case(json!({"progressDeadlineAbort": false, "plugin": {"config": {"timeoutAbort": true}}}), "spec.progressDeadlineAbort: false is not the true of spec.plugin.config.timeoutAbort; both are names of one setting, give one or the same value")]
    #[case(json!({"plugin": {"name": "nobody/knows"}}), "spec.plugin.name: \"nobody/knows\" is not known; there is statefulset, statefulset-plugin, argoproj/statefulset")]
    #[case(json!({"workloadRef": {"kind": "DaemonSet"}}), "spec.workloadRef: apps/v1 DaemonSet is not served by the plugin \"statefulset\", which serves apps/v1 StatefulSet")]
    #[case(json!({"workloadRef": {"namespace": "other"}}), "spec.workloadRef.namespace: \"other\" is not \"prod\"; a workload is rolled from its own namespace")]
    #[case(json!({"progressDeadlineSeconds": 0}), "spec.progressDeadlineSeconds: 0 is not above 0")]
    #[case(json!({"plugin": {"config": {"timeoutSeconds": "soon"}}}), "spec.plugin.config.timeoutSeconds: \"soon\" is not a whole number from 1 to 2147483647")]
    #[case(json!({"plugin": {"config": {"timeoutAbort": "yes"}}}), "spec.plugin.config.timeoutAbort: \"yes\" is not true or false")]
    #[case(steps(json!([{"setWeight": 140}])), "spec.strategy.canary.steps[0].setWeight: 140 is not between 0 and 100")]
    #[case(steps(json!([{}])), "spec.strategy.canary.steps[0]: is empty; it must have one of setWeight, pause and analysis")]
    #[case(steps(json!([{"setWeight": 1, "pause": {}}])), "spec.strategy.canary.steps[0]: has setWeight and pause; a step does one thing")]
    #[case(steps(json!([{"pause": {"duration": "soon"}}])), "spec.strategy.canary.steps[0].pause.duration: \"soon\" is not a number of seconds or a duration such as 30s, 5m or 1h30m")]
    #[case(steps(json!([{"pause": {"duration": -1}}])), "spec.strategy.canary.steps[0].pause.duration: -1 is negative; it must be 0 or longer, such as 30, 5m or 1h30m")]
    #[case(steps(json!([{"setWeight": 100}, {"setWeight": 50}])), "spec.strategy.canary.steps[1].setWeight: 50 follows the 100 of step 0: when every pod is new there is no way to keep some old")]
    #[case(json!({"strategy": {"canary": {"steps": [], "analysis": {"startingStep": 1}}}}), "spec.strategy.canary.analysis.startingStep: 1 is not between 0 and 0, the number of steps")]
    fn a_problem_names_the_field_and_what_is_allowed(#[case] change: Value, #[case] expected: &str) {
        let change = if change == json!({"strategy": null}) {
            json!({"strategy": {"canary": null}})
        } else {
            change
        };
        let problems: Vec<_> = rollout(change)
            .problems()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(problems, [expected]);
    }
    #[rstest]
    #[case("db-", false)]
    #[case("db.-1", false)]
    #[case("db..1", false)]
    #[case("Db", false)]
    #[case("db/1", false)]
    #[case(&"a".repeat(254), false)]
    #[case(&"a".repeat(253), true)]
    fn a_name_is_one_that_an_object_can_have(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(is_object_name(name), expected);
    }
}
