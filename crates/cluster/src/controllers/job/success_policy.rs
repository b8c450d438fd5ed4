//! `successPolicy`: when enough indexes have succeeded.

use crate::json::Value;

use super::indexes::Indexes;

/// Rules of which one must be met.
pub(super) struct SuccessPolicy {
    rules: Vec<Rule>,
}

struct Rule {
    indexes: Option<String>,
    count: Option<i64>,
}

impl SuccessPolicy {
    pub(super) fn read(policy: &Value) -> Option<Self> {
        let rule = |rule: &Value| Rule {
            indexes: rule["succeededIndexes"].as_str().map(str::to_owned),
            count: rule["succeededCount"].as_i64(),
        };
        Some(Self {
            rules: policy["rules"].as_array()?.iter().map(rule).collect(),
        })
    }

    /// The message of the first rule that is met.
    pub(super) fn met(&self, succeeded: &Indexes, completions: i64) -> Option<String> {
        let position = self
            .rules
            .iter()
            .position(|rule| rule.is_met(succeeded, completions))?;
        (!succeeded.is_empty()).then(|| format!("Matched rules at index {position}"))
    }
}

impl Rule {
    fn is_met(&self, succeeded: &Indexes, completions: i64) -> bool {
        let Self { indexes, count } = self;
        match indexes {
            Some(indexes) => {
                let required = Indexes::read(indexes, completions);
                let done = required.shared(succeeded);
                !required.is_empty() && (done == required.total() || count.is_some_and(|count| done >= count))
            }
            None => count.is_some_and(|count| succeeded.total() >= count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    #[rstest]
    #[case(json!([{"succeededIndexes": "0,2"}]), "0-2", Some("Matched rules at index 0"))]
    #[case(json!([{"succeededIndexes": "0,2"}]), "0,1", None)]
    #[case(json!([{"succeededIndexes": "0-4", "succeededCount": 2}]), "3-5", Some("Matched rules at index 0"))]
    #[case(json!([{"succeededIndexes": "9"}, {"succeededCount": 1}]), "3", Some("Matched rules at index 1"))]
    #[case(json!([{"succeededCount": 0}]), "", None)]
    fn a_rule_needs_its_indexes_or_enough_of_them(
        #[case] rules: Value,
        #[case] succeeded: &str,
        #[case] message: Option<&str>,
    ) {
        let policy = SuccessPolicy::read(&json!({"rules": rules})).unwrap();
        assert_eq!(policy.met(&Indexes::read(succeeded, 8), 8).as_deref(), message);
    }
}
