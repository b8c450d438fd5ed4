//! Values as Go prints them. Upstream's messages are full of them, and clients compare messages.

use serde_json::{Number, Value};

/// `%v`: `map[a:1 b:[x <nil>]]`
pub(crate) fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => digits(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => printed_list(items),
        Value::Object(fields) => {
            let fields: Vec<_> = sorted(fields)
                .map(|(key, value)| format!("{key}:{}", printed(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// `%v` of a list.
pub(crate) fn printed_list(items: &[Value]) -> String {
    let items: Vec<_> = items.iter().map(printed).collect();
    format!("[{}]", items.join(" "))
}

/// `%#v`: `map[string]interface {}{"a":1}`
pub(crate) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<_> = sorted(fields)
                .map(|(key, value)| format!("{key:?}:{}", syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        Value::Bool(_) | Value::Number(_) => printed(value),
    }
}

/// `%T`: `map[string]interface {}`
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What Go's JSON decoder calls a value: `cannot unmarshal array into …`.
pub(crate) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// JSON with sorted keys and with the characters escaped that Go escapes for the sake of HTML.
pub(crate) fn json_text(value: &Value) -> String {
    let text = match value {
        Value::Object(fields) => {
            let fields = sorted(fields)
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), json_text(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(json_text).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    };
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

fn digits(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    }
}

/// The fields of a map in the order in which Go prints them.
fn sorted(fields: &serde_json::Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(key, _)| *key);
    fields.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    /// Spellings seen in answers of the real server.
    #[rstest]
    #[case(json!({"b": [1, "x", null], "a": {"c": 1.5}}), "map[a:map[c:1.5] b:[1 x <nil>]]")]
    #[case(json!([true, {}, []]), "[true map[] []]")]
    #[case(json!(2.0), "2")]
    fn values_are_printed_as_go_prints_them(#[case] value: Value, #[case] expected: &str) {
        assert_eq!(printed(&value), expected);
    }

    /// From the real server: `expected string, got &value.valueUnstructured{Value:…}`.
    #[rstest]
    #[case(json!({"a": 1, "b": [true, "x"]}), r#"map[string]interface {}{"a":1, "b":[]interface {}{true, "x"}}"#)]
    #[case(json!(1.5), "1.5")]
    fn values_are_spelled_as_go_source(#[case] value: Value, #[case] expected: &str) {
        assert_eq!(syntax(&value), expected);
    }

    #[test]
    fn json_text_is_sorted_and_safe_for_html() {
        assert_eq!(
            json_text(&json!({"b": "<&>", "a": [1]})),
            "{\"a\":[1],\"b\":\"\\u003c\\u0026\\u003e\"}"
        );
    }
}
