//! Which labels a set selects.

use serde_json::Value;

use super::object::{items, text};

/// A label selector. An absent one selects nothing, an empty one everything.
#[derive(Debug)]
pub(super) struct Selector(Option<Vec<Requirement>>);

#[derive(Debug)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Debug)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

impl Selector {
    /// `None` when it is not a valid selector.
    pub(super) fn parse(selector: &Value) -> Option<Self> {
        if selector.is_null() {
            return Some(Self(None));
        }
        let labels = selector["matchLabels"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| {
                let operator = Operator::In(vec![text(value).to_owned()]);
                Some(Requirement {
                    key: key.clone(),
                    operator,
                })
            });
        let expressions = items(&selector["matchExpressions"])
            .iter()
            .map(Requirement::parse);
        Some(Self(Some(labels.chain(expressions).collect::<Option<_>>()?)))
    }

    /// Whether it selects everything.
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_some_and(Vec::is_empty)
    }

    pub(super) fn matches(&self, labels: &Value) -> bool {
        self.0
            .as_ref()
            .is_some_and(|requirements| requirements.iter().all(|one| one.matches(labels)))
    }
}

impl Requirement {
    fn parse(expression: &Value) -> Option<Self> {
        let values: Vec<_> = items(&expression["values"])
            .iter()
            .map(|value| text(value).to_owned())
            .collect();
        let operator = match (text(&expression["operator"]), values.is_empty()) {
            ("In", false) => Operator::In(values),
            ("NotIn", false) => Operator::NotIn(values),
            ("Exists", true) => Operator::Exists,
            ("DoesNotExist", true) => Operator::DoesNotExist,
            _ => return None,
        };
        Some(Self {
            key: text(&expression["key"]).to_owned(),
            operator,
        })
    }

    fn matches(&self, labels: &Value) -> bool {
        let value = labels[&self.key].as_str();
        let among = |values: &[String]| value.is_some_and(|value| values.iter().any(|one| one == value));
        match &self.operator {
            Operator::In(values) => among(values),
            Operator::NotIn(values) => !among(values),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::labels(json!({"matchLabels": {"app": "db"}}), true)]
    #[case::another_value(json!({"matchLabels": {"app": "web"}}), false)]
    #[case::all_must_hold(json!({"matchLabels": {"app": "db", "tier": "1"}}), false)]
    #[case::one_of(json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}), true)]
    #[case::none_of(json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}), false)]
    #[case::none_of_an_absent(json!({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["db"]}]}), true)]
    #[case::exists(json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), true)]
    #[case::is_absent(json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), false)]
    #[case::empty(json!({}), true)]
    #[case::absent(json!(null), false)]
    fn a_selector_matches_labels(#[case] selector: Value, #[case] expected: bool) {
        let selector = Selector::parse(&selector).unwrap();
        assert_eq!(selector.matches(&json!({"app": "db"})), expected);
    }

    #[rstest]
    #[case(json!({"matchExpressions": [{"key": "app", "operator": "Near"}]}))]
    #[case(json!({"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}))]
    #[case(json!({"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["db"]}]}))]
    fn an_invalid_selector_is_none(#[case] selector: Value) {
        assert!(Selector::parse(&selector).is_none());
    }
}
