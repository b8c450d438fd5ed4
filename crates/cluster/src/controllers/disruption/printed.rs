//! Selectors in messages.

use std::collections::BTreeMap;

use crate::json::Value;

/// A selector as Go prints it in messages.
pub(super) fn printed(selector: &Value) -> String {
    if selector.is_null() {
        return "nil".into();
    }
    let labels: BTreeMap<_, _> = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .collect();
    let labels: String = labels
        .into_iter()
        .map(|(key, value)| format!("{key}: {},", text(value)))
        .collect();
    let expressions = selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|expression| {
            let values: Vec<_> = expression["values"]
                .as_array()
                .into_iter()
                .flatten()
                .map(text)
                .collect();
            let (key, operator) = (text(&expression["key"]), text(&expression["operator"]));
            format!(
                "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},",
                values.join(" ")
            )
        });
    let expressions: String = expressions.collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn a_selector_is_printed_as_go_does() {
        let selector = json!({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [
            {"key": "k", "operator": "In", "values": ["x", "y"]},
        ]});
        assert_eq!(
            printed(&selector),
            "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{\
             LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}"
        );
    }
}
