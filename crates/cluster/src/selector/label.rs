//! Requirements on labels.

use std::fmt;

use crate::json::Value;

use super::{SelectorError, parse};
use crate::names;

/// Requirements that must all hold. Without any it selects everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
    /// An absent `LabelSelector` in an object selects nothing.
    is_nothing: bool,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operator {
    Equals,
    DoubleEquals,
    NotEquals,
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

impl LabelSelector {
    /// Parses the query syntax: `a=b,c in (d,e),!f`.
    pub(crate) fn parse(text: &str) -> Result<Self, SelectorError> {
        let requirements = parse::parse(text).map_err(SelectorError)?;
        Ok(Self::requiring(requirements))
    }

    /// Parses the `LabelSelector` of an object. An empty one selects everything, an absent one nothing.
    pub(crate) fn of(selector: &Value) -> Result<Self, SelectorError> {
        let Value::Object(fields) = selector else {
            return Ok(Self {
                requirements: Vec::new(),
                is_nothing: true,
            });
        };
        let mut requirements = Vec::new();
        for (key, value) in fields
            .get("matchLabels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement::new(key, Operator::Equals, vec![value]).map_err(SelectorError)?);
        }
        for expression in fields
            .get("matchExpressions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let text = |name: &str| expression[name].as_str().unwrap_or_default();
            let operator = match text("operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    return Err(SelectorError(format!(
                        "{other:?} is not a valid label selector operator"
                    )));
                }
            };
            let values = expression["values"].as_array().into_iter().flatten();
            let values = values
                .map(|value| value.as_str().unwrap_or_default().to_owned())
                .collect();
            requirements.push(Requirement::new(text("key"), operator, values).map_err(SelectorError)?);
        }
        Ok(Self::requiring(requirements))
    }

    fn requiring(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|left, right| left.key.cmp(&right.key));
        Self {
            requirements,
            is_nothing: false,
        }
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty() && !self.is_nothing
    }

    /// Whether it selects an object with these labels.
    pub(crate) fn matches(&self, labels: &Value) -> bool {
        !self.is_nothing
            && self
                .requirements
                .iter()
                .all(|requirement| requirement.matches(labels))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requirements: Vec<_> = self.requirements.iter().map(Requirement::to_string).collect();
        f.write_str(&requirements.join(","))
    }
}

impl Requirement {
    pub(super) fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, String> {
        let mut errors = Vec::new();
        let mut invalid = |field: String, value: String, why: &str| {
            errors.push(format!("{field}: Invalid value: {value}: {why}"))
        };
        let faults = names::qualified_name(key).join("; ");
        if !faults.is_empty() {
            invalid("key".to_owned(), format!("{key:?}"), &faults);
        }
        let wrong_count = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                Some("values set must be empty for exists and does not exist")
            }
            _ => None,
        };
        if let Some(why) = wrong_count {
            let listed = match values.as_slice() {
                [] => "null".to_owned(),
                values => format!("{values:?}").replace(", ", ","),
            };
            invalid("values".to_owned(), listed, why);
        }
        for (index, value) in values.iter().enumerate() {
            let is_compared = matches!(operator, Operator::GreaterThan | Operator::LessThan);
            if is_compared && value.parse::<i64>().is_err() {
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                invalid(format!("values[{index}]"), format!("{value:?}"), why);
            }
        }
        for (index, value) in values.iter().enumerate() {
            let faults = names::label_value(value).join("; ");
            if !faults.is_empty() {
                invalid(format!("values[{index}][{key}]"), format!("{value:?}"), &faults);
            }
        }
        match errors.as_slice() {
            [] => Ok(Self {
                key: key.to_owned(),
                operator,
                values,
            }),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    fn matches(&self, labels: &Value) -> bool {
        let label = labels.get(&self.key).and_then(Value::as_str);
        let is_listed = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => label.is_some_and(is_listed),
            Operator::NotEquals | Operator::NotIn => !label.is_some_and(is_listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => self.numbers(label).is_some_and(|(label, value)| label > value),
            Operator::LessThan => self.numbers(label).is_some_and(|(label, value)| label < value),
        }
    }

    /// The label and the value it is compared with, if both are numbers.
    fn numbers(&self, label: Option<&str>) -> Option<(i64, i64)> {
        Some((label?.parse().ok()?, self.values.first()?.parse().ok()?))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values = self.values.clone();
        values.sort();
        let (key, values) = (&self.key, values.join(","));
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    /// Which of two pods the real server lists: one with these labels, one without any.
    #[rstest]
    #[case("", true, true)]
    #[case("app=db", true, false)]
    #[case("app==web", false, false)]
    #[case("app!=db", false, true)]
    #[case("app in (web,db)", true, false)]
    #[case("app in ()", false, false)]
    #[case("app notin (db)", false, true)]
    #[case("app", true, false)]
    #[case("!app", false, true)]
    #[case("n>4", true, false)]
    #[case("n<5", false, false)]
    #[case("app>4", false, false)]
    #[case("app=db,n>5", false, false)]
    fn a_selector_matches_labels(#[case] text: &str, #[case] labelled: bool, #[case] plain: bool) {
        let selector = LabelSelector::parse(text).unwrap();
        assert_eq!(selector.matches(&json!({"app": "db", "n": "5"})), labelled);
        assert_eq!(selector.matches(&Value::Null), plain);
    }

    #[rstest]
    #[case(json!(null), false, "")]
    #[case(json!({}), true, "")]
    #[case(json!({"matchLabels": {"app": "db"}}), true, "app=db")]
    #[case(json!({"matchLabels": {"z": "1"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["c", "b"]}]}),
        false, "a in (b,c),z=1")]
    #[case(json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), true, "app")]
    #[case(json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), false, "!app")]
    #[case(json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]}), true, "app notin (x)")]
    fn the_selector_of_an_object_matches_labels(
        #[case] selector: Value,
        #[case] expected: bool,
        #[case] shown: &str,
    ) {
        let selector = LabelSelector::of(&selector).unwrap();
        assert_eq!(selector.matches(&json!({"app": "db"})), expected);
        assert_eq!(selector.to_string(), shown);
    }

    #[rstest]
    #[case(json!({"matchExpressions": [{"key": "a", "operator": "Like"}]}), "\"Like\" is not a valid label selector operator")]
    #[case(json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty")]
    #[case(json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
        "values: Invalid value: [\"b\"]: values set must be empty for exists and does not exist")]
    fn a_bad_selector_of_an_object_is_refused(#[case] selector: Value, #[case] expected: &str) {
        assert_eq!(LabelSelector::of(&selector).unwrap_err().to_string(), expected);
    }
}
