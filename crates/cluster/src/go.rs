//! Formats values like Go. Clients see the text in cells and compare it in messages, so it must be the same.

use crate::json::Value;

/// A value in the format of errors: quoted strings, bare numbers, compact JSON.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) => plain_number(number),
        other => json(other),
    }
}

/// A number as Go's `%v` writes it: whole floats lose their point.
pub(crate) fn plain_number(number: &crate::json::Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        (_, Some(float)) => plain_float(float),
        _ => number.to_string(),
    }
}

/// A float as Go's `%v` writes it: the shortest digits, with an exponent from 1e+21 up and below 1e-4.
pub(crate) fn plain_float(float: f64) -> String {
    let size = float.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        let scientific = format!("{float:e}");
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let (sign, exponent) = exponent
            .strip_prefix('-')
            .map_or(('+', exponent), |exponent| ('-', exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{float}")
}

/// A value as Go's `%v` writes it: `map[a:1 b:[x <nil>]]`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => plain_number(number),
        Value::String(text) => text.to_string(),
        Value::Array(items) => plain_list(items),
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, value)| format!("{name}:{}", plain(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// The same for a list.
pub(crate) fn plain_list(items: &[Value]) -> String {
    let items: Vec<_> = items.iter().map(plain).collect();
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
            let fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| format!("{key:?}:{}", syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        Value::Bool(_) | Value::Number(_) => plain(value),
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

/// The name of a value's type in Go's JSON decoder: `cannot unmarshal array into …`.
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

/// Text as Go's `%q` quotes it.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\u{b}' => out.push_str("\\v"),
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Compact JSON with sorted keys as Go marshals it, with HTML characters escaped.
pub(crate) fn json(value: &Value) -> String {
    let mut out = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    #[rstest]
    #[case(0.5, "0.5")]
    #[case(2.0, "2")]
    #[case(-1.0, "-1")]
    #[case(1e20, "100000000000000000000")]
    #[case(1e21, "1e+21")]
    #[case(0.0001, "0.0001")]
    #[case(0.00001, "1e-05")]
    #[case(2.5e-7, "2.5e-07")]
    fn a_float_is_written_as_go_does(#[case] float: f64, #[case] expected: &str) {
        assert_eq!(plain_float(float), expected);
    }

    #[rstest]
    #[case(json!("a\"b\n\u{1}é"), "\"a\\\"b\\n\\x01é\"")]
    #[case(json!({"b": "<", "a": [1, 2.5]}), "{\"a\":[1,2.5],\"b\":\"\\u003c\"}")]
    #[case(json!(3.0), "3")]
    #[case(json!(null), "null")]
    fn a_value_is_shown_as_go_does(#[case] value: Value, #[case] expected: &str) {
        assert_eq!(shown(&value), expected);
    }

    /// Values from answers of the real server.
    #[rstest]
    #[case(json!({"b": [1, "x", null], "a": {"c": 1.5}}), "map[a:map[c:1.5] b:[1 x <nil>]]")]
    #[case(json!([true, {}, []]), "[true map[] []]")]
    #[case(json!(2.0), "2")]
    fn values_are_printed_as_go_prints_them(#[case] value: Value, #[case] expected: &str) {
        assert_eq!(plain(&value), expected);
    }

    /// From the real server: `expected string, got &value.valueUnstructured{Value:…}`.
    #[rstest]
    #[case(json!({"a": 1, "b": [true, "x"]}), r#"map[string]interface {}{"a":1, "b":[]interface {}{true, "x"}}"#)]
    #[case(json!(1.5), "1.5")]
    fn values_are_spelled_as_go_source(#[case] value: Value, #[case] expected: &str) {
        assert_eq!(syntax(&value), expected);
    }
}
