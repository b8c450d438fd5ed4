//! `podFailurePolicy`: the effect of a failed pod, by exit codes and conditions.

use crate::json::Value;

use crate::object;

/// Rules in order; the first that matches decides.
pub(super) struct FailurePolicy {
    rules: Vec<Value>,
}

/// The effect of one failed pod.
#[derive(Debug, PartialEq)]
pub(super) enum Meaning {
    /// The Job fails, with this message.
    FailsJob(String),
    /// Its index fails, whatever the index's limit.
    FailsIndex,
    /// It does not count.
    Ignored,
    /// It counts as one failure.
    Counts,
}

impl FailurePolicy {
    pub(super) fn read(policy: &Value) -> Option<Self> {
        (!policy.is_null()).then(|| Self {
            rules: policy["rules"].as_array().cloned().unwrap_or_default(),
        })
    }

    pub(super) fn meaning(&self, pod: &Value) -> Meaning {
        let name = format!("{}/{}", object::namespace(pod), object::name(pod));
        for (position, rule) in self.rules.iter().enumerate() {
            let (codes, conditions) = (&rule["onExitCodes"], &rule["onPodConditions"]);
            let why = if !codes.is_null() {
                matching_container(pod, codes).map(|(container, code)| {
                    format!("Container {container} for pod {name} failed with exit code {code}")
                })
            } else {
                matching_condition(pod, conditions).map(|kind| format!("Pod {name} has condition {kind}"))
            };
            let Some(why) = why else { continue };
            match rule["action"].as_str().unwrap_or_default() {
                "FailJob" => {
                    return Meaning::FailsJob(format!("{why} matching FailJob rule at index {position}"));
                }
                "FailIndex" => return Meaning::FailsIndex,
                "Ignore" => return Meaning::Ignored,
                "Count" => return Meaning::Counts,
                _ => {}
            }
        }
        Meaning::Counts
    }
}

fn matching_container<'p>(pod: &'p Value, codes: &Value) -> Option<(&'p str, i64)> {
    let wanted = codes["containerName"].as_str();
    let fields = ["containerStatuses", "initContainerStatuses"];
    let mut statuses = fields
        .iter()
        .filter_map(|field| pod["status"][field].as_array())
        .flatten();
    statuses.find_map(|status| {
        let name = status["name"].as_str().unwrap_or_default();
        let code = status["state"]["terminated"]["exitCode"].as_i64()?;
        let listed = codes["values"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|value| value.as_i64() == Some(code));
        let matches = match codes["operator"].as_str() {
            Some("In") => listed,
            Some("NotIn") => !listed,
            _ => false,
        };
        (code != 0 && wanted.is_none_or(|wanted| wanted == name) && matches).then_some((name, code))
    })
}

fn matching_condition<'p>(pod: &'p Value, patterns: &Value) -> Option<&'p str> {
    let mut conditions = pod["status"]["conditions"].as_array()?.iter();
    let patterns = patterns.as_array()?;
    let matches = |condition: &&Value| {
        patterns
            .iter()
            .any(|one| one["type"] == condition["type"] && one["status"] == condition["status"])
    };
    conditions.find(matches)?["type"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    fn failed(code: i64) -> Value {
        json!({
            "metadata": {"name": "p", "namespace": "n"},
            "status": {
                "phase": "Failed",
                "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": code}}}],
                "conditions": [{"type": "DisruptionTarget", "status": "True"}],
            },
        })
    }

    #[rstest]
    #[case::fail_job(
        json!([{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]),
        Meaning::FailsJob("Container c for pod n/p failed with exit code 42 matching FailJob rule at index 0".into())
    )]
    #[case::other_code(json!([{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]), Meaning::Counts)]
    #[case::other_container(
        json!([{"action": "FailJob", "onExitCodes": {"containerName": "x", "operator": "In", "values": [42]}}]),
        Meaning::Counts
    )]
    #[case::condition_first(
        json!([
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1]}},
        ]),
        Meaning::Ignored
    )]
    #[case::fail_index(json!([{"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1]}}]), Meaning::FailsIndex)]
    #[case::by_condition(
        json!([{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]),
        Meaning::FailsJob("Pod n/p has condition DisruptionTarget matching FailJob rule at index 0".into())
    )]
    fn the_first_rule_that_matches_decides(#[case] rules: Value, #[case] meaning: Meaning) {
        let policy = FailurePolicy::read(&json!({"rules": rules})).unwrap();
        assert_eq!(policy.meaning(&failed(42)), meaning);
    }
}
