//! Resource quantities in objects.

use stateward_schema::Quantity;

use crate::json::Value;

/// Rounds every quantity of a resource list up to thousandths, as upstream still does for compatibility.
pub(crate) fn round_list(list: Option<&mut Value>) {
    for value in list
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(|list| list.values_mut())
    {
        if let Some(quantity) = value.as_str().and_then(Quantity::parse)
            && !quantity.is_in_thousandths()
        {
            *value = quantity.rounded_up_to_thousandths().to_string().into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("1u", "1m")]
    #[case("1500u", "2m")]
    #[case("1n", "1m")]
    #[case("1e-6", "1e-3")]
    #[case("999999u", "1")]
    #[case("5m", "5m")]
    #[case("nonsense", "nonsense")]
    fn lists_are_rounded_up_to_thousandths(#[case] given: &str, #[case] expected: &str) {
        let mut list = crate::json::json!({"cpu": given});
        round_list(Some(&mut list));
        assert_eq!(list["cpu"], expected);
    }
}
